"""Curated runs from end to end: what windows commit, what their rows say, and what no reader is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import GraphUnusable, NotValidated, TestsUnproved, UsageError
from prchain.core.llm.model import Reply, Request, ToolCall
from sql.tables import CurationCandidate, GraphRow, LlmCall, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from tests.trajectories.curationworld import (
    CurationModel,
    CurationWorld,
    Steps,
    agent,
    agent_steps,
    curation_world,
    said,
    verifier,
)
from tests.trajectories.graphworld import distilling, graph_world
from tests.trajectories.graphworld import steps as graph_steps
from tests.trajectories.rolloutworld import PolicyModel
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND
from trajectories.curation.windows.report import curated_page, print_window, print_windows, took_variant


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CurationWorld]:
    with curation_world(tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Curated:
    """A run without options that has ended; tests of the module read it and change nothing."""

    world: CurationWorld
    name: str
    model: CurationModel
    done: tuple[str, ...]
    """What was done to sandboxes, in order."""


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curated]:
    with curation_world(tmp_path_factory.mktemp("curated")) as world:
        model = CurationModel()
        done: list[str] = []
        name = world.curate(model, before=lambda what, words: done.append(what))
        yield Curated(world, name, model, tuple(done))


def turns(world: CurationWorld, name: str) -> list[dict[str, Any]]:
    """The agent's turns: calls and details."""
    columns = ("step", "position", "content", "tool_calls", "details")
    rows = world.rows(TrajectoryMessage, *columns, trajectory_id=name, kind="turn")
    return [dict(zip(columns, row, strict=True)) for row in rows]


def committed_by_windows(world: CurationWorld, name: str) -> list[dict[str, Any]]:
    """The messages that the windows of a trajectory committed, from the rows of their candidates."""
    chosen = {(row["position"], row["number"]): (row["chosen"], row["committed"]) for row in world.windows(name)}
    messages = []
    for row in world.candidates(name):
        number, count = chosen[row["position"], row["window_number"]]
        if row["number"] == number:
            entries = row["entries"]
            steps = sorted({entry["step"] for entry in entries})[:count]
            messages += [entry for entry in entries if entry["step"] in steps]
    return messages


