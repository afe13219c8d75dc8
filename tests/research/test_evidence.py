"""The rig that draws, fits and scores evidence."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from chains.weights import weights
from research.evidence.fit import MODELS, Case, cases, fit, held_out, log_loss, ranking, read_prior
from research.evidence.labels import LABELS, Read, joined, read_labels, write_labels
from research.evidence.population import stratified
from research.evidence.score import print_scores, weighted
from research.evidence.sheets import blanked

GOOD = [Case("a", {"base": 1.0, "x": 2.0}, True)] * 8 + [Case("a", {"base": 1.0, "x": 0.0}, False)] * 8


def test_a_fit_finds_what_tells_good_from_bad_and_is_held_near_the_prior() -> None:
    prior = {"base": 0.0, "x": 0.0}
    loose, tight = fit(GOOD, prior, 0.1), fit(GOOD, prior, 1_000.0)
    assert loose["x"] > 1 > abs(tight["x"])
    assert log_loss(GOOD, loose) < log_loss(GOOD, prior)


def test_held_out_predictions_come_from_the_other_repositories() -> None:
    other = [Case("b", case.values, not case.good) for case in GOOD]
    assert ranking(held_out(GOOD + other, {"base": 0.0, "x": 0.0})) == 0.0
    assert ranking([(0.9, True), (0.9, False), (0.1, False)]) == 0.75


def test_references_between_pull_requests_are_blanked() -> None:
    text = "Follow-up to #12 and o/r#3 (PR 45, GH-6): https://github.com/o/r/pull/7, reverts 0123abcdef"
    assert not any(part in blanked(text) for part in ("12", "#3", "45", "6)", "http", "0123abcdef"))
    assert "Follow-up to" in blanked(text)


def test_a_share_is_weighted_back_by_the_chance_of_being_drawn() -> None:
    def read(chance: float) -> Read:
        one = ("real",)
        return Read("1", "pairs", "a", (1, 2), chance, (1.0,), (1.0, 1.0), (), (), (), (one, one), ((), ()), ("", ""))

    assert weighted([read(1.0), read(0.25)], [True, False]).startswith("20.0% ")


def test_bins_are_drawn_evenly_and_always_the_same() -> None:
    values: dict[tuple[int, ...], float] = {(number,): number / 100 for number in range(100)}
    drawn = stratified(values, (0.5, 0.9), 5, "seed")
    assert [(name, chance) for _, name, chance in drawn] == [("0-0.5", 0.1)] * 5 + [("0.5-0.9", 0.125)] * 5 + [
        ("0.9-1", 0.5)
    ] * 5
    assert drawn == stratified(values, (0.5, 0.9), 5, "seed")


def test_labels_that_are_not_of_the_sheet_are_refused(tmp_path: Path) -> None:
    drawn = [{"sheet": "001", "kind": "pairs", "numbers": "1 2"}]
    said: dict[str, Any] = {"step": ["real"], "stage": ["yes", "no"], "whole": "no", "why": "small"}
    rows = joined("1", drawn, [{"001": said}, {"001": said}])
    assert rows[0]["first_steps"] == "real" and rows[0]["second_stages"] == "yes no"
    write_labels(rows, tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == rows
    faults: list[dict[str, Any]] = [{"step": []}, {"stage": ["yes"]}, {"whole": "maybe"}, {"step": ["sure"]}]
    for fault in faults:
        with pytest.raises(ValueError, match="sheet 001"):
            joined("1", drawn, [{"001": said}, {"001": said | fault}])


def test_the_weights_that_are_used_are_those_of_the_fit(capsys: pytest.CaptureFixture[str]) -> None:
    from research.evidence.__main__ import FITTED

    rows = [row for row in read_labels(LABELS) if row.round in FITTED]
    for model in MODELS:
        assert fit(cases(rows, model), read_prior(model)) == weights(model)
    print_scores(read_labels(LABELS))
    assert "every step real" in capsys.readouterr().out
