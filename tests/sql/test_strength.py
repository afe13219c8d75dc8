"""What a proof is worth, from what was counted."""

from __future__ import annotations

import pytest

from sql.strength import (
    ProofFilter,
    Strength,
    UndoingKind,
    UndoingOutcome,
    Undone,
    Worth,
    doubt_words,
    meets,
    strength_row,
    strength_words,
    worst,
)

C, P, I = UndoingOutcome.CAUGHT, UndoingOutcome.PASSED, UndoingOutcome.INVALID  # noqa: E741


def strength(*outcomes: UndoingOutcome, own: int | None = 1, stub: UndoingOutcome | None = None) -> Strength:
    undone = tuple(Undone(UndoingKind.HUNK, f"a.py:{number}", it) for number, it in enumerate(outcomes))
    if stub is not None:
        undone = (Undone(UndoingKind.STUB, "a.py:1", stub), *undone)
    return Strength(own, 1, ("a",), ("b",), 3, undone, 1.5)


def bodies(*found: tuple[UndoingOutcome, UndoingOutcome], empty: UndoingOutcome = C) -> Strength:
    """Functions that return None, and that raise, and all new ones that return None."""
    undone = [Undone(UndoingKind.NEW_RETURN_NONE, "a.py:0", empty)]
    for line, (none, raises) in enumerate(found):
        undone.append(Undone(UndoingKind.RETURNS_NONE, f"a.py:{line}", none))
        undone.append(Undone(UndoingKind.RAISES, f"a.py:{line}", raises))
    return Strength(1, undone=tuple(undone))


@pytest.mark.parametrize(
    ("found", "worth", "own", "caught"),
    [
        (strength(own=None), Worth.UNKNOWN, False, False),
        (strength(C, C, C, own=0), Worth.IMPORT_ONLY, False, False),
        (strength(), Worth.UNKNOWN, True, False),
        (strength(C, C, I, I), Worth.UNKNOWN, True, False),
        (strength(P, P), Worth.UNKNOWN, True, False),
        (strength(C, P, P), Worth.WEAK, True, False),
        (strength(C, C, P, P), Worth.STRONG, True, True),
        (strength(C, C, P, I, I, I), Worth.STRONG, True, True),
        (strength(C, C, C, stub=P), Worth.WEAK, True, False),
        (strength(stub=P), Worth.WEAK, True, False),
        (strength(C, P, stub=C), Worth.UNKNOWN, True, False),
        (strength(C, C, C, stub=C), Worth.STRONG, True, True),
        (bodies((P, C), (P, C), empty=C), Worth.UNKNOWN, True, False),
        (bodies((P, C), (P, C), (P, C)), Worth.WEAK, True, False),
        (bodies((C, C), (C, C), (P, C)), Worth.STRONG, True, True),
        (bodies((I, C), (I, P), (C, I), (C, I)), Worth.STRONG, True, True),
        (bodies((C, C), (C, C), (C, C), empty=P), Worth.WEAK, True, False),
    ],
)
def test_worth_and_filters_follow_from_the_counts(found: Strength, worth: Worth, own: bool, caught: bool) -> None:
    assert found.worth is worth
    assert [found.meets(it) for it in ProofFilter] == [True, own, caught]
    assert Strength.from_row(found.row()) == found
    assert strength_row(found)["worth"] == worth and strength_words(strength_row(found)).startswith(worth)


def test_a_chain_is_worth_what_its_weakest_stage_is() -> None:
    strong, weak = strength(C, C, C), strength(P, P, P)
    assert worst([strong, weak, strength(own=0)]) is Worth.IMPORT_ONLY
    assert worst([strong, None]) is Worth.NOT_MEASURED and worst([]) is None
    both = [1, 2]
    assert meets({1: strong, 2: strong}, ProofFilter.CAUGHT, both)
    assert not meets({1: strong, 2: weak}, ProofFilter.CAUGHT, both)
    assert meets({1: strong, 2: weak}, ProofFilter.CAUGHT, [1]), "only what is exported is asked"
    assert not meets({}, ProofFilter.OWN, []) and not meets({1: None}, ProofFilter.OWN, [1])
    assert meets({}, ProofFilter.ANY, [])
    assert not meets({1: strong}, ProofFilter.OWN, [1, 2]), "stage 2 was not proved"


def test_one_line_warns_of_proofs_that_may_be_worth_nothing() -> None:
    assert doubt_words({"strong": 2, "weak": 1, "unknown": 1}) is None and doubt_words({}) is None
    assert str(doubt_words({"strong": 1, "import_only": 2})).startswith("of 3 proofs 2 import_only: ")
    assert "1 import_only, 4 not_measured" in str(doubt_words({"not_measured": 4, "import_only": 1}))
