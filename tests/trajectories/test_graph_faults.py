"""Process graphs under every fault of an endpoint and of a sandbox, and under a budget: named outcomes, and runs that
go on to the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import (
    DiskLimit,
    EngineUnavailable,
    OutOfMemory,
    PlacementFailed,
    SandboxError,
    SandboxLost,
    SnapshotUnknown,
    StateError,
)
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from sql.tables import GraphRow, LlmCall
from tests.endpoint import Answer, Call, FakeEndpoint, Part, completion, cut, error, in_turn, raw
from tests.trajectories.graphworld import (
    FALLEN,
    KEPT,
    PRICE,
    WORKDIR,
    Before,
    GraphFolder,
    GraphWorld,
    distilling,
    graph_facts,
    graph_world,
    is_critic,
    node,
    runs,
    stage_and_round,
    steps,
)
from tests.trajectories.rolloutworld import PolicyModel, PolicyReply, answering, bash
from trajectories.curation.graphs.replay import Replayer

pytestmark = pytest.mark.drawn(8, "faults of graphs")
"""All of them are one table."""


PATIENCE = 0.4
"""Seconds that a run waits for an answer of an endpoint; right ones come in milliseconds."""

GOOD = answering(distilling())


@contextmanager
def asking(part: Part) -> Iterator[tuple[OpenAIModel, FakeEndpoint]]:
    """A model behind an endpoint that behaves so, and the endpoint."""
    with FakeEndpoint(part) as fake:
        endpoint = Endpoint(fake.url, timeout_seconds=PATIENCE, max_tries=2, sleep=lambda seconds: None)
        try:
            yield OpenAIModel("fake", endpoint), fake
        finally:
            endpoint.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The rows that a run leaves where nothing fails; sums of tokens are compared with the ledger instead."""
    with graph_world(tmp_path_factory.mktemp("calm")) as world, asking(GOOD) as (model, _):
        assert world.run(model).run(1).counts == {"converged": 1}
        return graph_facts(world.store)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GraphWorld]:
    with graph_world(tmp_path) as graphs:
        yield graphs


def late(call: Call) -> Answer:
    return Answer(delay=PATIENCE + 0.2, tokens=(call.size, 5))


FAULTS: dict[str, tuple[Part, str]] = {
    "429": (error(429, headers={"retry-after": "0"}), "rate_limited"),
    "500": (error(500), "endpoint_unreachable"),
    "502 billed": (error(502, billed=True), "endpoint_unreachable"),
    "504": (error(504, billed=True), "endpoint_timeout"),
    "401": (error(401), "endpoint_refused"),
    "404": (error(404), "endpoint_refused"),
    "cut": (cut(), "endpoint_unreachable"),
    "cut in the body": (cut(10), "endpoint_unreachable"),
    "late": (late, "endpoint_timeout"),
    "no choices": (raw({"choices": []}), "endpoint_incompatible"),
    "no JSON": (raw(b"<html>busy</html>"), "endpoint_incompatible"),
}
"""Part, and the outcome of a graph that it ends."""


class TestEndpoint:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_that_lasts_ends_the_run_by_its_name_and_the_next_run_goes_on(
        self, world: GraphWorld, calm: dict[str, Any], fault: str
    ) -> None:
        part, outcome = FAULTS[fault]
        with asking(in_turn(GOOD, GOOD, GOOD, GOOD, part)) as (model, fake):  # the critic's answer is the fifth
            report = world.run(model).run(1)
            assert report.counts == {outcome: 1} and not report.done
            assert world.outcome(world.ids()[0])[0] == outcome
            world.assert_sums()
            fake.part = GOOD
            assert world.run(model).run(1).counts == {"converged": 1}
        assert graph_facts(world.store) == calm
        assert max(Counter(world.calls()).values()) == 1
        world.assert_sums()

    @pytest.mark.parametrize("fault", ["429", "500", "cut", "late", "no choices"])
    def test_a_fault_at_every_third_call_leaves_the_same_rows(
        self, world: GraphWorld, calm: dict[str, Any], fault: str
    ) -> None:
        part, outcome = FAULTS[fault]
        with asking(lambda call: (part if call.number % 3 == 0 else GOOD)(call)) as (model, _):
            for _ in range(9):
                report = world.run(model).run(1)
                assert report.counts.keys() <= {"converged", outcome}
                if report.done:
                    break
        assert graph_facts(world.store) == calm
        world.assert_sums()

    @pytest.mark.parametrize(
        "part",
        [
            completion(None, refusal="I do not do that."),
            completion('{"nodes": ', finish_reason="length"),
            completion('{"nodes": [}'),
            completion('{"nodes": [{"id": "x"}]}'),
            completion(""),
            completion("Here you are."),
            completion('{"nodes": []} {"nodes": []}'),
            completion("", finish_reason="content_filter"),
        ],
        ids=["refusal", "cut off", "broken", "unfit", "empty", "prose", "two answers", "filter"],
    )
    def test_a_reply_that_is_no_answer_is_told_and_the_graph_is_the_same(
        self, world: GraphWorld, calm: dict[str, Any], part: Part
    ) -> None:
        with asking(in_turn(GOOD, GOOD, part, GOOD)) as (model, _):
            assert world.run(model).run(1).counts == {"converged": 1}
        facts = graph_facts(world.store)
        assert (facts["nodes"], facts["edges"]) == (calm["nodes"], calm["edges"])

    def test_a_prompt_that_is_too_long_for_the_endpoint_ends_the_run_and_the_next_one_goes_on(
        self, world: GraphWorld, calm: dict[str, Any]
    ) -> None:
        too_long = error(400, "too many tokens", code="context_length_exceeded")
        with asking(in_turn(GOOD, too_long, too_long)) as (model, _):
            report = world.run(model).run(1)
        assert report.counts == {"context_too_long": 1} and not report.done
        assert "round 1, proposer: the endpoint does not take the next prompt" in str(report.results[0].reason)
        assert world.rows(GraphRow, "rounds", "dropped_rounds") == [(0, 0)]
        assert world.run().run(1).counts == {"converged": 1}
        assert graph_facts(world.store)["nodes"] == calm["nodes"]


