"""mini-swe-agent as a scaffold: the real package, on scripted replies."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ExecResult, Sandbox, SandboxConfig
from prchain.core import errors
from prchain.core.llm.model import Reply, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import load_prompt
from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.environments.scripted_sandbox import ScriptedResult
from tests.memory_ledger import MemoryLedger
from tests.trajectories.agentworld import (
    OK,
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
from tests.trajectories.miniworld import FOLDER, on_the_path
from tests.trajectories.rolloutworld import SUBMIT as SUBMIT_TOOL
from tests.trajectories.rolloutworld import FolderPlace, PolicyModel, PolicyReply, bash, rollout_world, works
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.agents.scaffolds.kinds import mini as mini_module
from trajectories.agents.scaffolds.kinds.mini import MiniScaffold
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import Advice, Scaffold
from trajectories.agents.scaffolds.turns import NOT_RUN
from trajectories.agents.tools.observations import SUBMISSION
from trajectories.model import AgentLimits, AgentUsage, Ending, Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.rollouts.rollout import roll

pytestmark = pytest.mark.mini

HAND_IN = f"echo {SUBMISSION}"
SUBMIT = runs(HAND_IN)
DONE = ScriptedResult(re.compile(SUBMISSION), ExecResult(0, f"{SUBMISSION}\n".encode()), repeat=True)
BOTH = ("react", "mini")


@pytest.fixture(scope="module", autouse=True)
def _package() -> None:
    on_the_path()


def scaffold(name: str = "mini", **options: Any) -> ReactScaffold:
    settings = LoopSettings(**options)
    return MiniScaffold(settings) if name == "mini" else ReactScaffold("bash", settings)


def mini(model: Model, **how: Any) -> tuple[Any, Memory]:
    how.setdefault("scaffold", scaffold())
    how.setdefault("sandbox", sandbox_of(DONE, OK))
    return work(model, **how)


# ---- what it is


def test_it_is_a_scaffold_with_the_package_s_own_tool_and_prompts() -> None:
    mini_scaffold: Scaffold = MiniScaffold()
    assert mini_scaffold.name == "mini" and [tool["function"]["name"] for tool in mini_scaffold.tools] == ["bash"]
    (own,) = [name for name in mini_scaffold.prompts if name.startswith("mini-swe-agent-2.")]
    assert set(mini_scaffold.prompts) == {own, "query", "comment"} and len(own) <= 64
    assert re.fullmatch(r"[0-9a-f]{16}", mini_scaffold.prompts[own])


def test_a_query_with_the_overview_stands_in_its_words_on_a_task_and_a_later_one_by_itself() -> None:
    variables = {
        "repository": "a/b",
        "overview": "All {{ of }} it.",
        "query": "Mend {% it %}.",
        "position": 1,
        "stages": 2,
        "workdir": "/testbed",
        "comment": "Not yet.",
        "attempt": 2,
        "earlier": "agent",
        "briefing": None,
    }
    mini_scaffold = MiniScaffold()
    assert "helpful assistant" in mini_scaffold.opening(EntryKind.SYSTEM, variables)
    first = mini_scaffold.opening(EntryKind.QUERY, variables)
    assert all(words in first for words in ("All {{ of }} it.", "Mend {% it %}.", "Recommended Workflow", HAND_IN))
    assert "macos" not in first.lower(), "commands run in Linux, whatever the host is"
    later = {**variables, "overview": None, "position": 2}
    assert (
        mini_scaffold.opening(EntryKind.QUERY, later)
        == load_prompt("trajectories.agents.scaffolds", "query").render(**later)[0].content
    )
    assert "Not yet." in mini_scaffold.opening(EntryKind.COMMENT, variables)


def test_options_choose_it_and_what_its_template_fixes_cannot_be_chosen() -> None:
    mini_scaffold = SCAFFOLDS["mini"].make(RolloutOptions(command_timeout=7, max_tokens=99, overflow="elide"))
    assert isinstance(mini_scaffold, MiniScaffold)
    assert mini_scaffold.settings == LoopSettings(command_timeout=7, max_tokens=99, overflow="elide")
    with pytest.raises(errors.UsageError, match="10,000"):
        SCAFFOLDS["mini"].make(RolloutOptions(observation_chars=500))


def test_importing_it_leaves_home_environment_and_output_alone(tmp_path: Path) -> None:
    config = tmp_path / "mini"
    config.mkdir()
    (config / ".env").write_text("STOLEN_KEY=1\n")
    program = (
        "import os, sys; from tests.trajectories.miniworld import on_the_path; before = dict(os.environ);"
        "p = on_the_path(); assert dict(os.environ) == before, 'the environment';"
        "assert not {'litellm', 'openai', 'datasets'} & set(sys.modules), 'heavy packages'; print(p.version)"
    )
    environment = {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "MSWEA_GLOBAL_CONFIG_DIR": str(config),
        FOLDER: os.environ[FOLDER],
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"2\.\d+\.\d+\n", result.stdout)
    assert not (tmp_path / "home").exists()


# ---- a step


def test_an_attempt_runs_until_the_work_is_handed_in_and_keeps_each_step_in_one_transaction() -> None:
    model = Model([runs("ls", reasoning="hm"), SUBMIT])
    attempt, record = mini(model, record=Memory(["tree1", "tree2"]))
    assert (attempt.ending, attempt.used.steps, attempt.used.tokens) == (Ending.SUBMITTED, 2, 220)
    assert [[entry.kind for entry in batch] for batch in record.batches] == [
        [EntryKind.TURN, EntryKind.OBSERVATION]
    ] * 2
    turn, observation, _, handed_in = record.entries
    assert (turn.ordinal, turn.step, turn.content, turn.reasoning) == (2, 1, "Let me look.", "hm")
    assert (turn.tokens_in, turn.tokens_out, turn.usd) == (100, 10, None)
    assert turn.details == {"finish": "tool_calls", "model": "said"}
    assert observation.content == "<returncode>0</returncode>\n<output>\nfine\n</output>"
    assert (observation.role, observation.tool_call_id, observation.tool_name, observation.tree) == (
        "tool",
        "c1",
        "bash",
        "tree1",
    )
    assert observation.details == {"exit_code": 0}
    assert handed_in.tool_call_id == "c1" and SUBMISSION in handed_in.content, "the last call is answered, too"
    assert handed_in.details == {"exit_code": 0, "submitted": True}
    for request in model.requests:
        requires_valid(request.messages)
        assert [tool["function"]["name"] for tool in request.tools] == ["bash"]


def test_what_comes_after_the_submission_is_answered_and_not_run() -> None:
    sandbox = sandbox_of(DONE, OK)
    reply = says("", *(call(command=what, id=what[:1]) for what in ("a", "echo " + SUBMISSION, "x")))
    attempt, record = mini(Model([reply]), sandbox=sandbox, record=Memory(["t"]))
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == ["a", HAND_IN]
    assert [entry.tool_call_id for entry in record.entries[1:]] == ["a", "e", "x"]
    assert [entry.error for entry in record.entries] == [None, None, None, NOT_RUN]
    assert "not executed" in record.entries[-1].content and record.entries[-1].tree == "t"


BAD_TURNS = [
    (says(""), "empty"),
    (says("I am done."), "no_call"),
    (says("", call("grep", pattern="x")), "unknown_tool"),
    (says("", call(command="ls", id="a"), call("grep", "b", pattern="x")), "unknown_tool"),
    (says("", ToolCall("c", "bash", '{"command": "ls"')), "bad_arguments"),
    (says("", ToolCall("c", "bash", '["ls"]')), "bad_arguments"),
    (says("", ToolCall("c", "bash", "[" * 100_000)), "bad_arguments"),
    (says("", call(cmd="ls")), "bad_arguments"),
    (says("", call(command=["ls"])), "bad_arguments"),
    (says("", call(command="a\0b")), "bad_arguments"),
    (says("", ToolCall("c", "bash", '{"command": "\\ud800"}')), "bad_arguments"),
    (says("", refusal="I cannot."), "refusal"),
    (says("", call(command="ls"), finish="content_filter"), "refusal"),
    (says("", call(command="ls"), finish="length"), "cut_off"),
    (says("and then {{ error }}", finish="length"), "cut_off"),
    (says("", call(command="ls"), finish="MAX_TOKENS"), "cut_off"),
    (says("", call(command="ls"), ToolCall("z", "bash", '{"command": "x'), usage=Usage(9, 0, 8192)), "cut_off"),
]


@pytest.mark.parametrize(("reply", "fault"), BAD_TURNS)
def test_a_faulty_reply_is_kept_and_answered_and_nothing_of_it_is_run(reply: Reply, fault: str) -> None:
    sandbox, model = sandbox_of(DONE, OK), Model([reply, SUBMIT])
    attempt, record = mini(model, sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == [HAND_IN]
    turn, *observations = record.batches[0]
    assert (turn.kind, turn.error, turn.content) == (EntryKind.TURN, fault, reply.text)
    assert [tool_call.arguments for tool_call in turn.tool_calls] == [
        tool_call.arguments for tool_call in reply.tool_calls
    ]
    assert [entry.role for entry in observations] == (["tool"] * len(reply.tool_calls) or ["user"])
    assert all(
        entry.kind is EntryKind.OBSERVATION and entry.error == fault and "bash" in entry.content
        for entry in observations
    )
    assert ("output token limit" in observations[0].content) == (fault == "cut_off")
    requires_valid(model.requests[-1].messages)


def test_faults_in_a_row_end_the_attempt_and_all_of_them_are_kept() -> None:
    bad = says("I am done.")
    attempt, record = mini(Model([bad, runs("ls"), bad, bad, bad]))
    assert attempt.ending is Ending.FAULTY and "no_call" in str(attempt.reason)
    assert [entry.error for entry in record.entries if entry.kind is EntryKind.TURN] == [
        "no_call",
        None,
        *["no_call"] * 3,
    ]


def test_arguments_that_it_does_not_know_are_let_pass_as_it_does() -> None:
    sandbox = sandbox_of(DONE, OK)
    attempt, _ = mini(Model([says("", call(command="ls", timeout=5)), SUBMIT]), sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED and sandbox.asked == ["ls", HAND_IN]


def test_what_a_command_says_is_data_in_its_templates() -> None:
    output = "{{ config }} {% raw %}"
    sandbox = sandbox_of(("x", ExecResult(1, output.encode())), DONE)
    _, record = mini(Model([runs("x"), SUBMIT]), sandbox=sandbox)
    assert record.entries[1].content == f"<returncode>1</returncode>\n<output>\n{output}</output>"


def test_limits_are_ours_and_those_of_mini_swe_agent_are_off() -> None:
    model = Model([runs(str(turn)) for turn in range(9)])
    attempt, _ = mini(
        model, attempt_spec=spec(stage_limits=AgentLimits(steps=7), stage_used=AgentUsage(steps=5, usd=99.0))
    )
    assert (attempt.ending, len(model.requests)) == (Ending.STEP_LIMIT, 2)


def test_failures_of_the_sandbox_and_of_the_model_come_through_as_they_are() -> None:
    with pytest.raises(errors.SandboxLost):
        mini(Model([runs("x")]), sandbox=sandbox_of(("x", errors.SandboxLost("gone"))))
    with pytest.raises(errors.EndpointUnreachable):
        mini(Model([errors.EndpointUnreachable("down")]))
    attempt, record = mini(Model([errors.ContextTooLong("too long")]))
    assert attempt.ending is Ending.CONTEXT_LIMIT and record.entries == []


def test_the_step_that_ended_the_sandbox_is_kept_and_ends_the_attempt_again_when_it_is_taken_up() -> None:
    reply = says("", *(call(command=what, id=what) for what in ("one", "two", "three")))
    sandbox, record = sandbox_of(("one", ExecResult(0, b"fine")), ("two", errors.DiskLimit("full"))), Memory()
    with pytest.raises(errors.DiskLimit, match="full"):
        mini(Model([reply]), sandbox=sandbox, record=record)
    turn, *observations = record.entries
    assert (turn.kind, [entry.error for entry in observations]) == (EntryKind.TURN, [None, "disk_limit", NOT_RUN])
    assert "full" in observations[1].content and "not executed" in observations[2].content
    with pytest.raises(errors.DiskLimit, match="full"):
        mini(Model([]), attempt_spec=spec([*opening(), *record.entries]))


def test_a_reply_with_many_calls_runs_no_more_of_them_than_there_is_time_for() -> None:
    sandbox = sandbox_of(ScriptedResult(slowly, ExecResult(0, b"fine"), repeat=True))
    reply = says("", *(call(command="x", id=f"c{number}") for number in range(40)))
    attempt_spec = spec(stage_limits=AgentLimits(seconds=10.1), stage_used=AgentUsage(seconds=10.0))
    attempt, record = mini(Model([reply]), sandbox=sandbox, attempt_spec=attempt_spec)
    assert attempt.ending is Ending.TIME_LIMIT and 1 <= len(sandbox.asked) <= 3
    assert [entry.error for entry in record.entries[1:]] == [None] * len(sandbox.asked) + [NOT_RUN] * (
        40 - len(sandbox.asked)
    )


def test_a_stored_reply_counts_against_a_limit_of_cost_with_what_it_cost_when_it_came() -> None:
    ledger, price = MemoryLedger(), Price(1.0, 2.0)
    with pytest.raises(errors.SandboxLost):
        mini(Model([runs("x")]), sandbox=sandbox_of(("x", errors.SandboxLost("gone"))), ledger=ledger, price=price)
    model = Model([])
    attempt, record = mini(model, ledger=ledger, price=price, attempt_spec=spec(stage_limits=AgentLimits(usd=100e-6)))
    assert attempt.ending is Ending.COST_LIMIT and model.requests == []
    assert record.entries[0].usd == pytest.approx(120e-6)


# ---- what a real shell does


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[LocalSandbox]:
    (tmp_path / "work").mkdir()
    with LocalSandbox(SandboxConfig(None, workdir=str(tmp_path / "work")), unsafe=True) as sandbox:
        yield sandbox


def test_a_command_that_takes_too_long_is_killed_with_what_it_started(plain: LocalSandbox) -> None:
    word = f"4242.{os.getpid()}"
    model = Model([runs(f"echo begun; sleep {word} & sleep {word}"), SUBMIT])
    _, record = mini(model, scaffold=scaffold(command_timeout=1.0), sandbox=plain)
    observation = record.entries[1]
    assert (observation.error, observation.details["timed_out"]) == ("timed_out", True)
    assert (
        observation.content.startswith("<exception>")
        and "<returncode>-1" in observation.content
        and "begun" in observation.content
    )
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # another test's process ends while it is read
            running.append(path.read_bytes())
    assert f"sleep\0{word}\0".encode() not in running


@pytest.mark.docker
def test_in_a_container_nothing_of_a_command_that_took_too_long_runs_on() -> None:
    image = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
    with DockerSandbox(SandboxConfig(image, labels={"prchain.test": "mini"})) as sandbox:
        model = Model([runs("echo begun; setsid sleep 4242 & sleep 4242"), runs("cat /proc/[0-9]*/cmdline"), SUBMIT])
        attempt, record = mini(model, scaffold=scaffold(command_timeout=2.0), sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED
    assert record.entries[1].error == "timed_out" and "begun" in record.entries[1].content
    assert "4242" not in record.entries[3].content and "/proc" in record.entries[3].content


COMMANDS = [
    "echo one; echo two >&2",
    "cd / && pwd",
    "pwd | wc -l; exit 3",
    "seq 1 200000",
    "printf '%09999d'",
    "printf '%010000d'",
    "env | grep -E '^(PAGER|TQDM_DISABLE)='",
    "printf '\\303\\050'",
]


def test_it_tells_the_model_what_mini_swe_agent_alone_would_tell_it(plain: LocalSandbox, tmp_path: Path) -> None:
    """Its own loop, model of replies and local environment, against it on our gateway and sandbox."""
    package = on_the_path()
    models, local = (import_module(f"minisweagent.{name}") for name in ("models.test_models", "environments.local"))
    outputs = []
    for command in [*COMMANDS, HAND_IN]:
        tool_call = call(command=command)
        wire = {
            "id": tool_call.id,
            "type": "function",
            "function": {"name": tool_call.name, "arguments": tool_call.arguments},
        }
        outputs.append(models.make_toolcall_output("Hm.", [wire], [{"command": command, "tool_call_id": tool_call.id}]))
    agent = package.agent(
        models.DeterministicToolcallModel(outputs=outputs, observation_template=package.observation, cost_per_call=0),
        local.LocalEnvironment(cwd=str(tmp_path), env=package.environment),
        system_template=package.system,
        instance_template=package.task,
        cost_limit=0,
    )
    with redirect_stdout(io.StringIO()):
        assert agent.run("Mend it.")["exit_status"] == "Submitted"
    alone = [message["content"] for message in agent.messages if message["role"] == "tool"]
    attempt, record = mini(Model([*map(runs, COMMANDS), SUBMIT]), sandbox=plain)
    ours = [entry.content for entry in record.entries if entry.kind is EntryKind.OBSERVATION]
    assert attempt.ending is Ending.SUBMITTED
    assert len(alone) == len(COMMANDS), "mini-swe-agent alone leaves the call that submits without an answer"
    assert ours[:-1] == alone
    assert "elided" in alone[3] and "elided" not in alone[4] and "elided" in alone[5]


# ---- both scaffolds


WHOLE_TURNS = st.one_of(
    st.sampled_from([reply for reply, _ in BAD_TURNS if len(reply.tool_calls) < 2]),
    st.lists(
        st.sampled_from(["ls", "false", "cd x && make", HAND_IN, f"{HAND_IN} && cat p"]), min_size=1, max_size=3
    ).map(
        lambda commands: says("Go.", *(call(command=command, id=f"c{place}") for place, command in enumerate(commands)))
    ),
)
"""Replies of which all is run or nothing: of one that is faulty in part mini-swe-agent runs nothing, ours the rest."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(replies=st.lists(WHOLE_TURNS, max_size=6))
def test_both_scaffolds_run_the_same_commands_in_the_same_order(replies: list[Reply]) -> None:
    runs_of_both = []
    for name in BOTH:
        sandbox = sandbox_of(DONE, ("false", ExecResult(1, b"no\n")), OK)
        attempt, record = work(
            Model([*replies, SUBMIT]),
            scaffold=scaffold(name),
            sandbox=sandbox,
            attempt_spec=spec(stage_limits=AgentLimits(steps=9)),
        )
        summary = [
            (
                entry.ordinal,
                entry.step,
                entry.kind,
                entry.role,
                entry.error,
                entry.tool_calls,
                entry.tool_call_id,
                entry.tool_name,
                entry.details,
                entry.content if entry.error is None else None,
            )
            for entry in record.entries
        ]
        runs_of_both.append((sandbox.asked, attempt.ending, attempt.used.tokens, summary))
    assert runs_of_both[0] == runs_of_both[1]


