"""The first tables, and the two views that are a promise to users.

Migrations 0001 to 0003 were never released; this one makes what all of them made.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = None

# One row per pull request that landed: on the default branch where it did, else where it landed first.
LANDED_PULL_REQUESTS = """
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
            PARTITION BY repository_id, number ORDER BY is_default DESC, landed_at, branch{by_bytes}
        ) AS rank
    FROM landings
) AS l
JOIN repositories AS r ON r.id = l.repository_id
WHERE l.rank = 1
"""

# One row per source, target, relation and field: the occurrence that counts, then the most certain one, then the first.
CITATION_EDGES = """
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
            ELSE better.key{by_bytes} < c.key{by_bytes}
        END
)
"""


def upgrade() -> None:
    op.create_table(
        "repositories",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.Text(), nullable=True),
        sa.Column("node_id", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_repositories"),
        sa.UniqueConstraint("host", "owner", "name", name="uq_repositories_host_owner_name"),
    )
    op.create_table(
        "archived_pages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("stream", sa.String(length=64), nullable=False),
        sa.Column("request_key", sa.String(length=64), nullable=False),
        sa.Column("fetched_at", sa.String(length=32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_archived_pages_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_archived_pages"),
        sa.UniqueConstraint(
            "repository_id", "stream", "request_key", name="uq_archived_pages_repository_id_stream_request_key"
        ),
    )
    op.create_table(
        "commits",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("authored_at", sa.String(length=32), nullable=False),
        sa.Column("committed_at", sa.String(length=32), nullable=False),
        sa.Column("parents", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_commits_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "sha", name="pk_commits"),
    )
    op.create_table(
        "cursors",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("stream", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("watermark", sa.String(length=32), nullable=True),
        sa.Column("page_size", sa.Integer(), nullable=True),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_cursors_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "stream", name="pk_cursors"),
    )
    op.create_table(
        "issues",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("issue_repository", sa.String(length=511), nullable=False),
        sa.Column("issue_number", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=True),
        sa.Column("author", sa.String(length=255), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_issues_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "issue_repository", "issue_number", name="pk_issues"),
    )
    op.create_table(
        "mine_runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=True),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("graphql_requests", sa.Integer(), nullable=False),
        sa.Column("rest_requests", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("waited_seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_mine_runs_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_mine_runs"),
    )
    op.create_table(
        "pull_requests",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("head_sha", sa.String(length=64), nullable=True),
        sa.Column("node_id", sa.String(length=255), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=True),
        sa.Column("is_draft", sa.Boolean(), nullable=True),
        sa.Column("author", sa.String(length=255), nullable=True),
        sa.Column("author_kind", sa.String(length=32), nullable=True),
        sa.Column("author_association", sa.String(length=32), nullable=True),
        sa.Column("base_branch", sa.Text(), nullable=True),
        sa.Column("head_branch", sa.Text(), nullable=True),
        sa.Column("head_repository", sa.String(length=511), nullable=True),
        sa.Column("api_head_sha", sa.String(length=64), nullable=True),
        sa.Column("api_base_sha", sa.String(length=64), nullable=True),
        sa.Column("merge_sha", sa.String(length=64), nullable=True),
        sa.Column("commit_count", sa.Integer(), nullable=True),
        sa.Column("changed_files", sa.Integer(), nullable=True),
        sa.Column("additions", sa.Integer(), nullable=True),
        sa.Column("deletions", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=True),
        sa.Column("updated_at", sa.String(length=32), nullable=True),
        sa.Column("closed_at", sa.String(length=32), nullable=True),
        sa.Column("merged_at", sa.String(length=32), nullable=True),
        sa.Column("gone_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_pull_requests_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", name="pk_pull_requests"),
    )
    op.create_index("ix_pull_requests_outcome", "pull_requests", ["repository_id", "outcome"], unique=False)
    op.create_table(
        "refused_claims",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("claim", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_refused_claims_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "sha", name="pk_refused_claims"),
    )
    op.create_table(
        "repository_aliases",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("alias", sa.String(length=255), nullable=False),
        sa.Column("evidence", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_repository_aliases_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "alias", name="pk_repository_aliases"),
    )
    op.create_table(
        "citations",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=False),
        sa.Column("field", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("syntax", sa.String(length=16), nullable=False),
        sa.Column("snippet", sa.Text(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("weak_signs", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "source"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_citations_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "source", "target", "relation", "field", "key", name="pk_citations"),
    )
    op.create_index("ix_citations_target", "citations", ["repository_id", "target"], unique=False)
    op.create_table(
        "closing_references",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("issue_repository", sa.String(length=511), nullable=False),
        sa.Column("issue_number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "issue_repository", "issue_number"],
            ["issues.repository_id", "issues.issue_repository", "issues.issue_number"],
            name="fk_closing_references_issues",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_closing_references_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "repository_id", "number", "issue_repository", "issue_number", name="pk_closing_references"
        ),
    )
    op.create_table(
        "labels",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_labels_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "name", name="pk_labels"),
    )
    op.create_table(
        "landings",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("branch", sa.String(length=255), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("style", sa.String(length=16), nullable=False),
        sa.Column("base_sha", sa.String(length=64), nullable=False),
        sa.Column("landed_sha", sa.String(length=64), nullable=False),
        sa.Column("head_sha", sa.String(length=64), nullable=True),
        sa.Column("landed_at", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("claim", sa.String(length=32), nullable=False),
        sa.Column("evidence", sa.String(length=64), nullable=False),
        sa.Column("counts", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_landings_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "branch", name="pk_landings"),
    )
    op.create_index("ix_landings_landed_sha", "landings", ["repository_id", "landed_sha"], unique=False)
    op.create_table(
        "pull_request_commits",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(length=8), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_pull_request_commits_pull_requests",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["repository_id", "sha"],
            ["commits.repository_id", "commits.sha"],
            name="fk_pull_request_commits_commits",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "origin", "sha", name="pk_pull_request_commits"),
    )
    op.create_index("ix_pull_request_commits_sha", "pull_request_commits", ["repository_id", "sha"], unique=False)
    op.create_table(
        "pull_request_texts",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("field", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=True),
        sa.Column("author_kind", sa.String(length=32), nullable=True),
        sa.Column("author_association", sa.String(length=32), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("diff_hunk", sa.Text(), nullable=True),
        sa.Column("commit_sha", sa.String(length=64), nullable=True),
        sa.Column("reply_to", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=True),
        sa.Column("updated_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_pull_request_texts_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "field", "key", name="pk_pull_request_texts"),
    )
    op.create_table(
        "timeline_events",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=True),
        sa.Column("other_repository", sa.String(length=511), nullable=True),
        sa.Column("other_number", sa.Integer(), nullable=True),
        sa.Column("other_kind", sa.String(length=16), nullable=True),
        sa.Column("closes", sa.Boolean(), nullable=True),
        sa.Column("sha", sa.String(length=64), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_timeline_events_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "key", name="pk_timeline_events"),
    )
    op.create_index("ix_timeline_events_source", "timeline_events", ["repository_id", "other_number"], unique=False)
    op.create_table(
        "landing_files",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("branch", sa.String(length=255), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=1), nullable=False),
        sa.Column("old_path", sa.Text(), nullable=True),
        sa.Column("old_mode", sa.String(length=6), nullable=False),
        sa.Column("new_mode", sa.String(length=6), nullable=False),
        sa.Column("old_blob", sa.String(length=64), nullable=False),
        sa.Column("new_blob", sa.String(length=64), nullable=False),
        sa.Column("additions", sa.Integer(), nullable=True),
        sa.Column("deletions", sa.Integer(), nullable=True),
        sa.Column("note", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "number", "branch"],
            ["landings.repository_id", "landings.number", "landings.branch"],
            name="fk_landing_files_landings",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "branch", "path", name="pk_landing_files"),
    )
    op.create_index("ix_landing_files_path", "landing_files", ["repository_id", "path"], unique=False)
    op.create_table(
        "llm_calls",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("prompt", sa.String(length=64), nullable=False),
        sa.Column("prompt_hash", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("reserved_usd", sa.Double(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm_calls")),
    )
    op.create_index(
        "ix_llm_calls_key",
        "llm_calls",
        ["purpose", "subject", "sample", "attempt", "ordinal", "request_hash"],
        unique=False,
    )
    op.create_index("ix_llm_calls_run", "llm_calls", ["run", "state"], unique=False)
    op.create_table(
        "chains",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("licence", sa.String(length=64), nullable=True),
        sa.Column("language", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name=op.f("fk_chains_repositories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chains")),
    )
    op.create_index("ix_chains_repository", "chains", ["repository_id"], unique=False)
    op.create_table(
        "candidates",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_candidates_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "strategy", "number", name=op.f("pk_candidates")),
    )
    op.create_table(
        "chain_stages",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("branch", sa.String(length=255), nullable=False),
        sa.Column("base_sha", sa.String(length=64), nullable=False),
        sa.Column("landed_sha", sa.String(length=64), nullable=False),
        sa.Column("landed_at", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("source_files", sa.Integer(), nullable=False),
        sa.Column("source_lines", sa.Integer(), nullable=False),
        sa.Column("test_files", sa.Integer(), nullable=False),
        sa.Column("test_lines", sa.Integer(), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("signs", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_chain_stages_chains"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name=op.f("fk_chain_stages_repositories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_chain_stages")),
    )
    op.create_index("ix_chain_stages_number", "chain_stages", ["repository_id", "number"], unique=False)
    op.create_table(
        "dependencies",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("signs", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "source"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_dependencies_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["repository_id", "target"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_dependencies_target_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "source", "target", name=op.f("pk_dependencies")),
    )
    op.create_table(
        "selections",
        sa.Column("strategy", sa.String(length=16), nullable=False),
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("selected_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_selections_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("strategy", "chain_id", name=op.f("pk_selections")),
    )
    op.create_table(
        "tasks",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("overview", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=True),
        sa.Column("prompts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_tasks_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_tasks")),
    )
    op.create_table(
        "task_stages",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("plan", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("interface", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chain_id"], ["tasks.chain_id"], name=op.f("fk_task_stages_tasks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_task_stages")),
    )
    op.create_table(
        "images",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("repository", sa.String(length=255), nullable=False),
        sa.Column("recipe", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("as_of", sa.String(length=32), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("repairs", sa.Integer(), nullable=False),
        sa.Column("built_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_images")),
    )
    op.create_index("ix_images_repository", "images", ["repository"], unique=False)
    op.create_table(
        "reference_runs",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(length=8), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("statuses", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("timed_out", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("infra", sa.String(length=32), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("tampered", sa.Text(), nullable=False),
        sa.Column("tail", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("ran_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_reference_runs_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", "side", "ordinal", name=op.f("pk_reference_runs")),
    )
    op.create_table(
        "stage_tests",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("image", sa.String(length=255), nullable=True),
        sa.Column("recipe", sa.String(length=64), nullable=True),
        sa.Column("runner", sa.String(length=16), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("classes", sa.Text(), nullable=False),
        sa.Column("removed", sa.Text(), nullable=False),
        sa.Column("tampered", sa.Text(), nullable=False),
        sa.Column("stage_image", sa.String(length=255), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_stage_tests_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_stage_tests")),
    )
    op.create_table(
        "validations",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("validated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_validations_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_validations")),
    )
    op.create_table(
        "trajectories",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.String(length=16), nullable=True),
        sa.Column("parent_step", sa.Integer(), nullable=True),
        sa.Column("scaffold", sa.String(length=32), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("judge", sa.String(length=255), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("options_hash", sa.String(length=64), nullable=False),
        sa.Column("prompts", sa.Text(), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("accepted", sa.Integer(), nullable=False),
        sa.Column("overview", sa.Text(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_trajectories_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trajectories")),
    )
    op.create_index("ix_trajectories_chain", "trajectories", ["chain_id", "sample"], unique=False)
    op.create_table(
        "trajectory_messages",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("tool_calls", sa.Text(), nullable=False),
        sa.Column("tool_call_id", sa.String(length=255), nullable=True),
        sa.Column("tool_name", sa.String(length=64), nullable=True),
        sa.Column("error", sa.String(length=32), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("tree", sa.String(length=64), nullable=True),
        sa.Column("cwd", sa.String(length=1024), nullable=True),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_trajectory_messages_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "ordinal", name=op.f("pk_trajectory_messages")),
    )
    op.create_table(
        "trajectory_stages",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("start_tree", sa.String(length=64), nullable=True),
        sa.Column("end_tree", sa.String(length=64), nullable=True),
        sa.Column("conflicts", sa.Text(), nullable=False),
        sa.Column("reset_tests", sa.Text(), nullable=False),
        sa.Column("check", sa.Text(), nullable=False),
        sa.Column("endings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_trajectory_stages_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", name=op.f("pk_trajectory_stages")),
    )
    op.create_table(
        "verdicts",
        sa.Column("trajectory_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("tree", sa.String(length=64), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=True),
        sa.Column("gate", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("shown", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("judge_error", sa.String(length=32), nullable=True),
        sa.Column("tests", sa.String(length=32), nullable=True),
        sa.Column("grade", sa.Text(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "position"],
            ["trajectory_stages.trajectory_id", "trajectory_stages.position"],
            name=op.f("fk_verdicts_trajectory_stages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", "attempt", name=op.f("pk_verdicts")),
    )
    # PostgreSQL compares text by a locale unless told not to; SQLite compares bytes.
    by_bytes = ' COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else ""
    op.execute(LANDED_PULL_REQUESTS.format(by_bytes=by_bytes))
    op.execute(CITATION_EDGES.format(by_bytes=by_bytes))