def once(what: str, words: str, fault: SandboxError | StateError, *, skip: int = 0) -> tuple[Before, list[str]]:
    """A hook that fails the first time that this is done, after `skip` times; and what it failed at."""
    failed: list[str] = []
    seen = Counter[str]()

    def before(does: str, text: str) -> None:
        if does == what and words in text:
            seen[does] += 1
            if seen[does] == skip + 1:
                failed.append(text)
                raise fault

    return before, failed


def always(words: str, fault: SandboxError) -> Before:
    def before(does: str, text: str) -> None:
        if does == "exec" and text == words:
            raise fault

    return before


LOST = SandboxLost("it is gone")

RECOVERED = {
    "the proposer's first command": ("exec", "ls src; echo looked", 0),
    "the proposer's second command": ("exec", "cat seen.txt", 0),
    "the critic's command": ("exec", "grep -n till", 0),
    "a node's command": ("exec", "grep -c till", 0),
    "a file that is laid": ("write", "check.sh", 0),
    "a validation": ("exec", "cat src/part_1.py", 0),
    "a view": ("read", "pyproject.toml", 0),
    "while it is idle": ("restore", "", 0),
    "while it is idle, later": ("restore", "", 3),
    "before the last agent": ("restore", "", 13),
}
"""Where a sandbox is lost, so that another takes its place."""

NAMED: dict[str, tuple[str, str, SandboxError | StateError]] = {
    "lost at its start": ("start", "", LOST),
    "no engine": ("start", "", EngineUnavailable("no daemon")),
    "lost while the tree is placed": ("exec", "git update-index", LOST),
    "lost when the tree is placed": ("placed", "", LOST),
    "not placed": ("placed", "", PlacementFailed("it holds something else")),
    "the disk is full while the tree is placed": ("exec", "mkdir", DiskLimit("8 GB")),
    "no snapshot": ("snapshot", "", SandboxLost("the commit failed")),
    "no engine for a snapshot": ("snapshot", "", EngineUnavailable("it does not answer")),
    "the snapshot is gone": ("restore", "", SnapshotUnknown("it was removed")),
    "no engine for a command": ("exec", "grep -c till", EngineUnavailable("it does not answer")),
}
"""What ends a run, and with which error."""


