"""The id of a chain: a hash of its content, so that every run on every machine gives the same id."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

LENGTH = 16
"""Hexadecimal digits of an id: 64 bits; two of a million chains collide once in thirty million databases."""


def chain_id(host: str, full_name: str, stages: Sequence[tuple[int, str]]) -> str:
    """The id of the chain of these (number, landed commit) stages, earliest first."""
    parts = [f"{host}/{full_name}".lower(), *(f"{number} {sha}" for number, sha in stages)]
    return sha256("\n".join(parts).encode()).hexdigest()[:LENGTH]
