"""Figures of process reward models: rates, intervals, what one more resolved stage costs, and how hard stages are."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from trajectories.studies.guidance.difficulty import (
    Difficulty,
    ReferenceStage,
    bucket,
    difficulties,
    estimated,
    read_minutes,
)
from trajectories.studies.guidance.metrics import ComparedRun, Difference, Rate, cost_per_resolved, differences, figures

EASY, MEDIUM, HARD = Difficulty


def run(
    number: int, *, resolved: bool = False, sample: int = 0, usd: float | None = 0.5, steps: int = 10
) -> ComparedRun:
    return ComparedRun((f"chain{number}", 1), sample, resolved, True, steps, 1_000, 100, usd)


def resolving(count: int, of: int, first: int = 0) -> list[ComparedRun]:
    """Runs of stages from number `first` on."""
    return [run(number, resolved=number < first + count) for number in range(first, first + of)]


class TestCostPerResolved:
    def test_the_best_setting_of_the_paper_costs_two_dollars_for_each_further_resolved_instance(self) -> None:
        """Tables 3 and 4: 40.0 % for 2.77 USD per 100; 50.6 % for 3.61 of the policy and 22.37 of the model, 25.98 in
        all. The 0.2 USD of the paper's abstract are what each instance costs more, resolved or not."""
        assert cost_per_resolved(3.61 + 22.37, 50.6, 2.77, 40.0) == pytest.approx(23.21 / 10.6)
        assert cost_per_resolved(25.98, 50.6, 2.77, 40.0) == pytest.approx(2.19, abs=0.005)

    def test_without_more_resolved_ones_there_is_none(self) -> None:
        assert cost_per_resolved(3.31, 38.8, 2.77, 40.0) is None
        assert cost_per_resolved(3.31, 40.0, 2.77, 40.0) is None

    def test_an_unknown_price_is_not_taken_for_nothing(self) -> None:
        assert cost_per_resolved(None, 50.0, 2.77, 40.0) is None
        assert cost_per_resolved(3.31, 50.0, None, 40.0) is None

    def test_a_cheaper_setting_that_resolves_more_saves_money(self) -> None:
        assert cost_per_resolved(1.0, 50.0, 2.0, 40.0) == pytest.approx(-0.1)


class TestFigures:
    def test_the_rates_of_the_paper_follow_from_its_tiers(self) -> None:
        """Table 4, base: 57.2 % of 194 easy, 32.6 % of 261 medium and 8.9 % of 45 hard instances are 40.0 % of 500."""
        runs = [*resolving(111, 194), *resolving(85, 261, 194), *resolving(4, 45, 455)]
        tiers = {it.stage: [EASY, MEDIUM, HARD][(place >= 194) + (place >= 455)] for place, it in enumerate(runs)}
        found = figures(runs, tiers)
        assert found.resolved == Rate(200, 500)
        assert found.resolved.percent == pytest.approx(40.0)
        assert [round(found.tiers[tier].percent or 0, 1) for tier in Difficulty] == [57.2, 32.6, 8.9]

    def test_means_are_of_stages_and_money_is_per_hundred(self) -> None:
        guided = replace(
            run(1, steps=20, usd=0.0361),
            prm_calls=8,
            prm_tokens_in=50,
            prm_usd=0.2237,
            suboptimal=7,
            unread=1,
            detected={"step_repetition": 3},
        )
        found = figures([guided, replace(guided, stage=("chain2", 1), patch=False, steps=10, detected={})], TIERS)
        assert (found.steps, found.tokens_in, found.prm_calls, found.suboptimal) == (15, 1_000, 8, 7)
        assert (found.patches.percent, found.unread, found.detected) == (50.0, 2, {"step_repetition": 3})
        assert found.usd == pytest.approx(3.61)
        assert found.prm_usd == pytest.approx(22.37)
        assert found.total_usd == pytest.approx(25.98)

    def test_one_unknown_price_leaves_the_sum_unknown_and_the_other_one_known(self) -> None:
        found = figures([run(1), replace(run(2), prm_usd=None)], TIERS)
        assert (found.usd, found.prm_usd, found.total_usd) == (50.0, None, None)

    def test_a_tier_without_stages_has_no_rate(self) -> None:
        assert figures([run(1)], TIERS).tiers[HARD].percent is None

    def test_there_are_none_of_nothing(self) -> None:
        with pytest.raises(ValueError, match="nothing"):
            figures([], TIERS)


