"""Private keys in PEM (RFC 7468), also those of which a cut has left only one end."""

from __future__ import annotations

import re
from collections.abc import Callable

from prchain.core.secrets.randomness import is_random

SIGN = "PRIVATE KEY"
"""Every text with a key holds this."""

_MARK = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LINE = re.compile(
    r"(?:[-+ ]?(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{0,200}"
    r"|[-+ \t>|#*\"']{0,40}(?:[A-Za-z0-9/=]|\\[nr]|\+(?=[A-Za-z0-9/=+]))*+[ \t\r\"',;+\\)]{0,40})"
)
"""A line of a key's body (its headers: RFC 1421, RFC 4880): base64, in a diff, a comment or a literal."""
_BODY = re.compile(r"[A-Za-z0-9+/=]{60}")
_CUT_BODY = re.compile(r"[-+ \t>|#*\"']{0,40}(?:[A-Za-z0-9+/=]|\\[nr]){24,}")
_SHORTEST_RUN = 24
_RUN = re.compile(rf"(?:[A-Za-z0-9/]|\+(?!\n)){{{_SHORTEST_RUN},}}")
"""Base64 in one piece. The shortest keys have 64 characters (Ed25519), and RFC 7468 has as many in a line."""
_HEAD = re.compile(r"MII[A-Za-z0-9+/]{2,5}IBA(?:DANBgkqhkiG9w0BAQEFAASC|AKC[A-Za-z0-9+/]{4})|b3BlbnNzaC1rZXktdjEAAAAA")
"""How all RSA keys begin (PKCS #8, PKCS #1), and those of OpenSSH: documentation shows that much and then dots."""
_LONGEST = 16_000
"""Characters from mark to mark; a key of 16,384 bits takes 13,000."""


def without_private_keys(text: str, replace: Callable[[str], str]) -> str:
    """A text in which `replace` has taken the place of each private key with its marks.

    Between a BEGIN and an END mark everything is taken for the key; after a lone BEGIN mark the lines that a body may
    have, and before a lone END mark the lines that only a body has. Marks without random base64 are no key: code that
    looks for keys has them, and documentation, with dots between them.
    """
    marks = list(_MARK.finditer(text))
    if not marks:
        return text
    kept: list[str] = []
    at = 0
    for place, mark in enumerate(marks):
        if mark.start() < at:
            continue
        after = marks[place + 1] if place + 1 < len(marks) else None
        start, end = mark.span()
        if mark[1] == "END":
            start = _body_before(text, max(at, marks[place - 1].end() if place else 0), start)
        elif after is not None and after[1] == "END" and after.end() - start <= _LONGEST:
            end = after.end()
        else:
            end = _body_after(text, end, after.start() if after else len(text))
        if _holds_body(text, start, end, mark.span()):
            kept += text[at:start], replace(text[start:end])
            at = end
    return "".join([*kept, text[at:]])


def _holds_body(text: str, start: int, end: int, mark: tuple[int, int]) -> bool:
    """Whether there is random base64 beside the mark."""
    parts = ((start, mark[0]), (mark[1], end))
    runs = (_without_head(run[0]) for part in parts for run in _RUN.finditer(text, *part))
    return any(len(run) >= _SHORTEST_RUN and is_random(run, bits=2.5, mixed=0.1) for run in runs)


def _without_head(run: str) -> str:
    head = _HEAD.search(run, 0, 64)  # in a literal the n of a line break may stand before it
    return run[head.end() :] if head else run


def _body_before(text: str, first: int, end: int) -> int:
    """Where the body begins that ends at `end`: at the first of the long lines of base64 before it; `end` for none.

    A short line may stand between them and the mark.
    """
    start = end
    stop, short = end, 0
    while short < 2:
        line = max(text.rfind("\n", first, stop) + 1, first)
        body = text[line:stop]
        if not _LINE.fullmatch(body):
            break
        if _BODY.search(body):
            start, short = line, 0
        elif stop < end:
            short += 1
        if line == first:
            break
        stop = line - 1
    return start


def _body_after(text: str, start: int, last: int) -> int:
    """Where the body ends that begins at `start`."""
    at = start
    while at < last:
        line = text.find("\n", at, last) + 1 or last
        body = text[at:line].rstrip("\n")
        if not _LINE.fullmatch(body):
            cut = _CUT_BODY.match(body)
            return at + cut.end() if cut else max(at - text.startswith("\n", at - 1), start)
        at = line
    return at
