"""What guards the grades of a stage against code that only seems to do the work, by what its proof has stored.

The rules are those of docs/grading.md: canaries, duels and masks. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

PLANTING = 1
"""The version of the rules by which canaries are planted, stored with every proof: what a canary of other rules showed
on the reference says nothing of those of today."""
MASK_RULES = 7
"""The version of the rules that say which places of a test are masked, and how these are told: a place is known by its
number alone, so that what a proof by other rules has stored says nothing."""
SURE_RULES = 2
"""The version of the rules that say which values nobody has without the work; a test that is sure is so by these."""
_OF_MASKS = 7
"""Values of a stored test that is held, if it is masked: file, name, seeds, masks, plain places, whether it tells, and
rules; behind these, by which rules that is sure."""


class Safeguard(StrEnum):
    """What guards the grades of a stage, weakest first."""

    NONE = "none"
    """What makes the tests pass is believed."""
    CANARIES = "canaries"
    """Copies of tests that have to fail: who reads them and the tests tells them apart."""
    HELD = "held"
    """Tests are false in some processes, or masked where a value is likely or the test leads to it: who guesses is
    found out, who reads the tests may not be."""
    TOLD = "told"
    """At least half of the F2P tests ask for a value that no process holds, and that is neither hit by chance nor to be
    had from the rest of the test."""


def safeguard_of(baseline: Mapping[str, Any]) -> Safeguard:
    """What guards the grades by a proof, of which a row of `sql.tables.StageTests` holds this `baseline`."""
    held: Sequence[Sequence[Any]] = baseline.get("held") or ()
    masked = [it for it in held if len(it) >= _OF_MASKS and it[3] is not None and it[6] == MASK_RULES]
    if any(it[5] and it[-1] == SURE_RULES for it in masked if len(it) > _OF_MASKS):
        return Safeguard.TOLD
    if any(it[2] for it in held) or any(it[3] for it in masked):
        return Safeguard.HELD
    return Safeguard.CANARIES if baseline.get("canaries") and baseline.get("planting") == PLANTING else Safeguard.NONE
