"""The command that runs a stage's tests and prints how each one ended: for people, and for SWE-bench's harness.

`environments.suites.testruns` never reads what tests print; the harness reads nothing else. Its log parsers
(`swebench.harness.log_parsers` of 5.0.2) want a line for each test.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from environments.suites.testruns import arguments_of

_COMMANDS = {
    # Statuses without what tests printed and without tracebacks: a line of those could look like a status.
    "pytest": "python -m pytest -rfEsxXp --tb=no --color=no -p no:randomly --continue-on-collection-errors {files}",
    "unittest": "python -m unittest -v {files}",
    "jest": "jest --ci --verbose --colors=false --runTestsByPath {files}",
    "vitest": "vitest run --reporter=verbose --no-color {files}",
    "mocha": "mocha --reporter spec --no-color {files}",
    "go": "go test -v -count=1 {files}",
    "cargo": "cargo test --offline --no-fail-fast --color never {files}",
    "surefire": "mvn -o -B test -Dtest={files} -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false",
}


def plain_command(runner: str, files: Sequence[str]) -> str:
    """One line of shell, for the tree's root; `runner` is a name of `environments.suites.testruns.COMMANDS`."""
    named = arguments_of(runner, files)
    shown = ",".join(map(shlex.quote, named)) if runner == "surefire" else shlex.join(named)
    return _COMMANDS[runner].format(files=shown).strip()
