"""A recorded conversation as the entries of an attempt: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prchain.core.storable import clean_text
from trajectories.model import Entry, EntryKind
from trajectories.recording.conversation import Branch

OF_THE_RECORD = ("copied", "loss")
"""Details of a branch's copies, which stand for themselves here: the conversation that they were copied from is not
kept beside it."""


def attempt_entries(branch: Branch, opening: Entry, trees: Mapping[tuple[int, int], str]) -> list[Entry]:
    """The entries of the attempt that `opening`, the stage's query as we wrote it, opened, numbered from it on: they
    stand in its place.

    The first words of the user are the query, as the agent put them; what it says in the user's or the system's name
    later is an observation. `trees` are those that were found when a request came, by the number of a branch and the
    ordinal of the last entry that was new in it.
    """
    found: list[Entry] = []
    queried, last_tree = False, None
    for ordinal, (number, entry) in enumerate(_path(branch)):
        kind, details = entry.kind, {key: it for key, it in entry.details.items() if key not in OF_THE_RECORD}
        if kind is EntryKind.TURN and "loss" in entry.details and "copied" not in entry.details:
            details = {**details, "loss": entry.details["loss"]}  # no reply of ours
        if kind is EntryKind.QUERY:
            kind = EntryKind.OBSERVATION if queried else kind
            details = details if queried else {**opening.details, "asked": opening.content}
            queried = True
        tree = trees.get((number, entry.ordinal))
        found.append(
            replace(
                entry,
                ordinal=opening.ordinal + ordinal,
                position=opening.position,
                attempt=opening.attempt,
                step=opening.step + entry.step,
                kind=kind,
                content=clean_text(entry.content),
                reasoning=None if entry.reasoning is None else clean_text(entry.reasoning),
                details=details,
                tree=None if tree == last_tree else tree,
            )
        )
        last_tree = tree or last_tree
    return found


def _path(branch: Branch) -> Sequence[tuple[int, Entry]]:
    """The entries of a conversation, those that it shares with another as they are in that one, each with the number of
    the conversation that it is its own of."""
    copies = sum("copied" in entry.details for entry in branch.entries)
    shared = _path(branch.left)[:copies] if branch.left is not None else ()
    return [*shared, *((branch.number, entry) for entry in branch.entries[len(shared) :])]
