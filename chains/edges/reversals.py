"""Add, revert, land again: what is left of it.

Who takes a change back whole does no work that a task could ask for, and what was taken back is not in the code that
later pull requests stand on. Where it landed again, the later landing stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from chains.edges.traces import Trace

_WHOLE = 0.5
"""A patch of which more than this puts the code back is a revert; the rest of it is conflicts that were resolved."""

_NAMED = re.compile(
    r"""(?i)^\W*(?:\w+: ?)?revert(?:s|ed|ing)?:? """
    r"""(?:["'\u201c`]|(?:pr|pull request|commit)? ?#?[0-9a-f]{2,40}\b)|\breverts #\d+"""
)
_PARTLY = re.compile(r"(?i)\bpart(?:s|ly|ial|ially)?\b")


@dataclass(slots=True)
class Reversals:
    """The pull requests of one repository that were taken back, and those that took them back."""

    reverts: dict[int, int] = field(default_factory=dict)
    """Who takes back whole: what."""
    reverted: dict[int, int] = field(default_factory=dict)
    """What was taken back and stayed so, or landed again as another: by whom."""
    stands_for: dict[int, int] = field(default_factory=dict)
    """What was taken back and landed again: as what."""


def is_whole(subject: str, revert: Trace | None, reverted: Trace | None) -> bool:
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


def find_reversals(
    pairs: Iterable[tuple[int, int, str]],
    order: Mapping[int, tuple[str, int, int]],
    whole: Callable[[int, int], bool],
) -> Reversals:
    """What (source, target, relation) pairs of the relations ``reverts`` and ``relands`` come to.

    `order` gives each landed pull request's place; `whole(source, target)` says whether the source takes the target
    back whole.
    """
    found = Reversals()
    known = sorted(pairs, key=lambda pair: (order[pair[0]], pair[1]))
    for source, target, relation in known:
        if relation != "reverts" or not whole(source, target):
            continue
        found.reverts[source] = target
        if target in found.reverts:  # a revert of a revert: the first change stands again
            found.reverted.pop(found.reverts[target], None)
        else:
            found.reverted[target] = source
    for source, target, relation in known:
        if relation != "relands" or source in found.reverts:
            continue
        first = found.reverts.get(target, target)
        if first in found.reverted:
            found.stands_for[first] = source
    return found
