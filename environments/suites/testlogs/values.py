"""What a test run says of one test, and how several words on the same test are joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum


class Status(StrEnum):
    """What became of one test in one run."""

    passed = "passed"
    failed = "failed"
    error = "error"
    """Set-up, tear-down, import or build failed, or the process died while the test ran."""
    skipped = "skipped"
    xfail = "xfail"
    """Failed, as its author said it would."""
    xpass = "xpass"
    """Passed, although its author said it would fail."""
    missing = "missing"
    """The run does not speak of it."""
    timed_out = "timed_out"
    """The run's time was up while it ran."""
    collected = "collected"
    """Found, and neither begun nor skipped."""


_TERMINAL = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")


def uncoloured(text: str) -> str:
    """The text without what colours it on a terminal (ECMA-48, control sequences)."""
    return _TERMINAL.sub("", text)


_RISING = (
    Status.missing,
    Status.collected,
    Status.passed,
    Status.skipped,
    Status.xpass,
    Status.xfail,
    Status.failed,
    Status.error,
    Status.timed_out,
)
_RANK = {status: rank for rank, status in enumerate(_RISING)}


def worst(statuses: Iterable[Status]) -> Status:
    """The status that stands when one run says several things of one id: the one that is hardest to fake a pass with.

    A test that passes and whose tear-down fails is an error; two tests of one id pass only when both do.
    """
    return max(statuses, key=_RANK.__getitem__, default=Status.missing)


def join(reports: Iterable[tuple[str, Status]]) -> dict[str, Status]:
    """One status an id, in the order in which the ids came first."""
    found: dict[str, Status] = {}
    for test, status in reports:
        found[test] = worst((found[test], status)) if test in found else status
    return found


def did_run(status: Status) -> bool:
    """Whether the runner got as far as this test: it can import, build and start it."""
    return status in {Status.passed, Status.failed, Status.skipped, Status.xfail, Status.xpass}


def failures(statuses: Mapping[str, Status]) -> list[str]:
    """The ids that a runner ends with a non-zero exit code for."""
    return [test for test, status in statuses.items() if status in {Status.failed, Status.error, Status.timed_out}]
