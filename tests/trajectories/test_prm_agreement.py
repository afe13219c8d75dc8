"""ReadingAgreement of readings and their scores against labels, against obvious counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.studies.guidance.agreement import (
    Readings,
    ReadWindow,
    WindowReading,
    agreement_of,
    category_kappas,
    print_agreement,
    print_scores,
    scores,
    suboptimal_kappa,
)

CATEGORIES = ("hallucination", "step_repetition", "verification_failure")

answers = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)
readings = st.dictionaries(
    st.builds(ReadWindow, st.sampled_from(["aa", "bb"]), st.just(1), st.just(1), st.integers(1, 6)),
    st.builds(
        WindowReading,
        st.none() | st.booleans(),
        st.none() | st.frozensets(st.sampled_from(CATEGORIES)),
    ),
)


def key(step: int) -> ReadWindow:
    return ReadWindow("aa", 1, 1, step)


def kappa_by_hand(pairs: Sequence[tuple[bool, bool]]) -> Fraction | None:
    """Observed agreement, less that of two readers who answer at random as often yes as these do."""
    if not pairs:
        return None
    observed = Fraction(sum(one == other for one, other in pairs), len(pairs))
    chance = Fraction(0)
    for answer in (True, False):
        one = Fraction([pair[0] for pair in pairs].count(answer), len(pairs))
        other = Fraction([pair[1] for pair in pairs].count(answer), len(pairs))
        chance += one * other
    return None if chance == 1 else (observed - chance) / (1 - chance)


@given(answers)
def test_kappa_is_cohen_s(pairs: list[tuple[bool, bool]]) -> None:
    found = agreement_of(pairs)
    expected = kappa_by_hand(pairs)
    assert found.kappa == (None if expected is None else pytest.approx(float(expected)))
    assert (found.windows, found.both) == (len(pairs), pairs.count((True, True)))
    assert (found.only_one, found.only_other) == (pairs.count((True, False)), pairs.count((False, True)))


@given(answers)
def test_kappa_does_not_depend_on_who_comes_first_or_on_what_yes_means(pairs: list[tuple[bool, bool]]) -> None:
    kappa = agreement_of(pairs).kappa
    assert agreement_of([(other, one) for one, other in pairs]).kappa == kappa
    assert agreement_of([(not one, not other) for one, other in pairs]).kappa == kappa


def test_kappa_at_its_ends() -> None:
    assert agreement_of([(True, True), (False, False)]).kappa == 1
    assert agreement_of([(True, False), (False, True)]).kappa == -1
    assert agreement_of([(True, True), (True, False), (False, True), (False, False)]).kappa == 0
    assert agreement_of([(True, True)] * 3).kappa is None and agreement_of([]).kappa is None


@given(readings, readings)
def test_categories_are_compared_over_windows_that_both_have_read(one: Readings, other: Readings) -> None:
    for name, found in category_kappas(one, other, CATEGORIES).items():
        pairs = [
            (name in mine.categories, name in theirs.categories)
            for place, mine in one.items()
            if (theirs := other.get(place)) and mine.categories is not None and theirs.categories is not None
        ]
        assert found == agreement_of(pairs)


def test_found_categories_are_compared_also_where_nobody_named_them() -> None:
    one = {key(1): WindowReading(True, frozenset({"b", "a"})), key(2): WindowReading(True, frozenset({"d"}))}
    other = {key(1): WindowReading(True, frozenset({"c"}))}
    assert list(category_kappas(one, other)) == ["a", "b", "c"]
    assert list(category_kappas(one, other, ["c", "x"])) == ["c", "x", "a", "b"]


def test_suboptimal_is_compared_where_both_say_it() -> None:
    said = (True, False, None, True)
    one = {key(step): WindowReading(answer, frozenset()) for step, answer in enumerate(said)}
    other = {key(step): WindowReading(step == 0, None) for step in (0, 1, 2)}
    found = suboptimal_kappa(one, other)
    assert (found.windows, found.both, found.kappa) == (2, 1, 1)


@given(
    readings, st.dictionaries(st.tuples(st.builds(key, st.integers(1, 8)), st.sampled_from(CATEGORIES)), st.booleans())
)
def test_every_label_counts_once(found: Readings, labels: dict[tuple[ReadWindow, str], bool]) -> None:
    scored = scores(found, labels, CATEGORIES)
    assert list(scored) == list(CATEGORIES)
    for name, score in scored.items():
        cells = {"tp": 0, "fp": 0, "fn": 0, "tn": 0, "unread": 0}
        for (place, category), label in labels.items():
            if category == name:
                reading = found.get(place)
                if reading is None or reading.categories is None:
                    cells["unread"] += 1
                else:
                    cells[
                        {True: {True: "tp", False: "fp"}, False: {True: "fn", False: "tn"}}[name in reading.categories][
                            label
                        ]
                    ] += 1
        assert {cell: getattr(score, cell) for cell in cells} == cells


def test_precision_and_recall_have_wilson_s_intervals() -> None:
    found = {key(step): WindowReading(None, frozenset({"a"} if step <= 10 else ())) for step in range(1, 13)}
    labels = {(key(step), "a"): step <= 8 or step == 11 for step in range(1, 13)}
    score = scores(found, labels)["a"]
    assert (score.tp, score.fp, score.fn, score.tn, score.unread) == (8, 2, 1, 1, 0)
    assert score.precision is not None and score.precision.value == 0.8
    assert (score.precision.low, score.precision.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert score.recall is not None and score.recall.value == pytest.approx(8 / 9)
    nothing = scores({}, labels)["a"]
    assert (nothing.precision, nothing.recall, nothing.unread) == (None, None, 12)


def test_tables_are_at_most_80_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    one = {key(step): WindowReading(step % 2 == 0, frozenset({"x" * 48} if step % 3 else ())) for step in range(9000)}
    labels = {(key(step), "x" * 48): step % 3 > 0 for step in range(8999)} | {(key(-1), "x" * 48): True}
    print_agreement(suboptimal_kappa(one, one), category_kappas(one, one), "D, model a", "D, model b")
    print_scores(scores(one, labels, ["none"]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "1 label of windows that this reading does not have"
    assert "100% (100%-100%)" in lines[-2] and lines[-3].split() == ["none", "0", "0", "0", "-", "-"]
