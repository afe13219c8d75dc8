"""A request that a program makes, as often as it comes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class AskedRequest:
    """A request, as often as it came."""

    ordinal: int = 0
    delivered: bool = False
    """Whether its last answer reached the program."""