def test_of_a_reply_that_is_faulty_in_part_ours_runs_the_rest_and_mini_swe_agent_nothing() -> None:
    reply = says("", call(command="ls", id="a"), call("nothing", "b"))
    commands = {}
    for name in BOTH:
        sandbox = sandbox_of(DONE, OK)
        work(Model([reply, SUBMIT]), scaffold=scaffold(name), sandbox=sandbox)
        commands[name] = sandbox.asked
    assert commands == {"react": ["ls", HAND_IN], "mini": [HAND_IN]}


# ---- taking up, observers, context


CHAIN = [runs("one"), says("I am done."), says("", call(command="a", id="x"), call("no", "y")), runs("two"), SUBMIT]


@pytest.mark.parametrize("kept", range(len(CHAIN) + 1))
def test_an_attempt_that_was_killed_after_any_step_goes_on_without_asking_again(kept: int) -> None:
    whole_attempt, whole = mini(Model(CHAIN))
    stored = [entry for batch in whole.batches[:kept] for entry in batch]
    rest = Model(CHAIN[kept:])
    attempt, record = mini(rest, attempt_spec=spec([*opening(), *stored]))
    assert attempt.ending is whole_attempt.ending is Ending.SUBMITTED
    assert without_times([*stored, *record.entries]) == without_times(whole.entries)
    assert rest.replies == []


