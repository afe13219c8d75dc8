"""Which proofs a command works with, by what they are worth (`sql.strength`) and what guards grades by them."""

from __future__ import annotations

from enum import StrEnum


class ProofFilter(StrEnum):
    """What ``--proof`` asks of every stage."""

    ANY = "any"
    OWN = "own"
    """An F2P test is left that no import alone has hidden."""
    CAUGHT = "caught"
    """The proof is `sql.strength.Worth.STRONG`."""
    TOLD = "told"
    """Its grades are guarded as `prchain.core.safeguards.Safeguard.TOLD`, whatever else the proof is worth."""
