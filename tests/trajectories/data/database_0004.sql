BEGIN TRANSACTION;
CREATE TABLE archived_pages (
	id INTEGER NOT NULL, 
	repository_id INTEGER NOT NULL, 
	stream VARCHAR(64) NOT NULL, 
	request_key VARCHAR(64) NOT NULL, 
	fetched_at VARCHAR(32) NOT NULL, 
	body BLOB NOT NULL, 
	CONSTRAINT pk_archived_pages PRIMARY KEY (id), 
	CONSTRAINT fk_archived_pages_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE, 
	CONSTRAINT uq_archived_pages_repository_id_stream_request_key UNIQUE (repository_id, stream, request_key)
);
CREATE TABLE candidates (
	repository_id INTEGER NOT NULL, 
	strategy VARCHAR(16) NOT NULL, 
	number INTEGER NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	CONSTRAINT pk_candidates PRIMARY KEY (repository_id, strategy, number), 
	CONSTRAINT fk_candidates_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE chain_stages (
	chain_id VARCHAR(16) NOT NULL, 
	position INTEGER NOT NULL, 
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	branch VARCHAR(255) NOT NULL, 
	base_sha VARCHAR(64) NOT NULL, 
	landed_sha VARCHAR(64) NOT NULL, 
	landed_at VARCHAR(32) NOT NULL, 
	subject TEXT NOT NULL, 
	source_files INTEGER NOT NULL, 
	source_lines INTEGER NOT NULL, 
	test_files INTEGER NOT NULL, 
	test_lines INTEGER NOT NULL, 
	relation VARCHAR(16), 
	confidence DOUBLE, 
	signs TEXT, 
	CONSTRAINT pk_chain_stages PRIMARY KEY (chain_id, position), 
	CONSTRAINT fk_chain_stages_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE, 
	CONSTRAINT fk_chain_stages_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
INSERT INTO "chain_stages" VALUES('0000000000000001',1,1,1,'main','96684d3f95cd559925e23bcec158667d41d446a8','fe4aa22991ba9972a9cf136ee8a1ab20e50e66db','2026-01-01T00:00:00Z','Part 1 (#1)',1,2,0,0,NULL,NULL,NULL);
INSERT INTO "chain_stages" VALUES('0000000000000001',2,1,2,'main','84aaaa675cb611fc5971ccb436a97760e636b6d2','7b98392ed95bd10faf7c6f45a45895d1e24d5c1c','2026-01-01T00:00:00Z','Part 2 (#2)',1,2,0,0,NULL,NULL,NULL);
INSERT INTO "chain_stages" VALUES('0000000000000001',3,1,3,'main','61c14b9b8d57d6844142c59862dcd0b1a313d38f','65fcd32f775aa7cdf615205beda76a5c07620214','2026-01-01T00:00:00Z','Part 3 (#3)',1,2,0,0,NULL,NULL,NULL);
CREATE TABLE chains (
	id VARCHAR(16) NOT NULL, 
	repository_id INTEGER NOT NULL, 
	length INTEGER NOT NULL, 
	licence VARCHAR(64), 
	language VARCHAR(32), 
	CONSTRAINT pk_chains PRIMARY KEY (id), 
	CONSTRAINT fk_chains_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
INSERT INTO "chains" VALUES('0000000000000001',1,3,'MIT','python');
CREATE TABLE citations (
	repository_id INTEGER NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	relation VARCHAR(16) NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	syntax VARCHAR(16) NOT NULL, 
	snippet TEXT NOT NULL, 
	counted BOOLEAN NOT NULL, 
	reason VARCHAR(32), 
	confidence DOUBLE NOT NULL, 
	weak_signs TEXT, 
	CONSTRAINT pk_citations PRIMARY KEY (repository_id, source, target, relation, field, "key"), 
	CONSTRAINT fk_citations_pull_requests FOREIGN KEY(repository_id, source) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE closing_references (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	issue_repository VARCHAR(511) NOT NULL, 
	issue_number INTEGER NOT NULL, 
	CONSTRAINT pk_closing_references PRIMARY KEY (repository_id, number, issue_repository, issue_number), 
	CONSTRAINT fk_closing_references_issues FOREIGN KEY(repository_id, issue_repository, issue_number) REFERENCES issues (repository_id, issue_repository, issue_number) ON DELETE CASCADE, 
	CONSTRAINT fk_closing_references_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE commits (
	repository_id INTEGER NOT NULL, 
	sha VARCHAR(64) NOT NULL, 
	author TEXT NOT NULL, 
	authored_at VARCHAR(32) NOT NULL, 
	committed_at VARCHAR(32) NOT NULL, 
	parents INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_commits PRIMARY KEY (repository_id, sha), 
	CONSTRAINT fk_commits_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE cursors (
	repository_id INTEGER NOT NULL, 
	stream VARCHAR(64) NOT NULL, 
	position TEXT, 
	watermark VARCHAR(32), 
	page_size INTEGER, 
	complete BOOLEAN NOT NULL, 
	detail TEXT, 
	CONSTRAINT pk_cursors PRIMARY KEY (repository_id, stream), 
	CONSTRAINT fk_cursors_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE dependencies (
	repository_id INTEGER NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	relation VARCHAR(16) NOT NULL, 
	confidence DOUBLE NOT NULL, 
	signs TEXT NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_dependencies PRIMARY KEY (repository_id, source, target), 
	CONSTRAINT fk_dependencies_pull_requests FOREIGN KEY(repository_id, source) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE, 
	CONSTRAINT fk_dependencies_target_pull_requests FOREIGN KEY(repository_id, target) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE images (
	name VARCHAR(255) NOT NULL, 
	repository VARCHAR(255) NOT NULL, 
	recipe VARCHAR(64) NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	notes TEXT NOT NULL, 
	as_of VARCHAR(32), 
	size_bytes BIGINT, 
	seconds DOUBLE NOT NULL, 
	repairs INTEGER NOT NULL, 
	built_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_images PRIMARY KEY (name)
);
CREATE TABLE issues (
	repository_id INTEGER NOT NULL, 
	issue_repository VARCHAR(511) NOT NULL, 
	issue_number INTEGER NOT NULL, 
	title TEXT, 
	body TEXT, 
	state VARCHAR(16), 
	author VARCHAR(255), 
	CONSTRAINT pk_issues PRIMARY KEY (repository_id, issue_repository, issue_number), 
	CONSTRAINT fk_issues_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE labels (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	CONSTRAINT pk_labels PRIMARY KEY (repository_id, number, name), 
	CONSTRAINT fk_labels_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE landing_files (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	branch VARCHAR(255) NOT NULL, 
	path TEXT NOT NULL, 
	status VARCHAR(1) NOT NULL, 
	old_path TEXT, 
	old_mode VARCHAR(6) NOT NULL, 
	new_mode VARCHAR(6) NOT NULL, 
	old_blob VARCHAR(64) NOT NULL, 
	new_blob VARCHAR(64) NOT NULL, 
	additions INTEGER, 
	deletions INTEGER, 
	note VARCHAR(64), 
	CONSTRAINT pk_landing_files PRIMARY KEY (repository_id, number, branch, path), 
	CONSTRAINT fk_landing_files_landings FOREIGN KEY(repository_id, number, branch) REFERENCES landings (repository_id, number, branch) ON DELETE CASCADE
);
CREATE TABLE landings (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	branch VARCHAR(255) NOT NULL, 
	is_default BOOLEAN NOT NULL, 
	style VARCHAR(16) NOT NULL, 
	base_sha VARCHAR(64) NOT NULL, 
	landed_sha VARCHAR(64) NOT NULL, 
	head_sha VARCHAR(64), 
	landed_at VARCHAR(32) NOT NULL, 
	subject TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	claim VARCHAR(32) NOT NULL, 
	evidence VARCHAR(64) NOT NULL, 
	counts VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_landings PRIMARY KEY (repository_id, number, branch), 
	CONSTRAINT fk_landings_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE llm_calls (
	id INTEGER NOT NULL, 
	run VARCHAR(32) NOT NULL, 
	purpose VARCHAR(32) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	sample INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	request_hash VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	prompt VARCHAR(64) NOT NULL, 
	prompt_hash VARCHAR(64) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	reserved_usd DOUBLE, 
	usd DOUBLE, 
	tokens_in INTEGER, 
	tokens_cached INTEGER, 
	tokens_out INTEGER, 
	reply TEXT, 
	error TEXT, 
	started_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	CONSTRAINT pk_llm_calls PRIMARY KEY (id)
);
INSERT INTO "llm_calls" VALUES(1,'run','agent','79d217210b82e4d2/1',0,1,0,'eda46b481617bdaf9ef93e72cd1626ad1b1b7ed8fbb1997df22b5c0584d12696','stored','system_full','4fe63d2c457c132a','fake',0.021528,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_2", "name": "bash", "arguments": "{\"command\": \"echo ''value = 1'' > src/part_1.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(2,'run','agent','79d217210b82e4d2/1',0,1,0,'0292b1a93f87ce3a016b5a45d8efc697f8fb8e029eb111fabebbbc7d3c7f3eec','stored','system_full','4fe63d2c457c132a','fake',0.02183,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_4", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(3,'run','agent','79d217210b82e4d2/1',0,1,0,'cd9893afe16277e447b611178bf538e7182bd97a674410919388118c123a53fc','stored','system_full','4fe63d2c457c132a','fake',0.022135,0.00012,100,0,10,'{"text": "Done.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_6", "name": "submit", "arguments": "{}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(4,'run','judge','79d217210b82e4d2/1',0,1,0,'01e718351a57fd40eae6ab07574bbcd84cb968872217c72a118ed45d67cc953d','stored','judge','3fba322596340b9b','fake',0.014007,0.00012,100,0,10,'{"text": "{\"comment\": \"It does what was asked for.\", \"score\": 1.0}", "model": "fake", "finish": "stop", "refusal": null, "reasoning": null, "tool_calls": [], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(5,'run','agent','79d217210b82e4d2/2',0,1,0,'19b1b7599761b19588c737e5d2923fa87a498d1b3ba231c1b49e2f0ced53f5bd','stored','system_full','4fe63d2c457c132a','fake',0.022642,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_9", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2  # draft'' > src/part_2.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(6,'run','agent','79d217210b82e4d2/2',0,1,0,'ee4930daa3c5b091ff75c2840b3c05831c74d582ebb2c89d05cad0b0f18bfb66','stored','system_full','4fe63d2c457c132a','fake',0.022953,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_11", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(7,'run','agent','79d217210b82e4d2/2',0,1,0,'9c3aa7e6b7472e6c17ccbb5ce4e6737c5cc34b2582b374ec8eb9112e60617fd1','stored','system_full','4fe63d2c457c132a','fake',0.02328,0.00012,100,0,10,'{"text": "Done.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_13", "name": "submit", "arguments": "{}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(8,'run','judge','79d217210b82e4d2/2',0,1,0,'5162d9c32edd75f8c4c59b9b5db944f911bd8acb30103e6e20a0a44b2984ac99','stored','judge','3fba322596340b9b','fake',0.014016,0.00012,100,0,10,'{"text": "{\"comment\": \"The part is a draft yet, and its value is not what was asked for.\", \"score\": 0.3}", "model": "fake", "finish": "stop", "refusal": null, "reasoning": null, "tool_calls": [], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(9,'run','agent','79d217210b82e4d2/2',0,2,0,'11391e05d570e241c0053087c1b307d51b2f93cd287deaea354b04de2ba5bcd9','stored','system_full','4fe63d2c457c132a','fake',0.023863,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_16", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2'' > src/part_2.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(10,'run','agent','79d217210b82e4d2/2',0,2,0,'6ab2c15ecb58074b89381d94122c2d6ad42075f1a7581fd9447d5123a5f0fe2b','stored','system_full','4fe63d2c457c132a','fake',0.024167,0.00012,100,0,10,'{"text": "Done.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_18", "name": "submit", "arguments": "{}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(11,'run','judge','79d217210b82e4d2/2',0,2,0,'dfb6f6691007901907fb243aa3e4ea8160a099f40d8d04439bf50a16bda3c294','stored','judge','3fba322596340b9b','fake',0.014007,0.00012,100,0,10,'{"text": "{\"comment\": \"It does what was asked for.\", \"score\": 1.0}", "model": "fake", "finish": "stop", "refusal": null, "reasoning": null, "tool_calls": [], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(12,'run','agent','79d217210b82e4d2/3',0,1,0,'c561632280932698c2d49230d30d3e4550a71d5e0fc0899a1d18e6e44660ef1b','stored','system_full','4fe63d2c457c132a','fake',0.024676,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_21", "name": "bash", "arguments": "{\"command\": \"echo ''value = 3'' > src/part_3.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(13,'run','agent','79d217210b82e4d2/3',0,1,0,'e4715f859d8d54a95661529c7eb57c54be9194ae1d6566db2cc9481a21c9c914','stored','system_full','4fe63d2c457c132a','fake',0.02498,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_23", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(14,'run','agent','79d217210b82e4d2/3',0,1,0,'552fb778b393712b06b218e66fb7c8cbf3619fce5aa26448d61bd014431885df','stored','system_full','4fe63d2c457c132a','fake',0.025309,0.00012,100,0,10,'{"text": "Done.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_25", "name": "submit", "arguments": "{}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(15,'run','judge','79d217210b82e4d2/3',0,1,0,'7a00fc2c92be30c16ffb3b1088e3affeff883309119a7fc2449e561b1bebf90c','stored','judge','3fba322596340b9b','fake',0.014007,0.00012,100,0,10,'{"text": "{\"comment\": \"It does what was asked for.\", \"score\": 1.0}", "model": "fake", "finish": "stop", "refusal": null, "reasoning": null, "tool_calls": [], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(16,'run','agent','119aaa85b51d3f92/1',1,1,0,'b1bb8a0003b7b7f5318c9f60f6c5665b6c3f8cc2f81f9dbad8c2ba48a736eedf','stored','system_full','4fe63d2c457c132a','fake',0.021528,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_2", "name": "bash", "arguments": "{\"command\": \"echo ''value = 1'' > src/part_1.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(17,'run','agent','119aaa85b51d3f92/1',1,1,0,'e4017d94bdf73b364ccfea2942184c3a64f537d6783f737ebdfd58eebd7a1763','stored','system_full','4fe63d2c457c132a','fake',0.02183,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_4", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "llm_calls" VALUES(18,'run','agent','119aaa85b51d3f92/1',1,1,0,'95b4eba07f9ac4f1bdf313eb00dc68652cc6039ba30f9b8b4275ef8a92545908','stored','system_full','4fe63d2c457c132a','fake',0.022135,0.00012,100,0,10,'{"text": "Done.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_6", "name": "submit", "arguments": "{}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:47Z','2026-11-22T08:24:47Z');
INSERT INTO "llm_calls" VALUES(19,'run','judge','119aaa85b51d3f92/1',1,1,0,'01e718351a57fd40eae6ab07574bbcd84cb968872217c72a118ed45d67cc953d','stored','judge','3fba322596340b9b','fake',0.014007,0.00012,100,0,10,'{"text": "{\"comment\": \"It does what was asked for.\", \"score\": 1.0}", "model": "fake", "finish": "stop", "refusal": null, "reasoning": null, "tool_calls": [], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:47Z','2026-11-22T08:24:47Z');
INSERT INTO "llm_calls" VALUES(20,'run','agent','119aaa85b51d3f92/2',1,1,0,'b3c7e1ad5b6467a91488c1d34ee2dfa634f67fea20c5c162282acd604c2e95da','stored','system_full','4fe63d2c457c132a','fake',0.022642,0.00012,100,0,10,'{"text": "On it.", "model": "fake", "finish": "tool_calls", "refusal": null, "reasoning": null, "tool_calls": [{"id": "call_9", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2  # draft'' > src/part_2.py\"}"}], "usage": {"tokens_in": 100, "tokens_cached": 0, "tokens_out": 10}}',NULL,'2026-11-22T08:24:47Z','2026-11-22T08:24:47Z');
INSERT INTO "llm_calls" VALUES(21,'run','agent','119aaa85b51d3f92/2',1,1,0,'900304591f8a91eba829bb806ee72c22f5c614fdfe7ce94e218bce3ce7642038','reserved','system_full','4fe63d2c457c132a','fake',0.022953,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22T08:24:47Z',NULL);
CREATE TABLE mine_runs (
	id INTEGER NOT NULL, 
	repository_id INTEGER, 
	spec TEXT NOT NULL, 
	source VARCHAR(16) NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	graphql_requests INTEGER NOT NULL, 
	rest_requests INTEGER NOT NULL, 
	points INTEGER NOT NULL, 
	waited_seconds DOUBLE NOT NULL, 
	CONSTRAINT pk_mine_runs PRIMARY KEY (id), 
	CONSTRAINT fk_mine_runs_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE prchain_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT prchain_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "prchain_version" VALUES('0004');
CREATE TABLE pull_request_commits (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	origin VARCHAR(8) NOT NULL, 
	sha VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	CONSTRAINT pk_pull_request_commits PRIMARY KEY (repository_id, number, origin, sha), 
	CONSTRAINT fk_pull_request_commits_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE, 
	CONSTRAINT fk_pull_request_commits_commits FOREIGN KEY(repository_id, sha) REFERENCES commits (repository_id, sha) ON DELETE CASCADE
);
CREATE TABLE pull_request_texts (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	author VARCHAR(255), 
	author_kind VARCHAR(32), 
	author_association VARCHAR(32), 
	body TEXT NOT NULL, 
	state VARCHAR(32), 
	path TEXT, 
	diff_hunk TEXT, 
	commit_sha VARCHAR(64), 
	reply_to VARCHAR(255), 
	created_at VARCHAR(32), 
	updated_at VARCHAR(32), 
	CONSTRAINT pk_pull_request_texts PRIMARY KEY (repository_id, number, field, "key"), 
	CONSTRAINT fk_pull_request_texts_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE pull_requests (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	head_sha VARCHAR(64), 
	node_id VARCHAR(255), 
	state VARCHAR(16), 
	is_draft BOOLEAN, 
	author VARCHAR(255), 
	author_kind VARCHAR(32), 
	author_association VARCHAR(32), 
	base_branch TEXT, 
	head_branch TEXT, 
	head_repository VARCHAR(511), 
	api_head_sha VARCHAR(64), 
	api_base_sha VARCHAR(64), 
	merge_sha VARCHAR(64), 
	commit_count INTEGER, 
	changed_files INTEGER, 
	additions INTEGER, 
	deletions INTEGER, 
	created_at VARCHAR(32), 
	updated_at VARCHAR(32), 
	closed_at VARCHAR(32), 
	merged_at VARCHAR(32), 
	gone_at VARCHAR(32), 
	CONSTRAINT pk_pull_requests PRIMARY KEY (repository_id, number), 
	CONSTRAINT fk_pull_requests_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE reference_runs (
	chain_id VARCHAR(16) NOT NULL, 
	position INTEGER NOT NULL, 
	side VARCHAR(8) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	statuses TEXT NOT NULL, 
	exit_code INTEGER, 
	timed_out BOOLEAN NOT NULL, 
	complete BOOLEAN NOT NULL, 
	infra VARCHAR(32), 
	notes TEXT NOT NULL, 
	tampered TEXT NOT NULL, 
	tail TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	ran_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_reference_runs PRIMARY KEY (chain_id, position, side, ordinal), 
	CONSTRAINT fk_reference_runs_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
INSERT INTO "reference_runs" VALUES('0000000000000001',1,'before',1,'k','{"test_old": "passed", "test_part_1": "failed"}',1,0,1,NULL,'[]','[]','',0.0,'2026-01-01T00:00:00Z');
INSERT INTO "reference_runs" VALUES('0000000000000001',2,'before',1,'k','{"test_old": "passed", "test_part_2": "failed", "test_part_1": "passed"}',1,0,1,NULL,'[]','[]','',0.0,'2026-01-01T00:00:00Z');
INSERT INTO "reference_runs" VALUES('0000000000000001',3,'before',1,'k','{"test_old": "passed", "test_part_3": "failed", "test_part_1": "passed", "test_part_2": "passed"}',1,0,1,NULL,'[]','[]','',0.0,'2026-01-01T00:00:00Z');
CREATE TABLE refused_claims (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	sha VARCHAR(64) NOT NULL, 
	branch TEXT NOT NULL, 
	claim VARCHAR(32) NOT NULL, 
	reason VARCHAR(64) NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_refused_claims PRIMARY KEY (repository_id, number, sha), 
	CONSTRAINT fk_refused_claims_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE repositories (
	id INTEGER NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	owner VARCHAR(255) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	location TEXT NOT NULL, 
	default_branch TEXT, 
	node_id VARCHAR(255), 
	CONSTRAINT pk_repositories PRIMARY KEY (id), 
	CONSTRAINT uq_repositories_host_owner_name UNIQUE (host, owner, name)
);
INSERT INTO "repositories" VALUES(1,'github.com','shop','till','@TILL@','main',NULL);
CREATE TABLE repository_aliases (
	repository_id INTEGER NOT NULL, 
	alias VARCHAR(255) NOT NULL, 
	evidence VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_repository_aliases PRIMARY KEY (repository_id, alias), 
	CONSTRAINT fk_repository_aliases_repositories FOREIGN KEY(repository_id) REFERENCES repositories (id) ON DELETE CASCADE
);
CREATE TABLE selections (
	strategy VARCHAR(16) NOT NULL, 
	chain_id VARCHAR(16) NOT NULL, 
	score DOUBLE NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	selected_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_selections PRIMARY KEY (strategy, chain_id), 
	CONSTRAINT fk_selections_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
INSERT INTO "selections" VALUES('reference','0000000000000001',1.0,'selected',NULL,'2026-01-01T00:00:00Z');
CREATE TABLE stage_tests (
	chain_id VARCHAR(16) NOT NULL, 
	position INTEGER NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	image VARCHAR(255), 
	recipe VARCHAR(64), 
	runner VARCHAR(16), 
	command TEXT, 
	files TEXT NOT NULL, 
	classes TEXT NOT NULL, 
	removed TEXT NOT NULL, 
	tampered TEXT NOT NULL, 
	stage_image VARCHAR(255), 
	seconds DOUBLE NOT NULL, 
	CONSTRAINT pk_stage_tests PRIMARY KEY (chain_id, position), 
	CONSTRAINT fk_stage_tests_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
INSERT INTO "stage_tests" VALUES('0000000000000001',1,'proved',NULL,NULL,'python','pytest',NULL,'[]','{"f2p": ["test_part_1"], "p2p": ["test_old"]}','[]','[]',NULL,0.0);
INSERT INTO "stage_tests" VALUES('0000000000000001',2,'proved',NULL,NULL,'python','pytest',NULL,'[]','{"f2p": ["test_part_2"], "p2p": ["test_old", "test_part_1"]}','[]','[]',NULL,0.0);
INSERT INTO "stage_tests" VALUES('0000000000000001',3,'proved',NULL,NULL,'python','pytest',NULL,'[]','{"f2p": ["test_part_3"], "p2p": ["test_old", "test_part_1", "test_part_2"]}','[]','[]',NULL,0.0);
CREATE TABLE task_stages (
	chain_id VARCHAR(16) NOT NULL, 
	position INTEGER NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	"plan" TEXT, 
	"query" TEXT, 
	interface TEXT NOT NULL, 
	files TEXT NOT NULL, 
	findings TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	CONSTRAINT pk_task_stages PRIMARY KEY (chain_id, position), 
	CONSTRAINT fk_task_stages_tasks FOREIGN KEY(chain_id) REFERENCES tasks (chain_id) ON DELETE CASCADE
);
INSERT INTO "task_stages" VALUES('0000000000000001',1,'ready',NULL,'p','Give the till its part number 1 in src/part_1.py, which holds the value 1.','[]','["src/part_1.py"]','[]',1);
INSERT INTO "task_stages" VALUES('0000000000000001',2,'ready',NULL,'p','Give the till its part number 2 in src/part_2.py, which holds the value 2.','[]','["src/part_2.py"]','[]',1);
INSERT INTO "task_stages" VALUES('0000000000000001',3,'ready',NULL,'p','Give the till its part number 3 in src/part_3.py, which holds the value 3.','[]','["src/part_3.py"]','[]',1);
CREATE TABLE tasks (
	chain_id VARCHAR(16) NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	overview TEXT, 
	findings TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	model VARCHAR(255), 
	prompts TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_tasks PRIMARY KEY (chain_id), 
	CONSTRAINT fk_tasks_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
INSERT INTO "tasks" VALUES('0000000000000001','ready',NULL,'The till learns its five parts one after the other, and each of them stands on those before it.','[]',1,'m','{}','2026-01-01T00:00:00Z');
CREATE TABLE timeline_events (
	repository_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	actor VARCHAR(255), 
	created_at VARCHAR(32), 
	other_repository VARCHAR(511), 
	other_number INTEGER, 
	other_kind VARCHAR(16), 
	closes BOOLEAN, 
	sha VARCHAR(64), 
	"before" TEXT, 
	"after" TEXT, 
	CONSTRAINT pk_timeline_events PRIMARY KEY (repository_id, number, "key"), 
	CONSTRAINT fk_timeline_events_pull_requests FOREIGN KEY(repository_id, number) REFERENCES pull_requests (repository_id, number) ON DELETE CASCADE
);
CREATE TABLE trajectories (
	id VARCHAR(16) NOT NULL, 
	chain_id VARCHAR(16) NOT NULL, 
	sample INTEGER NOT NULL, 
	parent_id VARCHAR(16), 
	parent_step INTEGER, 
	scaffold VARCHAR(32) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	judge VARCHAR(255), 
	options TEXT NOT NULL, 
	options_hash VARCHAR(64) NOT NULL, 
	prompts TEXT NOT NULL, 
	tools TEXT NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	accepted INTEGER NOT NULL, 
	overview TEXT, 
	usd DOUBLE, 
	tokens_in INTEGER NOT NULL, 
	tokens_out INTEGER NOT NULL, 
	steps INTEGER NOT NULL, 
	seconds DOUBLE NOT NULL, 
	worker VARCHAR(64), 
	tries INTEGER NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	CONSTRAINT pk_trajectories PRIMARY KEY (id), 
	CONSTRAINT fk_trajectories_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
INSERT INTO "trajectories" VALUES('79d217210b82e4d2','0000000000000001',0,NULL,NULL,'react','fake','fake','{"backend": "unsafe-local", "carry": "agent", "chain_limits": {"seconds": null, "steps": null, "tokens": null, "usd": null}, "command_timeout": 120.0, "context": "chain", "context_tokens": null, "gate": "judge", "history": 0, "interface": "appended", "max_tokens": 8192, "min_length": 2, "observation_chars": 10000, "on_fail": "stop", "overflow": "stop", "refinements": 3, "scaffold": "react", "stage_limits": {"seconds": null, "steps": 100, "tokens": null, "usd": null}, "temperature": null, "test_timeout": 900.0, "tests": "always", "threshold": 0.8, "tools": "full", "track_steps": true}','df6efc17a6f01b59b97160f2dac57a00bcfe99ede27b5bbae6d9a196b9687698','{"comment": "@COMMENT@", "comment_again": "@COMMENT_AGAIN@", "judge": "@JUDGE@", "query": "@QUERY@", "system_full": "@SYSTEM_FULL@"}','@TOOLS@','accepted',NULL,3,'The till learns its five parts one after the other, and each of them stands on those before it.',0.0018,1500,150,11,1.99860990998786292038e-01,NULL,0,'2026-11-22T08:24:46Z','2026-11-22T08:24:46Z');
INSERT INTO "trajectories" VALUES('119aaa85b51d3f92','0000000000000001',1,NULL,NULL,'react','fake','fake','{"backend": "unsafe-local", "carry": "agent", "chain_limits": {"seconds": null, "steps": null, "tokens": null, "usd": null}, "command_timeout": 120.0, "context": "chain", "context_tokens": null, "gate": "judge", "history": 0, "interface": "appended", "max_tokens": 8192, "min_length": 2, "observation_chars": 10000, "on_fail": "stop", "overflow": "stop", "refinements": 3, "scaffold": "react", "stage_limits": {"seconds": null, "steps": 100, "tokens": null, "usd": null}, "temperature": null, "test_timeout": 900.0, "tests": "always", "threshold": 0.8, "tools": "full", "track_steps": true}','df6efc17a6f01b59b97160f2dac57a00bcfe99ede27b5bbae6d9a196b9687698','{"comment": "@COMMENT@", "comment_again": "@COMMENT_AGAIN@", "judge": "@JUDGE@", "query": "@QUERY@", "system_full": "@SYSTEM_FULL@"}','@TOOLS@','running',NULL,0,NULL,0.0,0,0,0,0.0,'vm:4361',0,'2026-11-22T08:24:46Z',NULL);
CREATE TABLE trajectory_messages (
	trajectory_id VARCHAR(16) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	content TEXT NOT NULL, 
	reasoning TEXT, 
	tool_calls TEXT NOT NULL, 
	tool_call_id VARCHAR(255), 
	tool_name VARCHAR(64), 
	error VARCHAR(32), 
	details TEXT NOT NULL, 
	tokens_in INTEGER, 
	tokens_cached INTEGER, 
	tokens_out INTEGER, 
	usd DOUBLE, 
	seconds DOUBLE NOT NULL, 
	tree VARCHAR(64), 
	cwd VARCHAR(1024), 
	at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_trajectory_messages PRIMARY KEY (trajectory_id, ordinal), 
	CONSTRAINT fk_trajectory_messages_trajectories FOREIGN KEY(trajectory_id) REFERENCES trajectories (id) ON DELETE CASCADE
);
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',0,1,1,0,'system','system','You are a software engineer. You work in a sandbox, in a real repository that lies in @FOLDER@/tmpvt32b09w/testbed, and you get your work
as a row of tasks: when one is done, the next comes, and it builds on what you left.

Your tools:

- `bash` runs commands in one session: working directory and exported variables stay. A command is ended after
  120 seconds. Nobody can answer prompts, there is no terminal, and there is no network.
- `str_replace_editor` shows files with line numbers, and creates and edits them. It wants absolute paths.
- `think` takes down a thought.
- `submit` hands your work in.

Of an output longer than 10,000 characters you see a part; ask more narrowly for the rest.

How to go about a task:

1. Read the code that the task is about before you change anything: how it works now, who calls it, how it is tested.
2. Where something is broken, see it fail first, with a small script or a test.
3. Change the source files so that the task is solved in general, for cases that it does not spell out, too. Keep to the
   style of the code around it, and change nothing that the task does not need.
4. Run what you changed, and the tests that touch it. Remove the scripts that you only made to try things.

Every reply calls a tool; say in a sentence or two what you are after before you do. Do not ask back: where the task
leaves something open, choose what fits the repository best.

When the task is done and checked, call `submit`. Your work may then come back with a review. If so, go on from where you
were and submit again.',NULL,'[]',NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',1,1,1,0,'query','user','The work is on shop/till. It has 3 tasks. This is what it is about as a whole:

<overview>
The till learns its five parts one after the other, and each of them stands on those before it.
</overview>

Task 1 of 3:

<task>
Give the till its part number 1 in src/part_1.py, which holds the value 1.
</task>

The repository is in @FOLDER@/tmpvt32b09w/testbed.',NULL,'[]',NULL,NULL,NULL,'{"overview": "The till learns its five parts one after the other, and each of them stands on those before it.", "query": "Give the till its part number 1 in src/part_1.py, which holds the value 1.", "workdir": "@FOLDER@/tmpvt32b09w/testbed", "earlier": "agent"}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',2,1,1,1,'turn','assistant','On it.',NULL,'[{"id": "call_2", "name": "bash", "arguments": "{\"command\": \"echo ''value = 1'' > src/part_1.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,5.74294099988037487491e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',3,1,1,1,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_2','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,1.6338249997716047801e-03,'2ab15580020c4db584b0bb61946ffce8e7dfc36c',NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',4,1,1,2,'turn','assistant','On it.',NULL,'[{"id": "call_4", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.85859000066557200625e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',5,1,1,2,'observation','tool','<returncode>0</returncode>
<output>
value = 1
</output>',NULL,'[]','call_4','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,2.77608800024609081447e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',6,1,1,3,'turn','assistant','Done.',NULL,'[{"id": "call_6", "name": "submit", "arguments": "{}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.69422599992685718461e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',7,1,1,3,'observation','tool','Your work was handed in.',NULL,'[]','call_6','submit',NULL,'{"submitted": true}',NULL,NULL,NULL,NULL,6.63999981043161824345e-06,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',8,2,1,3,'query','user','Task 2 of 3:

<task>
Give the till its part number 2 in src/part_2.py, which holds the value 2.
</task>

The repository is in @FOLDER@/tmpnywn9ouv/testbed. It holds your work on the earlier tasks, and what others did to it meanwhile.',NULL,'[]',NULL,NULL,NULL,'{"overview": null, "query": "Give the till its part number 2 in src/part_2.py, which holds the value 2.", "workdir": "@FOLDER@/tmpnywn9ouv/testbed", "earlier": "agent"}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',9,2,1,4,'turn','assistant','On it.',NULL,'[{"id": "call_9", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2  # draft'' > src/part_2.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,2.54825899992283666506e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',10,2,1,4,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_9','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,2.60738700035290094092e-03,'92e703018ddbad8b57c50f7f92db00c307b3d5c8',NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',11,2,1,5,'turn','assistant','On it.',NULL,'[{"id": "call_11", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.7708499999571358785e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',12,2,1,5,'observation','tool','<returncode>0</returncode>
<output>
value = 1
value = 2  # draft
</output>',NULL,'[]','call_11','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,2.58426199980021920055e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',13,2,1,6,'turn','assistant','Done.',NULL,'[{"id": "call_13", "name": "submit", "arguments": "{}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.56351099940366111695e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',14,2,1,6,'observation','tool','Your work was handed in.',NULL,'[]','call_13','submit',NULL,'{"submitted": true}',NULL,NULL,NULL,NULL,7.69199959904654e-06,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',15,2,2,6,'comment','user','Your work on this task was reviewed, and it is not accepted yet. The review says:

<review>
The part is a draft yet, and its value is not what was asked for.
</review>

The repository is as you left it. Look into what the review points out, mend it, check the whole task once more, and hand
your work in again.',NULL,'[]',NULL,NULL,NULL,'{"comment": "The part is a draft yet, and its value is not what was asked for."}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',16,2,2,7,'turn','assistant','On it.',NULL,'[{"id": "call_16", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2'' > src/part_2.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.94641100006265332922e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',17,2,2,7,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_16','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,1.91116899986809585243e-03,'21af10b9d08805501a8348567da65347cd5d3569',NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',18,2,2,8,'turn','assistant','Done.',NULL,'[{"id": "call_18", "name": "submit", "arguments": "{}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.64116699943406274542e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',19,2,2,8,'observation','tool','Your work was handed in.',NULL,'[]','call_18','submit',NULL,'{"submitted": true}',NULL,NULL,NULL,NULL,8.11200061434647e-06,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',20,3,1,8,'query','user','Task 3 of 3:

<task>
Give the till its part number 3 in src/part_3.py, which holds the value 3.
</task>

The repository is in @FOLDER@/tmpipqlum4j/testbed. It holds your work on the earlier tasks, and what others did to it meanwhile.',NULL,'[]',NULL,NULL,NULL,'{"overview": null, "query": "Give the till its part number 3 in src/part_3.py, which holds the value 3.", "workdir": "@FOLDER@/tmpipqlum4j/testbed", "earlier": "agent"}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',21,3,1,9,'turn','assistant','On it.',NULL,'[{"id": "call_21", "name": "bash", "arguments": "{\"command\": \"echo ''value = 3'' > src/part_3.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,2.25489199965522857382e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',22,3,1,9,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_21','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,1.4689700001326855272e-03,'e8900a53e310141c3474e7a9fd53e830710c5317',NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',23,3,1,10,'turn','assistant','On it.',NULL,'[{"id": "call_23", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.64360999951895792037e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',24,3,1,10,'observation','tool','<returncode>0</returncode>
<output>
value = 1
value = 2
value = 3
</output>',NULL,'[]','call_23','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,0.00249720299962064,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',25,3,1,11,'turn','assistant','Done.',NULL,'[{"id": "call_25", "name": "submit", "arguments": "{}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.32460500026354566216e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('79d217210b82e4d2',26,3,1,11,'observation','tool','Your work was handed in.',NULL,'[]','call_25','submit',NULL,'{"submitted": true}',NULL,NULL,NULL,NULL,5.79800052946666255593e-06,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',0,1,1,0,'system','system','You are a software engineer. You work in a sandbox, in a real repository that lies in @FOLDER@/tmphemqqswi/testbed, and you get your work
as a row of tasks: when one is done, the next comes, and it builds on what you left.

Your tools:

- `bash` runs commands in one session: working directory and exported variables stay. A command is ended after
  120 seconds. Nobody can answer prompts, there is no terminal, and there is no network.
- `str_replace_editor` shows files with line numbers, and creates and edits them. It wants absolute paths.
- `think` takes down a thought.
- `submit` hands your work in.

Of an output longer than 10,000 characters you see a part; ask more narrowly for the rest.

How to go about a task:

1. Read the code that the task is about before you change anything: how it works now, who calls it, how it is tested.
2. Where something is broken, see it fail first, with a small script or a test.
3. Change the source files so that the task is solved in general, for cases that it does not spell out, too. Keep to the
   style of the code around it, and change nothing that the task does not need.
4. Run what you changed, and the tests that touch it. Remove the scripts that you only made to try things.

Every reply calls a tool; say in a sentence or two what you are after before you do. Do not ask back: where the task
leaves something open, choose what fits the repository best.

When the task is done and checked, call `submit`. Your work may then come back with a review. If so, go on from where you
were and submit again.',NULL,'[]',NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',1,1,1,0,'query','user','The work is on shop/till. It has 3 tasks. This is what it is about as a whole:

<overview>
The till learns its five parts one after the other, and each of them stands on those before it.
</overview>

Task 1 of 3:

<task>
Give the till its part number 1 in src/part_1.py, which holds the value 1.
</task>

The repository is in @FOLDER@/tmphemqqswi/testbed.',NULL,'[]',NULL,NULL,NULL,'{"overview": "The till learns its five parts one after the other, and each of them stands on those before it.", "query": "Give the till its part number 1 in src/part_1.py, which holds the value 1.", "workdir": "@FOLDER@/tmphemqqswi/testbed", "earlier": "agent"}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',2,1,1,1,'turn','assistant','On it.',NULL,'[{"id": "call_2", "name": "bash", "arguments": "{\"command\": \"echo ''value = 1'' > src/part_1.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,2.47988699993584305047e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',3,1,1,1,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_2','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,1.43138399926101556047e-03,'2ab15580020c4db584b0bb61946ffce8e7dfc36c',NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',4,1,1,2,'turn','assistant','On it.',NULL,'[{"id": "call_4", "name": "bash", "arguments": "{\"command\": \"cat src/part_*.py | sort\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.82961700011219363659e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',5,1,1,2,'observation','tool','<returncode>0</returncode>
<output>
value = 1
</output>',NULL,'[]','call_4','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,2.9027880000285222195e-03,NULL,NULL,'2026-11-22T08:24:46Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',6,1,1,3,'turn','assistant','Done.',NULL,'[{"id": "call_6", "name": "submit", "arguments": "{}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,1.39128399951005121693e-03,NULL,NULL,'2026-11-22T08:24:47Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',7,1,1,3,'observation','tool','Your work was handed in.',NULL,'[]','call_6','submit',NULL,'{"submitted": true}',NULL,NULL,NULL,NULL,5.59799991606269e-06,NULL,NULL,'2026-11-22T08:24:47Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',8,2,1,3,'query','user','Task 2 of 3:

<task>
Give the till its part number 2 in src/part_2.py, which holds the value 2.
</task>

The repository is in @FOLDER@/tmp3d7z1vvk/testbed. It holds your work on the earlier tasks, and what others did to it meanwhile.',NULL,'[]',NULL,NULL,NULL,'{"overview": null, "query": "Give the till its part number 2 in src/part_2.py, which holds the value 2.", "workdir": "@FOLDER@/tmp3d7z1vvk/testbed", "earlier": "agent"}',NULL,NULL,NULL,NULL,0.0,NULL,NULL,'2026-11-22T08:24:47Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',9,2,1,4,'turn','assistant','On it.',NULL,'[{"id": "call_9", "name": "bash", "arguments": "{\"command\": \"echo ''value = 2  # draft'' > src/part_2.py\"}"}]',NULL,NULL,NULL,'{"finish": "tool_calls", "model": "fake"}',100,0,10,0.00012,2.41374800043558934703e-03,NULL,NULL,'2026-11-22T08:24:47Z');
INSERT INTO "trajectory_messages" VALUES('119aaa85b51d3f92',10,2,1,4,'observation','tool','<returncode>0</returncode>
<output>
</output>',NULL,'[]','call_9','bash',NULL,'{"exit_code": 0}',NULL,NULL,NULL,NULL,2.58844899963150965049e-03,'92e703018ddbad8b57c50f7f92db00c307b3d5c8',NULL,'2026-11-22T08:24:47Z');
CREATE TABLE trajectory_stages (
	trajectory_id VARCHAR(16) NOT NULL, 
	position INTEGER NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	start_tree VARCHAR(64), 
	end_tree VARCHAR(64), 
	conflicts TEXT NOT NULL, 
	reset_tests TEXT NOT NULL, 
	"check" TEXT NOT NULL, 
	endings TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	steps INTEGER NOT NULL, 
	seconds DOUBLE NOT NULL, 
	CONSTRAINT pk_trajectory_stages PRIMARY KEY (trajectory_id, position), 
	CONSTRAINT fk_trajectory_stages_trajectories FOREIGN KEY(trajectory_id) REFERENCES trajectories (id) ON DELETE CASCADE
);
INSERT INTO "trajectory_stages" VALUES('79d217210b82e4d2',1,'accepted',NULL,'6b38e406d68398cbff5d1665f05d5556a0a9b2d4','2ab15580020c4db584b0bb61946ffce8e7dfc36c','[]','[]','{"done_early": [], "carried_failure": [], "state_broken": false}','["submitted"]',1,3,3.40275640000982093624e-02);
INSERT INTO "trajectory_stages" VALUES('79d217210b82e4d2',2,'accepted',NULL,'350a5e53ac60039fa433c3069c12917a7e021d80','21af10b9d08805501a8348567da65347cd5d3569','[]','[]','{"done_early": [], "carried_failure": [], "state_broken": false}','["submitted", "submitted"]',2,5,1.45753006999257195275e-01);
INSERT INTO "trajectory_stages" VALUES('79d217210b82e4d2',3,'accepted',NULL,'bb935b5fc86f89edef4a480cb8ea12da4830f75e','e8900a53e310141c3474e7a9fd53e830710c5317','[]','[]','{"done_early": [], "carried_failure": [], "state_broken": false}','["submitted"]',1,3,2.00804199994308874011e-02);
INSERT INTO "trajectory_stages" VALUES('119aaa85b51d3f92',1,'accepted',NULL,'6b38e406d68398cbff5d1665f05d5556a0a9b2d4','2ab15580020c4db584b0bb61946ffce8e7dfc36c','[]','[]','{"done_early": [], "carried_failure": [], "state_broken": false}','["submitted"]',1,3,2.68000919995756703428e-02);
INSERT INTO "trajectory_stages" VALUES('119aaa85b51d3f92',2,'running',NULL,'350a5e53ac60039fa433c3069c12917a7e021d80','350a5e53ac60039fa433c3069c12917a7e021d80','[]','[]','{"done_early": [], "carried_failure": [], "state_broken": false}','[]',0,0,0.0);
CREATE TABLE validations (
	chain_id VARCHAR(16) NOT NULL, 
	outcome VARCHAR(32) NOT NULL, 
	reason TEXT, 
	backend VARCHAR(16) NOT NULL, 
	seconds DOUBLE NOT NULL, 
	validated_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_validations PRIMARY KEY (chain_id), 
	CONSTRAINT fk_validations_chains FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
);
CREATE TABLE verdicts (
	trajectory_id VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	tree VARCHAR(64) NOT NULL, 
	accepted BOOLEAN, 
	gate VARCHAR(16) NOT NULL, 
	score DOUBLE, 
	comment TEXT, 
	shown TEXT, 
	findings TEXT NOT NULL, 
	judge_error VARCHAR(32), 
	tests VARCHAR(32), 
	grade TEXT NOT NULL, 
	usd DOUBLE, 
	seconds DOUBLE NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_verdicts PRIMARY KEY (trajectory_id, position, attempt), 
	CONSTRAINT fk_verdicts_trajectory_stages FOREIGN KEY(trajectory_id, position) REFERENCES trajectory_stages (trajectory_id, position) ON DELETE CASCADE
);
INSERT INTO "verdicts" VALUES('79d217210b82e4d2',1,1,'2ab15580020c4db584b0bb61946ffce8e7dfc36c',1,'judge',1.0,'It does what was asked for.',NULL,'[]',NULL,'passed','{"outcome": "passed", "f2p_passed": ["test_part_1"], "f2p_failed": [], "p2p_kept": ["test_old"], "p2p_broken": [], "earlier_broken": [], "carried_failure": [], "carried_fixed": [], "done_early": [], "still_failing": []}',0.00012,2.03152539997972780838e-02,'2026-11-22T08:24:46Z');
INSERT INTO "verdicts" VALUES('79d217210b82e4d2',2,1,'92e703018ddbad8b57c50f7f92db00c307b3d5c8',0,'judge',0.3,'The part is a draft yet, and its value is not what was asked for.','The part is a draft yet, and its value is not what was asked for.','[]',NULL,'f2p_failed','{"outcome": "f2p_failed", "f2p_passed": [], "f2p_failed": ["test_part_2"], "p2p_kept": ["test_old", "test_part_1"], "p2p_broken": [], "earlier_broken": [], "carried_failure": [], "carried_fixed": [], "done_early": [], "still_failing": []}',0.00012,1.20015960000273480545e-01,'2026-11-22T08:24:46Z');
INSERT INTO "verdicts" VALUES('79d217210b82e4d2',2,2,'21af10b9d08805501a8348567da65347cd5d3569',1,'judge',1.0,'It does what was asked for.',NULL,'[]',NULL,'passed','{"outcome": "passed", "f2p_passed": ["test_part_2"], "f2p_failed": [], "p2p_kept": ["test_old", "test_part_1"], "p2p_broken": [], "earlier_broken": [], "carried_failure": [], "carried_fixed": [], "done_early": [], "still_failing": []}',0.00012,9.14822699996875599026e-03,'2026-11-22T08:24:46Z');
INSERT INTO "verdicts" VALUES('79d217210b82e4d2',3,1,'e8900a53e310141c3474e7a9fd53e830710c5317',1,'judge',1.0,'It does what was asked for.',NULL,'[]',NULL,'passed','{"outcome": "passed", "f2p_passed": ["test_part_3"], "f2p_failed": [], "p2p_kept": ["test_old", "test_part_1", "test_part_2"], "p2p_broken": [], "earlier_broken": [], "carried_failure": [], "carried_fixed": [], "done_early": [], "still_failing": []}',0.00012,1.08853419997103628702e-02,'2026-11-22T08:24:46Z');
INSERT INTO "verdicts" VALUES('119aaa85b51d3f92',1,1,'2ab15580020c4db584b0bb61946ffce8e7dfc36c',1,'judge',1.0,'It does what was asked for.',NULL,'[]',NULL,'passed','{"outcome": "passed", "f2p_passed": ["test_part_1"], "f2p_failed": [], "p2p_kept": ["test_old"], "p2p_broken": [], "earlier_broken": [], "carried_failure": [], "carried_fixed": [], "done_early": [], "still_failing": []}',0.00012,1.67595340008119819685e-02,'2026-11-22T08:24:47Z');
CREATE INDEX ix_pull_requests_outcome ON pull_requests (repository_id, outcome);
CREATE INDEX ix_citations_target ON citations (repository_id, target);
CREATE INDEX ix_landings_landed_sha ON landings (repository_id, landed_sha);
CREATE INDEX ix_pull_request_commits_sha ON pull_request_commits (repository_id, sha);
CREATE INDEX ix_timeline_events_source ON timeline_events (repository_id, other_number);
CREATE INDEX ix_landing_files_path ON landing_files (repository_id, path);
CREATE VIEW landed_pull_requests (
    repository, number, style, branch, base_sha, landed_sha, head_sha, landed_at, subject
) AS
SELECT
    r.owner || '/' || r.name,
    l.number,
    l.style,
    l.branch,
    l.base_sha,
    l.landed_sha,
    l.head_sha,
    l.landed_at,
    l.subject
FROM (
    SELECT
        landings.*,
        row_number() OVER (
            PARTITION BY repository_id, number ORDER BY is_default DESC, landed_at, branch
        ) AS rank
    FROM landings
) AS l
JOIN repositories AS r ON r.id = l.repository_id
WHERE l.rank = 1;
CREATE VIEW citation_edges (
    repository, source, target, relation, syntax, field, snippet, counted, reason
) AS
SELECT
    r.owner || '/' || r.name,
    c.source,
    c.target,
    c.relation,
    c.syntax,
    c.field,
    c.snippet,
    CASE WHEN c.counted THEN 1 ELSE 0 END,
    CASE WHEN c.counted THEN NULL ELSE c.reason END
FROM citations AS c
JOIN repositories AS r ON r.id = c.repository_id
JOIN pull_requests AS cited ON cited.repository_id = c.repository_id AND cited.number = c.target
WHERE NOT EXISTS (
    SELECT 1
    FROM citations AS better
    WHERE better.repository_id = c.repository_id
        AND better.source = c.source
        AND better.target = c.target
        AND better.relation = c.relation
        AND better.field = c.field
        AND better.key <> c.key
        AND CASE
            WHEN better.counted <> c.counted THEN better.counted
            WHEN better.confidence <> c.confidence THEN better.confidence > c.confidence
            ELSE better.key < c.key
        END
);
CREATE INDEX ix_llm_calls_key ON llm_calls (purpose, subject, sample, attempt, ordinal, request_hash);
CREATE INDEX ix_llm_calls_run ON llm_calls (run, state);
CREATE INDEX ix_chains_repository ON chains (repository_id);
CREATE INDEX ix_chain_stages_number ON chain_stages (repository_id, number);
CREATE INDEX ix_images_repository ON images (repository);
CREATE INDEX ix_trajectories_chain ON trajectories (chain_id, sample);
COMMIT;
