"""What a proof is worth, from what was counted."""

from __future__ import annotations

import pytest

from sql.proof_filter import ProofFilter
from sql.strength import (
    Strength,
    UndoingKind,
    UndoingOutcome,
    Undone,
    WhyNone,
    Worth,
    strength_row,
    strength_words,
    worst,
)
from sql.taken_proofs import doubt_words, meets

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
    assert [meets(found, it) for it in (ProofFilter.OWN, ProofFilter.CAUGHT)] == [own, caught]
    assert Strength.from_row(found.row()) == found
    assert strength_row(found)["worth"] == worth and strength_words(strength_row(found)).startswith(worth)


@pytest.mark.parametrize(
    ("found", "why", "words"),
    [
        (Strength(1, cause="not_alone"), WhyNone.NOT_ALONE, "nothing could be undone: no own F2P passes where "),
        (Strength(1, cause="refresh_failed"), "refresh_failed", "undone: the tests ended with refresh_failed; no P2P"),
        (Strength(1, cause="nothing_to_undo"), WhyNone.NOTHING_TO_UNDO, "undone: the reference has no part that "),
        (strength(I, I), WhyNone.NONE_RAN, "undone: none built, or tests were not found, 2 invalid; 3 P2P"),
        (Strength(1, untried=4), WhyNone.NO_TIME, "undone: there was no time, 4 not tried; no P2P"),
        (Strength(None, cause="timed_out"), WhyNone.TIMED_OUT, "the tree of before (the tests ran out of time)"),
        (Strength(1), None, "undone: why was not stored; "),
        (Strength(None), None, "unknown: the tests of before say nothing of the tree of before"),
        (strength(C, I), None, "1 of 1 undoing caught, 1 invalid; "),
        (
            Strength(0, hidden=("a",)),
            None,
            "0 own F2P, 0 of them added or changed; 1 hidden by an import alone; no P2P",
        ),
    ],
)
def test_where_no_undoing_is_valid_it_is_told_why(found: Strength, why: str | None, words: str) -> None:
    row = strength_row(found)
    assert row["why_none"] == why and words in strength_words(row) and "0 of 0" not in strength_words(row)
    assert Strength.from_row({name: it for name, it in Strength(1).row().items() if name != "cause"}) == Strength(1)


def test_a_chain_is_worth_what_its_weakest_stage_is() -> None:
    strong, weak = strength(C, C, C), strength(P, P, P)
    assert worst([strong, weak, strength(own=0)]) is Worth.IMPORT_ONLY
    assert worst([strong, None]) is Worth.NOT_MEASURED and worst([]) is None


def test_one_line_warns_of_proofs_that_may_be_worth_nothing() -> None:
    def said(**counts: int) -> str | None:
        return doubt_words(counts, "stage", " in these samples")

    assert said(strong=2, weak=1, unknown=1) is None and said() is None and said(not_proved=1) is None
    few = said(strong=1, import_only=2, not_proved=5)
    assert few is not None and few.startswith("proofs of 3 stages in these samples: 2 import_only; ")
    assert "1 import_only, 4 not_measured" in str(said(not_measured=4, import_only=1))
