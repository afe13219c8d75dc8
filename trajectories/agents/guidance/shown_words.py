"""The words that a conversation has shown so far, to ask whether a name or a file stands among them.

Coarser than Obs(h) of `trajectories.curation.windows.shown`, and far cheaper: a file is held if the words of its name
were shown, in whatever folder. So it holds too much rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prchain.core.code.identifiers import spellings

_WORD = re.compile(r"\w+")
_BEHIND_ESCAPE = re.compile(r"\\[nrtbsdw](\w+)")
_BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
"""To split by: many times as fast as the pattern, and most texts are ASCII."""
_SEARCHES = 64
"""Searches of a text that take about as long as to take its words."""
_MOST_PARTS = 6
"""Words of a name whose runs are looked at."""


class ShownWords:
    """Words without regard to case.

    Few names are asked for, and most of these were shown lately. So texts are kept as they come, and the words of one
    are taken only when it may hold a name that is asked for.
    """

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._runs: set[str] = set()
        """Of words joined by underscores, each shorter such name in them."""
        self._new: set[str] = set()
        """Words whose runs are not in `_runs` yet; most conversations never ask for them."""
        self._texts: list[str] = []
        """Those whose words are not in `_words` yet."""
        self._small: list[str] = []
        """The same, before those, in small letters."""
        self._room = 0
        """So many characters may be searched before all texts are read: time is linear in them, whatever is asked."""

    def add(self, text: str) -> None:
        """Take a text. Of one with escapes, as JSON and patterns have them, what stands behind these counts, too."""
        if text:
            self._texts.append(text)
        self._room += len(text) * _SEARCHES

    def holds_name(self, name: str) -> bool:
        """Whether a name was shown, in any spelling or as a part of a longer one."""
        forms = {form.lower() for form in (name, name.strip("_"), *spellings(name))} - {""}
        return self._have(forms) or any(self._have(forms) for _ in self._read_those_with(forms))

    def holds_file(self, path: str) -> bool:
        """Whether the words in the name of a file were shown; of a file that every folder may have, those of its
        folder."""
        folder, _, name = path.rstrip("/").rpartition("/")
        if folder and name.startswith("__"):
            name = folder.rpartition("/")[2]
        return all(self.holds_name(word) for word in _WORD.findall(name))

    def _have(self, forms: set[str]) -> bool:
        if not self._words.isdisjoint(forms):
            return True
        self._index()
        return not self._runs.isdisjoint(forms)

    def _read_those_with(self, forms: set[str]) -> Iterator[None]:
        """Read the texts that have one of these somewhere, newest first; yields after each."""
        self._small += map(str.lower, self._texts)
        self._texts.clear()
        for place in range(len(self._small) - 1, -1, -1):
            text = self._small[place]
            self._room -= len(text) * len(forms)
            if self._room < 0 or any(form in text for form in forms):
                self._read(self._small.pop(place))
                yield

    def _read(self, text: str) -> None:
        words = set(text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text))
        if "\\" in text:
            words.update(_BEHIND_ESCAPE.findall(text))
        words -= self._words
        self._words |= words
        self._new |= words

    def _index(self) -> None:
        for word in self._new:
            parts = word.split("_") if "_" in word else ()
            if 2 <= len(parts) <= _MOST_PARTS:
                ends = range(len(parts) + 1)
                self._runs |= {"_".join(parts[start:end]) for start in ends for end in ends[start + 1 :]}
        self._new.clear()