TIERS = {("chain1", 1): EASY, ("chain2", 1): EASY}


class TestDifferences:
    def test_a_setting_does_not_differ_from_itself(self) -> None:
        runs = resolving(3, 10)
        assert set(differences(runs, runs).values()) == {Difference(0.0, 0.0, 0.0)}

    def test_what_is_the_same_at_every_stage_is_certain(self) -> None:
        """Unpaired, the spread between stages would widen the interval."""
        base = [run(number, steps=number * 10) for number in range(20)]
        assert differences(base, [replace(it, steps=it.steps - 4) for it in base])["steps"] == Difference(-4, -4, -4)

    def test_the_interval_is_that_of_a_binomial_where_only_gains_are_found(self) -> None:
        """20 gains at 100 stages: 20 ± 1.96 · 4 points."""
        found = differences(resolving(0, 100), resolving(20, 100))["resolved"]
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.value == pytest.approx(20)
        assert found.low == pytest.approx(12.2, abs=1.5)
        assert found.high == pytest.approx(27.8, abs=1.5)

    def test_the_same_runs_in_another_order_have_the_same_interval(self) -> None:
        base, other = resolving(2, 12), resolving(7, 12)
        before = differences(base, other)
        random.Random(1).shuffle(other)
        assert differences(base, other) == before

    def test_samples_of_a_stage_are_drawn_together(self) -> None:
        """Five samples of each of two stages are two observations: both, one or none may be drawn of each."""
        base = [run(number, sample=sample) for number in range(2) for sample in range(5)]
        other = [replace(it, resolved=it.stage == ("chain0", 1)) for it in base]
        assert differences(base, other)["resolved"] == Difference(50.0, 0.0, 100.0)

    def test_a_single_stage_has_no_interval(self) -> None:
        assert differences([run(1)], [run(1, resolved=True)])["resolved"] == Difference(100.0, None, None)

    def test_money_of_an_unknown_price_is_not_compared_and_the_rest_is(self) -> None:
        found = differences([run(1), run(2)], [run(1, usd=None), run(2, steps=12)])
        assert found["usd"] is None
        assert found["steps"] is not None

    @pytest.mark.parametrize("other", [[], [run(2)], [run(1), run(2)], [run(1, sample=1)]])
    def test_runs_of_different_stages_are_refused(self, other: list[ComparedRun]) -> None:
        with pytest.raises(ValueError, match="paired"):
            differences([run(1)], other)


class TestDifficulty:
    @pytest.mark.parametrize(
        ("minutes", "tier"), [(0, EASY), (15, EASY), (15.5, MEDIUM), (60, MEDIUM), (60.5, HARD), (9_000, HARD)]
    )
    def test_minutes_have_the_tiers_of_the_paper(self, minutes: float, tier: Difficulty) -> None:
        assert bucket(minutes) is tier

    @pytest.mark.parametrize(
        ("lines", "files", "tier"),
        [(10, 1, EASY), (10, 2, MEDIUM), (11, 1, MEDIUM), (50, 3, MEDIUM), (51, 1, HARD), (4, 4, HARD)],
    )
    def test_an_estimate_wants_few_lines_in_few_files(self, lines: int, files: int, tier: Difficulty) -> None:
        assert estimated(lines, files) is tier


def stage(chain: str, position: int = 1, number: int = 7) -> ReferenceStage:
    return ReferenceStage(chain, position, "Shop/till", number, 1, 4)


