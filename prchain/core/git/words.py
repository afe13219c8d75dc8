"""Which names occur in a tree: one pass over its texts, however many names are asked for.

`git grep` with a pattern for each name took minutes where a stage has hundreds of names and the tree 30 MB of text;
this takes a second or two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(rb"[A-Za-z0-9_]+")
_FEW = 6
"""So few names are searched one by one, which is faster than reading every word."""


def standing(texts: Iterable[bytes], words: Iterable[str]) -> set[str]:
    """Those of `words` that occur, as whole words, in one of the texts."""
    missing = {word.encode("utf-8", "surrogateescape"): word for word in words if word}
    odd = [word for word in missing if not _WORD.fullmatch(word)]
    found: set[str] = set()
    for text in texts:
        if not missing:
            break
        if len(missing) <= _FEW:
            seen = {word for word in missing if word in text and _stands(word, text)}
        else:
            seen = missing.keys() & set(_WORD.findall(text))
            seen |= {word for word in odd if word in missing and word in text and _stands(word, text)}
        found.update(missing.pop(word) for word in seen)
    return found


def _stands(word: bytes, text: bytes) -> bool:
    """Whether the word stands by itself: no letter, digit, underscore or byte of another letter touches it."""
    return re.search(rb"(?<![A-Za-z0-9_\x80-\xff])" + re.escape(word) + rb"(?![A-Za-z0-9_\x80-\xff])", text) is not None
