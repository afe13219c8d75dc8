from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.sandboxes.sandbox import ExecResult
from prchain.core import errors
from prchain.core.llm.gateway import Answer, Question
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.llm.scripted import ScriptedModel
from tests.environments.scripted_sandbox import ScriptedResult, ScriptedSandbox
from tests.memory_ledger import MemoryLedger
from tests.trajectories.agentworld import (
    OK,
    SUBMIT,
    Memory,
    Model,
    call,
    opening,
    requires_valid,
    runs,
    sandbox_of,
    says,
    slowly,
    spec,
    without_times,
    work,
)
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.context import OLD_GUIDANCE, used_by
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import Advice, AttemptSpec, Scaffold
from trajectories.agents.scaffolds.turns import NOT_RUN
from trajectories.agents.tools.bash import SESSION
from trajectories.model import AgentLimits, AgentUsage, Ending, Entry, EntryKind
from trajectories.options import MAX_TOKENS

SENTINEL = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

VARIABLES = {
    "repository": "a/b",
    "overview": "All of it.",
    "query": "Mend it.",
    "position": 1,
    "stages": 2,
    "workdir": "/testbed",
    "comment": "Not yet.",
    "attempt": 2,
    "earlier": "agent",
    "briefing": {"language": "Python 3.11.9", "dependencies": "all", "tests": "python -m pytest FILES", "tried": True},
}


PRICE = Price(1.0, 2.0)


def faults(record: Memory) -> list[str | None]:
    return [entry.error for entry in record.entries if entry.kind is EntryKind.TURN]


def test_it_is_a_scaffold() -> None:
    scaffold: Scaffold = ReactScaffold(tools="full")
    assert scaffold.name == "react"
    assert [tool["function"]["name"] for tool in scaffold.tools] == ["bash", "str_replace_editor", "think", "submit"]
    assert [tool["function"]["name"] for tool in ReactScaffold(tools="bash").tools] == ["bash"]
    assert set(scaffold.prompts) == {"system_full", "query", "comment"}
    plain = ReactScaffold(tools="swe-agent")
    assert set(plain.prompts) == {"system_swe-agent", "query", "comment"}
    assert [tool["function"]["name"] for tool in plain.tools] == ["bash", "str_replace_editor", "submit"]
    assert "think`" not in plain.opening(EntryKind.SYSTEM, VARIABLES)


def test_an_attempt_runs_until_the_work_is_submitted_and_keeps_each_step_in_one_transaction() -> None:
    model = Model([runs("ls", reasoning="hm"), SUBMIT])
    attempt, record = work(model, record=Memory(["tree1"]))
    assert (attempt.ending, attempt.used.steps, attempt.used.tokens) == (Ending.SUBMITTED, 2, 220)
    assert [[entry.kind for entry in batch] for batch in record.batches] == [
        [EntryKind.TURN, EntryKind.OBSERVATION]
    ] * 2
    turn, observation, last, handed_in = record.entries
    assert (turn.ordinal, turn.step, turn.role, turn.content, turn.reasoning) == (
        2,
        1,
        "assistant",
        "Let me look.",
        "hm",
    )
    assert (turn.tokens_in, turn.tokens_out, turn.tokens_cached) == (100, 10, 0)
    assert turn.details == {"finish": "tool_calls", "model": "said"}
    assert observation.content == "<returncode>0</returncode>\n<output>\nfine\n</output>"
    assert (observation.tool_call_id, observation.tool_name, observation.tree, observation.details["exit_code"]) == (
        "c1",
        "bash",
        "tree1",
        0,
    )
    assert (last.step, handed_in.step, handed_in.tool_call_id) == (2, 2, "c1")
    assert handed_in.details == {"submitted": True}
    assert record.tree_calls == 1, "a step that only submits changes no tree"
    for request in model.requests:
        requires_valid(request.messages)


