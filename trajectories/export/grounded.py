"""Guided turns that name only what the task or an observation has shown: these can be learnt without the guidance."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prchain.core.code.identifiers import identifiers, is_code_name
from trajectories.agents.steps.conversation import steps_of
from trajectories.model import Entry, EntryKind
from trajectories.verdicts.numbers import Value, numbers

_TOKEN = re.compile(r"[\w./-]+")

_SHOWS = {EntryKind.QUERY, EntryKind.COMMENT, EntryKind.OBSERVATION}

_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]*/)+[\w.-]+|(?<![\w./-])[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
"""What has the shape of a path: with a slash, or a name with an ending."""


def ungrounded_steps(entries: Sequence[Entry]) -> frozenset[int]:
    """The steps whose turn follows an observer's words and names a path, a symbol or a number that no query, comment or
    observation before it holds.

    A symbol is a name in the shape of code (`prchain.core.code.identifiers.is_code_name`); numbers count from three
    digits on; a path is also shown by its last part. Names that the turn itself makes up count, too: whether the
    guidance gave them cannot be told. Never raises.
    """
    paths, names, values, seen = set[str](), set[str](), set[Value](), 0
    found = set()
    for place, entry in enumerate(entries):
        if place == 0 or entry.kind is not EntryKind.TURN or entries[place - 1].kind is not EntryKind.GUIDANCE:
            continue
        fresh = [it.content for it in entries[seen:place] if it.kind in _SHOWS]
        seen = place
        paths.update(part for text in fresh for token in _TOKEN.findall(text) for part in _parts(token))
        names.update(name for text in fresh for name in identifiers(text))
        values.update(value for text in fresh for value, _ in numbers(text.split("\n")))
        [step] = steps_of([entry])
        lines = step.words.split("\n")
        if (
            any(is_code_name(name) and name not in names for name in identifiers(step.words))
            or any(value not in values for value, _ in numbers(lines))
            or any(paths.isdisjoint(_parts(match)) for match in _PATH.findall(step.words))
        ):
            found.add(entry.step)
    return frozenset(found)


def _parts(token: str) -> tuple[str, ...]:
    """A path, and its last part if that has an ending: a plain word says nothing of a file."""
    path = token.strip("./-")
    last = path.rpartition("/")[2]
    return (path, last) if "." in last else (path,)
