"""The numbers of a text by what they are worth, however they are spelled: 4096, 4,096, 0x1000 and 4096.0 are one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, DecimalException

Value = int | Decimal
"""Equal values are equal, and have equal hashes, whichever they are."""

_BEFORE, _AFTER = r"(?<![\w.])", r"(?![\w]|\.\d)"
_PERCENT = r"[ \u00a0\u202f]?(?:%|per[ -]?cent\b|pct\b)"
_BASED = re.compile(rf"{_BEFORE}0[xXoObB][0-9a-fA-F_]+{_AFTER}")
_PLAIN = re.compile(
    rf"{_BEFORE}(?P<digits>\d[\d_]*(?:\.\d+)?|\.\d+)(?P<power>[eE][+-]?\d+)?(?:(?P<percent>{_PERCENT})|{_AFTER})"
)
_GAP = r"[,_' \u00a0\u2009\u202f]"
_GROUPED = re.compile(
    rf"{_BEFORE}(?P<digits>\d{{1,3}}(?P<gap>{_GAP})\d{{3}}(?:(?P=gap)\d{{3}})*(?:\.\d+)?)(?P<power>)"
    rf"(?:(?P<percent>{_PERCENT})|{_AFTER})"
)

_FEWEST_DIGITS = 3
"""Digits from which on a number is not said by chance; so do two where there is a decimal point, or a percentage. Zeros
at the ends do not count."""


def numbers(lines: Iterable[str]) -> Iterator[tuple[Value, str]]:
    """The numbers of some lines that no text holds by chance: what each is worth, and how it is spelled.

    What can be read in two ways (a comma between groups of three may stand between two numbers, a percentage may be
    written for its hundredth) comes with both.
    """
    for line in lines:
        for match in _BASED.finditer(line):
            try:
                yield int(match[0], 0), match[0]
            except ValueError:
                continue
        for pattern in (_PLAIN, _GROUPED):
            for match in pattern.finditer(line):
                yield from ((value, match[0].strip()) for value in _values(match))


def _values(match: re.Match[str]) -> Iterator[Value]:
    digits, power, percent = re.sub(_GAP, "", match["digits"]), match["power"] or "", match["percent"] is not None
    try:
        value = Decimal(digits + power)
    except DecimalException:
        return
    count = sum(char.isdigit() for char in digits.strip("0.") + power)
    if count >= _FEWEST_DIGITS - ("." in digits):
        yield value
    if percent and count >= _FEWEST_DIGITS - 1:
        sign, figures, exponent = value.as_tuple()
        if isinstance(exponent, int):
            yield Decimal((sign, figures, exponent - 2))
