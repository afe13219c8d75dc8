"""The numbers in a text by value, in any spelling: 4096, 4,096, 0x1000 and 4096.0 are the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, DecimalException

Value = int | Decimal
"""Equal values of the two types are equal and have equal hashes."""

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
"""The fewest digits of a number that is no coincidence; two are enough with a decimal point, or in a percentage. Zeros
at the ends do not count."""


def numbers(lines: Iterable[str]) -> Iterator[tuple[Value, str]]:
    """The numbers in lines that no text holds by chance: the value and the spelling of each.

    A number with two readings gives both values (a comma between groups of three digits may separate two numbers, a
    percentage may mean its hundredth).
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
