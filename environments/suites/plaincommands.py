"""The command that runs a stage's tests and prints how each one ended: for people, and for SWE-bench's harness.

`environments.suites.testruns` never reads what tests print; the harness reads nothing else. Its log parsers
(`swebench.harness.log_parsers` of 5.0.2) want a line for each test.
"""

from __future__ import annotations

from collections.abc import Sequence

from environments.suites.runners import RUNNERS


def plain_command(runner: str, files: Sequence[str]) -> str:
    """One line of shell, for the tree's root; `runner` is a name of `environments.suites.runners`."""
    known_runner = RUNNERS[runner]
    return known_runner.plain.format(files=known_runner.files_text(files)).strip()