def test_mini_s_word_submits_in_the_bash_set_and_its_call_is_answered_too() -> None:
    sandbox = sandbox_of((f"echo {SENTINEL}", ExecResult(0, f"{SENTINEL}\n".encode())))
    attempt, record = work(Model([runs(f"echo {SENTINEL}")]), scaffold=ReactScaffold(tools="bash"), sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED
    assert record.entries[-1].tool_call_id == "c1" and SENTINEL in record.entries[-1].content


@pytest.mark.parametrize("output", [f"see {SENTINEL}\n", f"first\n{SENTINEL}\n", f"{SENTINEL}x\n"])
def test_the_word_somewhere_in_an_output_does_not_submit(output: str) -> None:
    sandbox = sandbox_of(("x", ExecResult(0, output.encode())), OK)
    attempt, _ = work(
        Model([runs("x"), runs("y")]),
        scaffold=ReactScaffold(tools="bash"),
        sandbox=sandbox,
        attempt_spec=spec(stage_limits=AgentLimits(steps=2)),
    )
    assert attempt.ending is Ending.STEP_LIMIT


def test_the_word_with_a_failing_command_does_not_submit() -> None:
    sandbox = sandbox_of(("x", ExecResult(1, SENTINEL.encode())))
    attempt, _ = work(
        Model([runs("x")]),
        scaffold=ReactScaffold(tools="bash"),
        sandbox=sandbox,
        attempt_spec=spec(stage_limits=AgentLimits(steps=1)),
    )
    assert attempt.ending is Ending.STEP_LIMIT


def test_several_calls_are_run_in_order_and_what_comes_after_the_submission_is_not() -> None:
    sandbox = sandbox_of()
    reply = says(
        "", call(command="one", id="a"), call(command="two", id="b"), call("submit", "c"), call(command="x", id="d")
    )
    attempt, record = work(Model([reply]), sandbox=sandbox, record=Memory(["t"]))
    assert attempt.ending is Ending.SUBMITTED
    assert sandbox.asked == ["one", "two"]
    assert [entry.tool_call_id for entry in record.entries[1:]] == ["a", "b", "c", "d"]
    assert [entry.error for entry in record.entries] == [None, None, None, None, NOT_RUN]
    assert record.entries[-1].tree == "t" and record.tree_calls == 1


CUT_INSIDE = ToolCall("z", "bash", '{"command": "cat > long.py <<EOF\\nx = 1\\nx = 1')

BAD_TURNS = [
    (says(""), "empty"),
    (says("", reasoning="only thought"), "empty"),
    (says("I am done."), "no_call"),
    (says("", call("grep", pattern="x")), "unknown_tool"),
    (says("", ToolCall("c", "", "{}")), "unknown_tool"),
    (says("", ToolCall("c", "bash", '{"command": "ls"')), "bad_arguments"),
    (says("", ToolCall("c", "bash", '["ls"]')), "bad_arguments"),
    (says("", ToolCall("c", "bash", "[" * 100_000)), "bad_arguments"),
    (says("", call(cmd="ls")), "bad_arguments"),
    (says("", call(command="a\0b")), "bad_arguments"),
    (says("", ToolCall("c", "bash", '{"command": "\\ud800"}')), "bad_arguments"),
    (says("", refusal="I cannot."), "refusal"),
    (says("", finish="content_filter"), "refusal"),
    (says("", call(command="ls"), finish="length"), "cut_off"),
    (says("and then", finish="length"), "cut_off"),
    (says("", call(command="ls"), finish="MAX_TOKENS"), "cut_off"),
    (says("", call(command="ls"), finish="model_length"), "cut_off"),
    (says("", call(command="touch part1", id="a"), CUT_INSIDE, usage=Usage(100, 0, MAX_TOKENS)), "cut_off"),
    (says("", CUT_INSIDE, finish="stop", usage=Usage(100, 0, MAX_TOKENS + 1)), "cut_off"),
    (says("", call(command="ls"), finish="SAFETY"), "refusal"),
]


@pytest.mark.parametrize(("reply", "fault"), BAD_TURNS)
def test_a_faulty_turn_is_kept_the_model_is_told_and_nothing_of_it_is_run(reply: Reply, fault: str) -> None:
    sandbox = sandbox_of()
    model = Model([reply, SUBMIT])
    attempt, record = work(model, sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == []
    assert faults(record) == [fault, None]
    turn, observation = record.entries[0], record.entries[1]
    assert (turn.content, [tool_call.arguments for tool_call in turn.tool_calls]) == (
        reply.text,
        [tool_call.arguments for tool_call in reply.tool_calls],
    )
    assert observation.kind is EntryKind.OBSERVATION and observation.error == fault and len(observation.content) > 20
    assert observation.role == ("tool" if reply.tool_calls else "user")
    requires_valid(model.requests[-1].messages)


@pytest.mark.parametrize(
    ("calls", "usage", "ran"),
    [
        ((call(command="one", id="a"), CUT_INSIDE), Usage(100, 0, MAX_TOKENS - 1), ["one"]),
        ((call(command="one", id="a"), CUT_INSIDE), Usage(), ["one"]),
        ((CUT_INSIDE, call(command="two", id="a")), Usage(100, 0, MAX_TOKENS), ["two"]),
        ((call(command="one", id="a"), call(command="two", id="b")), Usage(100, 0, MAX_TOKENS), ["one", "two"]),
    ],
)
def test_a_reply_that_was_not_cut_off_runs_what_can_be_run(
    calls: tuple[ToolCall, ...], usage: Usage, ran: list[str]
) -> None:
    sandbox = sandbox_of()
    work(Model([says("", *calls, usage=usage), SUBMIT]), sandbox=sandbox)
    assert sandbox.asked == ran


def test_arguments_that_were_encoded_twice_are_run_and_the_step_says_so() -> None:
    sandbox, once = sandbox_of(), json.dumps({"command": "ls -a"})
    twice = ToolCall("b", "bash", json.dumps(once))
    model = Model([says("", call(command="one", id="a"), twice), says("", ToolCall("c", "submit", '"{}"'))])
    attempt, record = work(model, sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == ["one", "ls -a"]
    turn, last = record.entries[0], record.entries[3]
    assert [tool_call.arguments for tool_call in turn.tool_calls] == ['{"command": "one"}', once]
    assert (turn.error, turn.details["decoded_twice"], last.details["decoded_twice"]) == (None, ["b"], ["c"])
    sent = next(message for message in model.requests[-1].messages if message.tool_calls)
    assert sent.tool_calls[1].arguments == once
    assert "decoded_twice" not in work(Model([SUBMIT]))[1].entries[0].details


@pytest.mark.parametrize("finish", ["error", "abort", "failed", "network_error"])
def test_a_reply_that_broke_off_is_no_turn_and_is_asked_for_again(finish: str) -> None:
    sandbox, ledger = sandbox_of(), MemoryLedger()
    model = Model([says("", call(command="rm"), finish=finish), SUBMIT])
    attempt, record = work(model, sandbox=sandbox, ledger=ledger)
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == []
    assert faults(record) == [None] and [it.state for it in ledger.calls] == ["lost", "stored"]


def test_faults_in_a_row_end_the_attempt_and_a_turn_that_did_something_starts_the_count_again() -> None:
    bad = says("I am done.")
    half = says("", call(command="ls", id="a"), call("nothing", "b"))
    attempt, record = work(Model([bad, bad, half, bad, bad, bad]))
    assert attempt.ending is Ending.FAULTY and "no_call" in str(attempt.reason)
    assert faults(record) == ["no_call", "no_call", "unknown_tool", "no_call", "no_call", "no_call"]
    assert record.entries[4].details["ran"] == 1


def test_calls_without_ids_or_with_one_id_twice_get_ids_that_their_observations_carry() -> None:
    reply = says(
        "", call(command="a", id=""), call(command="b", id="x"), call(command="c", id="x"), call("submit", "y" * 300)
    )
    _, record = work(Model([reply]))
    ids = [tool_call.id for tool_call in record.entries[0].tool_calls]
    assert len(set(ids)) == 4 and all(ids) and ids[1] == "x"
    assert [entry.tool_call_id for entry in record.entries[1:]] == ids


@pytest.mark.parametrize(
    ("stage", "chain", "ending"),
    [
        (AgentLimits(steps=2), AgentLimits(), Ending.STEP_LIMIT),
        (AgentLimits(), AgentLimits(tokens=200), Ending.TOKEN_LIMIT),
        (AgentLimits(steps=9), AgentLimits(steps=7), Ending.STEP_LIMIT),
        (AgentLimits(calls=2), AgentLimits(), Ending.CALL_LIMIT),
        (AgentLimits(calls=9), AgentLimits(calls=7), Ending.CALL_LIMIT),
    ],
)
def test_limits_of_stage_and_chain_end_an_attempt_before_a_step(
    stage: AgentLimits, chain: AgentLimits, ending: Ending
) -> None:
    model = Model([runs(str(turn)) for turn in range(9)])
    attempt_spec = spec(stage_limits=stage, chain_limits=chain, chain_used=AgentUsage(steps=5, calls=5))
    attempt, _ = work(model, attempt_spec=attempt_spec)
    assert (attempt.ending, len(model.requests)) == (ending, 2)


def test_of_a_step_with_several_calls_each_counts_and_the_step_is_finished() -> None:
    model = Model([says("", call(command="a"), call(command="b"), call(command="c")), runs("d")])
    attempt, _ = work(model, attempt_spec=spec(stage_limits=AgentLimits(calls=2)))
    assert (attempt.ending, attempt.used.calls, attempt.used.steps) == (Ending.CALL_LIMIT, 3, 1)


def test_limits_of_cost_and_time_count_what_was_used_before() -> None:
    for limits, used, ending in [
        (AgentLimits(usd=1.0), AgentUsage(usd=1.0), Ending.COST_LIMIT),
        (AgentLimits(seconds=5), AgentUsage(seconds=5.5), Ending.TIME_LIMIT),
    ]:
        attempt, record = work(Model([]), attempt_spec=spec(stage_limits=limits, stage_used=used), price=PRICE)
        assert attempt.ending is ending and record.entries == []


@pytest.mark.parametrize("where", ["stage_limits", "chain_limits"])
def test_a_limit_of_cost_that_nothing_could_be_counted_against_is_refused(where: str) -> None:
    limited: dict[str, Any] = {where: AgentLimits(usd=1.0)}
    with pytest.raises(errors.SettingsError, match="a limit in USD needs the price of said"):
        work(Model([]), attempt_spec=replace(spec(), **limited))


def test_a_reply_with_many_calls_runs_no_more_of_them_than_there_is_time_for() -> None:
    sandbox = sandbox_of(ScriptedResult(slowly, ExecResult(0, b"fine"), repeat=True))
    reply = says("", *(call(command="x", id=f"c{number}") for number in range(40)), call("submit", "s"))
    model = Model([reply])
    for where in ("stage", "chain"):
        limited: dict[str, Any] = {
            f"{where}_limits": AgentLimits(seconds=10.1),
            f"{where}_used": AgentUsage(seconds=10.0),
        }
        sandbox.asked.clear()
        attempt, record = work(Model([reply]), sandbox=sandbox, attempt_spec=replace(spec(), **limited))
        assert attempt.ending is Ending.TIME_LIMIT and 1 <= len(sandbox.asked) <= 3
        errors_of = [entry.error for entry in record.entries[1:]]
        assert errors_of == [None] * len(sandbox.asked) + [NOT_RUN] * (41 - len(sandbox.asked))
        assert "no time left" in record.entries[-1].content
    attempt, _ = work(model, sandbox=sandbox, attempt_spec=spec(stage_limits=AgentLimits(seconds=60)))
    assert attempt.ending is Ending.SUBMITTED and model.replies == []


def test_tokens_that_nobody_counted_are_estimated_for_the_limits_and_said_to_be() -> None:
    attempt, record = work(Model([runs("ls", usage=Usage())]), attempt_spec=spec(stage_limits=AgentLimits(tokens=50)))
    assert attempt.ending is Ending.TOKEN_LIMIT
    assert record.entries[0].tokens_in is None
    estimate = record.entries[0].details["estimate"]
    assert attempt.used.tokens == estimate["in"] + estimate["out"] > 50


# ---- taking up


CHAIN = [runs("one"), says("I am done."), runs("cd /tmp"), says("", call("think", thought="hm")), SUBMIT]
PWD = ScriptedResult("pwd", ExecResult(0, b"/tmp\n"), repeat=True)


@pytest.mark.parametrize("kept", range(len(CHAIN) + 1))
def test_an_attempt_that_was_killed_after_any_step_goes_on_without_asking_again(kept: int) -> None:
    whole_attempt, whole = work(Model(CHAIN), sandbox=sandbox_of(PWD, OK))
    stored = [entry for batch in whole.batches[:kept] for entry in batch]
    rest = Model(CHAIN[kept:])
    attempt, record = work(rest, sandbox=sandbox_of(PWD, OK), attempt_spec=spec([*opening(), *stored]))
    assert attempt.ending is whole_attempt.ending is Ending.SUBMITTED
    assert without_times([*stored, *record.entries]) == without_times(whole.entries)
    assert rest.replies == []


def test_a_reply_that_was_stored_and_a_step_that_was_not_cost_nothing_again() -> None:
    ledger = MemoryLedger()
    lost = sandbox_of(("one", errors.SandboxLost("gone")))
    with pytest.raises(errors.SandboxLost):
        work(Model([runs("one")]), sandbox=lost, ledger=ledger)
    model = Model([SUBMIT])
    attempt, record = work(model, ledger=ledger)
    assert attempt.ending is Ending.SUBMITTED and len(model.requests) == 1
    assert record.entries[0].tool_calls[0].arguments == '{"command": "one"}'


def test_a_stored_reply_counts_against_limits_with_what_it_cost_and_took_when_it_came() -> None:
    def slow(request: Request) -> Reply:
        time.sleep(0.05)
        return runs("x")

    usd = PRICE.of(Usage(100, 0, 10)) or 0.0
    attempt_spec = spec(stage_limits=AgentLimits(usd=3 * usd))
    calm, whole = work(Model([slow] * 3), attempt_spec=attempt_spec, price=PRICE)
    ledger, entries, request_count = MemoryLedger(), opening(), 0
    for kill in (1, 1, 2, 1):
        record, model = Memory(), Model([slow] * 3)
        sandbox = sandbox_of(*[("x", ExecResult(0, b"fine\n"))] * (kill - 1), ("x", errors.SandboxLost("gone")))
        with pytest.raises(errors.SandboxLost):
            used = used_by(entries)
            work(
                model,
                sandbox=sandbox,
                attempt_spec=replace(attempt_spec, entries=entries, stage_used=used),
                record=record,
                ledger=ledger,
                price=PRICE,
            )
        entries, request_count = [*entries, *record.entries], request_count + len(model.requests)
    last, model = Memory(), Model([slow] * 3)
    attempt_spec = replace(attempt_spec, entries=entries, stage_used=used_by(entries))
    attempt, _ = work(model, attempt_spec=attempt_spec, record=last, ledger=ledger, price=PRICE)
    new_entries = [*entries[2:], *last.entries]
    assert calm.ending is attempt.ending is Ending.COST_LIMIT
    assert request_count + len(model.requests) == 3, "each reply was paid for once"
    assert [entry.usd for entry in new_entries] == [entry.usd for entry in whole.entries] == [usd, None] * 3
    assert all(entry.seconds >= 0.05 for entry in new_entries if entry.kind is EntryKind.TURN)


def test_the_count_of_faults_goes_on_over_a_kill_and_not_over_attempts() -> None:
    bad = says("I am done.")
    _, before = work(Model([bad, bad]), attempt_spec=spec(stage_limits=AgentLimits(steps=2)))
    stored = [*opening(), *before.entries]
    attempt, _ = work(Model([bad]), attempt_spec=spec(stored))
    assert attempt.ending is Ending.FAULTY
    comment = Entry(stored[-1].ordinal + 1, 1, 2, 2, EntryKind.COMMENT, "user", "Not yet.")
    attempt, record = work(Model([bad, bad, SUBMIT]), attempt_spec=spec([*stored, comment], attempt=2))
    assert attempt.ending is Ending.SUBMITTED
    assert [entry.step for entry in record.entries] == [3, 3, 4, 4, 5, 5]


def test_a_turn_without_its_observations_is_no_place_to_go_on_from() -> None:
    _, before = work(Model([runs()]), attempt_spec=spec(stage_limits=AgentLimits(steps=1)))
    with pytest.raises(ValueError, match="step 1"):
        work(Model([]), attempt_spec=spec([*opening(), before.entries[0]]))


def test_the_session_is_led_back_to_its_folder() -> None:
    _, before = work(
        Model([runs("cd /tmp")]), sandbox=sandbox_of(PWD, OK), attempt_spec=spec(stage_limits=AgentLimits(steps=1))
    )
    assert before.entries[-1].cwd == "/tmp"
    sandbox = sandbox_of()
    work(Model([runs("a"), runs("b"), SUBMIT]), sandbox=sandbox, attempt_spec=spec([*opening(), *before.entries]))
    assert sandbox.asked == ["cd -- /tmp 2>/dev/null", "a", "b"]


def test_a_sandbox_that_is_lost_ends_the_attempt_with_its_error_and_leaves_no_half_step() -> None:
    record = Memory()
    sandbox = sandbox_of(("one", ExecResult(0, b"")), ("two", errors.SandboxLost("gone")))
    reply = says("", call(command="one", id="a"), call(command="two", id="b"))
    with pytest.raises(errors.SandboxLost):
        work(Model([reply]), sandbox=sandbox, record=record)
    assert record.entries == []


@pytest.mark.parametrize("limit", [errors.DiskLimit("full"), errors.OutOfMemory("too much"), errors.SandboxLimit("so")])
def test_the_step_that_ended_the_sandbox_is_kept_and_ends_the_attempt_again_when_it_is_taken_up(
    limit: errors.SandboxLimit,
) -> None:
    record, sandbox = Memory(), sandbox_of(*[("one", ExecResult(0, b""))] * 2, ("two", limit))
    reply = says("", call(command="one", id="a"), call(command="two", id="b"), call("submit", "c"))
    with pytest.raises(type(limit), match=str(limit)):
        work(Model([runs("one"), reply]), sandbox=sandbox, record=record)
    (first, second) = record.batches
    assert [entry.kind for entry in second] == [EntryKind.TURN, *[EntryKind.OBSERVATION] * 3] and len(first) == 2
    assert [entry.error for entry in second[1:]] == [None, limit.name, NOT_RUN]
    assert str(limit) in second[2].content and "submitted" not in second[3].details
    resumed = Memory()
    with pytest.raises(type(limit), match=str(limit)):
        work(Model([]), record=resumed, attempt_spec=spec([*opening(), *record.entries]))
    assert resumed.entries == []


@pytest.mark.parametrize("limit", [errors.DiskLimit("full"), errors.ExtractionFailed("a million files")])
def test_a_step_whose_tree_cannot_be_had_is_kept_and_ends_the_attempt(limit: errors.PrchainError) -> None:
    class Full(Memory):
        def tree(self) -> str | None:
            raise limit

    record = Full()
    with pytest.raises(type(limit), match=str(limit)):
        work(Model([runs("one")]), record=record)
    turn, observation = record.entries
    assert (turn.kind, observation.error, observation.tree) == (EntryKind.TURN, limit.name, None)
    assert "fine" in observation.content and str(limit) in observation.content


def test_a_tree_that_cannot_be_had_for_the_machine_s_fault_leaves_no_half_step() -> None:
    class Lost(Memory):
        def tree(self) -> str | None:
            raise errors.SandboxLost("gone")

    record = Lost()
    with pytest.raises(errors.SandboxLost):
        work(Model([runs("one")]), record=record)
    assert record.entries == []


def test_an_endpoint_that_fails_fails_the_attempt() -> None:
    with pytest.raises(errors.EndpointRefused):
        work(Model([errors.EndpointRefused("bad key")]))


# ---- observers


def test_an_observer_sees_every_step_but_the_last_and_its_guidance_is_a_user_s_turn_before_the_next() -> None:
    lengths: list[int] = []

    def observer(entries: Sequence[Entry]) -> Advice | None:
        lengths.append(len(entries))
        return Advice("Look at the tests.") if len(lengths) == 1 else None

    model = Model([runs(), runs(), SUBMIT])
    _, record = work(model, observers=[observer])
    assert lengths == [4, 7]
    guidance = record.entries[2]
    assert (guidance.kind, guidance.role, guidance.step) == (EntryKind.GUIDANCE, "user", 1)
    assert model.requests[1].messages[-1].content == "Look at the tests."


@pytest.mark.parametrize("guidance", [None, "Enough."])
def test_an_observer_stops_a_run_and_it_stays_stopped_when_it_is_taken_up(guidance: str | None) -> None:
    advice = Advice(guidance, stop=True, reason="lost")
    attempt, record = work(Model([runs()]), observers=[lambda _: advice])
    assert (attempt.ending, attempt.reason) == (Ending.STOPPED, "lost")
    resumed, later_record = work(
        Model([]), attempt_spec=spec([*opening(), *record.entries]), observers=[lambda _: advice]
    )
    assert (resumed.ending, resumed.reason, later_record.entries) == (Ending.STOPPED, "lost", [])


@pytest.mark.parametrize(
    "advices",
    [
        [Advice("Look."), Advice(stop=True, reason="lost")],
        [Advice("Enough.", stop=True, reason="lost"), Advice("Look.")],
    ],
    ids=["words, then a stop", "a stop with words, then words"],
)
def test_the_stop_of_one_of_several_observers_is_not_forgotten_when_the_attempt_is_taken_up(
    advices: list[Advice],
) -> None:
    observers = [lambda _, advice=advice: advice for advice in advices]
    attempt, record = work(Model([runs()]), observers=observers)
    assert (attempt.ending, attempt.reason) == (Ending.STOPPED, "lost")
    resumed, later_record = work(Model([]), attempt_spec=spec([*opening(), *record.entries]), observers=observers)
    assert (resumed.ending, resumed.reason, later_record.entries) == (Ending.STOPPED, "lost", [])


def test_what_an_observer_found_is_stored_with_its_words() -> None:
    advice = Advice("Look.", details={"window": 3})
    _, record = work(Model([runs(), SUBMIT]), observers=[lambda _: advice])
    assert [entry.details for entry in record.entries if entry.kind is EntryKind.GUIDANCE] == [{"window": 3}]


@pytest.mark.parametrize(
    ("replies", "limited", "options", "ending"),
    [
        ([SUBMIT], spec(), LoopSettings(), Ending.SUBMITTED),
        ([says("I am done.")], spec(), LoopSettings(faults_in_a_row=1), Ending.FAULTY),
        ([runs()], spec(stage_limits=AgentLimits(steps=1)), LoopSettings(), Ending.STEP_LIMIT),
        ([runs()], spec(chain_limits=AgentLimits(tokens=1)), LoopSettings(), Ending.TOKEN_LIMIT),
        ([runs(usage=Usage(590, 0, 5))], spec(), LoopSettings(context_tokens=600, max_tokens=10), Ending.CONTEXT_LIMIT),
    ],
    ids=["submitted", "faulty", "steps", "tokens", "context"],
)
def test_nobody_observes_the_step_with_which_an_attempt_ended(
    replies: list[Reply], limited: AttemptSpec, options: LoopSettings, ending: Ending
) -> None:
    def observer(entries: Sequence[Entry]) -> Advice | None:
        raise AssertionError("nobody would read it")

    attempt, _ = work(
        Model(replies),
        attempt_spec=limited,
        scaffold=ReactScaffold("full", options),
        observers=[observer],
    )
    assert attempt.ending is ending


def test_what_an_observer_keeps_is_stored_with_its_words_or_alone() -> None:
    kept: list[int] = []
    advices = iter([Advice("Look.", record=lambda tx: kept.append(1)), Advice(record=lambda tx: kept.append(2)), None])
    record = Memory()
    work(Model([runs(), runs(), runs(), SUBMIT]), observers=[lambda _: next(advices)], record=record)
    assert [(len(batch), count) for batch, count in zip(record.batches, record.records, strict=True)] == [
        (2, 0), (1, 1), (2, 0), (0, 1), (2, 0), (2, 0),
    ]  # fmt: skip


def test_of_an_observer_that_keeps_its_last_words_only_these_are_sent() -> None:
    words = iter(["First.", "Second.", None])
    model = Model([runs(), runs(), runs(), SUBMIT])

    def advise(entries: Sequence[Entry]) -> Advice | None:
        text = next(words)
        return None if text is None else Advice(text, details={"observer": "o", "keep": "last"})

    _, record = work(model, observers=[advise])
    sent = [message.content for message in model.requests[-1].messages]
    assert "Second." in sent and "First." not in sent and OLD_GUIDANCE in sent
    turns = [entry for entry in record.entries if entry.kind is EntryKind.TURN]
    assert [entry.details.get("dropped", {}).get("guidance") for entry in turns] == [None, None, 1, 1]
    resumed, _ = work(Model([SUBMIT]), attempt_spec=spec([*opening(), *record.entries[:-2]]))
    assert resumed.ending is Ending.SUBMITTED


# ---- what is sent


def test_what_is_stored_of_hostile_text_is_what_a_request_made_from_it_sends() -> None:
    sandbox = sandbox_of(("x", ExecResult(0, b"a\0b\xff\xed\xa0\x80\n")), OK)
    model = Model([says("nul \0 and \ud800", call(command="x")), SUBMIT])
    _, record = work(model, sandbox=sandbox)
    for entry in record.entries:
        assert "\0" not in entry.content and entry.content.encode()
    contents = [message.content for message in model.requests[1].messages[2:]]
    assert contents == [entry.content for entry in record.entries[:2]]


def test_a_broken_call_goes_back_as_valid_json_and_stays_as_it_was_in_the_record() -> None:
    broken = ToolCall("c", "no such tool!", '{"command": "ls')
    model = Model([says("", broken), SUBMIT])
    _, record = work(model)
    assert record.entries[0].tool_calls == (broken,)
    (sent_call,) = model.requests[1].messages[2].tool_calls
    assert (sent_call.name, json.loads(sent_call.arguments)) == ("no_such_tool_", {"malformed": '{"command": "ls'})
    assert record.entries[1].tool_name == "no_such_tool_"


def test_reasoning_goes_back_once_a_model_gave_some_and_only_where_it_is_wanted() -> None:
    for send_reasoning, expected in [(True, [None, "hm", ""]), (False, [None, None, None])]:
        model = Model([runs("a"), runs("b", reasoning="hm"), runs("c"), SUBMIT])
        work(model, scaffold=ReactScaffold("full", LoopSettings(send_reasoning=send_reasoning)))
        turns = [message for message in model.requests[-1].messages if message.role == "assistant"]
        assert [message.reasoning for message in turns] == expected


def test_commands_get_the_order_s_variables_and_a_session_only_with_its_first_one() -> None:
    sessions: list[tuple[str | None, Any]] = []

    class Box(ScriptedSandbox):
        def exec(self, command: str, **options: Any) -> ExecResult:
            sessions.append((options.get("session"), dict(options["environment"]).get("A")))
            return super().exec(command, **options)

    for tools, expected in [("full", [(SESSION, "1"), (SESSION, None)]), ("bash", [(None, "1"), (None, "1")])]:
        sessions.clear()
        box = Box([OK])
        box.start()
        scaffold = ReactScaffold(tools=tools)  # type: ignore[arg-type]
        work(
            Model([runs("a"), runs("b")]),
            scaffold=scaffold,
            sandbox=box,
            attempt_spec=spec(environment={"A": "1"}, stage_limits=AgentLimits(steps=2)),
        )
        assert sessions == expected


def test_a_scripted_model_drives_it() -> None:
    script = ScriptedModel(
        [
            {"purpose": "agent", "reply": "Look.", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]},
            {"purpose": "agent", "contains": "fine", "tool_calls": [{"name": "submit"}]},
        ]
    )
    attempt, record = work(script)  # type: ignore[arg-type]
    assert attempt.ending is Ending.SUBMITTED and len(record.entries) == 4


# ---- openings


@pytest.mark.parametrize("tools", ["bash", "full"])
def test_openings_are_written_from_the_rollout_s_variables(tools: Any) -> None:
    scaffold = ReactScaffold(tools, LoopSettings(command_timeout=90))
    system = scaffold.opening(EntryKind.SYSTEM, VARIABLES)
    assert "/testbed" in system and "90 seconds" in system
    assert ("COMPLETE_TASK" in system) == (tools == "bash")
    first = scaffold.opening(EntryKind.QUERY, VARIABLES)
    assert "All of it." in first and "Mend it." in first and "Task 1 of 2" in first and "earlier" not in first
    later = scaffold.opening(EntryKind.QUERY, VARIABLES | {"overview": None, "position": 2})
    assert "All of it." not in later and "Task 2 of 2" in later and "your work on the earlier" in later
    for carry, words in (("reference", "by others"), ("none", "nothing of the work")):
        text = scaffold.opening(EntryKind.QUERY, VARIABLES | {"position": 2, "earlier": carry})
        assert words in text and "It holds your work" not in text
    assert "Not yet." in scaffold.opening(EntryKind.COMMENT, VARIABLES)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {},
            "Python 3.11.9 and the dependencies of the repository and of its tests are installed, and more cannot be: "
            "there is no network. Tests are run with `python -m pytest FILES`.",
        ),
        ({"dependencies": "some"}, "Python 3.11.9 and most dependencies of the repository"),
        ({"dependencies": None}, "in /testbed. Python 3.11.9 is installed, and more"),
        ({"language": None}, "in /testbed. The dependencies of the repository and of its tests are installed"),
        ({"tried": False}, "`python -m pytest FILES`, as far as that is known."),
        ({"language": None, "dependencies": None}, "in /testbed. Tests are run with"),
    ],
)
def test_a_first_query_tells_what_is_installed_and_how_tests_are_run(changed: dict[str, Any], words: str) -> None:
    told = {"language": "Python 3.11.9", "dependencies": "all", "tests": "python -m pytest FILES", "tried": True}
    text = ReactScaffold(tools="full").opening(EntryKind.QUERY, VARIABLES | {"briefing": told | changed})
    assert words in text


