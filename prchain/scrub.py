"""Keeping secrets and unstorable characters out of what is stored, logged or shown."""

from __future__ import annotations

import re

_TOKEN_SHAPES = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16})\b"
)
_URL_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,40}://)[^/\s@'\"<>]+@")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

REDACTED = "[redacted]"

_SHORTEST_SECRET = 8
"""A shorter word occurs in shas and prose by chance; no service's tokens are that short."""


def clean_text(text: str) -> str:
    """Return text that every database takes: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:  # nearly all; a whole conversation goes through here with every request
        return text
    return _UNSTORABLE.sub("\ufffd", text)


_SIGNS = re.compile(r"gh[pousr]_|github_pat_|glpat-|\bsk-|xox[abprs]-|\bAKIA|://[^/\s@'\"<>]+@")


_CHEAP_SIGNS = ("://", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "glpat-", "sk-", "xox", "AKIA")


def may_hold_secrets(text: str) -> bool:
    """Whether `redact` could change the text; a cheap check that saves most texts the real one."""
    for sign in _CHEAP_SIGNS:
        if sign in text:
            return _SIGNS.search(text) is not None
    return False


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return text without the given secrets, without credentials in URLs and without tokens of known shapes.

    The shapes are those of GitHub, GitLab, OpenAI, Slack and AWS keys.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, REDACTED)
    text = _URL_CREDENTIALS.sub(lambda m: m.group(1), text)
    return _TOKEN_SHAPES.sub(REDACTED, text)


_MORE_SECRETS = re.compile(
    r"\b(?:AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)

_MORE_SIGNS = ("AIza", "npm_", "hf_", "pypi-", "eyJ")
"""Every match of `_MORE_SECRETS` holds one of these."""

_KEY_MARK = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(
    r"(?:[-+ ]?(?:Proc-Type|DEK-Info|Version|Comment): [^\n]{0,200}"
    r"|[-+ \t>|#*\"']{0,40}(?:[A-Za-z0-9/=]|\\[nr]|\+(?=[A-Za-z0-9/=+]))*+[ \t\r\"',;+\\)]{0,40})"
)
"""A line of a key's body (RFC 7468; its headers: RFC 1421, RFC 4880): base64, in a diff, a comment or a literal."""
_BODY = re.compile(r"[A-Za-z0-9+/=]{60}")
_CUT_BODY = re.compile(r"[-+ \t>|#*\"']{0,40}(?:[A-Za-z0-9+/=]|\\[nr]){24,}")
_LONGEST_KEY = 16_000
"""Characters from mark to mark; a key of 16,384 bits takes 13,000."""

ADDRESSES = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
    r"(?!(?:shape|dtype|ndim|size|conj|conjugate|reshape|transpose|inverse|inv|sum|mean|astype|flatten|ravel)\b)"
    r"[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
"""Addresses of e-mail. Code with an ``@`` is recognised by attributes that arrays have and that are no top-level
domains of the DNS."""

TERMINAL_CODES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
"""Sequences that colour a terminal's text or move its cursor (ECMA-48, CSI)."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, and characters that a reader does not see and a model does: those that
change the direction of writing, that have no width, and the tags. The joiners of emoji and of Persian stay."""

EMAIL = "[email]"


def _without_keys(text: str) -> str:
    """A text without private keys in PEM, also without those of which a cut has left only one end.

    Between a BEGIN and an END mark everything is removed; after a lone BEGIN mark the lines that a body may have, and
    before a lone END mark the lines that only a body has.
    """
    marks = list(_KEY_MARK.finditer(text))
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
        elif after is not None and after[1] == "END" and after.end() - start <= _LONGEST_KEY:
            end = after.end()
        else:
            end = _body_after(text, end, after.start() if after else len(text))
        if mark[1] == "BEGIN" or start < mark.start():
            kept += text[at:start], REDACTED
            at = end
    return "".join([*kept, text[at:]])


def _body_before(text: str, first: int, end: int) -> int:
    """Where the body begins that ends at `end`: at the first of the long lines of base64 before it; `end` for none.

    A short line may stand between them and the mark.
    """
    start = end
    stop, short = end, 0
    while short < 2:
        line = max(text.rfind("\n", first, stop) + 1, first)
        body = text[line:stop]
        if not _KEY_LINE.fullmatch(body):
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
        if not _KEY_LINE.fullmatch(body):
            cut = _CUT_BODY.match(body)
            return at + cut.end() if cut else max(at - text.startswith("\n", at - 1), start)
        at = line
    return at


def scrub_mined(text: str) -> str:
    """Return a mined text as it may stand in a prompt or an export.

    E-mail addresses and credentials are replaced, control and invisible characters dropped. What looks like an address
    is taken for one, also in code, but not ``git@`` of a clone URL, nor a matrix product (``a@b.shape``).
    """
    text = _without_keys(_UNSEEN.sub("", TERMINAL_CODES.sub("", clean_text(text))))
    if may_hold_secrets(text):  # the expressions are slow, and most texts hold nothing that they look for
        text = redact(text)
    if any(sign in text for sign in _MORE_SIGNS):
        text = _MORE_SECRETS.sub(REDACTED, text)
    return ADDRESSES.sub(EMAIL, text) if "@" in text else text
