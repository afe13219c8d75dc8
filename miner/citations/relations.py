"""What the words around a citation say about it.

The words before it decide, back to the start of its clause; then those right after it; then the heading of the list
whose item it opens. Of several wordings the nearest within its reach wins, save that a word for a fix, a dependency or
nothing in particular leaves a stronger one before it in force (``follow-up fix for #12``). A negated wording states
nothing, and a passive one turns the direction round (``reverted in #12``): both are ``mentions``.

A relation carries over a list (``follow-up to #1, #2 and #3``). Closing keywords carry too: GitHub wants ``fixes``
before each number, but who writes ``fixes #1, #2`` means both.
"""

from __future__ import annotations

import re

from miner.citations import wording
from miner.citations.model import Relation

_WINDOW = 200
_TAIL = 80
_LIST_JOIN_LIMIT = 48
_HEADING_LINES = 12

_WORDS = re.compile(r"[^\W\d_][\w'\u2019-]*")
_BOUNDARY = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)(?<!\bno)(?<!\betc)[.!?][\"')\]*_]*\s|;\s|\n[ \t\r]*\n"
    r"|\n[ \t>]*(?:[-*+•]|[0-9]+[.)]|#+)[ \t]"
)
_LIST_JOIN = re.compile(
    r"[\])}*_~\"'`]*[\s,;&/+]*(?:(?:and|or|as well as|plus)\b)?\s*(?:[-*+•][ \t]+)?(?:the )?"
    r"(?:(?:prs?|pull requests?|issues?)\b)?\s*[\[({*_~\"'`#]*",
    re.I,
)
_ISSUES = frozenset({"issue", "issues", "bug", "bugs", "ticket", "tickets"})
_BULLET = re.compile(r"[ \t>]*(?:[-*+•]|[0-9]+[.)])[ \t]")
_BULLET_FIRST = re.compile(r"[ \t>]*(?:[-*+•]|[0-9]+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?\W{0,4}$")
_HEADING = re.compile(r"[ \t>]*(?:#{1,6}[ \t]+\S.*|.*\S:[ \t*_]*)$")


def read_relation(prose: str, start: int, end: int, previous_end: int) -> Relation | None:
    """Return the relation that the words around prose[start:end] state, or None where they state none.

    previous_end is where the citation before it ends: nothing before that is read.
    """
    clause = _clause(prose[max(previous_end, start - _WINDOW) : start])
    after = " ".join(prose[end : end + _TAIL].split("\n\n", 1)[0].split())
    after = " " + after if prose[end : end + 1].isspace() else after
    return _from_both_sides(clause, after) or _from_clause(clause) or _from_tail(after) or _from_heading(prose, start)


def joined(prose: str, previous_end: int, start: int) -> bool:
    """Whether only the marks of a list are between two citations."""
    return start - previous_end <= _LIST_JOIN_LIMIT and _LIST_JOIN.fullmatch(prose, previous_end, start) is not None


def _clause(window: str) -> str:
    """The last clause of window, white space collapsed, one blank kept at its end."""
    cut = 0
    for m in _BOUNDARY.finditer(window):
        cut = m.end()
    clause = window[cut:]
    return " ".join(clause.split()) + (" " if clause[-1:].isspace() else "")


def _from_both_sides(clause: str, after: str) -> Relation | None:
    """``after #12 lands``, ``now that #12 is merged``, ``#12 must go in first``, ``based on #12's review``."""
    if wording.REVIEWED.match(after) and wording.REVIEW_TAKEN_UP.search(clause):
        return "follow_up"
    if wording.LANDS.match(after):
        if wording.BEFORE_LANDING.search(clause):
            return "depends_on"
        if wording.SINCE_LANDING.search(clause):
            return "follow_up"
    return "depends_on" if wording.MUST_LAND.match(after) else None


def _from_clause(clause: str) -> Relation | None:
    yielding: Relation | None = None
    end = len(clause)
    for m in reversed(list(wording.TRIGGER.finditer(clause))):
        trigger = wording.TRIGGERS[int(str(m.lastgroup)[1:])]
        gap = clause[m.end() : end]
        words = [word.lower() for word in _WORDS.findall(gap)]
        distance = sum(word not in wording.FILLERS for word in words)
        if yielding and (distance > 1 or "," in gap or "(" in gap):
            return yielding
        if distance > (min(trigger.reach, 1) if "]" in gap else trigger.reach):
            continue
        if "(" in gap and ")" not in gap and not trigger.enters_parentheses:
            continue
        if trigger.relation in wording.NOT_OF_ISSUES and _ISSUES.intersection(words):
            continue
        if trigger.relation == "mentions" or wording.NEGATION.search(clause, 0, m.start()):
            return yielding or "mentions"
        if trigger.relation not in wording.YIELDING:
            return trigger.relation
        yielding, end = yielding or trigger.relation, m.start()
    return yielding or ("fixes" if wording.REPAIR.search(clause) else None)


def _from_tail(after: str) -> Relation | None:
    for relation, pattern in wording.AFTERMATH:
        if pattern.match(after):
            return relation
    return None


def _from_heading(prose: str, start: int) -> Relation | None:
    """The relation that the heading of a list states for an item that starts with a citation."""
    line_start = prose.rfind("\n", max(0, start - _WINDOW), start) + 1
    if not _BULLET_FIRST.match(prose, line_start, start):
        return None
    end = line_start - 1
    for _ in range(_HEADING_LINES):
        if end <= 0:
            return None
        at = prose.rfind("\n", max(0, end - _WINDOW), end) + 1
        line = prose[at:end]
        end = at - 1
        if not line.strip() or _BULLET.match(line):
            continue
        if not _HEADING.fullmatch(line):
            return None
        heading = " ".join(line.strip("#>*_: \t\r").split()) + ":"
        return "stacked_on" if wording.STACK.search(heading) else _from_clause(heading)
    return None