def test_a_reply_that_was_stored_and_a_step_that_was_not_cost_nothing_again() -> None:
    ledger = MemoryLedger()
    with pytest.raises(errors.SandboxLost):
        mini(Model([runs("one")]), sandbox=sandbox_of(("one", errors.SandboxLost("gone"))), ledger=ledger)
    rest = Model([SUBMIT])
    attempt, record = mini(rest, ledger=ledger)
    assert attempt.ending is Ending.SUBMITTED and len(rest.requests) == 1
    assert record.entries[0].tool_calls[0].arguments == json.dumps({"command": "one"})


def test_observers_insert_words_that_the_model_reads_and_stop_a_run() -> None:
    def watch(entries: Sequence[Entry]) -> Advice | None:
        steps = entries[-1].step
        return {1: Advice(guidance="Look at the tests."), 2: Advice(stop=True, reason="loops")}.get(steps)

    model = Model([runs("one"), runs("two")])
    attempt, record = mini(model, observers=[watch])
    assert (attempt.ending, attempt.reason) == (Ending.STOPPED, "loops")
    assert [batch.kind for batch in record.batches[1]] == [EntryKind.GUIDANCE]
    assert [(message.role, message.content) for message in model.requests[1].messages][-1] == (
        "user",
        "Look at the tests.",
    )


