"""Other values for a literal that its file might as well ask for. Pure.

What is a letter off, or a number that nothing in the file is, tells who guesses that it is false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

LONGEST = 24
"""Letters of a text in whose place another text of the file may stand."""
_SHARE = 0.6
"""How often one does, where there is one."""
_WHOLE = re.compile(rf"[^\\{{}}\n\"'`$]{{1,{LONGEST}}}")
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class LikelyValues:
    """The texts and numbers of a file, each once."""

    texts: tuple[str, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, texts: Iterable[str], numbers: Iterable[str]) -> LikelyValues:
        """From what stands between quotes, and the digits of numbers; what is long or holds marks of code is left
        out."""
        return cls(
            tuple(dict.fromkeys(it for it in texts if _WHOLE.fullmatch(it))),
            tuple(dict.fromkeys(int(it) for it in numbers if it.isdigit() and len(it) <= _DIGITS)),
        )

    def text(self, value: str, draw: Random) -> str | None:
        """Another text of the file that looks like this one: of about its length, and of words or not; None where there
        is none, or a near one is to be taken."""
        alike = self.alike(value)
        return draw.choice(alike) if alike and draw.random() < _SHARE else None

    def alike(self, value: str) -> list[str]:
        """The other texts that look like this one."""
        return [it for it in self.texts if it != value and _alike(it, value)] if len(value) <= LONGEST else []

    def number(self, value: int, draw: Random, most: int | None = None) -> int:
        """Another number of the file, or a near one; none above `most`."""
        top = value + 9 if most is None else most
        alike = [it for it in self.numbers if it != value and abs(it - value) <= max(9, value // 2)]
        if (fit := [it for it in alike if most is None or it <= top]) and draw.random() < _SHARE:
            return draw.choice(fit)
        return draw.choice([it for it in range(max(0, value - 5), value + 9) if it != value and it <= top])


def _alike(text: str, other: str) -> bool:
    is_as_long = abs(len(text) - len(other)) <= max(2, len(other) // 2)
    return is_as_long and text[:1].isalpha() == other[:1].isalpha() and (" " in text) == (" " in other)
