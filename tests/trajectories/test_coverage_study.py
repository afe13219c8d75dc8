"""The study of plain rollouts that cover a process graph nobody told them of."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prchain.cli import run
from prchain.core.llm.gateway import Gateway, Route
from sql.ledger import SqlLedger
from sql.tables import LlmCall, Trajectory, TrajectoryStage, Verdict
from tests.trajectories.curationworld import (
    PRICE,
    CurationModel,
    CurationWorld,
    Steps,
    agent,
    curation_world,
    said,
)
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.windows.establishing import EstablishedNode as Found
from trajectories.curation.windows.establishing import StepFindings
from trajectories.curation.windows.options import ESTABLISH, Asked
from trajectories.model import Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.rollouts.run import RolloutChoice, RolloutRun
from trajectories.studies.curation.coverage import (
    CoverageUnit,
    StageReader,
    coverage_drawings,
    coverage_study,
    studied_trajectories,
    study_coverage,
)
from trajectories.studies.curation.coverage_run import CoverageRun
from trajectories.sums import calls_of


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CurationWorld]:
    with curation_world(tmp_path) as made:
        yield made


def hasty(number: int) -> Steps:
    """The steps of an agent that looks at nothing and writes the wrong thing."""
    return [
        ("I write it.", "bash", {"command": f"echo 'wrong' > src/part_{number}.py"}),
        ("Done.", "submit", {}),
    ]


def roll_out(world: CurationWorld, samples: int, model: Any = None, **options: Any) -> list[str]:
    """Plain rollouts up to so many samples. Returns the ids of those that were made now."""
    chosen = {"gate": "tests", "refinements": 0, "min_length": 1, "backend": "unsafe-local", **options}
    context = replace(
        world.run(model).context, scaffold=ReactScaffold("full"), options=RolloutOptions(**chosen), readers={}
    )
    report = RolloutRun(context, RolloutChoice(samples=samples)).run(1)
    return [str(result.detail) for result in report.results]


def two_rollouts(world: CurationWorld) -> tuple[str, str]:
    """One that resolves its stage, and one that does not."""
    [good] = roll_out(world, 1)
    [bad] = roll_out(world, 2, CurationModel({"agent": lambda request, messages: agent(request, messages, hasty)}))
    return good, bad


def study_gateway(world: CurationWorld, model: Any, *, run: str = "study", budget: float | None = None) -> Gateway:
    return Gateway(
        SqlLedger(world.store, run), default=Route(model, PRICE), budget_usd=budget, pause=lambda tries: None
    )


def coverage_run(world: CurationWorld, model: Any = None, **how: Any) -> CoverageRun:
    asked = how.pop("asked", Asked.STEP)
    return CoverageRun(world.store, study_gateway(world, model or CurationModel(), **how), asked=asked)


class TestStudiedRollouts:
    def test_one_that_looks_covers_more_of_the_graph_than_one_that_does_not(self, world: CurationWorld) -> None:
        good, bad = two_rollouts(world)
        report = coverage_run(world).run(1)
        stages = {stage.unit.trajectory: stage for stage in report.stages}
        assert {name: stage.unit.resolved for name, stage in stages.items()} == {good: True, bad: False}
        assert stages[good].covered == ("listing", "analysis", "plan", "edit", "check")
        assert stages[bad].covered == ("edit",), "an edit of the file counts, whatever it writes"
        assert stages[good].nodes == 10
        assert report.done

    def test_its_calls_are_no_cost_of_the_trajectories(self, world: CurationWorld) -> None:
        names = two_rollouts(world)
        sums = "usd", "tokens_in", "tokens_out"

        def costs() -> list[Any]:
            with world.store.reading() as tx:
                return [(calls_of(tx, name), *tx.rows(Trajectory, *sums, id=name)) for name in names]

        before = costs()
        coverage_run(world).run(1)
        subjects = {subject for (subject,) in world.rows(LlmCall, "subject", purpose=ESTABLISH)}
        assert len(subjects) == 2
        assert all(subject.startswith("coverage/") and len(subject) < 255 for subject in subjects)
        assert costs() == before

    def test_a_study_that_is_made_again_asks_nothing_and_says_the_same(self, world: CurationWorld) -> None:
        two_rollouts(world)
        first = coverage_run(world)
        found = study_coverage(first.run(1).stages, first.chosen)
        model = CurationModel()
        again = coverage_run(world, model, run="again")
        assert study_coverage(again.run(2).stages, again.chosen)[:3] == found[:3]
        assert model.asked == []
        assert found.row["usd"] > 0, "what it cost when it was paid for"

    def test_an_estimate_asks_nothing_and_is_nothing_once_all_is_stored(self, world: CurationWorld) -> None:
        two_rollouts(world)
        model = CurationModel()
        most = coverage_run(world, model).forecast()
        assert model.asked == []
        coverage_run(world, model).run(1)
        assert model.count(ESTABLISH) <= most.calls
        assert most.usd is not None and most.usd > 0
        asked = len(model.asked)
        assert coverage_run(world, model).forecast().calls == 0
        assert len(model.asked) == asked

    def test_a_spent_budget_ends_it_and_the_next_run_goes_on(self, world: CurationWorld) -> None:
        two_rollouts(world)
        model = CurationModel()
        report = coverage_run(world, model, budget=0.0135).run(1)
        assert not report.done
        assert {result.outcome for result in report.failed} == {"budget_exceeded"}
        assert model.asked, "the budget was enough for something"
        assert coverage_run(world, model, run="more").run(1).done
        stored = [row for row in world.graphs.calls() if row[0] == ESTABLISH]
        assert len(stored) == len(set(stored)) == model.count(ESTABLISH)

    def test_what_the_reference_writes_is_in_no_prompt(self, world: CurationWorld) -> None:
        roll_out(world, 1, CurationModel({"agent": lambda request, messages: agent(request, messages, hasty)}))
        model = CurationModel()
        coverage_run(world, model).run(1)
        assert model.count(ESTABLISH)
        assert all("return 1" not in prompt for prompt in model.prompts(ESTABLISH))
        assert any("an edit of src/part_1.py" in prompt for prompt in model.prompts(ESTABLISH))

    def test_asked_once_for_each_node_it_is_asked_of_every_node_and_step_that_is_left(
        self, world: CurationWorld
    ) -> None:
        two_rollouts(world)
        model = CurationModel()
        runner = coverage_run(world, model, asked=Asked.EACH)
        most = runner.forecast().calls
        stages = runner.run(1).stages
        assert {len(stage.covered) for stage in stages} == {5, 1}, "the same is covered"
        asked = Counter(prompt.count("\nstatement: ") for prompt in model.prompts(ESTABLISH))
        assert asked == {1: sum(stage.calls for stage in stages)}
        for stage in stages:
            left = stage.nodes - len(stage.covered)
            assert left * stage.steps <= stage.calls <= stage.nodes * stage.steps
        assert sum(stage.calls for stage in stages) <= most
        again = CurationModel()
        assert coverage_run(world, again, run="again", asked=Asked.EACH).run(1).done and again.asked == []

    def test_an_answer_that_does_not_fit_covers_nothing_and_is_counted(self, world: CurationWorld) -> None:
        two_rollouts(world)
        runner = coverage_run(world, CurationModel({ESTABLISH: lambda request, messages: said("no JSON")}))
        row = study_coverage(runner.run(1).stages, runner.chosen).row
        assert row["unusable_answers"] > 0
        assert {it["highest"] for it in row["bins"] if it["runs"]} == {0.0}
        assert row["pearson"] is None


class TestWhichAreStudied:
    def left_out(self, world: CurationWorld) -> tuple[list[str], Mapping[str, int]]:
        with world.store.reading() as tx:
            chosen = studied_trajectories(tx)
        return [unit.trajectory for unit in chosen.units], chosen.left_out

    def test_curated_ones_disclosed_ones_and_branches_are_no_plain_rollouts(self, world: CurationWorld) -> None:
        good, bad = two_rollouts(world)
        world.curate()
        assert self.left_out(world) == (sorted([good, bad]), {})
        self.change(world, bad, scaffold="disclosed")
        assert self.left_out(world) == ([good], {})
        self.change(world, bad, scaffold="react", parent_id=good, parent_step=1)
        assert self.left_out(world) == ([good], {})

    def test_one_without_a_graph_or_tests_or_an_end_is_left_out_by_its_reason(self, world: CurationWorld) -> None:
        good, bad = two_rollouts(world)
        self.change(world, bad, outcome="superseded")
        assert self.left_out(world) == ([good], {"unended": 1})
        self.change(world, bad, outcome="rejected")
        self.change(world, bad, table=TrajectoryStage, start_tree="0" * 40)
        assert self.left_out(world) == ([good], {"no_graph": 1})
        self.change(world, bad, table=Verdict, tests=None)
        assert self.left_out(world) == ([good], {"ungraded": 1})
        self.change(world, bad, options={"observers": ["prm:D"]})
        assert self.left_out(world) == ([good], {"guided": 1})

    @staticmethod
    def change(world: CurationWorld, name: str, table: Any = Trajectory, **values: Any) -> None:
        key = table.id if table is Trajectory else table.trajectory_id
        with world.store.transaction() as tx:
            tx.connection.execute(table.__table__.update().where(key == name).values(**values))


def bare_node(name: str, tool: ActionTool = ActionTool.BASH) -> Node:
    action = Action(tool) if tool is ActionTool.VIEW_PROBLEM else Action(tool, command="ls")
    return Node(name, NodeKind.STATIC_FACT, f"{name} is so", action)


def stage_talk(steps: int) -> list[Entry]:
    """A query and so many turns with an observation each; then the query of another stage and a turn."""
    entries = [Entry(0, 1, 1, 0, EntryKind.QUERY, "user", "Do it.", details={"query": "it", "workdir": "/testbed"})]
    for step in range(1, steps + 1):
        entries.append(Entry(len(entries), 1, 1, step, EntryKind.TURN, "assistant", f"turn {step}"))
        entries.append(Entry(len(entries), 1, 1, step, EntryKind.OBSERVATION, "tool", f"seen {step}"))
    entries.append(Entry(len(entries), 2, 1, steps, EntryKind.QUERY, "user", "And that."))
    return [*entries, Entry(len(entries), 2, 1, steps + 1, EntryKind.TURN, "assistant", "next")]


UNIT = CoverageUnit("t" * 16, "c" * 16, "shop/till", 0, "g" * 16, True)


def test_steps_are_read_in_order_and_no_node_is_asked_of_again_once_it_is_covered() -> None:
    asked: list[tuple[int, int, list[str]]] = []

    def ask(before: Sequence[Entry], step: Any, nodes: Sequence[Node]) -> StepFindings:
        asked.append((step.number, len(before), [node.name for node in nodes]))
        return StepFindings((Found("ab"[step.number - 1], step.number, "seen"),), 1, 0.5)

    told = bare_node("told", ActionTool.VIEW_PROBLEM)
    reader = StageReader(stage_talk(3), [told, bare_node("a"), bare_node("b")])
    stage = reader.read(UNIT, ask)
    assert asked == [(1, 1, ["a", "b"]), (2, 3, ["b"])], "with nothing left to cover nothing is asked"
    assert (reader.query, reader.workdir) == ("it", "/testbed")
    assert (stage.covered, stage.coverage, stage.steps, stage.calls, stage.usd) == (("told", "a", "b"), 1, 3, 2, 1)


def test_a_study_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from trajectories.studies.curation.coverage import ChosenTrajectories

    found = study_coverage([], ChosenTrajectories((), {"ungraded": 2}))
    found.print_row(found.row)
    out = capsys.readouterr().out
    assert out.startswith("0 plain rollouts of 0 chains, 0 resolved\nleft out: 2 ungraded\n")
    assert found.row["rate"] is None and found.row["pearson"] is None
    ElementTree.fromstring(coverage_drawings(coverage_study([], ChosenTrajectories()))["quintiles"])


class TestCoverageCommand:
    @pytest.fixture
    def model(self, monkeypatch: pytest.MonkeyPatch, world: CurationWorld) -> CurationModel:
        model = CurationModel()

        @contextmanager
        def opened(settings: Any, store: Any, purposes: Any, *, budget_usd: Any, run: Any) -> Iterator[Gateway]:
            assert purposes == (ESTABLISH,)
            yield Gateway(SqlLedger(store, "command"), default=Route(model, PRICE), budget_usd=budget_usd)

        monkeypatch.setattr("trajectories.studies.curation.coverage_run.open_gateway", opened)
        return model

    def study(self, world: CurationWorld, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
        code = run(["curate", "study", "coverage", "--db", str(world.store.url.database), *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    def test_it_prints_tables_and_writes_files(
        self, world: CurationWorld, model: CurationModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        good, bad = two_rollouts(world)
        code, out, _ = self.study(world, capsys, "--dry-run")
        assert (code, model.asked) == (0, [])
        assert "2 plain rollouts to read" in out and "nothing has been asked" in out
        code, out, err = self.study(world, capsys, "--out", str(tmp_path / "study"))
        assert code == 0, err
        assert out.startswith("2 plain rollouts of 1 chain, 1 resolved\n")
        assert "Pearson 1.00, Spearman 1.00" in out
        assert max(map(len, out.splitlines())) <= 80
        written = json.loads((tmp_path / "study" / "coverage.json").read_text())
        assert (written["runs"], written["resolved"], written["left"], written["stopped"]) == (2, 1, 0, None)
        rows = list(csv.DictReader((tmp_path / "study" / "coverage.csv").read_text().splitlines()))
        assert [row["trajectory"] for row in rows] == sorted([good, bad])
        assert {row["trajectory"]: row["covered"] for row in rows} == {good: "5", bad: "1"}
        ElementTree.parse(tmp_path / "study" / "coverage-quintiles.svg")
        code, out, _ = self.study(world, capsys, "--json")
        assert (code, json.loads(out)) == (0, written)

    def test_what_is_not_done_is_said_and_is_exit_code_1(
        self, world: CurationWorld, model: CurationModel, capsys: pytest.CaptureFixture[str]
    ) -> None:
        two_rollouts(world)
        code, out, err = self.study(world, capsys, "--budget", "0", "--json")
        assert (code, model.asked) == (1, [])
        assert (json.loads(out)["runs"], json.loads(out)["left"]) == (0, 2)
        assert "a larger --budget goes on" in err

    def test_where_no_question_has_an_answer_nothing_was_done_now_and_later(
        self, world: CurationWorld, model: CurationModel, capsys: pytest.CaptureFixture[str]
    ) -> None:
        two_rollouts(world)
        model.answer = lambda request: "I cannot say."
        for words in ((), ("--json",)):
            code, _, err = self.study(world, capsys, *words)
            assert code == 1
            assert re.fullmatch(r"the model gave no answer: [1-9]\d* bad_reply", err.splitlines()[-1])
            assert err.count("bad_reply") == 1
