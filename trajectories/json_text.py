"""Texts that may be JSON: arguments that models write, and files from outside."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_DEEPEST = 64
"""The most levels of nested objects and lists. No tool takes a fifth of it, and code that walks through such a value or
writes it stays far below Python's recursion limit."""


def parsed(text: str) -> Any:
    """The value of a text in JSON.

    Raises `ValueError` for texts that strict readers refuse or that could not be written as JSON again: not a number,
    infinity (also as 1e999), and more than 64 levels of nesting.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _too_deep(value):
        raise ValueError("nested too deeply")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large")
    return number


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True
