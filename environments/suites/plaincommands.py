"""The command that runs a stage's tests and prints how each one ended: for people, and for SWE-bench's harness.

`environments.suites.testruns` never reads what tests print; the harness reads nothing else. Its log parsers
(`swebench.harness.log_parsers` of 5.0.2) want a line for each test.
"""

from __future__ import annotations

from collections.abc import Sequence

from environments.suites.runners import RUNNERS


def plain_command(runner: str, files: Sequence[str]) -> str:
    """One line of bash, for the tree's root; `runner` is a name of `environments.suites.runners`."""
    return RUNNERS[runner].plain.format(files=plain_files(runner, files)).strip()


def plain_files(runner: str, files: Sequence[str]) -> str:
    """The files as words of bash, without those for which the runner would run none (`Runner.left_out`)."""
    known_runner = RUNNERS[runner]
    left_out = known_runner.left_out(files, plain=True)
    return known_runner.files_text([path for path in files if path not in left_out] or files)