def test_what_does_not_fit_the_context_is_left_out_of_what_is_sent_and_not_of_what_is_kept() -> None:
    sandbox = sandbox_of(DONE, ScriptedResult(lambda _: True, ExecResult(0, b"x" * 4000), repeat=True))
    model = Model([*(runs(str(turn), usage=Usage()) for turn in range(6)), SUBMIT])
    eliding = scaffold(context_tokens=5000, max_tokens=1000, overflow="elide")
    attempt, record = mini(model, scaffold=eliding, sandbox=sandbox)
    assert attempt.ending is Ending.SUBMITTED
    assert any("not shown any more" in message.content for message in model.requests[-1].messages)
    assert not any("not shown any more" in entry.content for entry in record.entries)
    assert any("dropped" in entry.details for entry in record.entries)


# ---- a whole rollout


def in_its_words(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    reply = works(messages)
    return bash(HAND_IN) if reply == SUBMIT_TOOL else reply


def test_a_chain_is_worked_through_also_where_the_sandbox_is_lost_in_the_middle(tmp_path: Path) -> None:
    def lose(commands: list[str], at: int) -> Any:
        def before(command: str) -> None:
            if command.startswith("echo 'value"):
                commands.append(command)
                if len(commands) == at:
                    raise errors.SandboxLost("the container is gone")

        return before

    results = []
    for name, at in (("whole", 0), ("lost", 3)):
        (tmp_path / name).mkdir()
        with rollout_world(tmp_path / name, [(1, 2, 3)]) as world:
            model, written = PolicyModel(in_its_words), list[str]()
            before = lose(written, at)
            overrides = {"make_workplace": lambda _, trees, w=world, b=before: FolderPlace(trees, w.folder, b)}
            trajectory = roll(world.context(model, scaffold="mini", overrides=overrides), world.chains[0], 0)
            assert world.outcome(trajectory) == ("accepted", 3, None)
            ((scaffold_name, tools),) = world.rows(Trajectory, "scaffold", "tools", id=trajectory)
            assert (scaffold_name, len(tools)) == ("mini", 1)
            error_rows = world.rows(TrajectoryMessage, "error", trajectory_id=trajectory)
            assert {error for (error,) in error_rows} == {None}
            columns = ("ordinal", "kind", "position", "attempt", "step", "tool_calls", "tool_call_id", "details")
            rows = [
                (*row[:-1], row[-1].get("exit_code"))
                for row in world.rows(TrajectoryMessage, *columns, trajectory_id=trajectory)
            ]
            results.append((rows, world.rows(LlmCall, "purpose", "subject", "attempt", "state"), len(written)))
    (rows, calls, commands), (same_rows, same_calls, more_commands) = results
    assert rows == same_rows
    assert calls == same_calls, "no reply was paid twice"
    assert more_commands == commands + 1


@pytest.mark.parametrize("kept", [0, 2])
def test_mini_swe_agent_holds_the_same_conversation_as_the_model_is_sent(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    conversations: list[list[tuple[str, str, str | None]]] = []
    query = mini_module._Model.query

    def look(self: Any, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        conversations.append(
            [(message["role"], message["content"], message.get("tool_call_id")) for message in messages]
        )
        return query(self, messages, **options)

    monkeypatch.setattr(mini_module._Model, "query", look)
    _, whole = mini(Model(CHAIN))
    stored = [entry for batch in whole.batches[:kept] for entry in batch]
    conversations.clear()
    model = Model(CHAIN[kept:])
    mini(
        model, attempt_spec=spec([*opening(), *stored]), observers=[lambda entries: Advice(guidance=f"{len(entries)}")]
    )
    assert len(conversations) == len(CHAIN) - kept
    assert conversations == [
        [(message.role, message.content, message.tool_call_id) for message in request.messages]
        for request in model.requests
    ]


def test_a_sandbox_is_all_that_it_runs_commands_in(plain: LocalSandbox) -> None:
    sandbox: Sandbox = plain
    _, record = mini(Model([runs("env"), SUBMIT]), sandbox=sandbox)
    assert FOLDER not in record.entries[1].content, "nothing of the host's environment reaches a command"