@pytest.mark.parametrize("briefing", [None, dict.fromkeys(("language", "dependencies", "tests", "tried"))])
def test_a_query_without_news_of_the_environment_says_nothing_of_it(briefing: Any) -> None:
    text = ReactScaffold(tools="full").opening(EntryKind.QUERY, VARIABLES | {"briefing": briefing})
    assert text.rstrip().endswith("The repository is in /testbed.")


def test_a_template_in_a_query_stays_text_and_a_missing_variable_is_an_error() -> None:
    scaffold = ReactScaffold(tools="full")
    assert "{{ workdir }}" in scaffold.opening(EntryKind.QUERY, VARIABLES | {"query": "{{ workdir }}"})
    with pytest.raises(errors.PromptError):
        scaffold.opening(EntryKind.COMMENT, {})


# ---- anything that a model may say

TEXTS = st.text(max_size=20)
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "a\0"]),
    st.sampled_from(["bash", "think", "submit", "str_replace_editor", "", "rm -rf", "\ud800"]),
    st.one_of(
        TEXTS,
        st.sampled_from(
            ['{"command": "ls"}', "{}", "", '{"thought": "x"}', '{"thought": "\\ud800"}', "NaN", '{"a": NaN}']
        ),
    ),
)
REPLIES = st.builds(
    Reply,
    TEXTS,
    st.just("m"),
    finish=st.sampled_from(["stop", "tool_calls", "length", "content_filter", "odd"]),
    refusal=st.one_of(st.none(), TEXTS),
    reasoning=st.one_of(st.none(), TEXTS),
    tool_calls=st.lists(CALLS, max_size=4).map(tuple),
    usage=st.builds(Usage, st.one_of(st.none(), st.integers(0, 9)), st.none(), st.one_of(st.none(), st.integers(0, 9))),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=4))
