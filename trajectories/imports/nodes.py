"""Objects of a document of others: each value is asked for with the type that it must have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prchain.core.errors import BadDocument

_MOST = 2**31 - 1
"""What a column of whole numbers holds, on every database."""


@dataclass(frozen=True, slots=True)
class JsonNode:
    """An object, and where it stands. A null counts as what is not there. All methods raise `BadDocument`."""

    values: Mapping[str, Any]
    place: str
    """Empty for the document."""

    @classmethod
    def of(cls, value: Any, place: str) -> JsonNode:
        """The node of a value."""
        if not isinstance(value, dict):
            raise BadDocument(f"{place or 'the document'} is {_kind(value)}, and must be an object")
        return cls(value, place)

    def bad(self, name: str, words: str) -> BadDocument:
        """What is wrong with the value of a name."""
        return BadDocument(f"{self.inner(name)} {words}")

    def inner(self, name: str) -> str:
        """Where the value of a name stands."""
        return f"{self.place}: {name}" if self.place else name

    def text(self, name: str) -> str:
        """A text that must be there."""
        if (found := self.known_text(name)) is None:
            raise self.bad(name, "is missing")
        return found

    def known_text(self, name: str) -> str | None:
        """A text, or None."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.bad(name, f"is {_kind(value)}, and must be a text")
        return value

    def count(self, name: str) -> int | None:
        """A whole number from 0 on, or None."""
        value = self.number(name)
        if value is not None and (value != int(value) or value > _MOST):
            raise self.bad(name, "is no whole number that a count can be")
        return None if value is None else int(value)

    def number(self, name: str) -> float | None:
        """A number from 0 on, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"is {_kind(value)}, and must be a number")
        if value < 0 or not math.isfinite(number := float(min(value, 2**64))):
            raise self.bad(name, "is a number that cannot be")
        return number

    def truth(self, name: str) -> bool | None:
        """True, false or None."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.bad(name, f"is {_kind(value)}, and must be true or false")
        return value

    def node(self, name: str) -> JsonNode | None:
        """An object, or None."""
        value = self.values.get(name)
        return None if value is None else JsonNode.of(value, self.inner(name))

    def items(self, name: str) -> list[Any]:
        """A list; empty where there is none."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise self.bad(name, f"is {_kind(value)}, and must be a list")
        return value or []

    def nodes(self, name: str, each: str) -> Iterator[JsonNode]:
        """The objects of a list; `each` is what one of them is called."""
        for number, value in enumerate(self.items(name), 1):
            yield JsonNode.of(value, self.inner(f"{each} {number}") if self.place else f"{each} {number}")

    def extra(self) -> Mapping[str, Any]:
        """The object under ``extra``, in which anything may stand; empty where there is none."""
        value = self.values.get("extra")
        return value if isinstance(value, dict) else {}


def _kind(value: Any) -> str:
    names: dict[type, str] = {str: "a text", bool: "a truth value", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a number")
