"""Whether evidence stands in a window, and at which step: a quote that stands nowhere is no evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trajectories.agents.guidance.window import StepWindow
from trajectories.agents.steps.conversation import steps_of
from trajectories.model import Entry, EntryKind

_SHORTEST = 4
"""Characters of a quote, or of a piece of one: a shorter one stands nearly everywhere."""

_GAP = re.compile(r"\[?(?:\.{3,}|…)\]?")
"""How a quote says that it leaves something out."""


class WindowText:
    """The words of a window, by step, white space and case aside."""

    def __init__(self, window: StepWindow) -> None:
        texts: dict[int, list[str]] = {}
        for entry in window.entries:
            # A supervisor's earlier words are no evidence for its later ones.
            if entry.kind is EntryKind.GUIDANCE:
                continue
            texts.setdefault(entry.step, []).extend(map(_folded, _texts(entry)))
        self._texts = texts

    def step_of(self, evidence: str) -> int | None:
        """The last step that holds the quote; None where none does. Pieces between dots have to follow each other in
        one text."""
        pieces = [piece for piece in map(_folded, _GAP.split(evidence)) if piece]
        if not pieces or any(len(piece) < _SHORTEST for piece in pieces):
            return None
        for step in sorted(self._texts, reverse=True):
            if any(_follow(pieces, text) for text in self._texts[step]):
                return step
        return None


def _follow(pieces: list[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        if (found := text.find(piece, at)) < 0:
            return False
        at = found + len(piece)
    return True


def _texts(entry: Entry) -> Iterator[str]:
    yield entry.content
    if entry.kind is EntryKind.TURN:
        [step] = steps_of([entry])
        # As it was written, and as JSON's escapes stand for it.
        yield " ".join(f"{call.name} {call.arguments}" for call in entry.tool_calls)
        yield step.words


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
