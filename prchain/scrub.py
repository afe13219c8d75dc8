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
"""A shorter word stands in shas and prose by chance; no service's tokens are that short."""


def clean_text(text: str) -> str:
    """Return text that every database takes: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


_SIGNS = re.compile(r"gh[pousr]_|github_pat_|glpat-|\bsk-|xox[abprs]-|\bAKIA|://[^/\s@'\"<>]+@")


_CHEAP_SIGNS = ("://", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "glpat-", "sk-", "xox", "AKIA")


def may_hold_secrets(text: str) -> bool:
    """Whether `redact` could change the text; a cheap look that spares most texts the real one."""
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
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})",
    re.S,
)

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)

_TERMINAL = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, and characters that a reader does not see and a model does: those that
change the direction of writing, that have no width, and the tags. The joiners of emoji and of Persian stay."""

EMAIL = "[email]"


def scrub_mined(text: str) -> str:
    """Return a mined text as it may stand in a prompt or an export.

    E-mail addresses and credentials are replaced, control and invisible characters dropped. What looks like an address
    is taken for one, also in code (``a@b.shape``); ``git@`` of a clone URL is not.
    """
    text = _UNSEEN.sub("", _TERMINAL.sub("", clean_text(text)))
    text = _MORE_SECRETS.sub(REDACTED, redact(text))
    return _EMAIL.sub(EMAIL, text)
