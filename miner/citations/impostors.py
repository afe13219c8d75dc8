"""Numbers behind a ``#`` that name no pull request: enumerations, ranks, colours, stack frames, foreign trackers.

Every rule looks at a bounded stretch of text on either side, never at the whole.
"""

from __future__ import annotations

import re

_BEFORE = 48
_AFTER = 40

_ENUMERATED = re.compile(
    r"\b(?:steps?|items?|lines?|pages?|sections?|chapters?|figures?|fig|tables?|rows?|cols?|columns?|builds?|jobs?|runs?|"
    r"versions?|ver|releases?|questions?|answers?|footnotes?|weeks?|days?|sprints?|rounds?|iterations?|batch|milestones?|"
    r"players?|teams?|nodes?|shards?|workers?|threads?|process|slots?|channels?|ports?|pins?|bits?|bytes?|layers?|"
    r"frames?|chunks?|stages?|phases?|levels?|scenarios?|variants?|params?|parameters?|arguments?|args?|attempts?|options?|"
    r"cases?|comments?|commits?|patch|volume|vol|slides?|exercises?|room|gate|track|episode)[ \xa0]?[:=(]?[ \xa0]?$",
    re.I,
)
"""Nouns that are counted: ``step #2`` whatever the number."""
_ENUMERATED_SMALL = re.compile(
    r"\b(?:problems?|reasons?|goals?|priority|priorities|rules?|ideas?|approach|solutions?|methods?|bullets?|points?|parts?|"
    r"tasks?|tests?|examples?|ex|notes?|requirements?|questions?|assertions?|workarounds?|experiments?|groups?|blocks?|"
    r"index|number|types?|trick|lesson|mistake|pass|try|take|our|your|my|their|its|ranked|rank|place|position|"
    r"python|java|ruby|rust|php|go|node|javascript|c|f|no|nr)\.?[ \xa0]?[:=(]?[ \xa0]?$",
    re.I,
)
"""The same for words that also stand before real references: only small numbers are counted out."""
_RANKED = re.compile(
    r"[ -](?:priority|goal|reason|cause|source|rule|choice|complaint|request(?:ed)?|most|thing|concern|ranked|spot|"
    r"place|enemy|best|worst|seed|fan|problem|in the world|on the list)\b",
    re.I,
)
_FOREIGN_TRACKER = re.compile(
    r"\b(?:trac|jira|bugzilla|bpo|launchpad|lp|debian|ubuntu|fedora|redhat|rhbz|mozilla|chromium|gitlab|redmine|gerrit|"
    r"sourceforge|sf|savannah|youtrack|zendesk|phabricator|asana|linear|sentry|webkit|gcc|llvm|kde|gnome|bitbucket)"
    r"(?:'s)?(?:[ :-](?:bugs?|tickets?|issues?|tasks?|mr|cases?|reports?|id))?[ :(]{0,3}$",
    re.I,
)
_COLOUR_WORD = re.compile(
    r"(?:\bcolou?rs?|background|foreground|\bfill|\bstroke|\bborder|\bshadow|\bhex|\bpalette|\btheme|\bgradient|\boutline|"
    r"\bsolid|\brgb|\bcss)[\w-]{0,12}[\"']?[ ]?(?:code |value |is |to |of |from |=|:|\()?[ ]?[\"'`(]?$",
    re.I,
)
_COLOUR = re.compile(r"#(?=[0-9a-f]*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})(?!\w)", re.I)
_COLOUR_LENGTHS = (3, 4, 6, 8)
_LINE_START = re.compile(r"(?:^|\n)[ \t>]*(?:[-*+][ \t]+)?$")
_ENUMERATION_TAIL = re.compile(r"[.)][ \t]")
_FRAME_TAIL = re.compile(
    r"[ \t]+(?:0x[0-9a-f]|/|\[|[A-Z]:\\|[\w:~<>]+ ?\(.*\) (?:at|from) |(?:DONE|CACHED|ERROR|sha256)\b)"
)

_LONGEST_NOUN, _LONGEST_TRACKER = 16, 32
"""No match of `_ENUMERATED` and of `_FOREIGN_TRACKER` is longer; looking no farther back makes them fast."""

_TOP, _SMALL, _LONG_LIST = 10, 30, 99
"""Up to which number a rank, a counted thing, and an entry of a numbered list are likelier than a reference."""


def is_impostor(text: str, start: int, end: int, number: int) -> bool:
    """Whether ``#number`` at text[start:end] is no reference, by the words and marks around it."""
    before = text[max(0, start - _BEFORE) : start]
    after = text[end : end + _AFTER]
    return (
        _is_counted(before, after, number)
        or _FOREIGN_TRACKER.search(before, max(0, len(before) - _LONGEST_TRACKER)) is not None
        or (end - start - 1 in _COLOUR_LENGTHS and _is_colour(text, before, after, start, end))
    )


def _is_counted(before: str, after: str, number: int) -> bool:
    if _ENUMERATED.search(before, max(0, len(before) - _LONGEST_NOUN)):
        return True
    if number <= _SMALL and (_ENUMERATED_SMALL.search(before) or (number <= _TOP and _RANKED.match(after))):
        return True
    if number > _LONG_LIST or not _LINE_START.search(before):
        return False
    return _FRAME_TAIL.match(after) is not None or (number <= _SMALL and _ENUMERATION_TAIL.match(after) is not None)


def _is_colour(text: str, before: str, after: str, start: int, end: int) -> bool:
    if _COLOUR_WORD.search(before):
        return True
    if before[-1:] in ("'", '"') and after[:1] == before[-1:]:
        return True
    line_start = max(text.rfind("\n", max(0, start - 100), start) + 1, start - 100, 0)
    line_end = text.find("\n", end, end + 100)
    return _COLOUR.search(text, line_start, line_end if line_end >= 0 else end + 100) is not None