def test_whatever_a_model_says_the_conversation_stays_valid_and_can_be_taken_up(replies: list[Reply]) -> None:
    model = Model([*replies, *[runs()] * 2])
    attempt, record = work(model, attempt_spec=spec(stage_limits=AgentLimits(steps=len(replies))))
    assert attempt.ending in {Ending.STEP_LIMIT, Ending.SUBMITTED, Ending.FAULTY}
    for request in model.requests:
        requires_valid(request.messages)
    resumed_model = Model([*replies, runs()])
    resumed, later_record = work(
        resumed_model,
        attempt_spec=spec(
            [*opening(), *record.entries], stage_used=attempt.used, stage_limits=AgentLimits(steps=len(replies))
        ),
    )
    assert resumed.ending is attempt.ending and later_record.entries == []
    for entry in record.entries:
        json.dumps({"details": dict(entry.details), "content": entry.content}, ensure_ascii=False).encode()
        assert (
            len(entry.error or "") <= 32 and len(entry.tool_name or "") <= 64 and len(entry.tool_call_id or "") <= 255
        )


def test_the_loop_costs_little_however_long_the_conversation_is() -> None:
    steps, times = 600, []

    class FakeGateway:
        """Answers at once, so that only the loop is measured; the gateway would serialise the requests."""

        def complete(self, question: Question, tools: Any) -> Answer[Reply]:
            times.append(time.thread_time())
            reply = runs(usage=Usage(100 * len(times), 0, 10))
            return Answer(reply, reply, 0.0, False)

    sandbox = sandbox_of(ScriptedResult(lambda _: True, ExecResult(0, b"x" * 2000), repeat=True))
    attempt_spec = spec(stage_limits=AgentLimits(steps=steps))
    ReactScaffold(tools="full").attempt(FakeGateway(), sandbox, attempt_spec, Memory())  # type: ignore[arg-type]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    early, late = (statistics.median(part) for part in (gaps[10:110], gaps[-100:]))
    assert late < 0.003 and late < 4 * early + 0.0005


def test_the_record_of_a_step_is_immutable() -> None:
    _, record = work(Model([SUBMIT]))
    with pytest.raises(AttributeError):
        record.entries[0].content = "other"  # type: ignore[misc]
    assert replace(record.entries[0], content="x").content == "x"
