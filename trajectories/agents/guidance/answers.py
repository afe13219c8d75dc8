"""The short values in a process reward model's reply: a yes, and a status."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trajectories.agents.guidance.assessment import TaskStatus
from trajectories.agents.guidance.titles import words_of

_STATUSES = {
    "ontrack": TaskStatus.ON_TRACK,
    "needscorrection": TaskStatus.NEEDS_CORRECTION,
    "critical": TaskStatus.CRITICAL,
    "criticalintervention": TaskStatus.CRITICAL,
    "criticalinterventionrequired": TaskStatus.CRITICAL,
}
_SIGNS = {
    TaskStatus.ON_TRACK: "on track",
    TaskStatus.NEEDS_CORRECTION: "needs correction",
    TaskStatus.CRITICAL: "critical intervention",
}
"""The words of a status in an explanation, which then explains another."""
_LONGEST_STATUS = 80
_STATUS_END = re.compile(r"[.:;,!(\[—–]|(?<=\s)-")  # noqa: RUF001
_UNTICKED = ("[ ]", "☐", "⬜")

_DECORATION = " \t*_`~\"'“”‘’«»([✅✔☑⚠🔴🟡🟢🚨❗\ufe0f"  # noqa: RUF001
_WORD = re.compile(r"(yes|no)(?![^\W_])", re.IGNORECASE)
_TEMPLATE = re.compile(r"yes[\s*_`]*+(?:[/|]|or\b)[\s*_`]*+no\b", re.IGNORECASE)
_OTHER = re.compile(r"[^\w/?]*+[/?]")
"""What makes a yes one of several answers, or a question."""
_BOX = re.compile(r"[\[(][ xX✓✔]?[\])]|[☐☑☒⬜✅❌]")
"""Boxes to tick: behind a yes they may tick the no beside it."""
_DOUBTS = {"but", "if", "maybe", "n", "not", "or", "partially", "partly", "perhaps", "possibly", "probably", "somewhat"}
"""Words right behind a yes that take it back."""
_LONGEST_DOUBT = 80


def says_yes(text: str) -> bool | None:
    """Whether an answer is an explicit yes, an explanation behind it or not. None: the question, repeated."""
    text = text.lstrip(_DECORATION)
    if _TEMPLATE.match(text):
        return None
    word = _WORD.match(text)
    if word is None or word[1].casefold() != "yes":
        return False
    behind = text[word.end() : word.end() + _LONGEST_DOUBT]
    if _OTHER.match(behind):
        return False
    words = words_of(behind)
    if _BOX.search(behind) and "no" in words:
        return False
    return words != ("no",) and words[:2] != ("and", "no") and _DOUBTS.isdisjoint(words[:1])


def status_of(text: str) -> TaskStatus | None:
    """The status that a line says, an explanation behind it or not; None where it says none, or more than one."""
    if any(sign in text for sign in _UNTICKED):
        return None
    text = text.lstrip(_DECORATION)
    end = _STATUS_END.search(text)
    head = text[: end.start()] if end else text
    status = _named(head)
    if status is None or end is None:
        return status
    behind = " ".join(words_of(text[end.end() :])).replace("back on track", "")
    others = [sign for other, sign in _SIGNS.items() if other is not status]
    doubtful = _named(behind) not in {None, status} or any(sign in behind for sign in others)
    return None if doubtful else status


def status_in(lines: Sequence[str]) -> TaskStatus | None:
    """The status that the lines of a value say: the first says it, and no other says another."""
    status = status_of(lines[0]) if lines else None
    return status if all(_named(line) in {None, status} for line in lines) else None


def _named(text: str) -> TaskStatus | None:
    if len(text) > _LONGEST_STATUS or "?" in text:
        return None
    return _STATUSES.get("".join(words_of(text)))
