"""What an attempt asked beside the conversation that ends it: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trajectories.branches import BranchRow
from trajectories.model import Entry
from trajectories.recording.conversation import Branch, Clean
from trajectories.recording.exchanges import packed


def branches_beside(main: Branch, branches: Iterable[Branch], opening: Entry, clean: Clean) -> list[BranchRow]:
    """The rows of all conversations whose replies, or the last of them, are not in `main`'s; `opening` is the query of
    the attempt."""
    taken = _replies_within(main)
    rows = []
    for branch in branches:
        rest = [*branch.log.exchanges()][taken.get(branch.number, 0) :]
        if rest:
            parent = None if branch.left is None else branch.left.number
            key = (opening.position, opening.attempt, branch.number, parent)
            rows.append(BranchRow(*key, len(rest), packed(rest, clean)))
    return rows


def _replies_within(main: Branch) -> Mapping[int, int]:
    """How many of their own replies each conversation has given to `main`, by its number: what a branch shares with
    the one that it left is a beginning of it."""
    found = {main.number: len(main.replies)}
    shared, left = _copies(main), main.left
    while left is not None:
        found[left.number] = sum(ordinal < shared for ordinal in left.replies)
        shared, left = min(shared, _copies(left)), left.left
    return found


def _copies(branch: Branch) -> int:
    return sum("copied" in entry.details for entry in branch.entries)
