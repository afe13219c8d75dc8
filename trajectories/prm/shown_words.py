"""The words that a conversation has shown so far, to ask whether a name or a file stands among them.

Coarser than Obs(h) of `trajectories.curation.windows.shown`, and far cheaper: a file is held if the words of its name
were shown, in whatever folder. So it holds too much rather than too little.
"""

from __future__ import annotations

import re

from prchain.identifiers import spellings

_WORD = re.compile(r"\w+")
_BEHIND_ESCAPE = re.compile(r"\\[nrtbsdw](\w+)")
_ASCII_WORDS = {code: chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)}
"""To split by: many times as fast as the pattern, and most texts are ASCII."""
_MOST_PARTS = 6
"""Words of a name whose runs are looked at."""


class ShownWords:
    """Words without regard to case."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._runs: set[str] = set()
        """Of words joined by underscores, each shorter such name in them."""
        self._new: set[str] = set()
        """Words whose runs are not in `_runs` yet; most conversations never ask for them."""

    def add(self, text: str) -> None:
        """Take a text. Of one with escapes, as JSON and patterns have them, what stands behind these counts, too."""
        words = set(text.translate(_ASCII_WORDS).split() if text.isascii() else _WORD.findall(text.lower()))
        if "\\" in text:
            words.update(_BEHIND_ESCAPE.findall(text.lower()))
        words -= self._words
        self._words |= words
        self._new |= words

    def holds_name(self, name: str) -> bool:
        """Whether a name was shown, in any spelling or as a part of a longer one."""
        forms = {form.lower() for form in (name, name.strip("_"), *spellings(name))}
        if not self._words.isdisjoint(forms):
            return True
        self._index()
        return not self._runs.isdisjoint(forms)

    def holds_file(self, path: str) -> bool:
        """Whether the words in the name of a file were shown; of a file that every folder may have, those of its
        folder."""
        folder, _, name = path.rstrip("/").rpartition("/")
        if folder and name.startswith("__"):
            name = folder.rpartition("/")[2]
        return all(self.holds_name(word) for word in _WORD.findall(name))

    def _index(self) -> None:
        for word in self._new:
            parts = word.split("_")
            if 2 <= len(parts) <= _MOST_PARTS:
                ends = range(len(parts) + 1)
                self._runs |= {"_".join(parts[start:end]) for start in ends for end in ends[start + 1 :]}
        self._new.clear()
