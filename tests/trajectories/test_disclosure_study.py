"""The study of agents that are told a part of the process graph: what they are told, what becomes of their rollouts,
and where these never count."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from sqlalchemy import update

from prchain.cli import run
from prchain.core.errors import UsageError
from prchain.core.llm.model import Reply, Request
from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.trajectories.curationworld import CurationModel, CurationWorld, Steps, agent, agent_steps, curation_world
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.tasks.predictions import chosen_rollouts
from trajectories.options import RolloutOptions
from trajectories.rollouts.forecast import forecast
from trajectories.rollouts.otherwise import OtherRollouts, other_rollouts
from trajectories.rollouts.report import list_trajectories
from trajectories.rollouts.run import RolloutChoice, RolloutRun
from trajectories.studies.curation.bundles import Bundle, bundle_text
from trajectories.studies.curation.disclosure import disclosure_study, study_disclosure
from trajectories.studies.curation.disclosure_run import (
    DisclosureChoice,
    DisclosureRun,
    PendingDisclosure,
    disclosure_options,
)
from trajectories.studies.curation.quality import quality_pairs
from trajectories.studies.statistics.stats import stats


def graph_nodes() -> list[Node]:
    """One node of each kind, in an order that is not that of the bundles."""
    edit = Action(ActionTool.STR_REPLACE, path="src/a.py", old="SECRET_OLD", new="SECRET_NEW")
    script = Action(ActionTool.CREATE, path="check.sh", content="ls\nexit 1\n", command="sh check.sh")
    check = Action(ActionTool.CREATE, path="after.sh", content="SECRET_CHECK", command="sh after.sh")
    think = ActionTool.THINK
    return [
        Node("check", NodeKind.VALIDATION, "It works", check, "fine"),
        Node("edit", NodeKind.CODE_EDIT, "SECRET_STATEMENT", edit),
        Node("plan", NodeKind.FIX_PLAN, "Add it", Action(think, thought="Add it to a.py")),
        Node("why", NodeKind.ISSUE_ANALYSIS, "It lacks", Action(think, thought="It lacks,\nas a.py shows")),
        Node("repro", NodeKind.REPRODUCE_SCRIPT, "It fails", script, "Plan:\nno such file"),
        Node("seen", NodeKind.DYNAMIC_FACT, "ls prints\n a.py", Action(ActionTool.BASH, command="ls"), "a.py"),
        Node("told", NodeKind.STATIC_FACT, "It is wanted", Action(ActionTool.VIEW_PROBLEM), "it"),
    ]


class TestBundleText:
    def test_each_holds_what_the_ones_before_it_hold_and_a_section_more(self) -> None:
        texts = [bundle_text(graph_nodes(), bundle) for bundle in Bundle]
        assert texts[0] == ""
        assert all(text.startswith(before) and len(text) > len(before) for before, text in pairwise(texts))
        assert texts[1].endswith("Facts:\n\n- ls prints a.py\n- It is wanted")
        assert texts[2].removeprefix(texts[1]) == (
            "\n\nReproduction:\n\nIt fails\nThe file check.sh:\n    ls\n    exit 1\nThe command:\n    sh check.sh\n"
            "It printed:\n    Plan:\n    no such file"
        )
        assert texts[3].removeprefix(texts[2]) == "\n\nAnalysis:\n\nIt lacks,\nas a.py shows"
        assert texts[4].removeprefix(texts[3]) == "\n\nPlan:\n\nAdd it to a.py"

    def test_edits_are_in_none_and_of_validations_only_what_is_said_and_run(self) -> None:
        with_validation = bundle_text(graph_nodes(), Bundle.B4, validation=True)
        assert with_validation.endswith("\n\nValidation:\n\nIt works\nThe command:\n    sh after.sh")
        assert "SECRET" not in with_validation
        assert bundle_text(graph_nodes(), Bundle.B3, validation=True) == bundle_text(graph_nodes(), Bundle.B3)

    def test_what_the_graph_lacks_has_no_section(self) -> None:
        plan = [node for node in graph_nodes() if node.kind is NodeKind.FIX_PLAN]
        assert [bundle_text(plan, bundle) for bundle in Bundle][:4] == [""] * 4
        assert "Facts" not in bundle_text(plan, Bundle.B4)

    def test_what_a_database_cannot_hold_is_not_told(self) -> None:
        fact = replace(graph_nodes()[5], statement="a \x00 b \ud800")
        text = bundle_text([fact], Bundle.B1)
        assert "\x00" not in text and text.encode()


def guided(request: Request, messages: list[dict[str, Any]]) -> Reply:
    """An agent that gets it right if it is told the plan, and wrong otherwise."""
    told = any("\nPlan:\n" in str(message["content"]) for message in messages)

    def steps(number: int) -> Steps:
        wrong = [
            ("I write it.", "bash", {"command": f"echo 'wrong' > src/part_{number}.py"}),
            ("Done.", "submit", {}),
        ]
        return agent_steps(number) if told else wrong

    return agent(request, messages, steps)


def guided_model() -> CurationModel:
    return CurationModel({"agent": guided})


def disclosure_run(world: CurationWorld, model: Any = None, **choice: Any) -> DisclosureRun:
    budget = choice.pop("budget", None)
    made = world.run(model or guided_model(), budget=budget, run=choice.pop("run", "run"))
    options = disclosure_options(backend="unsafe-local")
    context = replace(made.context, scaffold=ReactScaffold("full"), options=options, readers={})
    return DisclosureRun(context, made.graphs, DisclosureChoice(**choice))


def told_all(world: CurationWorld, model: Any = None, **choice: Any) -> tuple[DisclosureRun, PendingDisclosure]:
    """Roll out what is missing. Returns the run and what it found to do."""
    runner = disclosure_run(world, model, **choice)
    pending = runner.pending()
    assert runner.run(1, pending).done
    return runner, pending


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CurationWorld]:
    with curation_world(tmp_path) as made:
        yield made


class TestDisclosedRollouts:
    def test_each_bundle_has_a_trajectory_of_its_own_whose_query_tells_it(self, world: CurationWorld) -> None:
        _, pending = told_all(world)
        assert [unit.told.bundle for unit in pending.units] == list(Bundle)
        ids = [unit.id for unit in pending.units]
        assert len(set(ids)) == 5
        queries = {row[0]: row[1] for row in world.rows(TrajectoryMessage, "trajectory_id", "content", kind="query")}
        plain = queries[ids[0]].rstrip()
        for unit in pending.units:
            assert queries[unit.id].rstrip() == f"{plain}\n\n{unit.told.text}".rstrip()
        for name, scaffold, decided in world.rows(Trajectory, "id", "scaffold", "decided_by"):
            assert (name in ids, scaffold, decided["scaffold"]) == (True, "disclosed", "disclosed")
            assert set(decided["curation"]) == {"bundle", "graph", "text", "stages"}

    def test_one_that_is_told_the_plan_resolves_what_the_others_do_not(self, world: CurationWorld) -> None:
        runner, pending = told_all(world)
        row = disclosure_study(runner.rollouts(pending))["bundles"]
        assert {name: it["resolved"] for name, it in row.items()} == {"B0": 0, "B1": 0, "B2": 0, "B3": 0, "B4": 1}
        assert {it["chains"] for it in row.values()} == {1}
        assert all(it["usd"] > 0 and it["steps"] > 1 and it["tokens_in"] > 0 for it in row.values())

    def test_it_is_not_made_again(self, world: CurationWorld) -> None:
        told_all(world)
        model = guided_model()
        runner = disclosure_run(world, model)
        pending = runner.pending()
        assert (pending.units, len(pending.standing)) == ((), 5)
        assert runner.run(1, pending).done and model.asked == []
        assert len(runner.rollouts(pending)) == 5
        assert len(disclosure_run(world, validation=True).pending().units) == 1, "B4 alone tells more then"

    def test_what_the_reference_writes_is_told_to_nobody(self, world: CurationWorld) -> None:
        model = guided_model()
        told_all(world, model, bundles=(Bundle.B4,), validation=True)
        first = next(request for request in model.asked if request.purpose == "agent")
        text = "\n".join(message.content for message in first.messages)
        assert "Validation:" in text and "return 1" not in text and "def part_number_1" not in text

    def test_only_the_first_stage_is_worked_on_and_no_overview_is_written_for_it(self, tmp_path: Path) -> None:
        with curation_world(tmp_path, ((1, 2),)) as world:
            model = guided_model()
            runner, pending = told_all(world, model, bundles=(Bundle.B4,))
            [unit] = pending.units
            assert world.graphs.rollouts.stages(unit.id) == [(1, "accepted"), (2, "not_reached")]
            assert world.outcome(unit.id)[0] == "too_short"
            assert {request.purpose for request in model.asked} == {"agent"}
            assert {request.subject for request in model.asked} == {f"{unit.id}/1"}
            [rollout] = runner.rollouts(pending)
            assert rollout.resolved is True

    def test_a_spent_budget_leaves_the_rest_to_the_next_run(self, world: CurationWorld) -> None:
        report = disclosure_run(world, budget=0.0383).run(1)
        assert not report.done and report.stopped is not None
        told_all(world, run="more")
        calls = [row for row in world.graphs.calls() if row[0] == "agent"]
        assert len(calls) == len(set(calls))

    def test_chains_without_a_graph_or_proved_tests_are_counted(self, world: CurationWorld) -> None:
        world.graphs.rollouts.add_chain([2])
        assert disclosure_run(world).pending().unproved == 1
        world.graphs.prove(world.chains[-1], {1: "proved"})
        pending = disclosure_run(world).pending()
        assert (pending.unproved, pending.without_graph, len(pending.units)) == (0, 1, 5)
        estimate = disclosure_run(world).forecast(pending)
        assert estimate.trajectories == 5 and estimate.estimate.calls > 0

    def test_a_branch_off_one_is_refused(self, world: CurationWorld) -> None:
        _, pending = told_all(world, bundles=(Bundle.B4,))
        options = RolloutOptions(gate="tests", refinements=0, backend="unsafe-local")  # type: ignore[arg-type]
        context = replace(world.run().context, scaffold=ReactScaffold("full"), options=options, readers={})
        choice = RolloutChoice(chain=world.chains[0], parent=(pending.units[0].id, 1))
        with pytest.raises(UsageError, match="--scaffold disclosed"):
            RolloutRun(context, choice).run(1)

    def test_it_stands_in_no_way_of_plain_rollouts(self, world: CurationWorld) -> None:
        told_all(world)
        options = RolloutOptions(gate="tests", refinements=0, backend="unsafe-local")  # type: ignore[arg-type]
        context = replace(world.run().context, scaffold=ReactScaffold("full"), options=options, readers={})
        pending = RolloutRun(context, RolloutChoice()).pending()
        assert (len(pending.units), pending.standing, pending.outdated) == (1, 0, ())
        with world.store.reading() as tx:
            assert other_rollouts(tx, context, world.chains) == OtherRollouts()
            assumed = forecast(tx, context.gateway, options, [1], "fake")
        assert assumed.basis.startswith("assumed"), "five disclosed ones are no basis"
        assert world.rows(LlmCall, "subject", purpose="agent")


class TestDisclosureCommand:
    @pytest.fixture(autouse=True)
    def opened(self, monkeypatch: pytest.MonkeyPatch, world: CurationWorld) -> None:
        @contextmanager
        def open_here(settings: Any, choice: DisclosureChoice, **how: Any) -> Iterator[DisclosureRun]:
            made = disclosure_run(world, budget=how["budget_usd"], bundles=choice.bundles)
            monkeypatch.setattr(type(made.context.backend), "clear_away", lambda backend: None, raising=False)
            yield made

        monkeypatch.setattr("trajectories.studies.curation.disclosure_run.open_disclosure", open_here)

    def study(self, world: CurationWorld, *words: str) -> int:
        command = ["curate", "study", "disclosure", "--db", str(world.store.url.database)]
        return run([*command, "--backend", "unsafe-local", "--unsafe-local", *words])

    def test_it_prints_a_table_and_writes_files(
        self, world: CurationWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.study(world, "--dry-run", "--bundle", "B0") == 0
        assert "1 rollout to run" in capsys.readouterr().out
        assert self.study(world, "--out", str(tmp_path / "study")) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        assert [line.split()[0] for line in out.splitlines()[1:6]] == list(Bundle)
        written = json.loads((tmp_path / "study" / "disclosure.json").read_text())
        assert (written["bundles"]["B4"]["rate"], written["left"], written["stopped"]) == (1.0, 0, None)
        rows = list(csv.DictReader((tmp_path / "study" / "disclosure.csv").read_text().splitlines()))
        assert [row["bundle"] for row in rows] == list(Bundle)
        ElementTree.parse(tmp_path / "study" / "disclosure-bundles.svg")
        assert self.study(world, "--json") == 0
        assert json.loads(capsys.readouterr().out) == written

    def test_what_is_not_done_is_said_and_is_exit_code_1(
        self, world: CurationWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.study(world, "--budget", "0") == 1
        captured = capsys.readouterr()
        assert "No rollout has ended." in captured.out
        assert "5 rollouts not done" in captured.err

    def test_where_no_rollout_was_graded_nothing_was_done(
        self, world: CurationWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.study(world) == 0
        with world.store.transaction() as tx:
            tx.connection.execute(update(Trajectory).values(outcome="unscored"))
        assert self.study(world) == 1
        assert capsys.readouterr().err.splitlines()[-1] == "no rollout was graded"


# ---- where they never count


@pytest.fixture
def told_samples(tmp_path: Path) -> Iterator[SampleWorld]:
    """One plain rollout and one disclosed one of a chain, both kept, under the same options."""
    with sample_world(tmp_path) as made:
        made.chain("c1", length=1)
        for name, scaffold in (("plain", "react"), ("told", "disclosed")):
            made.trajectory(name, "c1", Talk().system().query(1).bash("ls", text=name).submit(), scaffold=scaffold)
        yield made


def exported_ids(world: SampleWorld, folder: Path, **options: Any) -> tuple[list[str], dict[str, int]]:
    chosen = ExportOptions(**options)
    report = export(world.store, chosen_format("slime", chosen), chosen, folder / "sft.jsonl", force=True)
    lines = report.files[0].read_text(encoding="ascii").splitlines() if report.files else []
    return [json.loads(line)["metadata"]["trajectory_id"] for line in lines], dict(report.left_out)


def test_an_export_leaves_disclosed_ones_out_by_name_unless_it_is_asked_for_them(
    told_samples: SampleWorld, tmp_path: Path
) -> None:
    assert exported_ids(told_samples, tmp_path) == (["plain"], {"disclosed": 1})
    assert exported_ids(told_samples, tmp_path, at_most=5) == (["plain"], {"disclosed": 1})
    assert exported_ids(told_samples, tmp_path, per_chain="shortest") == (["plain"], {"disclosed": 1})
    assert exported_ids(told_samples, tmp_path, scaffolds=frozenset({"disclosed"})) == (["told"], {})
    assert exported_ids(told_samples, tmp_path, scaffolds=frozenset({"react"})) == (["plain"], {})


def test_an_export_takes_scaffolds_by_name_on_the_command_line(
    told_samples: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", "--out", "-", "--db", str(told_samples.store.url.database)]
    assert run([*command, "--scaffold", "disclosed"]) == 0
    assert '"told"' in capsys.readouterr().out
    assert run([*command, "--scaffold", "nope"]) == 2
    assert "no trajectory is of the scaffold nope" in capsys.readouterr().err


def test_predictions_figures_lists_and_pairs_leave_them_out(told_samples: SampleWorld) -> None:
    with told_samples.store.reading() as tx:
        assert [it.id for it in chosen_rollouts(tx, outcomes=["accepted"])] == ["plain"]
        with pytest.raises(UsageError, match="is no prediction"):
            chosen_rollouts(tx, outcomes=["accepted"], like="told")
        figures = stats(tx)
    assert (figures["trajectories"], figures["samples"], figures["disclosed"]) == (1, 1, 1)
    assert figures["acceptance"][0]["accepted"] == 1 and figures["scores"]["count"] == 1
    assert figures["hidden_tests"] == {"passed": 0, "failed": 0, "not_run": 1}
    assert [row.id for row in list_trajectories(told_samples.store)] == ["plain"]
    assert [row.id for row in list_trajectories(told_samples.store, scaffold="disclosed")] == ["told"]
    assert quality_pairs(told_samples.store).accepted == {"plain": 1, "curated": 0, "guided": 0}


def test_a_study_of_what_could_not_be_graded_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from trajectories.studies.curation.disclosure import DisclosedRollout

    def ended(chain: str, bundle: Bundle, *, resolved: bool | None) -> DisclosedRollout:
        return DisclosedRollout(chain, bundle, "g", f"{chain}{bundle}", "accepted", resolved, 3, 10, 5, None)

    found: Sequence[DisclosedRollout] = [
        ended("c1", Bundle.B0, resolved=False),
        ended("c2", Bundle.B0, resolved=None),
        ended("c1", Bundle.B4, resolved=True),
        ended("c2", Bundle.B4, resolved=True),
    ]
    study = study_disclosure(found)
    study.print_row(study.row)
    out = capsys.readouterr().out
    assert "1 rollout could not be graded" in out and "different numbers of chains" in out
    assert study.row["bundles"]["B0"]["chains"] == 1 and study.row["bundles"]["B0"]["usd"] is None
