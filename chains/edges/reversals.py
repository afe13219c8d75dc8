"""Changes that were reverted or landed again, and which pull request stands for each in the end.

A pull request that reverts a whole change does no work that a task could ask for, and a reverted change is not in the
code that later pull requests build on. Where a change landed again, the later landing takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from chains.edges.footprints import PatchFootprint

_WHOLE_SHARE = 0.5
"""A patch is a revert if more than this share of it restores the code; the rest is resolved conflicts."""

_REVERT_SUBJECT = re.compile(
    r"""(?i)^\W*(?:\w+: ?)?revert(?:s|ed|ing)?:? """
    r"""(?:["'\u201c`]|(?:pr|pull request|commit)? ?#?[0-9a-f]{2,40}\b)|\breverts #\d+"""
)
_PARTIAL_SUBJECT = re.compile(r"(?i)\bpart(?:s|ly|ial|ially)?\b")


@dataclass(frozen=True, slots=True)
class Reversal:
    """One pull request that reverts another, or lands it again (`relation` is ``reverts`` or ``relands``)."""

    source: int
    target: int
    relation: str
    counts: bool = True
    """False where the revert landed on another branch than its target: a release branch, while the trunk keeps it."""


@dataclass(slots=True)
class Reversals:
    """The pull requests of one repository that were reverted, and those that reverted them."""

    reverts: dict[int, int] = field(default_factory=dict)
    """Whole revert to the pull request that it reverts, the first of several."""
    reverted: dict[int, int] = field(default_factory=dict)
    """Pull request that is reverted at the end to the pull request that reverted it."""
    stands_for: dict[int, int] = field(default_factory=dict)
    """Reverted pull request to the later landing of the same change, which is not reverted."""


def is_whole(subject: str, revert: PatchFootprint | None, reverted: PatchFootprint | None) -> bool:
    """Whether a pull request of this subject reverts another and does hardly anything else.

    Its subject says so, or most lines of its patch undo lines of the other's.
    """
    if _PARTIAL_SUBJECT.search(subject):
        return False
    if _REVERT_SUBJECT.search(subject) or revert is None or reverted is None:
        return True
    gone = sum(len(reverted.added.get(path, frozenset()) & lines) for path, lines in revert.removed.items())
    back = sum(len(reverted.removed.get(path, frozenset()) & lines) for path, lines in revert.added.items())
    return gone + back > _WHOLE_SHARE * revert.lines


def find_reversals(turns: Iterable[Reversal], whole: Callable[[int, int], bool]) -> Reversals:
    """The result of a history of reverts and relandings (`turns`), in the order of landing.

    `whole(source, target)` says whether the source reverts the whole target.
    """
    history = _TurnHistory()
    for turn in turns:
        if turn.relation == "relands":
            history.land_again(turn.source, turn.target)
        elif whole(turn.source, turn.target):
            history.take_back(turn.source, turn.target, counts=turn.counts)
    return history.end()


class _TurnHistory:
    """Which pull requests are reverted, turn by turn: reverting a revert restores what it removed."""

    def __init__(self) -> None:
        self._targets: dict[int, list[int]] = {}
        self._gone: dict[int, int] = {}
        self._again: dict[int, int] = {}

    def take_back(self, source: int, target: int, *, counts: bool) -> None:
        self._targets.setdefault(source, [])
        if target not in self._targets[source]:
            self._targets[source].append(target)
            if counts and source not in self._gone:
                self._out(target, source)

    def _out(self, target: int, by: int) -> None:
        if target in self._gone:
            return
        self._gone[target] = by
        for undone in self._targets.get(target, ()):
            self._in(undone)

    def _in(self, target: int) -> None:
        if target not in self._gone:
            return
        by = self._gone.pop(target)
        for redone in self._targets.get(target, ()):
            self._out(redone, by)

    def land_again(self, source: int, target: int) -> None:
        for first in self._targets.get(target, [target]):
            if first in self._gone and source != first and source not in self._targets:
                self._again[first] = source

    def end(self) -> Reversals:
        stands_for = {}
        for first in self._again:
            last, seen = first, {first}
            while last in self._gone and self._again.get(last) not in {None, *seen}:
                last = self._again[last]
                seen.add(last)
            if last != first and last not in self._gone:
                stands_for[first] = last
        return Reversals(
            {source: targets[0] for source, targets in self._targets.items()}, dict(self._gone), stands_for
        )
