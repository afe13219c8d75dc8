"""Add, revert, land again: what is left of it.

Who takes a change back whole does no work that a task could ask for, and what was taken back is not in the code that
later pull requests stand on. Where it landed again, the later landing stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from chains.edges.footprints import PatchFootprint

_WHOLE = 0.5
"""A patch of which more than this puts the code back is a revert; the rest of it is conflicts that were resolved."""

_NAMED = re.compile(
    r"""(?i)^\W*(?:\w+: ?)?revert(?:s|ed|ing)?:? """
    r"""(?:["'\u201c`]|(?:pr|pull request|commit)? ?#?[0-9a-f]{2,40}\b)|\breverts #\d+"""
)
_PARTLY = re.compile(r"(?i)\bpart(?:s|ly|ial|ially)?\b")


@dataclass(frozen=True, slots=True)
class Reversal:
    """One pull request that takes another one back, or lands it again (`relation` is ``reverts`` or ``relands``)."""

    source: int
    target: int
    relation: str
    counts: bool = True
    """False where the revert landed elsewhere than its target: on a release branch, say, while the trunk keeps it."""


@dataclass(slots=True)
class Reversals:
    """The pull requests of one repository that were taken back, and those that took them back."""

    reverts: dict[int, int] = field(default_factory=dict)
    """Who takes back whole: what, the first of several."""
    reverted: dict[int, int] = field(default_factory=dict)
    """What was taken back and does not stand at the end: by whom."""
    stands_for: dict[int, int] = field(default_factory=dict)
    """What was taken back and landed again: as what, and that stands."""


def is_whole(subject: str, revert: PatchFootprint | None, reverted: PatchFootprint | None) -> bool:
    """Whether a pull request of this subject takes another one back and hardly does anything else.

    Its subject says so, or most lines of its patch undo lines of the other's.
    """
    if _PARTLY.search(subject):
        return False
    if _NAMED.search(subject) or revert is None or reverted is None:
        return True
    gone = sum(len(reverted.added.get(path, frozenset()) & lines) for path, lines in revert.removed.items())
    back = sum(len(reverted.removed.get(path, frozenset()) & lines) for path, lines in revert.added.items())
    return gone + back > _WHOLE * revert.lines


def find_reversals(turns: Iterable[Reversal], whole: Callable[[int, int], bool]) -> Reversals:
    """What a history of turns, in the order of landing, comes to.

    `whole(source, target)` says whether the source takes the target back whole.
    """
    history = _History()
    for turn in turns:
        if turn.relation == "relands":
            history.land_again(turn.source, turn.target)
        elif whole(turn.source, turn.target):
            history.take_back(turn.source, turn.target, counts=turn.counts)
    return history.end()


class _History:
    """Who stands, turn by turn: a revert that is taken back puts in again what it took out."""

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
