"""Texts of strangers as pages show them: without secrets and addresses, and with every character that can be seen.

Pure: from values to values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from string import ascii_letters, digits
from types import SimpleNamespace
from typing import Any

from prchain.core.secrets.scrub import Counts, scrub_mined
from prchain.core.storable import clean_text

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, and characters that change the direction of writing or have no width
(Unicode's bidirectional algorithm, and its default ignorables); the joiners of emoji and of Persian stay."""

_PICTURES = 0x2400
"""Where Unicode's pictures of control characters begin; that of DEL is 0x2421."""


def visible(text: str) -> str:
    """The text with a sign in the place of each character that is not seen: ``␛[31m`` for a terminal's red,
    ``[U+202E]`` for one that turns the direction of writing."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_sign, clean_text(text))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else f"[U+{code:04X}]"


_SHORT = 64
"""Characters of a text that is remembered once it is clean: names, kinds and outcomes, which most texts are."""
_REMEMBERED = 8_192


class Cleaner:
    """Makes texts, and values that hold texts, fit to be shown: scrubbed as exports are, but what exports drop can be
    seen."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = secrets
        self._known = lru_cache(_REMEMBERED)(self._cleaned)

    def text(self, text: str) -> str:
        """The text, safe to show."""
        return self._known(text) if len(text) <= _SHORT else self._cleaned(text)

    def _cleaned(self, text: str) -> str:
        seen = visible(text)
        counts: Counts = Counter()
        clean = scrub_mined(seen, self._secrets, counts)
        if seen != text:
            # A character that is not seen may stand in the middle of a secret: then what an export would say is shown.
            plain: Counts = Counter()
            dropped = scrub_mined(text, self._secrets, plain)
            if plain != counts:
                return dropped
        return clean

    def value(self, value: Any) -> Any:
        """A value with each of its texts safe to show; a dataclass becomes a namespace of its fields."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return SimpleNamespace(**{it.name: self.value(getattr(value, it.name)) for it in fields(value)})
        if isinstance(value, Iterable) and not isinstance(value, bytes):
            return [self.value(item) for item in value]
        return value


_WORD = f"{ascii_letters}{digits}_-./+=:@%~$!?*#\\"
"""Characters of secrets: a cut among them would leave a part that nothing recognises."""


def beginning(text: str, most: int) -> str:
    """At most so many characters of the beginning, without the word that the cut would split."""
    return text if len(text) <= most else text[:most].rstrip(_WORD)


def cut(text: str, most: int) -> tuple[str, int]:
    """The beginning and the end of a text that is longer than `most` characters, and how many are left out between."""
    if len(text) <= most:
        return text, 0
    head = beginning(text, most * 3 // 4)
    tail = text[len(text) - most // 4 :].lstrip(_WORD)
    rest = len(text) - len(head) - len(tail)
    return f"{head}\n[... {rest:,} characters are left out here ...]\n{tail}", rest


def marked(text: str, words: Iterable[str]) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is one of `words`; the longest word that fits comes first."""
    wanted = sorted({word for word in words if word.strip()}, key=lambda word: (-len(word), word))
    if not wanted:
        return [(text, False)]
    parts = re.split(f"({'|'.join(map(re.escape, wanted))})", text)
    return [(part, bool(place % 2)) for place, part in enumerate(parts) if part]


def title_of(text: str, number: int) -> str:
    """A title without the number that squash merges put at its end, and a merge's without the words that all merges
    begin with: the page names the number before. Pure."""
    short = text.removesuffix(f"(#{number})").removeprefix(f"Merge pull request #{number} from ").strip()
    return short or text


_SURENESS = (
    (0.97, "almost certain"),
    (0.9, "very likely"),
    (0.7, "likely"),
    (0.5, "more likely than not"),
    (0.3, "doubtful"),
)
_KNOWN_FROM = {"citation": "what people wrote", "stack": "branches", "lineage": "changed lines"}


def sureness(confidence: float | None) -> str:
    """A confidence in words, with its number. Pure."""
    value = confidence or 0.0
    return f"{next((words for least, words in _SURENESS if value >= least), 'unlikely')} ({value:.2f})"


def known_from(sources: str) -> str:
    """The sources of an edge, with commas between them, in words. Pure."""
    return ", ".join(_KNOWN_FROM.get(source, source) for source in sources.replace(" ", "").split(","))
