"""Whose work on the earlier stages a stage starts with."""

from __future__ import annotations

from enum import StrEnum


class Carry(StrEnum):
    """What of the earlier stages a stage starts with."""

    AGENT = "agent"
    """The agent's own work."""
    REFERENCE = "reference"
    """The developers' work: S_t is B_t."""
    NONE = "none"
    """Nothing: the chain's earlier reference patches are reverted in B_t."""
