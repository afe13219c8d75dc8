"""Text that every database takes."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return text that every database takes: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:  # nearly all; a whole conversation goes through here with every request
        return text
    return _UNSTORABLE.sub("\ufffd", text)
