"""A recorded conversation as the entries of an attempt: pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from prchain.core.storable import clean_text
from trajectories.model import Entry, EntryKind
from trajectories.recording.conversation import Branch

OF_THE_RECORD = ("copied", "loss")
"""Details of a branch's copies, which stand for themselves here: the conversation that they were copied from is not
kept beside it."""

_NO_WORD = re.compile(r"\W+")

Place = tuple[int, int]
"""The number of a branch, and the ordinal of an entry of its own."""


@dataclass(slots=True)
class Noticed:
    """What is known of an attempt's entries besides what was said."""

    trees: dict[Place, str] = field(default_factory=dict)
    """Those that were found when a request came, at the last entry that was new in it."""
    seconds: dict[Place, float] = field(default_factory=dict)
    """That the agent took from a reply to its next request, at the first entry that was new in it."""


def attempt_entries(branch: Branch, opening: Entry, noticed: Noticed, earlier: int = 0) -> list[Entry]:
    """The entries of the attempt that `opening`, its query or comment as we wrote it, opened, numbered from it on: they
    stand in its place.

    The first words of the user that hold the opening's are the opening, as the agent put them; what it says in the
    user's or the system's name later is an observation. `earlier` entries of the first conversation are those of
    earlier attempts of the session, which are left out. Where the agent has told them anew, so is what it told, and the
    opening says so (``retold``).
    """
    path = _path(branch)
    known = sum(1 for number, entry in path if number == 0 and entry.ordinal < earlier)
    before, new = path[:known], path[known:]
    at = _place_of_opening([entry for _, entry in new], str(opening.details.get("asked", opening.content)))
    told: dict[str, bool] = {}
    if known < earlier and at is not None:
        told, before, new, at = {"retold": True}, path[: known + at], new[at:], 0
    step = before[-1][1].step if before else 0
    found: list[Entry] = []
    last_tree = None
    for ordinal, (place, entry) in enumerate(((number, entry.ordinal), entry) for number, entry in new):
        kind, details = entry.kind, {key: it for key, it in entry.details.items() if key not in OF_THE_RECORD}
        if kind is EntryKind.TURN and "loss" in entry.details and "copied" not in entry.details:
            details = {**details, "loss": entry.details["loss"]}  # no reply of ours
        if ordinal == at:
            kind, details = opening.kind, {**opening.details, "asked": opening.content, **told}
        elif kind is EntryKind.QUERY:
            kind = EntryKind.OBSERVATION
        tree = noticed.trees.get(place)
        found.append(
            replace(
                entry,
                ordinal=opening.ordinal + ordinal,
                position=opening.position,
                attempt=opening.attempt,
                step=opening.step + entry.step - step,
                kind=kind,
                content=clean_text(entry.content),
                reasoning=None if entry.reasoning is None else clean_text(entry.reasoning),
                details=details,
                tree=None if tree == last_tree else tree,
                seconds=entry.seconds or noticed.seconds.get(place, 0.0),
            )
        )
        last_tree = tree or last_tree
    return found


def _place_of_opening(entries: Sequence[Entry], asked: str) -> int | None:
    """Which of the entries opens the attempt; None where the user says nothing."""
    users = [at for at, entry in enumerate(entries) if entry.role == "user" and entry.kind is not EntryKind.GUIDANCE]
    words = _words(asked)
    return next((at for at in users if words in _words(entries[at].content)), next(iter(users), None))


def _words(text: str) -> str:
    """What agents that quote a text leave of it."""
    return _NO_WORD.sub("", text)


def _path(branch: Branch) -> Sequence[tuple[int, Entry]]:
    """The entries of a conversation, those that it shares with another as they are in that one, each with the number of
    the conversation that it is its own of."""
    copies = sum("copied" in entry.details for entry in branch.entries)
    shared = _path(branch.left)[:copies] if branch.left is not None else ()
    return [*shared, *((branch.number, entry) for entry in branch.entries[len(shared) :])]
