"""Keeping secrets and unstorable characters out of what is stored, logged or shown.

Four strengths:

- `redact`, for what prchain says itself: a URL loses its user and password, whatever they look like;
- `redact_mined`, for texts of repositories and people that are stored: only what looks like a secret is replaced;
- `redact_reply`, for what a model says;
- `scrub_mined`, for texts in prompts and exports: without addresses and invisible characters, too.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

from prchain.core.secrets.credentials import Replace, without_logins, without_passwords, without_tokens
from prchain.core.secrets.private_keys import SIGN as KEY_SIGN
from prchain.core.secrets.private_keys import without_private_keys
from prchain.core.storable import clean_text

REDACTED = "[redacted]"

_SHORTEST_SECRET = 8
"""A shorter word occurs in shas and prose by chance; no service's tokens are that short."""


KNOWN = "settings"
"""The kind of secrets that are given."""

PRIVATE_KEY = "private_key"
ADDRESS = "address"

Counts = Counter[str]
"""How many secrets, and addresses, of each kind were replaced."""


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return text without the given secrets, without users and passwords in URLs, and without tokens of known kinds.

    ``git@`` stays in URLs: it is the account of all who read a repository over SSH.
    """
    return without_tokens(without_logins(_without_known(text, secrets, Counter())), _marked(Counter()))


def redact_mined(text: str, secrets: tuple[str, ...] = (), counts: Counts | None = None) -> str:
    """Return a text of others without the given secrets and without what looks like a secret.

    These are private keys, tokens of the kinds of `prchain.core.secrets.credentials`, and passwords in URLs. What was
    replaced is added to `counts`.
    """
    found: Counts = Counter() if counts is None else counts
    return replace_secrets(_without_known(text, secrets, found), _marked(found))


def replace_secrets(text: str, replace: Replace) -> str:
    """Return a text of others in which `replace` has put something into the place of each that looks like a secret."""
    if KEY_SIGN in text:
        text = without_private_keys(text, lambda key: replace(PRIVATE_KEY, key))
    return without_passwords(without_tokens(text, replace, jwt=True), replace)


def redact_reply(text: str, secrets: tuple[str, ...]) -> str:
    """Return a model's reply without the given secrets and tokens of services.

    Keys, claims and passwords in URLs stay: a repository's tests and its documentation have them, and the edit of a
    file that holds one must say it.
    """
    return without_tokens(_without_known(text, secrets, Counter()), _marked(Counter()))


def _without_known(text: str, secrets: tuple[str, ...], counts: Counts) -> str:
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret in text:
            counts[KNOWN] += text.count(secret)
            text = text.replace(secret, REDACTED)
    return text


def _marked(counts: Counts) -> Replace:
    def replace(kind: str, secret: str) -> str:
        counts[kind] += 1
        return EMAIL if kind == ADDRESS else REDACTED

    return replace


ADDRESSES = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?<!://)(?!(?:git|hg|svn)@)(?![A-Za-z0-9-]{1,63}@(?:openssh\.com|libssh\.org)\b)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
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


_IN_URL = re.compile(r"://[^\s/:@'\"<>]{0,64}:[^\s/@'\"<>]{0,200}$")
"""Before an ``@`` that parts a password from its host."""


def scrub_mined(text: str, secrets: tuple[str, ...] = (), counts: Counts | None = None) -> str:
    """Return a mined text as it may stand in a prompt or an export.

    E-mail addresses and secrets are replaced as `redact_mined` does, control and invisible characters dropped. What
    looks like an address is taken for one, also in code, but not ``git@`` of a clone URL, nor a matrix product
    (``a@b.shape``), nor a password and the host after it.
    """
    found: Counts = Counter() if counts is None else counts
    text = redact_mined(_UNSEEN.sub("", TERMINAL_CODES.sub("", clean_text(text))), secrets, found)
    return replace_addresses(text, _marked(found))


def replace_addresses(text: str, replace: Replace) -> str:
    """Return a text in which `replace` has put something into the place of each address of e-mail."""
    return ADDRESSES.sub(partial(_address, replace), text) if "@" in text else text


def _address(replace: Replace, found: re.Match[str]) -> str:
    at = found[0].index("@") + found.start()
    if _IN_URL.search(found.string[max(at - 300, 0) : at]):
        return found[0]
    return replace(ADDRESS, found[0])
