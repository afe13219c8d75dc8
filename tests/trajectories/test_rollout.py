"""One rollout: its stages, attempts, gates and ends, in folders of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from environments import graded_runs
from environments.briefing import Briefing
from environments.images.stage_image import StageImage
from environments.stages import StagePatch
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import (
    DiskFull,
    DiskLimit,
    EndpointUnreachable,
    EngineUnavailable,
    NoneUnavailable,
    NoTask,
    RefreshFailed,
    SandboxLost,
    StepUnknown,
    StoreInUse,
    UsageError,
)
from prchain.core.llm.model import Request
from prchain.core.waiting import telling
from sql.lock import exclusive_lock
from sql.tables import StageTests, Task, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from tests.trajectories.rolloutworld import (
    COMMENT,
    OVERVIEW,
    SHORTER,
    SUBMIT,
    FolderPlace,
    PolicyModel,
    PolicyReply,
    RolloutWorld,
    bash,
    part_of,
    place_of,
    query,
    rollout_world,
    works,
)
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.verdicts import stages_of
from trajectories.identity import stored
from trajectories.model import AgentLimits
from trajectories.outcomes import FINAL, INFRASTRUCTURE, MEASURED
from trajectories.rollouts.chain_context import ChainContext
from trajectories.rollouts.prefix import retold
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries
from trajectories.sums import hidden_tests
from trajectories.task import RolloutTask, read_task
from trajectories.verdicts.comments import NEUTRAL

Messages = Sequence[Mapping[str, Any]]


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2, 3)], url=database_url) as rollouts:
        yield rollouts


def text_of(request: Request) -> str:
    return "\n\n".join(message.content for message in request.messages)


def drafts(*positions: int) -> Any:
    """A policy whose agent always writes drafts at some stages."""

    def policy(messages: Messages) -> PolicyReply:
        if "You review code" in str(messages[0]["content"]) or "<task>" not in str(messages):
            return works(messages)
        position, turns, reviewed = place_of(messages)
        if position in positions and reviewed:
            return [bash(f"echo '# draft {len(messages)}' >> src/part_{position}.py"), SUBMIT][min(turns, 1)]
        return part_of(position, turns, False, draft=position in positions)

    return policy


def test_a_chain_is_worked_through_stage_by_stage_and_sent_back_where_it_was_rejected(world: RolloutWorld) -> None:
    model = PolicyModel()
    name = roll(world.context(model), world.chains[0], 0)
    assert world.outcome(name) == ("accepted", 3, None)
    assert world.stages(name) == [(1, "accepted"), (2, "accepted"), (3, "accepted")]
    kinds = world.rows(TrajectoryMessage, "kind", "position", "attempt", "step", trajectory_id=name)
    assert [kind[0] for kind in kinds[:3]] == ["system", "query", "turn"]
    assert [kind for kind in kinds if kind[0] in {"query", "comment"}] == [
        ("query", 1, 1, 0),
        ("query", 2, 1, 3),
        ("comment", 2, 2, 6),
        ("query", 3, 1, 8),
    ]
    verdicts = world.rows(Verdict, "position", "attempt", "accepted", "score", "shown", trajectory_id=name)
    assert verdicts == [
        (1, 1, True, 1.0, None),
        (2, 1, False, 0.3, COMMENT),
        (2, 2, True, 1.0, None),
        (3, 1, True, 1.0, None),
    ]
    assert (model.count("agent"), model.count("judge")) == (11, 4)
    steps, usd, tokens = world.rows(Trajectory, "steps", "usd", "tokens_in", id=name)[0]
    assert (steps, usd, tokens) == (11, pytest.approx(15 * 120 / 1e6), 1500)
    first = world.rows(TrajectoryMessage, "content", trajectory_id=name, ordinal=1)[0][0]
    assert OVERVIEW in first and query(1) in first
    second = next(
        row[0] for row in world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="query", position=2)
    )
    assert OVERVIEW not in second and query(2) in second
    requests = [request for request in model.asked if request.purpose == "agent"]
    assert len(requests[-1].messages) > 20, "the conversation lasts over the chain"

    second_model = PolicyModel()
    assert roll(world.context(second_model), world.chains[0], 0) == name
    assert second_model.asked == [], "what is final is not begun again"


def test_a_stage_starts_on_the_agents_own_work_and_what_others_did_meanwhile(world: RolloutWorld) -> None:
    name = roll(world.context(), world.chains[0], 0)
    context = world.context()
    rows = world.rows(TrajectoryStage, "position", "start_tree", "end_tree", trajectory_id=name)
    with world.store.reading() as tx:
        task = read_task(tx, world.chains[0])
    chain_context = ChainContext(
        task,
        mirrors=context.mirrors,
        data_dir=context.data_dir,
        provider=context.provider,
        make_workplace=lambda _, trees: FolderPlace(trees, world.folder),
    )
    third = chain_context.trees.entries(rows[2][1])
    contents = {path: chain_context.trees.blobs([entry.blob])[0] for path, entry in third.items()}
    assert contents[b"src/part_1.py"] == b"value = 1\n" and contents[b"src/part_2.py"] == b"value = 2\n"
    assert b"src/part_3.py" not in contents and contents[b"unrelated"] == b"3\n"


def test_a_stage_that_begins_with_a_fault_has_no_past_for_its_past_is_without_the_fault(world: RolloutWorld) -> None:
    context = world.context()
    with world.store.reading() as tx:
        task = read_task(tx, world.chains[0])

    def past(task: RolloutTask) -> list[str]:
        found = ChainContext(
            task,
            mirrors=context.mirrors,
            data_dir=context.data_dir,
            provider=context.provider,
            make_workplace=lambda _, trees: FolderPlace(trees, world.folder),
        )
        return found.history(task.stages[0].stage, 5)

    assert past(task)[:1] == [task.chain.stages[0].base]
    assert past(replace(task, chain=replace(task.chain, breaks=True))) == []


def _as_sent(message: Mapping[str, Any]) -> tuple[str, bytes, list[tuple[str, str]]]:
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return message["role"], (message["content"] or "").encode(), calls


class TestEnds:
    def test_the_accepted_prefix_is_a_shorter_chain_that_promises_nothing_more(self, world: RolloutWorld) -> None:
        name = roll(world.context(PolicyModel(drafts(3)), refinements=1), world.chains[0], 0)
        outcome, accepted, reason = world.outcome(name)
        assert (outcome, accepted) == ("accepted_prefix", 2)
        assert reason == "stage 3: rejected: attempt 2: judge: 0.3 < 0.8"
        assert world.rows(Trajectory, "overview", id=name) == [(SHORTER,)]
        with world.store.reading() as tx:
            entries = read_entries(tx, name)
        queries = [entry.content for entry in entries if entry.kind == "query"]
        assert OVERVIEW in queries[0] and "Task 1 of 3" in queries[0], "what was said stays in the record"
        shorter = [entry.content for entry in retold(entries) if entry.kind == "query"]
        assert SHORTER in shorter[0] and OVERVIEW not in shorter[0]
        assert "Task 1 of 2" in shorter[0] and "Task 2 of 2" in shorter[1]

    def test_an_accepted_prefix_is_exported_byte_for_byte_as_its_agent_read_it(
        self, world: RolloutWorld, tmp_path: Path
    ) -> None:
        model, out = PolicyModel(drafts(3)), tmp_path / "sft.jsonl"
        roll(world.context(model, refinements=1), world.chains[0], 0)
        read = [request.messages for request in model.asked if request.tools]
        *_, before_third = [
            messages for messages in read if not any("Task 3 of 3" in message.content for message in messages)
        ]
        options = ExportOptions()
        export(world.store, chosen_format("openai", options), options, out)
        (row,) = [json.loads(line) for line in out.read_text().splitlines()]
        *exported, said_last = row["messages"]
        assert "Task 1 of 3" in exported[1]["content"] and said_last["role"] == "assistant"
        assert [_as_sent(message) for message in exported] == [
            (message.role, message.content.encode(), [(call.name, call.arguments) for call in message.tool_calls])
            for message in before_third
        ]

    def test_fewer_accepted_stages_than_a_chain_has_are_too_short(self, world: RolloutWorld) -> None:
        name = roll(world.context(PolicyModel(drafts(2)), refinements=0), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("too_short", 1)
        assert world.stages(name) == [(1, "accepted"), (2, "rejected"), (3, "not_reached")]

    def test_one_that_fails_at_its_first_stage_is_rejected_after_all_refinements(self, world: RolloutWorld) -> None:
        name = roll(world.context(PolicyModel(drafts(1))), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("rejected", 0)
        assert world.rows(Verdict, "attempt", "accepted", trajectory_id=name) == [(n, False) for n in (1, 2, 3, 4)]

    @pytest.mark.parametrize(("on_fail", "inherited"), [("continue", b"# draft"), ("reference", b"def part_number_2")])
    def test_after_a_rejected_stage_the_next_can_go_on(
        self, world: RolloutWorld, on_fail: str, inherited: bytes
    ) -> None:
        name = roll(world.context(PolicyModel(drafts(2)), refinements=0, on_fail=on_fail), world.chains[0], 0)
        query_rows = world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="query", position=3)
        assert ("It holds your work" in query_rows[0][0]) == (on_fail == "continue")
        assert world.stages(name) == [(1, "accepted"), (2, "rejected"), (3, "accepted")]
        assert world.outcome(name)[:2] == ("too_short", 1)
        context = world.context()
        (tree,) = world.rows(TrajectoryStage, "start_tree", trajectory_id=name, position=3)[0]
        from environments.stages import open_git, open_trees, read_chain

        with world.store.reading() as tx:
            chain = read_chain(tx, world.chains[0])
        trees = open_trees(chain, open_git(chain, context.mirrors), context.data_dir)
        assert inherited in trees.blobs([trees.entries(tree)[b"src/part_2.py"].blob])[0]

    def test_a_model_that_never_submits_ends_at_its_limit_and_is_judged_by_what_it_left(
        self, world: RolloutWorld
    ) -> None:
        def idles(messages: Messages) -> PolicyReply:
            return works(messages) if "<task>" not in str(messages[1:]) else bash("ls")

        name = roll(world.context(PolicyModel(idles), stage_limits=AgentLimits(steps=4)), world.chains[0], 0)
        outcome, _, reason = world.outcome(name)
        assert outcome == "rejected" and "ended by step_limit" in str(reason)
        ((endings, steps),) = world.rows(TrajectoryStage, "endings", "steps", trajectory_id=name, position=1)
        assert (endings, steps) == (["step_limit"], 4)

    def test_a_limit_of_the_chain_ends_it_between_stages(self, world: RolloutWorld) -> None:
        name = roll(world.context(chain_limits=AgentLimits(steps=3)), world.chains[0], 0)
        assert world.stages(name) == [(1, "accepted"), (2, "not_reached"), (3, "not_reached")]
        assert world.outcome(name) == ("too_short", 1, "stage 2: not_reached: step_limit of the chain")

    def test_a_judge_that_gives_no_verdict_leaves_the_stage_unscored(self, world: RolloutWorld) -> None:
        def mumbles(messages: Messages) -> PolicyReply:
            return PolicyReply("Hard to say.") if "You review code" in str(messages[0]["content"]) else works(messages)

        name = roll(world.context(PolicyModel(mumbles)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("unscored", 0)
        assert world.rows(Verdict, "accepted", "score", "judge_error", trajectory_id=name) == [
            (None, None, "bad_reply")
        ]

    def test_a_sandbox_that_the_agent_filled_ends_the_stage_and_is_the_agents_failure(
        self, world: RolloutWorld
    ) -> None:
        def full(command: str) -> None:
            if "echo 'value" in command:
                raise DiskLimit("the sandbox wrote more than it may")

        overrides = {"make_workplace": lambda _, trees: FolderPlace(trees, world.folder, full)}
        name = roll(world.context(overrides=overrides), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("disk_limit", 0)
        assert "disk_limit" in FINAL and "disk_limit" not in INFRASTRUCTURE

    def test_a_command_that_ends_every_sandbox_is_the_agents_failure(self, world: RolloutWorld) -> None:
        def killed(command: str) -> None:
            if "part_2" in command and "echo 'value" in command:
                raise SandboxLost("the channel is gone")

        model = PolicyModel()
        overrides = {"make_workplace": lambda _, trees: FolderPlace(trees, world.folder, killed)}
        name = roll(world.context(model, overrides=overrides), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("too_short", 1)
        assert "4 sandboxes ended at the same step: the channel is gone" in str(world.outcome(name)[2])
        assert world.stages(name)[1] == (2, "sandbox_killed")
        assert "sandbox_killed" in FINAL and "sandbox_killed" not in INFRASTRUCTURE
        request_count = len(model.asked)
        roll(world.context(model, overrides=overrides), world.chains[0], 0)
        assert len(model.asked) == request_count

    def test_sandboxes_that_cannot_be_made_are_not_the_agents_failure(self, world: RolloutWorld) -> None:
        def gone(command: str) -> None:
            raise SandboxLost("the engine is ill")

        overrides = {"make_workplace": lambda _, trees: FolderPlace(trees, world.folder, gone)}
        name = roll(world.context(overrides=overrides), world.chains[0], 0)
        assert world.outcome(name)[0] == "sandbox_lost" and "sandbox_lost" not in FINAL


class TestGates:
    def test_a_gate_of_tests_on_a_chain_that_was_not_validated_says_what_to_run(self, world: RolloutWorld) -> None:
        model = PolicyModel()
        name = roll(world.context(model, gate="tests"), world.chains[0], 0)
        outcome, _, reason = world.outcome(name)
        assert outcome == "not_validated" and "`prchain environments validate`" in str(reason)
        assert model.asked == [] and outcome not in FINAL, "the next run looks again"

    def test_tests_that_were_proved_in_another_image_gate_nothing_until_the_proof_is_renewed(
        self, world: RolloutWorld
    ) -> None:
        prove(world)
        with world.store.transaction() as tx:
            tx.connection.execute(update(StageTests).values(image="prchain/till:old"))

        class Provider:
            image = "prchain/till:new"

            def provide(self, *about: Any, **how: Any) -> StageImage:
                return StageImage(None, self.image)  # type: ignore[arg-type]

        provider, model = Provider(), PolicyModel()
        context = world.context(model, gate="both", overrides=suited(world))
        context = replace(context, provider=provider)
        name = roll(context, world.chains[0], 0)
        outcome, _, reason = world.outcome(name)
        assert outcome == "proof_outdated" and "validate --renew --chain" in str(reason)
        assert model.asked == [] and outcome not in FINAL, "before the agent is paid"
        provider.image = "prchain/till:old"
        assert world.outcome(roll(context, world.chains[0], 0))[0] == "accepted"

    def test_a_stage_without_proved_tests_is_named(self, world: RolloutWorld) -> None:
        prove(world, outcome="unproved")
        name = roll(world.context(gate="both"), world.chains[0], 0)
        assert world.outcome(name)[0] == "tests_unproved"

    def test_an_audited_gate_suspects_what_it_would_accept_and_counts_no_failure(self, world: RolloutWorld) -> None:
        prove(world)

        def cheats(messages: Messages) -> PolicyReply:
            if "<task>" not in str(messages):
                return works(messages)
            position, turns, reviewed = place_of(messages)
            if position == 2 and turns == 1:
                return bash("echo 'import _pytest.runner' > src/extra.py")
            return part_of(position, turns, reviewed)

        context = world.context(PolicyModel(cheats), gate="tests+audit", overrides=suited(world))
        name = roll(context, world.chains[0], 0)
        assert world.outcome(name)[0] == "suspected"
        stages = world.rows(TrajectoryStage, "position", "outcome", "reason", trajectory_id=name)
        assert [stage[:2] for stage in stages][:2] == [(1, "accepted"), (2, "suspected")]
        assert "audit: machinery_imported: src/extra.py:1: import _pytest.runner" in str(stages[1][2])
        (verdict,) = [it for it in world.rows(Verdict, "position", "accepted", trajectory_id=name) if it[0] == 2]
        assert verdict[1] is None, "neither accepted nor rejected"
        assert "suspected" in FINAL and "suspected" not in MEASURED

    def test_a_model_audits_what_tests_and_rules_let_pass_and_nothing_else(self, world: RolloutWorld) -> None:
        prove(world)
        replies = {1: "none", 2: "effect_feigned"}

        def policy(messages: Messages) -> PolicyReply:
            if "You audit the work" not in str(messages[0]["content"]):
                return works(messages)
            [position] = {*re.findall(r"\+value = (\d)", str(messages[1]["content"]))}
            reply = {"reason": "Nothing is kept.", "line": f"value = {position}", "finding": replies[int(position)]}
            return PolicyReply(json.dumps(reply))

        model = PolicyModel(policy)
        name = roll(
            world.context(model, gate="tests+audit", audited_by="model", overrides=suited(world)), world.chains[0], 0
        )
        assert world.outcome(name)[0] == "suspected"
        stages = world.rows(TrajectoryStage, "position", "outcome", "reason", trajectory_id=name)
        assert [stage[:2] for stage in stages][:2] == [(1, "accepted"), (2, "suspected")]
        assert "audit: effect_feigned: value = 2" in str(stages[1][2])
        audits = [request for request in model.asked if request.purpose == "auditor"]
        assert len(audits) == 2, "the attempt at the second stage that its tests refuse is not asked about"
        assert "call of bash" in text_of(audits[0]), "it reads what the agent did"
        assert "auditor" in next(iter(world.rows(Trajectory, "decided_by", id=name)))[0]["models"]

    def test_an_auditor_who_gives_no_answer_leaves_the_stage_unscored(self, world: RolloutWorld) -> None:
        prove(world)

        def policy(messages: Messages) -> PolicyReply:
            return PolicyReply("?") if "You audit the work" in str(messages[0]["content"]) else works(messages)

        context = world.context(PolicyModel(policy), gate="tests+audit", audited_by="model", overrides=suited(world))
        name = roll(context, world.chains[0], 0)
        [stage, *_] = world.rows(TrajectoryStage, "outcome", "reason", trajectory_id=name)
        assert stage[0] == "unscored" and "audit: no answer (bad_reply)" in str(stage[1])

    def test_an_auditor_who_cannot_be_reached_is_asked_later_and_the_agent_not_again(self, world: RolloutWorld) -> None:
        prove(world)

        def policy(messages: Messages) -> PolicyReply:
            is_audit = "You audit the work" in str(messages[0]["content"])
            return PolicyReply('{"reason": "", "line": "", "finding": "none"}') if is_audit else works(messages)

        def down(request: Request) -> None:
            if request.purpose == "auditor":
                raise EndpointUnreachable("no answer")

        options: dict[str, Any] = {"gate": "tests+audit", "audited_by": "model", "overrides": suited(world)}
        broken, whole = PolicyModel(policy, before=down), PolicyModel(policy)
        name = roll(world.context(broken, **options), world.chains[0], 0)
        assert world.outcome(name)[0] == "endpoint_unreachable"
        assert roll(world.context(whole, **options), world.chains[0], 0) == name
        assert world.outcome(name)[:2] == ("accepted", 3)
        assert whole.asked[0].purpose == "auditor"

    def test_tests_accept_and_reject_and_tell_the_agent_only_the_kind_of_failure(self, world: RolloutWorld) -> None:
        prove(world)
        model = PolicyModel()
        name = roll(world.context(model, gate="tests", overrides=suited(world)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3)
        verdicts = world.rows(Verdict, "position", "accepted", "tests", "shown", trajectory_id=name)
        assert [verdict[:3] for verdict in verdicts] == [
            (1, True, "passed"),
            (2, False, "f2p_failed"),
            (2, True, "passed"),
            (3, True, "passed"),
        ]
        assert "test_part" not in str(verdicts[1][3]) and verdicts[1][3]
        assert model.count("judge") == 0

    def test_stages_that_the_judge_accepts_and_their_tests_fail_are_counted(self, world: RolloutWorld) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            return passing(text, position) | ({"test_part_3": Status.failed} if position == 3 else {})

        name = roll(world.context(overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3), "the gate is the judge's"
        expected = {"passed": 2, "failed": 1, "not_run": 0}
        with world.store.reading() as tx:
            assert hidden_tests(tx, [name]) == hidden_tests(tx) == expected
            assert hidden_tests(tx, []) == dict.fromkeys(expected, 0)

    def test_a_judge_reads_what_tests_say_where_it_is_to_see_them_and_its_verdict_says_so(
        self, world: RolloutWorld
    ) -> None:
        prove(world)
        seen: dict[str, PolicyModel] = {}
        for sees in ("tests", "patches"):
            seen[sees] = PolicyModel()
            context = world.context(seen[sees], judge_sees=sees, tests="gate", overrides=suited(world))
            name = roll(context, world.chains[0], 0)
            verdicts = world.rows(Verdict, "judge_sees", "tests", trajectory_id=name)
            passed = ["passed", "f2p_failed", "passed", "passed"] if sees == "tests" else [None] * 4
            assert verdicts == [(sees, tests) for tests in passed]
            with world.store.reading() as tx:
                assert (stored(next(tx.rows(Trajectory, "decided_by", id=name))[0])["proof"] is None) == (
                    sees == "patches"
                )
        told = [text_of(request) for request in seen["tests"].asked if request.purpose == "judge"]
        assert "Tests of what the query asks for: 0 pass, 1 fail:\n- test_part_2\n" in told[1]
        assert all("Tests of what worked before: " in text for text in told)
        paper = [text_of(request) for request in seen["patches"].asked if request.purpose == "judge"]
        assert not any("Tests of what" in text or "hidden tests" in text for text in paper)
        assert len(world.rows(Trajectory, "id")) == 2, "another option, another trajectory"

    def test_where_no_tests_are_proved_the_judge_s_verdict_says_that_it_saw_patches_alone(
        self, world: RolloutWorld
    ) -> None:
        name = roll(world.context(judge_sees="tests"), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3)
        assert {sees for (sees,) in world.rows(Verdict, "judge_sees", trajectory_id=name)} == {"patches"}

    def test_the_judge_reads_whole_functions_of_what_the_agent_changed(self, world: RolloutWorld) -> None:
        body = "def part():\n" + "".join(f"    value_{line} = {line}\n" for line in range(30)) + "    return 1\n"

        def policy(messages: Messages) -> PolicyReply:
            if "You review code" in str(messages[0]["content"]) or "<task>" not in str(messages):
                return works(messages)
            position, turns, _ = place_of(messages)
            whole = {
                1: f"cat > src/part.py <<'END'\n{body}END",
                2: "sed -i 's/value_15 = 15/value_15 = 16/' src/part.py",
            }
            return [bash(whole.get(position, "true")), SUBMIT][min(turns, 1)]

        model = PolicyModel(policy)
        roll(world.context(model), world.chains[0], 0)
        second = [text_of(request) for request in model.asked if request.purpose == "judge"][1]
        assert " def part():\n     value_0 = 0\n" in second and "\n     return 1\n" in second

    def test_a_change_that_the_judge_cannot_be_shown_leaves_the_stage_unscored_by_name(
        self, world: RolloutWorld
    ) -> None:
        def policy(messages: Messages) -> PolicyReply:
            if "You review code" in str(messages[0]["content"]) or "<task>" not in str(messages):
                return works(messages)
            return [bash("seq 20000 > src/part_1.py"), SUBMIT][min(place_of(messages)[1], 1)]

        model = PolicyModel(policy)
        name = roll(world.context(model), world.chains[0], 0)
        assert world.outcome(name) == ("unscored", 0, "stage 1: unscored: attempt 1: judge: unscored (candidate_cut)")
        verdicts = world.rows(Verdict, "accepted", "score", "judge_error", "usd", trajectory_id=name)
        assert verdicts == [(None, None, "candidate_cut", 0.0)]
        assert model.count("judge") == 0

    def test_an_equal_tree_is_graded_once_and_says_so(self, world: RolloutWorld) -> None:
        prove(world)
        ran: list[int] = []

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            ran.append(position)
            return passing(text, position)

        names = [
            roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], sample)
            for sample in (0, 1)
        ]
        graded_once = len(ran)
        grades = [world.rows(Verdict, "tests", "grade", trajectory_id=name) for name in names]
        assert [{grade["reused"] for _, grade in of_one} for of_one in grades] == [{False}, {True}]
        assert [{**grade, "reused": False} for _, grade in grades[1]] == [grade for _, grade in grades[0]]
        with world.store.transaction() as tx:
            tx.connection.execute(update(StageTests).values(files=["tests/test_other.py"]))
        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 2)
        assert {grade["reused"] for (grade,) in world.rows(Verdict, "grade", trajectory_id=name)} == {False}
        assert len(ran) > graded_once, "another proof grades anew"

    def test_a_state_on_which_no_test_runs_is_not_the_stages_fault(self, world: RolloutWorld) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            return {} if position == 3 else passing(text, position)

        name = roll(world.context(gate="both", overrides=suited(world, run)), world.chains[0], 0)
        assert world.stages(name) == [(1, "accepted"), (2, "accepted"), (3, "state_broken")]
        assert world.outcome(name)[:2] == ("accepted_prefix", 2)

    def test_a_cheat_that_is_carried_makes_no_stage_of_what_asks_for_nothing_any_more(
        self, world: RolloutWorld
    ) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            return dict.fromkeys(passing(text, position), Status.passed)

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.stages(name) == [(1, "accepted"), (2, "done_early"), (3, "done_early")]
        outcome, accepted, reason = world.outcome(name)
        assert (outcome, accepted) == ("too_short", 1) and "every F2P test of the stage passes" in str(reason)
        said = {position for (position,) in world.rows(TrajectoryMessage, "position", trajectory_id=name)}
        assert said == {1}, "nothing is paid for what nothing can be shown of"

    def test_a_stage_that_was_done_early_is_passed_over_and_the_next_one_goes_on(self, world: RolloutWorld) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            return {**passing(text, position), **({"test_part_2": Status.passed} if position == 2 else {})}

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.stages(name)[:2] == [(1, "accepted"), (2, "done_early")]
        assert world.stages(name)[2][1] not in {"not_reached", "done_early"}

    def test_a_judge_may_accept_a_stage_that_was_done_early_and_the_tests_do_not(self, world: RolloutWorld) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            return dict.fromkeys(passing(text, position), Status.passed)

        name = roll(world.context(gate="both", overrides=suited(world, run)), world.chains[0], 0)
        verdicts = world.rows(Verdict, "position", "accepted", "score", "tests", trajectory_id=name)
        assert all(accepted == (score >= 0.8) for _, accepted, score, _ in verdicts)
        with world.store.reading() as tx:
            told = stages_of(tx, name, world.chains[0], 3)
        assert [stage.tests for stage in told.stages] == ["passed", "done_early", "done_early"]

    def test_a_test_run_that_says_nothing_is_made_once_more(self, world: RolloutWorld) -> None:
        prove(world)
        runs: list[int] = []

        def run(tree: str, text: str, position: int) -> TestRun | dict[str, Status]:
            runs.append(position)
            unusable = position == 2 and runs.count(2) == 1
            return TestRun({}, "", 0.0, None, infra="out_of_memory") if unusable else passing(text, position)

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3)

    @pytest.mark.parametrize("lost_runs", [2, 6, 100])
    def test_a_sandbox_that_is_lost_under_the_tests_is_no_failure_of_the_agent(
        self, world: RolloutWorld, lost_runs: int
    ) -> None:
        prove(world)
        runs: list[int] = []

        def run(tree: str, text: str, position: int) -> TestRun | dict[str, Status]:
            runs.append(position)
            lost = position == 1 and runs.count(1) <= lost_runs
            return TestRun({}, "the channel is gone", 0.0, None, infra="sandbox_lost") if lost else passing(text, 1)

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        if lost_runs == 100:  # its work ends each of them, tried again and again
            assert world.outcome(name)[0] == "sandbox_killed" and runs.count(1) == 8
        else:
            assert world.stages(name)[0] == (1, "accepted")
        assert {tests for (tests,) in world.rows(Verdict, "tests", trajectory_id=name)} <= {"passed", "f2p_failed"}
        assert not world.rows(Verdict, "tests", trajectory_id=name, position=1, tests="f2p_failed")

    def test_a_sandbox_that_is_lost_under_the_tests_of_the_state_breaks_no_state(self, world: RolloutWorld) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> TestRun | dict[str, Status]:
            lost = TestRun({}, "the channel is gone", 0.0, None, infra="sandbox_lost")
            return lost if position == 2 else passing(text, position)

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[0] == "sandbox_lost" and world.stages(name) == [(1, "accepted")]

    def test_a_test_that_fails_once_and_passes_in_a_second_run_counts_as_passed(self, world: RolloutWorld) -> None:
        prove(world)
        runs: list[int] = []

        def run(tree: str, text: str, position: int) -> dict[str, Status]:
            runs.append(position)
            flaky = position == 3 and runs.count(3) == 2
            return passing(text, position) | ({"test_old": Status.failed} if flaky else {})

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3)
        # S_2 and S_3 once; A_1 once; A_2 a draft twice and the mended one once; A_3 twice.
        assert [runs.count(position) for position in (1, 2, 3)] == [1, 4, 3]

    @pytest.mark.parametrize("gate", ["judge", "tests", "both", "either"])
    def test_tests_that_were_tampered_with_reject_under_every_gate_and_the_agent_reads_no_detail(
        self, world: RolloutWorld, gate: str
    ) -> None:
        prove(world)

        def run(tree: str, text: str, position: int) -> TestRun:
            statuses = passing(text, position)
            cheats = (
                ("a test that must not pass passes: tests/test_a.py:1",) if statuses[f"test_part_{position}"] else ()
            )
            worked = statuses[f"test_part_{position}"] is Status.passed
            return TestRun(statuses, "", 0.0, 0, cheats=cheats if worked else (), taken_back=("conftest.py",))

        name = roll(world.context(gate=gate, refinements=1, overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[0] == "rejected"
        rows = world.rows(Verdict, "accepted", "tests", "grade", "shown", trajectory_id=name)
        assert {(accepted, tests) for accepted, tests, _, _ in rows} == {(False, "tampered")}
        grade = rows[0][2]
        assert grade["cheats"] == ["a test that must not pass passes: tests/test_a.py:1"]
        assert grade["taken_back"] == ["conftest.py"]
        assert rows[0][3] == NEUTRAL and "must not pass" not in str(world.rows(TrajectoryMessage, "content"))

    def test_a_cheat_that_two_more_runs_do_not_show_was_none(self, world: RolloutWorld) -> None:
        prove(world)
        seen: list[int] = []

        def run(tree: str, text: str, position: int) -> TestRun:
            seen.append(position)
            statuses = passing(text, position)
            is_first = position == 1 and seen.count(1) == 1
            return TestRun(statuses, "", 0.0, 0, cheats=("a test that must not pass passes: x:1",) if is_first else ())

        name = roll(world.context(gate="tests", overrides=suited(world, run)), world.chains[0], 0)
        assert world.outcome(name)[:2] == ("accepted", 3) and seen.count(1) == 3

    def test_a_state_that_cannot_be_made_ready_ends_the_chain_and_what_was_accepted_counts(
        self, world: RolloutWorld
    ) -> None:
        class Place(FolderPlace):
            def place(self, sandbox: Any, tree: str, **how: Any) -> None:
                super().place(sandbox, tree, **how)
                if b"BROKEN" in self.trees.blobs([self.trees.entries(tree)[b"pyproject.toml"].blob])[0]:
                    raise RefreshFailed("the project cannot be installed")

        def breaks(messages: Messages) -> PolicyReply:
            reply = works(messages)
            command = str(reply.arguments.get("command"))
            if reply.tool == "bash" and "echo 'value = 2' >" in command:
                return bash(f"{command}; echo BROKEN >> pyproject.toml")
            return reply

        model = PolicyModel(breaks)
        overrides = {"make_workplace": lambda _, trees: Place(trees, world.folder)}
        name = roll(world.context(model, overrides=overrides), world.chains[0], 0)
        assert world.stages(name)[2] == (3, "state_broken")
        outcome, accepted, reason = world.outcome(name)
        assert (outcome, accepted) == ("accepted_prefix", 2) and "cannot be made ready" in str(reason)

    def test_a_chain_without_a_task_is_refused(self, world: RolloutWorld) -> None:
        with world.store.transaction() as tx:
            tx.delete(Task, chain_id=world.chains[0])
        with pytest.raises(NoTask, match="prchain tasks build"):
            roll(world.context(), world.chains[0], 0)


def prove(world: RolloutWorld, outcome: str = "proved") -> None:
    """Rows as `prchain environments validate` leaves them."""
    from sql.tables import ReferenceRun

    with world.store.transaction() as tx:
        for position in (1, 2, 3):
            key = {"chain_id": world.chains[0], "position": position}
            earlier = [f"test_part_{n}" for n in range(1, position)]
            classes = {"f2p": [f"test_part_{position}"], "p2p": ["test_old", *earlier]}
            tx.upsert(
                StageTests,
                [
                    {
                        **key,
                        "outcome": outcome,
                        "reason": None,
                        "image": None,
                        "recipe": "python",
                        "runner": "pytest",
                        "files": [],
                        "classes": classes,
                        "removed": [],
                        "tampered": [],
                        "stage_image": None,
                        "seconds": 0.0,
                    }
                ],
            )
            statuses = {"test_old": "passed", f"test_part_{position}": "failed", **dict.fromkeys(earlier, "passed")}
            tx.upsert(
                ReferenceRun,
                [
                    {
                        **key,
                        "side": "before",
                        "ordinal": 1,
                        "key": "k",
                        "statuses": statuses,
                        "exit_code": 1,
                        "timed_out": False,
                        "complete": True,
                        "infra": None,
                        "notes": [],
                        "tampered": [],
                        "tail": "",
                        "seconds": 0.0,
                        "ran_at": "2026-01-01T00:00:00Z",
                    }
                ],
            )


def passing(text: str, position: int) -> dict[str, Status]:
    """Results of tests that need every part so far, and no drafts."""
    parts = {f"test_part_{n}": Status.passed if f"{n}" in text else Status.failed for n in range(1, position)}
    own = f"value = {position}\n" in text or f"return {position}" in text
    return {"test_old": Status.passed, **parts, f"test_part_{position}": Status.passed if own else Status.failed}


def suited(world: RolloutWorld, run: Any = None) -> dict[str, Any]:
    """Overrides whose suites are functions of the tree."""

    class Place(FolderPlace):
        def suite(self, position: int) -> Any:
            place = self

            class Suite(graded_runs.Suite):
                def run(self, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
                    entries = place.trees.entries(tree)
                    parts = [entry.blob for path, entry in entries.items() if path.startswith(b"src/part_")]
                    text = b"".join(place.trees.blobs(parts)).decode()
                    outcome = run(tree, text, position) if run else passing(text, position)
                    return outcome if isinstance(outcome, TestRun) else TestRun(outcome, "", 0.0, 0)

            return Suite()

    return {
        "make_workplace": lambda _, trees: Place(trees, world.folder),
        "make_suite": lambda place, stage, patches: place.suite(stage.position),
    }


class TestMachines:
    """Failures of machines: tried again from the last step, and counted apart."""

    def test_sandboxes_that_are_lost_and_an_engine_that_is_gone_for_a_while_change_nothing(
        self, world: RolloutWorld, tmp_path: Path
    ) -> None:
        (tmp_path / "calm").mkdir()
        with rollout_world(tmp_path / "calm", [(1, 2, 3)]) as calm:
            expected = calm.whole(roll(calm.context(), calm.chains[0], 0))
        commands = 0

        def fails(command: str) -> None:
            nonlocal commands
            commands += 1
            if commands in {6, 16}:
                raise SandboxLost("the container is gone")
            if commands in {22, 23, 24}:
                raise EngineUnavailable("the engine does not answer")

        model = PolicyModel()
        overrides = {"make_workplace": lambda _, trees: FolderPlace(trees, world.folder, fails)}
        name = roll(world.context(model, overrides=overrides), world.chains[0], 0)
        assert comparable(world.whole(name)) == comparable(expected)
        assert world.rows(Trajectory, "tries", id=name) == [(5,)]
        assert model.count("agent") == 11, "no reply was asked for twice"

    def test_what_outlasts_the_retries_is_named_and_the_next_call_goes_on(self, world: RolloutWorld) -> None:
        def down(request: Request) -> None:
            if request.purpose == "judge":
                raise EndpointUnreachable("no route to host")

        waits: list[int] = []
        context = world.context(PolicyModel(before=down), overrides={"retries": 2, "pause": waits.append})
        name = roll(context, world.chains[0], 0)
        assert world.outcome(name)[0] == "endpoint_unreachable" and "endpoint_unreachable" in INFRASTRUCTURE
        assert waits == [1, 2]
        model = PolicyModel()
        assert roll(world.context(model), world.chains[0], 0) == name
        assert world.outcome(name)[0] == "accepted"
        assert model.count("agent") == 8, "the three turns of stage 1 were stored"

    def test_a_spent_budget_leaves_the_trajectory_to_be_gone_on_with(self, world: RolloutWorld) -> None:
        name = roll(world.context(budget=0.0245), world.chains[0], 0)
        assert world.outcome(name)[0] == "budget_exceeded"
        roll(world.context(run="next"), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"

    def test_a_full_disk_ends_the_run_by_its_name_and_the_next_call_goes_on(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from trajectories import rows

        written = rows.write_entries
        left = [6]

        def full(tx: Any, name: str, entries: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise DiskFull("no room is left")
            written(tx, name, entries)

        monkeypatch.setattr("trajectories.rollouts.recorder.write_entries", full)
        with pytest.raises(DiskFull):
            roll(world.context(), world.chains[0], 0)
        model = PolicyModel()
        name = roll(world.context(model), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"
        assert model.count("agent") < 11

    def test_two_do_not_work_on_one_trajectory(self, world: RolloutWorld) -> None:
        context = world.context()
        with world.store.reading() as tx:
            name = context.find(tx, world.chains[0], 0)[1].id
        with exclusive_lock(world.store, f"rollout-{name}", "x"), pytest.raises(StoreInUse):
            roll(context, world.chains[0], 0)

    def test_without_trees_of_steps_a_cut_off_attempt_begins_again_from_the_ledger(self, world: RolloutWorld) -> None:
        commands = 0

        def dies(command: str) -> None:
            nonlocal commands
            commands += command.startswith("cat src/part")
            if commands == 2 and command.startswith("cat src/part"):
                raise SandboxLost("gone")

        model = PolicyModel()
        overrides = {"make_workplace": lambda _, trees: FolderPlace(trees, world.folder, dies)}
        name = roll(world.context(model, track_steps=False, overrides=overrides), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"
        assert model.count("agent") == 11
        assert world.rows(TrajectoryMessage, "ordinal", trajectory_id=name) == [(n,) for n in range(27)]


def comparable(whole: dict[str, Any]) -> dict[str, Any]:
    """Without the paths of temporary folders, which openings name."""
    for message in whole["messages"]:
        if message["kind"] in {"system", "query", "comment"}:
            message["content"], message["details"] = "", {}
    return whole


class TestBranches:
    def test_a_branch_goes_on_from_the_tree_of_a_step_and_shares_what_was_before(self, world: RolloutWorld) -> None:
        parent = roll(world.context(), world.chains[0], 0)

        model = PolicyModel(works)
        # Step 4 wrote the draft of stage 2.
        name = roll(world.context(model), world.chains[0], 0, parent=(parent, 4))
        assert name != parent and world.outcome(name)[0] == "accepted"
        ours, theirs = (world.whole(id_)["messages"] for id_ in (name, parent))
        shared = [its for its in theirs if its["step"] <= 4]
        assert ours[: len(shared)] == shared
        assert model.count("agent") == 7, "steps 5 to 11 are asked anew"
        observed = world.rows(TrajectoryMessage, "content", trajectory_id=name, step=5, kind="observation")[0][0]
        assert "value = 2  # draft" in observed, "the sandbox is as after step 4"
        assert world.rows(Trajectory, "parent_id", "parent_step", id=name) == [(parent, 4)]

    def test_a_prefix_can_be_extended_from_where_it_was_accepted(self, world: RolloutWorld) -> None:
        parent = roll(world.context(PolicyModel(drafts(3)), refinements=0), world.chains[0], 0)
        assert world.outcome(parent)[:2] == ("too_short", 1) or world.outcome(parent)[0] == "accepted_prefix"
        (last,) = max(world.rows(TrajectoryMessage, "step", trajectory_id=parent, position=2))
        model = PolicyModel()
        name = roll(world.context(model), world.chains[0], 0, parent=(parent, last))
        assert world.stages(name)[2] == (3, "accepted")
        assert model.count("agent") <= 5

    def test_a_step_that_is_not_there_is_refused(self, world: RolloutWorld) -> None:
        parent = roll(world.context(), world.chains[0], 0)
        with pytest.raises(StepUnknown, match="its last is 11"):
            roll(world.context(), world.chains[0], 0, parent=(parent, 99))
        with pytest.raises(StepUnknown, match="there is no trajectory"):
            roll(world.context(), world.chains[0], 0, parent=("0" * 16, 1))

    def test_a_branch_keeps_to_the_tools_of_its_parent(self, world: RolloutWorld) -> None:
        parent = roll(world.context(), world.chains[0], 0)
        with pytest.raises(UsageError, match="--tools full"):
            roll(world.context(tools="bash"), world.chains[0], 0, parent=(parent, 4))
        with pytest.raises(UsageError, match="end of a stage"):
            roll(world.context(track_steps=False), world.chains[0], 0, parent=(parent, 4))

    def test_without_the_agents_work_a_stage_without_a_tree_is_not_in_the_way(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        state = ChainContext.state

        def unavailable(chain_context: ChainContext, position: int, agent_tree: str | None, carry: Any) -> Any:
            if position == 2:
                raise NoneUnavailable("the reference of stage 1 cannot be taken back")
            return state(chain_context, position, agent_tree, carry)

        monkeypatch.setattr(ChainContext, "state", unavailable)
        name = roll(world.context(carry="none", on_fail="continue"), world.chains[0], 0)
        assert world.stages(name) == [(1, "accepted"), (2, "none_unavailable"), (3, "accepted")]


class TestBriefing:
    """What the agent is told of its environment, with the first query."""

    WORDS = "Python 3.11.9 and the dependencies of the repository and of its tests are installed"

    def queries(self, world: RolloutWorld, **options: Any) -> list[str]:
        name = roll(world.context(PolicyModel(), **options), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"
        return [row[0] for row in world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="query")]

    def test_the_first_query_tells_it_and_no_later_one_repeats_it(self, world: RolloutWorld) -> None:
        first, *later = self.queries(world)
        assert self.WORDS in first and "`python -m pytest FILES`, as far as that is known" in first
        assert not any("Python" in query or "FILES" in query for query in later) and len(later) == 2

    def test_a_command_by_which_tests_were_proved_is_told_as_such_and_names_none_of_them(
        self, world: RolloutWorld
    ) -> None:
        prove(world)
        first, *_ = self.queries(world, gate="tests", overrides=suited(world))
        assert "Tests are run with `python -m pytest FILES`." in first
        assert "test_part" not in first and "test_old" not in first

    def test_a_conversation_that_begins_anew_is_told_again(self, world: RolloutWorld) -> None:
        assert all(self.WORDS in query for query in self.queries(world, context="stage"))

    def test_a_stage_with_another_environment_tells_its_own(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        briefings = iter([Briefing("Python 3.8.1", "all"), Briefing("Python 3.8.1", "all"), Briefing("Python 3.9.2")])
        monkeypatch.setattr(FolderPlace, "briefing", lambda self, sandbox: next(briefings))
        first, second, third = self.queries(world)
        assert "Python 3.8.1 and the dependencies" in first and "Python" not in second
        assert "Python 3.9.2 is installed" in third

    def test_a_command_that_names_hidden_tests_is_not_told(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        command = "pytest tests/test_prices.py"
        monkeypatch.setattr(FolderPlace, "briefing", lambda self, sandbox: Briefing("Python 3.8.1", None, command))
        assert command in self.queries(world)[0]
        named = [StagePatch(test=("tests/test_prices.py",), test_paths=(b"tests/test_prices.py",))] * 3
        monkeypatch.setattr(ChainContext, "patches", named)
        name = roll(world.context(PolicyModel()), world.chains[0], 1)
        first = world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="query", position=1)[0][0]
        assert "Python 3.8.1 is installed" in first and "test_prices" not in first

    def test_the_queries_of_an_accepted_prefix_tell_it_too(self, world: RolloutWorld) -> None:
        name = roll(world.context(PolicyModel(drafts(3)), refinements=1), world.chains[0], 0)
        with world.store.reading() as tx:
            shorter = [entry.content for entry in retold(read_entries(tx, name)) if entry.kind == "query"]
        assert self.WORDS in shorter[0] and self.WORDS not in shorter[1]


def test_the_context_of_a_stage_begins_anew_where_that_is_asked_for(world: RolloutWorld) -> None:
    model = PolicyModel()
    name = roll(world.context(model, context="stage"), world.chains[0], 0)
    assert world.outcome(name)[0] == "accepted"
    last = [request for request in model.asked if request.purpose == "agent"][-1]
    assert [message.role for message in last.messages[:2]] == ["system", "user"] and len(last.messages) == 6
    assert OVERVIEW in last.messages[1].content and query(3) in last.messages[1].content


def test_whoever_watches_is_told_of_an_image_of_a_command_and_of_a_model_that_are_waited_for(
    world: RolloutWorld,
) -> None:
    said: list[str] = []
    with telling(said.append) as tell:
        roll(world.context(overrides={"tell": tell}), world.chains[0], 0)
    waits = {line.partition("; ")[2] for line in said}
    assert {"waiting for the image", "waiting for the sandbox", "waiting for the agent's command"} <= waits
