"""What the name of a head branch cites: ``revert-12-branch``, ``backport/12-to-1.x``, ``pr-12-fix``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from miner.citations.model import Relation

_NUMBER = r"#?(?P<number>[1-9][0-9]{1,8})(?![0-9]|\.[0-9x])"
_PR = r"(?:(?:of|for|to|the)[-_/])*(?:pr|pull|pull-request|gh)[-_/]?"
_BETWEEN = r"(?:[a-z0-9._]{1,40}[-_/]){0,4}?"
_END = r"(?=[-_/]|$)"
_NAMES: tuple[tuple[Relation, str], ...] = (
    ("reverts", rf"revert[-_/](?:{_PR})?{_NUMBER}{_END}"),
    ("relands", rf"(?:re-?land|re-?apply)[-_/](?:{_PR})?{_NUMBER}{_END}"),
    ("backports", rf"(?:backports?|bp|forward-?port)[-_/]{_BETWEEN}{_PR}{_NUMBER}{_END}"),
    ("backports", r"(?:backports?|bp|forward-?port)[-_/]#?(?P<number>[1-9][0-9]{2,8})(?=[-_/](?![0-9]+(?:$|[-_/]))|$)"),
    ("cherry_pick", rf"cherry-?picks?[-_/](?:{_PR})?{_NUMBER}{_END}"),
    ("follow_up", rf"follow-?up[-_/](?:to[-_/])?(?:{_PR})?{_NUMBER}{_END}"),
    ("mentions", rf"(?:pr|gh)[-_/]{_NUMBER}{_END}"),
)
_PATTERNS = [(relation, re.compile(rf"(?:^|(?<=[/:_-])){name}", re.I)) for relation, name in _NAMES]
_LONGEST = 300


def branch_citations(branch: str) -> Iterator[tuple[Relation, int, int, int]]:
    """Yield (relation, number, start, end) of what a branch's name cites; at most one, the most telling."""
    for relation, pattern in _PATTERNS:
        m = pattern.search(branch, 0, _LONGEST)
        if m:
            yield relation, int(m["number"]), m.start("number"), m.end("number")
            return
