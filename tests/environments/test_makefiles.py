"""Targets of makefiles that scripts of Node start."""

from __future__ import annotations

import json
import time

import pytest

from environments.images.node_project import scripted_runner
from environments.suites.collected import patterns
from environments.suites.makefiles import targets
from environments.suites.package_scripts import chosen_script

MAKEFILE = """
REPORTER ?= dot # quiet
TESTS = $(wildcard test/*.js)
MOCHA := ./node_modules/.bin/mocha
export NODE_ENV = test

build: lib
\t@node make.js

test: lint test-node
# a comment
lint:
\t-@eslint .

test-node: node_modules
\t@NODE_ENV=test $(MOCHA) \\
\t\t--require ./test/setup \\
\t\t--reporter $(REPORTER) $(TESTS) ${UNKNOWN} $@

.PHONY: test
"""


def test_a_target_is_what_it_depends_on_and_its_own_commands() -> None:
    found = targets(MAKEFILE)
    assert found["make"] == found["make build"] == "make lib && node make.js"
    assert found["make test"] == "make lint && make test-node"
    assert found["make lint"] == "eslint ."
    start = "make node_modules && NODE_ENV=test ./node_modules/.bin/mocha --require ./test/setup --reporter dot"
    assert " ".join(found["make test-node"].split()) == start


@pytest.mark.parametrize(
    ("test", "own"),
    [
        ("make test", "NODE_ENV=test mocha --require ./test/setup"),
        ("make -s lint test-node", "NODE_ENV=test mocha --require ./test/setup"),
        ("npm run all", "NODE_ENV=test mocha --require ./test/setup"),
        ("make", ""),
        ("make gone", ""),
    ],
)
def test_the_runner_that_a_target_starts_is_the_projects(test: str, own: str) -> None:
    package = json.dumps({"scripts": {"test": test, "all": "make test"}})
    runner, command = scripted_runner({"package.json": package, "Makefile": MAKEFILE})
    assert (runner, command.partition(" --reporter")[0]) == (("mocha", own) if own else ("", ""))


def test_a_runner_gets_the_files_that_a_target_names() -> None:
    texts = {
        "package.json": '{"scripts": {"test": "make"}}',
        "Makefile": "T = test/unit\nall:\n\tmocha -R dot $(T)/*.js\n",
    }
    assert patterns("mocha", texts) == ("test/unit/*.js",)


def test_scripts_go_before_targets_and_targets_that_start_one_another_end() -> None:
    package = '{"scripts": {"test": "make a"}}'
    assert chosen_script(package, "a: b\nb: a\n\tmocha x.js\n") is not None
    assert chosen_script('{"scripts": {"test": "jest"}}', "test:\n\tmocha\n").runner == "jest"  # type: ignore[union-attr]


EACH_OTHER = "".join(f"t{it}: {' '.join(f't{other}' for other in range(90))}\n" for it in range(90))


USES = "A=$(A)$(A)$(A)\n" * 9_000 + "t: t\n\t$(A)"


@pytest.mark.parametrize("text", ["", "\n", "\t", "a:" * 60_000, "a\\\n" * 60_000, "x " * 90_000, USES, EACH_OTHER])
def test_a_hostile_makefile_takes_little_time(text: str) -> None:
    begun = time.monotonic()
    assert all(len(line) <= 2_000 for line in targets(text).values())
    chosen_script('{"scripts": {"test": "make"}}', text)
    assert time.monotonic() - begun < 5