@pytest.mark.parametrize(
    ("words", "tier", "guessed"),
    [
        ("<15 min fix", EASY, False),
        ("15 min - 1 hour", MEDIUM, False),
        ("1-4 hours", HARD, False),
        (">4 hours", HARD, False),
        ("3", EASY, True),
        (None, EASY, True),
    ],
)
def test_the_words_of_verified_are_the_tiers_of_the_paper_and_minutes_go_before(
    words: str | None, tier: Difficulty, guessed: bool
) -> None:
    one = replace(stage("ab12"), difficulty=words)
    found = difficulties([one], {})[0]["ab12", 1]
    assert (found.tier, found.estimated) == (tier, guessed)
    assert difficulties([one], {"ab12/1": 30.0})[0]["ab12", 1].tier is MEDIUM


class TestMinutes:
    def read(self, folder: Path, text: str | bytes) -> dict[str, float]:
        file = folder / "minutes.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_minutes(file)

    def test_a_head_blank_lines_quotes_and_a_mark_of_order_are_no_matter(self, tmp_path: Path) -> None:
        text = '\ufeffstage or instance id,Minutes\r\n\r\nAB12/1, 15\n"shop__till-7",61.5\n'
        assert self.read(tmp_path, text) == {"ab12/1": 15.0, "shop__till-7": 61.5}
        assert self.read(tmp_path, "ab12/1,15") == {"ab12/1": 15.0}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a/1,5\nb/1", "line 2: write a stage"),
            ("a/1,5,6", "line 1: write a stage"),
            (",5", "line 1: write a stage"),
            ("a/1,5\n\nb/1,soon", "line 3: 'soon' is no number"),
            ("a/1,nan", "line 1: 'nan' is no number"),
            ("a/1,inf", "line 1: 'inf' is no number"),
            ("a/1,-1", "line 1: '-1' is no number"),
            ("a/b,5", "line 1: 'a/b' is no stage"),
            ("/1,5", "line 1: '/1' is no stage"),
            (f"a/{'9' * 5_000},5", "is no stage"),
            ("a/1,5\nA/1,6", "line 2: 'a/1' has other minutes above"),
            (f"{'x' * 200_000},5", "line 1: field larger"),
            (b"\xff\xfe,5", "is not UTF-8"),
        ],
    )
    def test_a_bad_line_is_named_in_one_line(self, tmp_path: Path, text: str | bytes, words: str) -> None:
        with pytest.raises(UsageError, match=words) as caught:
            self.read(tmp_path, text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"none\.csv cannot be read"):
            read_minutes(tmp_path / "none.csv")

    @pytest.mark.parametrize("name", ["ab12/2", "a/2", "ab12cd/2", "shop__till-ab12cd__s2", "shop__till-8"])
    def test_a_stage_is_known_by_each_of_its_names(self, name: str) -> None:
        stages = [stage("ab12cd"), stage("ab12cd", 2, 8), stage("ff00", 2, 9)]
        found, unknown = difficulties(stages, {name: 30.0})
        assert unknown == 0
        assert {key: (it.tier, it.estimated) for key, it in found.items()} == {
            ("ab12cd", 1): (EASY, True),
            ("ab12cd", 2): (MEDIUM, False),
            ("ff00", 2): (EASY, True),
        }

    def test_names_of_no_stage_are_counted(self) -> None:
        assert (
            difficulties([stage("ab12")], {"ab12/2": 1.0, "astropy__astropy-7": 1.0, "b/1": 1.0, "ab12/1": 1.0})[1] == 3
        )

    def test_the_beginning_of_two_ids_is_refused_where_both_chains_have_the_stage(self) -> None:
        stages = [stage("ab12"), stage("ab34"), stage("ab34", 2)]
        with pytest.raises(UsageError, match=r"ab/1 may be a stage of ab12 or of ab34"):
            difficulties(stages, {"ab/1": 1.0})
        assert difficulties(stages, {"ab/2": 90.0})[0]["ab34", 2].tier is HARD

    def test_two_names_of_a_stage_have_to_agree(self) -> None:
        assert difficulties([stage("ab12")], {"ab12/1": 5.0, "shop__till-7": 5.0})[1] == 0
        with pytest.raises(UsageError, match="ab12/1 has two numbers of minutes"):
            difficulties([stage("ab12")], {"ab12/1": 5.0, "shop__till-7": 50.0})
