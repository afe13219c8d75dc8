"""Whose tests show a stage's work: those that the pull request adds or changes, or old ones that an import hid.

Pure. One run of B_t with its own tests decides. A test that passes there and fails under the overlay, and that the pull
request does not change, was only hidden: by an import, a collection, a set-up or a helper that needs what is new. No
error text is read, so that this holds in every language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from environments.suites.outcomes import ClassifiedTests, Statuses
from environments.suites.testlogs import Status

_JUDGED = {Status.failed, Status.xfail, Status.xpass}
"""The test ran, and what it found is why it did not pass."""
_FAILS = {Status.failed, Status.error, Status.timed_out}

Changed = Callable[[str], bool | None]
"""Whether the pull request adds or changes a test; None where its text is not found."""


@dataclass(frozen=True, slots=True)
class OwnTests:
    """The F2P tests of a stage, parted, and the tests of its own that fail on M_t. Each is sorted."""

    own_f2p: tuple[str, ...] = ()
    """F2P that show the work: what is not hidden."""
    changed: tuple[str, ...] = ()
    """Those of `own_f2p` that the pull request adds or changes."""
    hidden: tuple[str, ...] = ()
    """F2P that were only hidden; they count as P2P."""
    failing: tuple[str, ...] = ()
    """Tests that the pull request adds or changes and that fail in all runs on M_t."""


def own_tests(
    classes: ClassifiedTests,
    before: Sequence[Statuses],
    after: Sequence[Statuses],
    own: Statuses,
    changed: Changed,
    *,
    new_data: bool = False,
) -> OwnTests:
    """Part a stage's tests. `before` and `after` are the runs that `classes` was made from, `own` is the run on B_t
    with its own tests: it knows no test that the pull request adds.

    A test whose text is not found counts as changed where B_t's own run does not know it. With `new_data` the pull
    request changes what tests compare with, such as snapshots; one that ran under the overlay and was judged by it may
    see the work, though its text is the old one, and was not hidden. Nor was one whose text is not found.
    """
    changed = cache(changed)

    def is_new(test: str) -> bool:
        told = changed(test)
        return test not in own if told is None else told

    def is_hidden(test: str) -> bool:
        may_see = (new_data or changed(test) is None) and any(run.get(test) in _JUDGED for run in before)
        return own.get(test) is Status.passed and not may_see and not is_new(test)

    hidden = tuple(test for test in classes.f2p if is_hidden(test))
    left = tuple(test for test in classes.f2p if test not in set(hidden))
    failing = [test for test in classes.failing if after and all(run.get(test) in _FAILS for run in after)]
    return OwnTests(left, tuple(filter(is_new, left)), hidden, tuple(filter(is_new, failing)))