class TestSandbox:
    @pytest.fixture(scope="class")
    @staticmethod
    def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        with graph_world(tmp_path_factory.mktemp("calm")) as world:
            assert world.run().run(1).counts == {"converged": 1}
            return world.whole()

    @pytest.mark.parametrize("place", RECOVERED)
    def test_a_sandbox_that_is_lost_once_is_made_anew_and_the_rows_are_the_same(
        self, world: GraphWorld, calm: dict[str, Any], place: str
    ) -> None:
        what, words, skip = RECOVERED[place]
        before, failed = once(what, words, LOST, skip=skip)
        assert world.run(before=before).run(1).counts == {"converged": 1}
        assert len(failed) == 1
        assert world.whole() == calm

    @pytest.mark.parametrize("fault", NAMED)
    def test_a_sandbox_that_cannot_be_had_ends_the_run_by_its_name_and_the_next_run_goes_on(
        self, world: GraphWorld, calm: dict[str, Any], fault: str
    ) -> None:
        what, words, raised = NAMED[fault]
        before, failed = once(what, words, raised)
        report = world.run(before=before).run(1)
        assert failed and report.counts == {raised.name: 1} and not report.done
        assert world.outcome(world.ids()[0]) == (raised.name, str(raised))
        assert world.run().run(1).counts == {"converged": 1}
        assert world.whole() == calm

    def test_a_sandbox_that_cannot_be_made_anew_is_no_fault_of_the_action_under_which_the_last_one_was_lost(
        self, world: GraphWorld, calm: dict[str, Any]
    ) -> None:
        lost: list[str] = []

        def before(does: str, text: str) -> None:
            if does == "exec" and "grep -c till" in text:
                lost.append(text)
            if lost and does in {"exec", "start"}:
                raise LOST

        assert world.run(before=before).run(1).counts == {"sandbox_lost": 1}
        assert world.run().run(1).counts == {"converged": 1}
        assert world.whole() == calm

    @pytest.mark.parametrize("fault", [DiskLimit("more than 8 GB"), OutOfMemory("more than 4 GB"), LOST])
    def test_a_command_that_ends_its_sandbox_each_time_is_refused_with_its_node_alone(
        self, world: GraphWorld, fault: SandboxError
    ) -> None:
        command = "grep -c till pyproject.toml"
        assert world.run(before=always(command, fault)).run(1).counts == {"converged": 1}
        (name,) = world.ids()
        expected = dict.fromkeys(KEPT, "keep") | FALLEN | {"again": "refused", "name": "keep"}
        assert world.verdicts(name) == expected
        ends = "it ends every sandbox" if fault is LOST else "it ends the sandbox"
        assert world.reasons(name)["again"] == f"R4: the action does not work on this tree: {ends}: {fault}"

    @pytest.mark.parametrize("fault", [DiskLimit("more than 8 GB"), OutOfMemory("more than 4 GB"), LOST])
    def test_an_agent_that_ends_its_sandbox_each_time_loses_its_round(
        self, world: GraphWorld, fault: SandboxError
    ) -> None:
        def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            _, round_ = stage_and_round(messages)
            if not is_critic(messages) and round_ == 1:
                return bash("yes > big")
            return distilling(lambda number, round_: steps(number) if round_ == 2 else [])(messages)

        model = PolicyModel(policy)
        report = world.run(model, before=always("yes > big", fault)).run(1)
        assert report.counts == {"converged": 1}
        assert report.results[0].reason == f"round 1: the proposer's sandbox was ended: {fault}"
        assert world.rows(GraphRow, "rounds", "dropped_rounds") == [(3, 1)]
        assert list(world.verdicts(world.ids()[0])) == ["analysis", "plan", "edit"]

    def test_files_that_cannot_lie_beside_each_other_refuse_a_node_and_end_no_run(self, world: GraphWorld) -> None:
        script = {"tool": "create", "path": "notes", "content": "echo absent\n", "command": "sh notes"}
        text = {"tool": "create", "path": "notes/one.txt", "content": "one\n"}
        nodes = [
            node("repro", "reproduce_script", "It fails", "absent", **script),
            *steps(1),
            node("folder", "code_edit", "Write notes", **text),
            runs("check", "The notes are there", "cat notes/one.txt", "one", "validation"),
        ]

        def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            return distilling(lambda number, round_: nodes if round_ == 1 else [])(messages)

        report = world.run(PolicyModel(policy)).run(1)
        assert report.counts == {"insufficient": 1} and report.done
        reasons = world.reasons(world.ids()[0])
        assert reasons["check"].startswith("R5: the action does not work on this tree: the files of other nodes")

    def test_a_folder_can_take_the_place_of_a_file_that_an_edit_removes(self, tmp_path: Path) -> None:
        sandbox: Sandbox = GraphFolder(tmp_path / "testbed")
        sandbox.write(f"{WORKDIR}/parts", b"one\n")
        replayer = Replayer(sandbox, sandbox.snapshot(), "")
        replayer._lay({"parts": None, "parts/one": b"one\n"})
        assert sandbox.read(f"{WORKDIR}/parts/one") == b"one\n"


class TestBudget:
    CHAINS = tuple((1 + number % 5,) for number in range(9))

    @pytest.fixture(scope="class")
    @staticmethod
    def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("calm")
        with graph_world(folder, TestBudget.CHAINS) as world, asking(GOOD) as (model, _):
            assert world.run(model).run(2).counts == {"converged": 9}
            return graph_facts(world.store)

    def spent(self, world: GraphWorld, run: str) -> float:
        """What was, or may have been, paid in a run."""
        rows = world.rows(LlmCall, "state", "usd", "reserved_usd", run=run)
        return sum(float(reserved if usd is None else usd) for state, usd, reserved in rows if state != "released")

    @pytest.mark.parametrize("budget", [0.0, 0.06, 0.2, 0.3])
    def test_eight_workers_never_spend_more_and_a_larger_budget_finishes_with_the_same_rows(
        self, tmp_path: Path, calm: dict[str, Any], budget: float
    ) -> None:
        parts: list[Part] = [GOOD] * 9 + [cut(), error(502, billed=True)]

        def rough(call: Call) -> Answer:
            return parts[call.number % len(parts)](call)

        with graph_world(tmp_path, self.CHAINS) as world, asking(rough) as (model, fake):
            report = world.run(model, budget=budget, run="small").run(8)
            assert report.counts["budget_exceeded"] >= 1 and not report.done
            assert "budget" in str(report.stopped)
            spent = self.spent(world, "small")
            assert fake.billed_usd(PRICE.input, PRICE.output) <= spent + 1e-9
            assert spent <= budget + 1e-9
            fake.part = GOOD
            report = world.run(model, budget=50.0, run="large").run(8)
            assert report.done and report.counts.keys() == {"converged"}
            assert graph_facts(world.store) == calm
            assert max(Counter(world.calls()).values()) == 1
            world.assert_sums()
