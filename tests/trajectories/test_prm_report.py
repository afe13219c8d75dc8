"""The report on process reward models: which rollouts are compared, over which stages, and what is read of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prchain.cli import run
from prchain.core.errors import UsageError
from tests.trajectories.prmrows import ENDED, GUIDE, LATER, POLICY, DoneStage, PrmRows
from trajectories.studies.guidance.report import print_prm_report, prm_report

PASSES = DoneStage()
FAILS = DoneStage("f2p_failed")


@pytest.fixture
def rows(tmp_path: Path) -> PrmRows:
    return PrmRows.open(tmp_path / "prm.db")


def only_group(rows: PrmRows, **chosen: Any) -> dict[str, Any]:
    """The one group of the report."""
    [group] = prm_report(rows.store, resamples=100, **chosen)["groups"]
    assert isinstance(group, dict)
    return group


def settings_of(group: dict[str, Any]) -> dict[str, Any]:
    return {row["setting"]: row for row in group["settings"]}


class TestSettings:
    def test_base_comes_first_and_variants_in_the_order_of_the_paper(self, rows: PrmRows) -> None:
        for variant in ("DR", "D", "S"):
            rows.guided("c1", PASSES, prm={"variant": variant})
        rows.add("c1", PASSES)
        assert [row["setting"] for row in only_group(rows)["settings"]] == ["base", "S", "D", "DR"]

    def test_other_settings_and_models_of_one_variant_are_settings_of_their_own(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES)
        rows.guided("c1", PASSES, prm={"variant": "D", "every": "3", "keep": "last"})
        rows.guided("c1", PASSES, guide="haiku")
        rows.guided("c1", PASSES, prm={"style": "concise", "example": "no", "action": "yes"})
        found = settings_of(only_group(rows))
        assert list(found) == ["base", "D.1", "D.2", "D.3", "concise"]
        assert [(found[f"D.{number}"]["model"], found[f"D.{number}"]["other"]) for number in (1, 2, 3)] == [
            ("haiku", {}),
            (GUIDE, {}),
            (GUIDE, {"every": 3, "keep": "last"}),
        ]
        assert found["concise"]["variant"] == "concise-noexample-all-action"

    def test_another_policy_or_other_options_are_another_group(self, rows: PrmRows) -> None:
        for more in ({}, {"model": "devstral"}, {"options": {"tools": "bash"}}):
            rows.add("c1", PASSES, **more)
            rows.guided("c1", PASSES, **more)
        report = prm_report(rows.store, resamples=10)
        assert len(report["groups"]) == 3
        assert all([row["setting"] for row in group["settings"]] == ["base", "D"] for group in report["groups"])
        assert only_group(rows, model="devstral")["model"] == "devstral"

    def test_chains_of_any_length_are_one_group(self, rows: PrmRows) -> None:
        """Longer ones name a model that may have to write the overview anew."""
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES)
        rows.add("c2", PASSES, PASSES)
        rows.guided("c2", PASSES, PASSES)
        assert only_group(rows)["stages"] == 3

    def test_what_cannot_be_compared_is_counted_by_its_reason(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES)
        prm = {"style": "detailed", "example": True, "reads": "all", "action": False, "every": 5, "window": 8}
        rows.add("c1", PASSES, observers=[{"name": "repetition", "settings": {}}])
        rows.add("c1", PASSES, observers=[{"name": "prm", "settings": prm}, {"name": "repetition", "settings": {}}])
        rows.add("c1", PASSES, observers=[{"name": "prm", "settings": {"style": "of somebody else"}}])
        rows.add("c1", PASSES, scaffold="curated")
        rows.add("c1", PASSES, scaffold="disclosed")
        rows.add("c1", PASSES, parent_id="0123456789abcdef")
        rows.add("c1", PASSES, identified=False)
        rows.add("c1", PASSES, outcome="superseded")
        rows.add("c1", PASSES, model="never guided")
        rows.guided("c1", PASSES, prm={"variant": "S"})
        report = prm_report(rows.store, variants=["D"], resamples=10)
        assert [row["setting"] for row in report["groups"][0]["settings"]] == ["base", "D"]
        assert report["left_out"] == {
            "branches": 1,
            "not_chosen": 1,
            "older": 1,
            "otherwise_observed": 3,
            "privileged": 2,
            "superseded": 1,
            "without_prm": 1,
        }

    def test_of_two_of_one_sample_the_newest_that_has_ended_counts(self, rows: PrmRows) -> None:
        rows.guided("c1", PASSES)
        rows.add("c1", FAILS)
        rows.add("c1", PASSES, started_at=ENDED)
        rows.add("c1", DoneStage(outcome="running"), started_at=LATER, outcome="running", finished_at=None)
        report = prm_report(rows.store, resamples=10)
        assert report["left_out"] == {"repeated": 2}
        assert settings_of(report["groups"][0])["base"]["figures"]["resolved"]["count"] == 1

    def test_without_a_base_there_are_figures_and_no_differences(self, rows: PrmRows) -> None:
        rows.guided("c1", PASSES)
        rows.guided("c1", PASSES, prm={"variant": "S"})
        found = settings_of(only_group(rows))
        assert all(row["figures"] and row["against_base"] is None for row in found.values())

    def test_what_was_resolved_is_drawn_by_difficulty(
        self, rows: PrmRows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for chain, guided in (("c1", PASSES), ("c2", FAILS)):
            rows.add(chain, FAILS)
            rows.guided(chain, guided)
        minutes, drawing = tmp_path / "minutes.csv", tmp_path / "figure.svg"
        minutes.write_text("c1/1,10\nc2/1,90\n")
        command = ["prm", "report", "--db", str(rows.store.url.database), "--difficulty", str(minutes)]
        assert run([*command, "--svg", str(drawing)]) == 0, capsys.readouterr().err
        texts = [it.text for it in ElementTree.fromstring(drawing.read_text()).iter() if it.tag.endswith("text")]
        assert texts[1:] == [
            f"{POLICY}, easy: 1 stage", "base", "0", "D", "1",
            f"{POLICY}, medium: 0 stages", "base", "0", "D", "0",
            f"{POLICY}, hard: 1 stage", "base", "0", "D", "0",
        ]  # fmt: skip

    def test_a_guide_alone_is_a_policy_of_the_report(self, rows: PrmRows, capsys: pytest.CaptureFixture[str]) -> None:
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES)
        rows.add("c1", PASSES, model=GUIDE)
        rows.add("c1", PASSES, model="of nobody")
        rows.add("c1", PASSES, model=GUIDE, options={"tools": "bash"})
        rows.guided("c1", PASSES, model="devstral", guide="devstral")
        rows.add("c1", PASSES, model="devstral", options={"tools": "bash"})
        report = prm_report(rows.store, resamples=10)
        assert {group["model"]: [row["setting"] for row in group["settings"]] for group in report["groups"]} == {
            POLICY: ["base", "D"],
            GUIDE: ["base"],
            "devstral": ["D"],
        }
        assert report["left_out"] == {"without_prm": 3}, "other options, and those of a policy that guides itself"
        print_prm_report(report)
        assert capsys.readouterr().out.count("1 stage in all settings") == 3


class TestSameStages:
    def test_stages_that_one_setting_has_not_reached_count_nowhere(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES, PASSES, DoneStage(outcome="not_reached", attempts=0))
        rows.guided("c1", PASSES, PASSES, PASSES)
        rows.guided("c2", PASSES)
        group = only_group(rows)
        assert (group["stages"], group["left_out"]["unshared"]) == (2, 2)
        assert [row["reached"] for row in group["settings"]] == [2, 4]
        assert [row["figures"]["resolved"]["of"] for row in group["settings"]] == [2, 2]

    @pytest.mark.parametrize("outcome", ["running", "endpoint_unreachable"])
    def test_a_stage_that_goes_on_later_is_not_reached_yet(self, rows: PrmRows, outcome: str) -> None:
        rows.add("c1", PASSES, DoneStage(outcome=outcome))
        rows.guided("c1", PASSES, PASSES)
        assert only_group(rows)["stages"] == 1

    def test_a_stage_whose_state_was_broken_before_it_began_is_not_reached(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES, DoneStage(outcome="state_broken", attempts=0))
        rows.guided("c1", PASSES, PASSES)
        assert only_group(rows)["left_out"]["unshared"] == 1

    def test_stages_without_tests_are_left_out_and_counted(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES, DoneStage(None))
        rows.guided("c1", PASSES, PASSES)
        group = only_group(rows)
        assert (group["stages"], group["left_out"]["untested"]) == (1, 1)

    def test_stages_with_other_texts_are_not_the_same(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES, task="written anew")
        group = only_group(rows)
        assert group["left_out"] == {"unshared": 0, "rewritten": 1, "untested": 0}
        assert all(row["figures"] is None for row in group["settings"])

    def test_samples_are_paired_and_a_stage_counts_once_among_stages(self, rows: PrmRows) -> None:
        for sample in (0, 1):
            rows.add("c1", PASSES, sample=sample)
            rows.guided("c1", PASSES, sample=sample)
        rows.guided("c1", PASSES, sample=2)
        group = only_group(rows)
        assert (group["stages"], group["runs"], group["left_out"]["unshared"]) == (1, 2, 1)


class TestFigures:
    def test_tests_resolve_a_stage_whatever_the_gate_says(self, rows: PrmRows) -> None:
        rows.add("c1", FAILS, DoneStage(outcome="rejected"), DoneStage("carried_failure"))
        rows.guided("c1", PASSES, PASSES, PASSES)
        found = settings_of(only_group(rows))
        assert found["base"]["figures"]["resolved"] == {"count": 1, "of": 3, "percent": pytest.approx(100 / 3)}
        assert found["D"]["against_base"]["resolved"]["value"] == pytest.approx(200 / 3)

    def test_an_agent_that_ended_its_own_sandbox_has_not_resolved_the_stage(self, rows: PrmRows) -> None:
        rows.add("c1", DoneStage(outcome="out_of_memory", patch=False))
        rows.guided("c1", PASSES)
        base = settings_of(only_group(rows))["base"]["figures"]
        assert (base["resolved"]["count"], base["patches"]["count"], base["resolved"]["of"]) == (0, 0, 1)

    def test_money_and_tokens_are_those_of_the_ledger(self, rows: PrmRows) -> None:
        rows.add("c1", DoneStage("f2p_failed", usd=0.0277, steps=40))
        name = rows.guided("c1", DoneStage(usd=0.03, prm_usd=0.1, windows=[True, False], steps=38))
        rows.call(f"{name}/1", "agent", 0.006)
        rows.call(f"{name}/1/candidate", "prm", 0.02, state="lost", reserved_usd=0.0237, tokens_in=None)
        rows.call(f"{name}/1", "agent", None, state="released")
        rows.call(f"{name}/1", "judge", 5.0)
        rows.call(f"{name}/10", "agent", 5.0)
        rows.call(f"{name}/other", "agent", 5.0)
        found = settings_of(only_group(rows))
        base, guided = found["base"]["figures"], found["D"]["figures"]
        assert base["usd_per_100"] == {"policy": pytest.approx(2.77), "prm": 0.0, "both": pytest.approx(2.77)}
        assert guided["usd_per_100"] == {
            name: pytest.approx(usd) for name, usd in (("policy", 3.6), ("prm", 22.0), ("both", 25.6))
        }
        assert (guided["tokens_in"], guided["tokens_out"]) == (2_000, 200)
        assert (guided["prm_calls"], guided["prm_tokens_in"]) == (3, 2_000)
        assert found["D"]["against_base"]["usd_per_resolved"] == pytest.approx((25.6 - 2.77) / 100)
        assert found["D"]["against_base"]["steps"] == {"value": -2.0, "low": None, "high": None}

    def test_an_unknown_price_is_unknown_and_what_was_reserved_counts(self, rows: PrmRows) -> None:
        rows.add("c1", FAILS)
        name = rows.guided("c1", DoneStage(prm_usd=None, windows=[True]))
        rows.call(f"{name}/1", "agent", None, reserved_usd=0.08, state="reserved")
        guided = settings_of(only_group(rows))["D"]
        assert guided["figures"]["usd_per_100"] == {"policy": pytest.approx(10.0), "prm": None, "both": None}
        assert (guided["against_base"]["usd"], guided["against_base"]["usd_per_resolved"]) == (None, None)

    def test_a_replay_is_no_part_of_the_rollout(self, rows: PrmRows) -> None:
        base = rows.add("c1", PASSES)
        guided = rows.guided("c1", DoneStage(windows=[True]))
        for name in (base, guided):
            rows.call(f"{name}/1", "prm", 1.0, started_at=LATER)
            rows.finding(rows.window(name, 1, True, replay="replay"), 0, "step_repetition")
        found = settings_of(only_group(rows))
        assert (found["base"]["figures"]["prm_calls"], found["base"]["figures"]["suboptimal"]) == (0, 0)
        assert (found["D"]["figures"]["prm_calls"], found["D"]["figures"]["suboptimal"]) == (1, 1)
        assert found["D"]["figures"]["detected"] == {}

    def test_windows_are_counted_by_what_their_readings_say(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES)
        windows = [True, True, False, None, "unreadable", "context_too_long"]
        name = rows.guided("c1", DoneStage(windows=windows, detected=["step_repetition", "goal_deviation"]))
        last = rows.window(name, 1, True, leaks=[{"rule": "path"}])
        rows.finding(last, 0, "goal_deviation")
        rows.finding(last, 1, "task_derailment", kept=False)
        rows.finding(last, 2, "task_derailment", "repeats")
        found = settings_of(only_group(rows))["D"]["figures"]
        counts = {name: found[name] for name in ("optimal", "suboptimal", "unsaid", "unread", "leaks")}
        assert counts == {"optimal": 1, "suboptimal": 3, "unsaid": 1, "unread": 2, "leaks": 1}
        assert found["detected"] == {"goal_deviation": 2, "step_repetition": 1}

    def test_difficulty_is_by_minutes_where_a_file_has_them_and_says_where_not(self, rows: PrmRows) -> None:
        rows.add("c1", PASSES, FAILS)
        rows.guided("c1", PASSES, PASSES)
        group = only_group(rows, minutes={"c/2": 90.0})
        assert (group["difficulty"], group["estimated"]) == ({"easy": 1, "medium": 0, "hard": 1}, 1)
        base = settings_of(group)["base"]["figures"]
        assert [base[tier]["percent"] for tier in ("easy", "medium", "hard")] == [100.0, None, 0.0]

    def test_the_report_is_json_and_the_same_each_time(self, rows: PrmRows) -> None:
        for number in range(12):
            rows.add(f"c{number}", PASSES if number % 3 else FAILS)
            rows.guided(f"c{number}", PASSES if number % 4 else FAILS)
        assert json.dumps(prm_report(rows.store)) == json.dumps(prm_report(rows.store))


class TestPrinting:
    def test_a_full_report_fits_80_columns(self, rows: PrmRows, capsys: pytest.CaptureFixture[str]) -> None:
        dear = DoneStage(usd=12.5, prm_usd=3.25, windows=[True, "unreadable"] * 9, detected=["goal_deviation"])
        for number in range(6):
            rows.add(f"c{number}", FAILS if number else PASSES)
            for variant in ("S", "C", "CG", "D", "DN", "DG", "DNG", "DR"):
                rows.guided(f"c{number}", dear, prm={"variant": variant})
            rows.guided(f"c{number}", dear, prm={"variant": "D", "every": "3", "send": "suboptimal"}, guide="g" * 90)
        rows.add("c1", PASSES, model="never guided")
        print_prm_report(prm_report(rows.store, minutes={"c1/1": 20.0, "none-1": 5.0}, resamples=100))
        printed = capsys.readouterr().out
        lines = printed.splitlines()
        assert [line for line in lines if len(line) > 80 and "ggg" not in line] == []
        assert lines[0].startswith(f"react with {POLICY}; temperature 0.0")
        for words in (
            "6 stages in all settings",
            "difficulty: 5 easy, 1 medium; of 5 estimated by the reference patch",
            "goal deviation",
            "every=3",
            "54 windows without a reading",
            "1 name in the file of minutes",
            "1 of policies that no process reward model was used with",
            "bootstrap over stages",
        ):
            assert words in " ".join(printed.split())

    def test_unknown_prices_and_rates_of_nothing_are_marked(
        self, rows: PrmRows, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows.add("c1", FAILS)
        rows.guided("c1", DoneStage("f2p_failed", usd=None, windows=[True]))
        print_prm_report(prm_report(rows.store, resamples=10))
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["D", "0.0%", "0.0%", "-", "-", "100.0%", "10.00"] in lines
        assert ["D", "?", "10.00", "?", "?", "-"] in lines

    def test_no_shared_stage_prints_why(self, rows: PrmRows, capsys: pytest.CaptureFixture[str]) -> None:
        rows.add("c1", PASSES)
        rows.guided("c2", PASSES)
        print_prm_report(prm_report(rows.store))
        assert "0 stages in all settings; 2 not reached in every setting" in capsys.readouterr().out

    def test_an_empty_database_says_how_to_begin(self, rows: PrmRows, capsys: pytest.CaptureFixture[str]) -> None:
        print_prm_report(prm_report(rows.store))
        assert "--observer prm" in capsys.readouterr().out

    def test_an_unknown_repository_is_refused(self, rows: PrmRows) -> None:
        with pytest.raises(UsageError, match="has not been mined"):
            prm_report(rows.store, "no/such")
        rows.add("c1", PASSES)
        rows.guided("c1", PASSES)
        assert only_group(rows, repository="Shop/till")["stages"] == 1