class TestARun:
    def test_its_conversation_is_what_its_windows_committed(self, curated: Curated) -> None:
        world, name = curated.world, curated.name
        assert world.outcome(name) == ("accepted", None)
        columns = ("ordinal", "step", "kind", "content", "tree")
        rows = world.rows(TrajectoryMessage, *columns, trajectory_id=name)
        committed = [tuple(entry[column] for column in columns) for entry in committed_by_windows(world, name)]
        assert [row for row in rows if row[2] in {"turn", "observation"}] == committed
        assert [row[0] for row in rows] == list(range(len(rows)))

    def test_a_variant_above_the_floor_is_committed_and_its_rewritten_turn_is_marked(self, curated: Curated) -> None:
        world, name = curated.world, curated.name
        first = world.windows(name)[0]
        assert (first["chosen"], first["how"], first["committed"]) == (2, "floor", 5)
        marked = [turn for turn in turns(world, name) if "curated" in turn["details"]]
        assert marked[0]["details"]["curated"] == {"window": 1, "candidate": 2}
        assert json.loads(marked[0]["tool_calls"][0]["arguments"]) == {"command": "grep -c till pyproject.toml"}
        assert marked[0]["content"] == "Before I go on, a check."

    def test_a_variant_is_its_seed_until_the_rewritten_step(self, curated: Curated) -> None:
        world, name = curated.world, curated.name
        candidates = {(row["window_number"], row["number"]): row for row in world.candidates(name)}
        variants = [row for row in candidates.values() if row["place"] is not None and row["steps"]]
        assert variants
        for row in variants:
            seed = candidates[row["window_number"], row["seed"]]["entries"]
            own = row["entries"]
            first = min(entry["step"] for entry in own) + row["place"]
            assert [it for it in own if it["step"] < first] == [it for it in seed if it["step"] < first]
            rewritten = next(it for it in own if it["step"] == first and it["kind"] == "turn")
            assert rewritten["details"]["curated"] == {"window": row["window_number"], "candidate": row["number"]}
            marked = [it for it in own if "curated" in it["details"]]
            assert marked == [rewritten]

    def test_each_candidate_has_calls_of_its_own(self, curated: Curated) -> None:
        world, name, model = curated.world, curated.name, curated.model
        agents = [row[0] for row in world.rows(LlmCall, "subject", purpose="agent")]
        assert {f"{name}/1/1/{number}" for number in range(4)} <= set(agents)
        begun = Counter(request.subject for request in model.asked if request.purpose == "agent")
        steps = {(row["window_number"], row["number"]): row["steps"] for row in world.candidates(name)}
        assert begun[f"{name}/1/1/0"] == steps[1, 0]
        assert begun[f"{name}/1/1/2"] < steps[1, 2], "the steps that it shares with its seed are not asked for again"

    def test_what_a_step_established_is_kept_with_its_quote(self, curated: Curated) -> None:
        world, name = curated.world, curated.name
        from sql.tables import Establishment

        rows = world.rows(Establishment, "node", "step", "evidence", trajectory_id=name, window_number=1, candidate=2)
        assert ("listing", 1, "unrelated") in rows
        assert ("again", 2, "1") in rows
        first, second = world.windows(name)[:2]
        assert first["established"] == []
        assert second["established"] == ["again", "listing"]
        assert set(second["frontier"]) == {"absent", "repro", "wide.2"}

    def test_nodes_that_came_too_early_wait(self, curated: Curated) -> None:
        assert "plan" in curated.world.windows(curated.name)[2]["waiting"]

    @pytest.mark.drawn(2, "a curated run again")
    def test_the_rows_of_two_runs_are_the_same(self, curated: Curated, world: CurationWorld) -> None:
        assert world.curate() == curated.name
        assert world.whole(curated.name) == curated.world.whole(curated.name)

    def test_a_window_is_printed_by_itself_as_on_the_page_of_all(
        self, curated: Curated, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = curated_page(curated.world.store, curated.name)
        windows = page["windows"]
        assert [took_variant(window) for window in windows] == [window["chosen"] in {2, 3} for window in windows]
        assert not took_variant({**windows[0], "chosen": 0})
        print_window(page["windows"][0])
        alone = capsys.readouterr().out
        assert alone.startswith("stage 1, window 1, after step 0: ")
        assert alone.endswith("committed 5 steps of candidate 2 (floor)\n")
        print_windows(page)
        whole = capsys.readouterr().out
        assert alone in whole
        of_steps = [
            progress
            for window in windows
            for progress in window["candidates"][window["chosen"]]["progress"][: window["committed"]]
        ]
        assert page["effectiveness"] == pytest.approx(sum(of_steps)) and sum(of_steps) > 0.5
        assert f"Eff {sum(of_steps):.2f} of the steps that {len(windows)} windows committed" in whole

    @pytest.mark.drawn(2, "a curated run again")
    @pytest.mark.postgres
    def test_on_postgresql_its_rows_are_those_on_sqlite(
        self, curated: Curated, tmp_path: Path, postgres_url: str
    ) -> None:
        with curation_world(tmp_path, url=postgres_url) as made:
            assert made.whole(made.curate()) == curated.world.whole(curated.name)

    def test_a_finished_trajectory_is_not_made_again(self, curated: Curated) -> None:
        model = CurationModel()
        pending = curated.world.run(model).curation()
        assert (pending.rollouts.units, pending.rollouts.standing) == ((), 1)
        assert model.asked == []

    def test_costs_are_those_of_the_ledger(self, curated: Curated) -> None:
        world, name = curated.world, curated.name
        rows = world.rows(LlmCall, "subject", "usd")
        spent = sum(usd for subject, usd in rows if subject.startswith(f"{name}/"))
        candidates = world.rows(CurationCandidate, "usd", trajectory_id=name)
        assert sum(usd for (usd,) in candidates) == pytest.approx(spent)

    def test_a_snapshot_is_taken_after_steps_that_may_have_written_and_after_no_other(self, curated: Curated) -> None:
        world, name, taken = curated.world, curated.name, curated.done
        wrote = 0
        for row in world.candidates(name):
            entries = row["entries"]
            first = min((entry["step"] for entry in entries), default=0) + (row["place"] or 0)
            wrote += sum(it["tool_name"] == "bash" for it in entries if it["step"] >= first)
        base = 1
        assert taken.count("snapshot") == base + wrote
        assert taken.count("branch") == sum(row["steps"] > 0 for row in world.candidates(name))
        assert taken.count("forget") >= taken.count("snapshot") - 1 - len(world.windows(name))


class TestAStage:
    def test_a_limit_ends_it_unfinished_and_ungraded(self, world: CurationWorld) -> None:
        name = world.curate(steps=3)
        outcome, reason = world.outcome(name)
        assert outcome == "unfinished"
        assert reason is not None
        assert "step_limit before the work was handed in" in reason
        assert world.rows(Verdict, "attempt", trajectory_id=name) == []
        assert len(turns(world, name)) == 3
        assert world.run(steps=3).curation().rollouts.standing == 1

    def test_work_that_fails_its_tests_is_not_admitted_and_not_sent_back(self, world: CurationWorld) -> None:
        def wrong(number: int) -> Steps:
            return [
                ("I write it.", "bash", {"command": f"echo 'wrong' > src/part_{number}.py"}),
                ("Done.", "submit", {}),
            ]

        name = world.curate(CurationModel({"agent": lambda request, messages: agent(request, messages, wrong)}))
        assert world.outcome(name)[0] == "rejected"
        assert world.rows(Verdict, "attempt", "accepted", "gate", trajectory_id=name) == [(1, False, "tests")]

    def test_it_goes_on_plainly_where_nothing_is_left_to_establish(self, tmp_path: Path) -> None:
        with graph_world(tmp_path, ((1,),)) as graphs:
            model = PolicyModel(distilling(lambda number, round_: graph_steps(number) if round_ == 1 else []))
            assert set(graphs.run(model).run(1).counts) == {"converged"}
            world = CurationWorld(graphs)
            name = world.curate(windows={"window": 4, "stride": 2})
            assert world.outcome(name) == ("accepted", None)
            windows = world.windows(name)
            plain = [row for row in windows if row["how"] == "plain"]
            assert plain
            assert all(row["frontier"] == [] for row in plain)
            last = plain[-1]["number"]
            rows = [row for row in world.candidates(name) if row["window_number"] == last]
            assert [(row["number"], row["progress"]) for row in rows] == [(0, [])]
            assert plain[-1]["committed"] == rows[0]["steps"]

    def test_where_nothing_is_left_to_establish_a_window_can_be_as_any_other(self, tmp_path: Path) -> None:
        """P2T, appendix G: algorithm 1 has no other kind of window."""
        with graph_world(tmp_path, ((1,),)) as graphs:
            model = PolicyModel(distilling(lambda number, round_: graph_steps(number) if round_ == 1 else []))
            graphs.run(model).run(1)
            world = CurationWorld(graphs)
            name = world.curate(windows={"window": 4, "stride": 2, "empty": "usual"})
            assert world.outcome(name) == ("accepted", None)
            idle = [row for row in world.windows(name) if not row["frontier"]]
            assert idle and {row["how"] for row in idle} == {"fallback"}
            for window in idle:
                rows = [row for row in world.candidates(name) if row["window_number"] == window["number"]]
                assert [row["outcome"] for row in rows][2:] == ["no_place", "no_place"]
                shortest = min(rows[:2], key=lambda row: (row["length"], row["number"]))
                assert window["chosen"] == shortest["number"] and window["committed"] <= 2

    def test_a_later_one_starts_from_the_curated_stage_before_and_has_its_graph_made_on_the_way(
        self, tmp_path: Path
    ) -> None:
        with curation_world(tmp_path, ((1, 2),)) as world:
            before = world.rows(GraphRow, "id")
            name = world.curate()
            assert world.outcome(name) == ("accepted", None)
            (own,) = [
                row
                for row in world.rows(GraphRow, "id", "position", "trajectory_id", "start_tree", "outcome")
                if (row[0],) not in before
            ]
            [(end,)] = world.rows(TrajectoryStage, "end_tree", trajectory_id=name, position=1)
            [(start,)] = world.rows(TrajectoryStage, "start_tree", trajectory_id=name, position=2)
            assert own[1:] == (2, name, start, "converged")
            assert {row["graph_id"] for row in world.windows(name) if row["position"] == 2} == {own[0]}
            assert end is not None

    def test_without_a_graph_that_can_be_made_the_accepted_stages_stand(self, tmp_path: Path) -> None:
        def nodes(number: int, round_: int) -> Any:
            return []

        with curation_world(tmp_path, ((1, 2),)) as world:
            model = CurationModel()
            usual, poor = model.answer, PolicyModel(distilling(nodes)).answer
            model.answer = lambda request: (poor if request.purpose in {"proposer", "critic"} else usual)(request)
            name = world.curate(model)
            outcome, reason = world.outcome(name)
            assert outcome == "accepted_prefix", reason
            assert "no_graph" in str(reason)
            assert world.graphs.rollouts.stages(name) == [(1, "accepted"), (2, "no_graph")]


class TestReaders:
    REFERENCE = "part_number_1():"

    def test_none_is_shown_the_reference_or_tests(self, world: CurationWorld) -> None:
        def other(number: int) -> Steps:
            steps = list(agent_steps(number))
            steps[6] = ("I write it.", "bash", {"command": f"echo 'own = {number}' > src/part_{number}.py"})
            return steps

        model = CurationModel({"agent": lambda request, messages: agent(request, messages, other)})
        world.curate(model)
        for purpose in ("agent", CURATOR, ESTABLISH, GROUND):
            prompts = model.prompts(purpose)
            assert prompts
            assert not any(self.REFERENCE in prompt or "test_part" in prompt for prompt in prompts), purpose

    def test_the_judge_is_shown_no_node_and_the_curator_its_target_alone(self, curated: Curated) -> None:
        model = curated.model
        statements = {"The README says nothing of parts", "The repository has a project file beside its sources"}
        assert not any(statement in prompt for prompt in model.prompts(GROUND) for statement in statements)
        assert all("node f" not in prompt for prompt in model.prompts(CURATOR))
        assert max(sum("statement: " in line for line in prompt.splitlines()) for prompt in model.prompts(CURATOR)) == 1

    def test_the_verifier_is_asked_once_a_step_of_the_nodes_that_fit(
        self, curated: Curated, world: CurationWorld
    ) -> None:
        calls = sum(row["verifier_calls"] for row in curated.world.candidates(curated.name))
        assert curated.model.count(ESTABLISH) == calls
        each = CurationModel()
        world.curate(each, windows={"est": "each"})
        assert each.count(ESTABLISH) > 2 * calls
        assert all(prompt.count("<<<node ") == 1 for prompt in each.prompts(ESTABLISH))

    def test_the_verifier_may_be_asked_of_all_the_session(self, curated: Curated, world: CurationWorld) -> None:
        def matched(request: Request, messages: list[dict[str, Any]]) -> Reply:
            assert "matched_action" in str(messages[0]["content"])
            latest = int(str(messages[-1]["content"]).split("The latest step, number ")[1].partition(":")[0])
            reply = json.loads(verifier(request, messages).text)
            return said(json.dumps({"nodes": [{**one, "matched_action": latest} for one in reply["nodes"]]}))

        model = CurationModel({ESTABLISH: matched})
        name = world.curate(model, windows={"est": "prefix"})
        assert all(prompt.count("<<<node ") == 1 for prompt in model.prompts(ESTABLISH))
        [[decided]] = world.rows(Trajectory, "decided_by", id=name)
        [[usual]] = curated.world.rows(Trajectory, "decided_by", id=curated.name)
        assert "establish_prefix" in decided["prompts"] and "establish" not in decided["prompts"]
        assert "establish" in usual["prompts"] and "establish_prefix" not in usual["prompts"]

    def test_their_sampling_is_the_papers_and_the_settings_outrank_it(self, curated: Curated) -> None:
        sampled = {(it.purpose, it.temperature, it.top_p, it.max_tokens) for it in curated.model.asked}
        assert ("agent", 0.6, 0.95, 2048) in sampled
        assert {(purpose, 0.2, None, 2048) for purpose in (CURATOR, ESTABLISH, GROUND)} <= sampled

    def test_the_thoughts_of_the_curator_do_not_reach_the_trajectory(self, world: CurationWorld) -> None:
        def thinking(request: Request, messages: list[dict[str, Any]]) -> Reply:
            call = ToolCall("c", "bash", json.dumps({"command": "cat pyproject.toml"}))
            return Reply("I look.", "fake", "tool_calls", None, "the target node is told here", (call,))

        name = world.curate(CurationModel({CURATOR: thinking}))
        rows = world.rows(TrajectoryMessage, "content", "reasoning", trajectory_id=name)
        rows += world.rows(CurationCandidate, "entries", "rewrite", trajectory_id=name)
        assert not any("target node" in str(part) for row in rows for part in row)


def rewrites(*replies: Reply) -> Any:
    """A curator that gives these replies, the last one again and again."""
    left = list(replies)
    return lambda request, messages: left.pop(0) if len(left) > 1 else left[0]


BAD = {
    "C5: it is no step: no_call": said("I only talk."),
    "C5: it has 2 calls": Reply(
        "I do much.",
        "fake",
        "tool_calls",
        tool_calls=tuple(ToolCall(it, "bash", '{"command": "ls src"}') for it in "ab"),
    ),
    "C3: it hands the work in": said("Done.", "submit", {}),
    "C3: its call cannot be run": said("So.", "bash", {"order": "ls"}),
    "C3: its command is abbreviated": said("So.", "bash", {"command": "cat src/..."}),
    "C3: it does what the step did": said("So.", "bash", {"command": "cat README.md"}),
    "C4: it speaks of how it came about": said("The reference patch needs this.", "bash", {"command": "ls src"}),
}


class TestRewrites:
    @pytest.mark.drawn(3)
    @pytest.mark.parametrize("fault", BAD)
    def test_one_that_breaks_a_rule_of_form_is_dropped(self, world: CurationWorld, fault: str) -> None:
        name = world.curate(CurationModel({CURATOR: rewrites(BAD[fault])}))
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert {row["outcome"] for row in variants if row["reason"] and fault in row["reason"]} == {"malformed"}
        assert all(row["steps"] == 0 for row in variants if row["outcome"] == "malformed")
        assert world.outcome(name)[0] == "accepted"

    def test_one_that_names_what_was_not_shown_is_dropped_before_the_judge_is_asked(self, world: CurationWorld) -> None:
        leak = said("I check `part_number_1`.", "bash", {"command": "grep -rn part_number_1 src"})
        model = CurationModel({CURATOR: rewrites(leak)})
        name = world.curate(model)
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert {row["outcome"] for row in variants} == {"ungrounded"}
        assert all("name part_number_1 was not shown" in row["reason"] for row in variants)
        assert {row["grounded"] for row in variants} == {False}
        assert model.count(GROUND) == 0

    def test_one_that_the_judge_refuses_is_dropped(self, world: CurationWorld) -> None:
        leap = said("It is obviously the loader.", "bash", {"command": "ls src"})
        name = world.curate(CurationModel({CURATOR: rewrites(leap)}))
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert {row["outcome"] for row in variants} == {"ungrounded"}
        assert all(row["reason"].startswith("J1: ") for row in variants)
        assert variants[0]["rewrite"]["text"] == "It is obviously the loader."

    def test_a_dropped_place_is_not_tried_again_in_its_window(self, world: CurationWorld) -> None:
        leap = said("It is obviously the loader.", "bash", {"command": "ls src"})

        def same(request: Request, messages: list[dict[str, Any]]) -> Reply:
            return agent(Request(**{**vars_of(request), "subject": "x/0"}), messages)

        name = world.curate(CurationModel({CURATOR: rewrites(leap), "agent": same}))
        for number in {row["window_number"] for row in world.candidates(name)}:
            rows = [
                row for row in world.candidates(name) if row["window_number"] == number and row["place"] is not None
            ]
            assert len({(row["place"], row["target"]) for row in rows}) == len(rows)

    def test_several_variants_of_a_seed_go_for_different_nodes(self, curated: Curated, world: CurationWorld) -> None:
        name = world.curate(windows={"variants": 3})
        first = [row for row in world.candidates(name) if row["window_number"] == 1]
        assert [row["number"] for row in first] == list(range(8))
        assert [row["seed"] for row in first] == [0, 1] * 4
        usual = [row for row in curated.world.candidates(curated.name) if row["window_number"] == 1]
        assert [row["target"] for row in first[:4]] == [row["target"] for row in usual]
        for seed in (0, 1):
            targets = [row["target"] for row in first if row["seed"] == seed and row["target"] is not None]
            assert len(targets) > 1 and len(set(targets)) == len(targets)

    def test_without_the_check_of_ground_it_is_taken_as_it_is(self, world: CurationWorld) -> None:
        leak = said("It is obviously `part_number_1`.", "bash", {"command": "grep -c till pyproject.toml"})
        model = CurationModel({CURATOR: rewrites(leak)})
        name = world.curate(model, windows={"ground": False})
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert variants
        assert {row["grounded"] for row in variants} == {None}
        assert any(row["steps"] for row in variants)
        assert model.count(GROUND) == 0

    def test_the_curator_picks_from_the_frontier_where_it_is_asked_to(self, world: CurationWorld) -> None:
        def picking(request: Request, messages: list[dict[str, Any]]) -> Reply:
            if "Choose a step" in str(messages[0]["content"]):
                return said(json.dumps({"step": 2, "node": "absent"}))
            return said("A check.", "bash", {"command": "test -e src/part_1.py && echo there || echo absent"})

        name = world.curate(CurationModel({CURATOR: picking}), windows={"pick": "model"})
        first = [row for row in world.candidates(name) if row["window_number"] == 1 and row["place"] is not None]
        assert {(row["place"], row["target"]) for row in first} == {(1, "absent")}

    def test_a_pick_that_is_not_on_offer_drops_the_variant(self, world: CurationWorld) -> None:
        def picking(request: Request, messages: list[dict[str, Any]]) -> Reply:
            return said(json.dumps({"step": 2, "node": "edit"}))

        name = world.curate(CurationModel({CURATOR: picking}), windows={"pick": "model"})
        variants = [row for row in world.candidates(name) if row["number"] > 1]
        assert {row["outcome"] for row in variants} == {"no_place"}
        assert "picked step 2 and 'edit'" in variants[0]["reason"]


def vars_of(request: Request) -> dict[str, Any]:
    """The fields of a request."""
    return {name: getattr(request, name) for name in Request.__dataclass_fields__}


class TestChoice:
    @pytest.mark.parametrize("windows", [{"seeds": 1}, {"premature": "zero"}])
    def test_options_decide_the_id(self, curated: Curated, windows: dict[str, Any]) -> None:
        """What was made without them is not what they want."""
        pending = curated.world.run(windows=windows).curation().rollouts
        assert (len(pending.units), pending.standing) == (1, 0)

    def test_a_chain_without_a_graph_is_named_in_one_line(self, tmp_path: Path) -> None:
        with graph_world(tmp_path, ((1,),)) as graphs:
            world = CurationWorld(graphs)
            with pytest.raises(
                GraphUnusable, match="has no process graph that can be used; run `prchain curate graphs"
            ):
                world.run(choice={"chain": world.chains[0]}).curation()
            pending = world.run().curation()
            assert (pending.rollouts.units, pending.without_graph) == ((), 1)

    def test_a_graph_of_another_tree_is_refused(self, tmp_path: Path) -> None:
        with curation_world(tmp_path, ((1,), (2,))) as world:
            [other] = world.rows(GraphRow, "id", chain_id=world.chains[1])
            run = world.run(choice={"chain": world.chains[0], "graph": other[0]})
            with pytest.raises(UsageError, match="is of stage 1 of chain 0000000000000002"):
                run.curation()
            with pytest.raises(UsageError, match="a graph is of one chain"):
                world.run(choice={"graph": other[0]}).curation()

    def test_a_stage_without_proved_tests_is_refused(self, world: CurationWorld) -> None:
        world.graphs.prove(world.chains[0], {1: "no_f2p"})
        with pytest.raises(TestsUnproved):
            world.run(choice={"chain": world.chains[0]}).curation()
        with world.store.transaction() as tx:
            from sql.tables import StageTests

            tx.delete(StageTests, chain_id=world.chains[0])
        with pytest.raises(NotValidated):
            world.run(choice={"chain": world.chains[0]}).curation()

    def test_a_dry_run_counts_every_purpose_and_asks_nothing(self, tmp_path: Path) -> None:
        with curation_world(tmp_path, ((1, 2),)) as world:
            model = CurationModel()
            run = world.run(model)
            forecast = run.curation_forecast(run.curation().rollouts.units)
            assert set(forecast.purposes) == {"agent", CURATOR, GROUND, ESTABLISH, "proposer", "critic"}
            assert all(estimate.calls > 0 for estimate in forecast.purposes.values())
            assert forecast.verifier_share is not None
            assert 0 < forecast.verifier_share < 1
            assert model.asked == []
