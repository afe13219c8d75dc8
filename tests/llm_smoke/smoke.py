"""Run by `make test-llm` alone, which names this file to pytest: its name is none that `make test` collects.

The model is far too small to answer well, so nothing here looks at what it says, but at how it arrives.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from prchain.core.errors import ContextTooLong, EndpointTimeout
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.model import Reply, ToolCall
from prchain.core.llm.prompts import Prompt
from prchain.core.llm.replies import closed_schema
from prchain.core.llm.setup import make_gateway
from prchain.core.settings import PurposeSettings, Settings
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import LlmCall, PrmWindow, TrajectoryMessage, TrajectoryStage
from tests.memory_ledger import MemoryLedger
from tests.trajectories.miniprogram import NAME, SYSTEM, install_mini
from tests.trajectories.prmmodels import looping
from tests.trajectories.rolloutworld import PolicyModel, rollout_world
from trajectories.agents.guidance.observer import make_prm
from trajectories.agents.guidance.settings import PURPOSE
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.steps.conversation import steps_of
from trajectories.branches import read_branches
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.windows.establishing import LlmVerifier, VerifierReply
from trajectories.curation.windows.grounding import RewriteFault
from trajectories.curation.windows.judging import GroundReply, LlmClaimJudge
from trajectories.curation.windows.options import ESTABLISH, GROUND, Asked
from trajectories.model import AgentLimits, Entry, EntryKind
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

SERVER_PYTHON = "PRCHAIN_TEST_LLM_PYTHON"
"""The Python that has the server and the model; `make test-llm` sets it."""

PROMPT = Prompt.from_source(
    "smoke", b"{% block system %}You are brief.{% endblock %}{% block user %}{{ text }}{% endblock %}"
)


class Colour(BaseModel):
    name: Literal["red", "green", "blue"]
    warm: bool


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running server."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as errors:
        command = [os.environ[SERVER_PYTHON], str(Path(__file__).with_name("server.py")), str(port)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert server.stdout is not None
        said = server.stdout.readline()
    assert said == "ready\n", log.read_text()[-2000:]
    yield f"http://127.0.0.1:{port}/v1"
    server.send_signal(signal.SIGTERM)
    try:
        server.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()


@pytest.fixture
def settings(url: str) -> Settings:
    return Settings.load(
        llm_base_url=url, llm_model="smollm2", llm_price_input=1.0, llm_price_output=2.0, llm_timeout_seconds=240.0
    )


@pytest.fixture
def gateway(settings: Settings, tmp_path: Path) -> Iterator[Gateway]:
    store = Store.open(f"sqlite:///{tmp_path / 'x.db'}")
    made = make_gateway(settings, SqlLedger(store, "smoke"), budget_usd=1.0)
    yield made
    made.close()
    store.close()


def question(text: str, max_tokens: int = 32) -> Question:
    return Question("smoke", "smoke", PROMPT, PROMPT.render(text=text), max_tokens=max_tokens, temperature=0.0)


def test_a_question_is_answered_counted_priced_and_stored(gateway: Gateway) -> None:
    asked = question("Say hello in three words.", 128)
    answer = gateway.ask(asked)
    usage = answer.reply.usage
    assert answer.value
    assert answer.reply.finish == "stop"
    assert usage.tokens_in is not None
    assert usage.tokens_out is not None
    assert 5 < usage.tokens_in < 100
    assert 0 < usage.tokens_out <= 128
    assert answer.usd == pytest.approx((usage.tokens_in * 1.0 + usage.tokens_out * 2.0) / 1e6)
    assert gateway.spending().usd == answer.usd
    again = gateway.ask(asked)  # the ledger keeps times in whole seconds
    assert replace(again, usd=answer.usd, seconds=answer.seconds, stored=False) == answer
    assert gateway.spending().calls == 1


def test_an_estimate_is_of_the_right_size(gateway: Gateway) -> None:
    asked = question("List the planets of the solar system, with one word on each of them, in any order. " * 4)
    estimate = gateway.estimate(asked)
    used = gateway.complete(asked).reply.usage.tokens_in
    assert used is not None
    assert used / 2 < estimate.tokens_in < used * 3


def test_a_shape_comes_back_as_its_schema_says(gateway: Gateway) -> None:
    answer = gateway.ask_for(question("Which colour is a tomato? Reply in JSON.", 64), Colour)
    assert isinstance(answer.value, Colour)
    assert answer.reply.text.lstrip().startswith("{")


def test_a_prompt_that_does_not_fit_is_named_and_costs_nothing(gateway: Gateway) -> None:
    with pytest.raises(ContextTooLong, match="context"):
        gateway.ask(question("word " * 4000))
    assert gateway.spending().calls == 0


def test_a_reply_that_takes_too_long_is_named_and_may_be_paid(settings: Settings) -> None:
    hasty = make_gateway(settings.model_copy(update={"llm_timeout_seconds": 0.3}), MemoryLedger())
    hasty.repeats = 0
    with pytest.raises(EndpointTimeout) as caught:
        hasty.ask(question("Tell me a very long story. " * 20, 600))
    assert caught.value.billed
    assert hasty.spending().usd > 0
    hasty.close()


def test_the_readers_of_windows_send_their_schema_and_end_in_a_finding_or_a_named_fault(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies: list[dict[str, Any]] = []
    post = Endpoint.post

    def noted(self: Endpoint, body: dict[str, Any]) -> tuple[bytes, Mapping[str, str]]:
        bodies.append(body)
        return post(self, body)

    monkeypatch.setattr(Endpoint, "post", noted)
    short = {purpose: PurposeSettings(max_tokens=64) for purpose in (ESTABLISH, GROUND)}
    ledger = MemoryLedger()
    gateway = make_gateway(settings.model_copy(update={"purposes": short}), ledger)
    gateway.repeats = 0
    query = "Make `total` in src/sums.py count from one."
    before = [Entry(0, 1, 1, 0, EntryKind.QUERY, "user", query)]
    call = ToolCall("call_1", "bash", '{"command": "cat src/sums.py"}')
    [step] = steps_of(
        [
            Entry(1, 1, 1, 1, EntryKind.TURN, "assistant", "I read the file.", tool_calls=(call,)),
            Entry(2, 1, 1, 1, EntryKind.OBSERVATION, "tool", "START = 0\n", tool_call_id="call_1", tool_name="bash"),
        ]
    )
    look = Action(ActionTool.BASH, command="cat src/sums.py")
    node = Node("f1", NodeKind.STATIC_FACT, "src/sums.py begins to count at 0", look)

    findings = LlmVerifier(gateway, Asked.STEP, sample=0).established("t/1/1/0", query, before, step, [node])
    assert findings.calls == 1
    assert {found.node for found in findings.established} <= {"f1"}
    unanswered = [note for note in findings.notes if "no answer" in note]
    assert unanswered in ([], ["step 1: the verifier gave no answer: bad_reply"])
    assert (findings.usd is not None and findings.usd > 0) or unanswered

    verdict = LlmClaimJudge(gateway, sample=0).judge("t/1/1/2", query, before, "assistant:\nIt begins at 0, I say.")
    if verdict.usd is None:
        assert verdict.faults == (RewriteFault("judge", "no verdict: bad_reply"),)
    else:
        assert verdict.usd > 0
        assert {fault.rule for fault in verdict.faults} <= {"J1", "J2", "J3", "J4", "judge"}

    sent = {body["response_format"]["json_schema"]["name"]: body["response_format"]["json_schema"] for body in bodies}
    for shape in (VerifierReply, GroundReply):
        assert sent[shape.__name__]["schema"] == closed_schema(shape)
    assert all(each.state == "stored" and each.reply is not None for each in ledger.calls), "the server refused none"
    assert {each.key.purpose for each in ledger.calls} == {ESTABLISH, GROUND}
    gateway.close()


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("variant", "form", "ends"), [("S", "text", [5]), ("C", "text", [5, 10]), ("C", "json", [5])])
def test_a_process_reward_model_guides_a_stage_or_its_fault_is_counted(
    settings: Settings, tmp_path: Path, variant: str, form: str, ends: list[int]
) -> None:
    """`ends` are the last steps of the windows that it reads; each takes ten seconds of a core or more."""
    kind = make_prm(variant=variant, reply=form, window="3")
    with closing(make_gateway(settings, MemoryLedger())) as made, rollout_world(tmp_path, [(1,)]) as world:
        tiny = made.default
        assert tiny is not None
        context = world.context(
            PolicyModel(looping(until=ends[-1] + 2)), overrides={"observers": (kind,)}, min_length=1
        )
        gateway = replace(context.gateway, routes={PURPOSE: replace(tiny, max_tokens=200)}, repeats=0)
        name = roll(replace(context, gateway=gateway), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted", "whatever it says, the agent comes to its end"
        windows = world.rows(PrmWindow, "last_step", "fault", "sent", trajectory_id=name)
        told = world.rows(TrajectoryMessage, "ordinal", trajectory_id=name, kind="guidance")
        assert sorted(row[0] for row in windows) == ends
        assert len(told) == sum(bool(row[2]) for row in windows)
        assert {row[1] for row in windows} <= {None, "unreadable", "bad_reply"}
        assert set(world.rows(LlmCall, "state", purpose=PURPOSE)) == {("stored",)}, "the server refused none"
        print(f"{variant} {form}: {[row[1] or 'read' for row in windows]}")


@pytest.mark.mini
def test_an_agent_program_asks_it_by_the_wire_and_each_reply_is_paid_and_kept(
    settings: Settings, tmp_path: Path
) -> None:
    """mini-swe-agent's loop. What it is told to run it does not run, since nobody knows what that is."""
    agent = {AGENT: PurposeSettings(max_tokens=8, token_ids=True)}
    limits = AgentLimits(steps=2)
    with (
        rollout_world(tmp_path, [(1,)]) as world,
        closing(make_gateway(settings.model_copy(update={"purposes": agent}), MemoryLedger())) as made,
    ):
        install_mini(world.folder, runs=False)
        context = world.context(scaffold=NAME, context="stage", refinements=0, min_length=1, stage_limits=limits)
        gateway = replace(context.gateway, routes=made.routes, repeats=0)
        name = roll(replace(context, gateway=gateway), world.chains[0], 0)
        assert world.outcome(name)[0] == "rejected", "it has changed nothing"
        assert world.rows(TrajectoryStage, "endings", trajectory_id=name) == [(["step_limit"],)]
        calls = world.rows(LlmCall, "state", "model", "tokens_in", "tokens_out", "usd", "reply", purpose=AGENT)
        with world.store.reading() as tx:
            entries, branches = read_entries(tx, name), list(read_branches(tx, name))
    assert len(calls) == 2
    for state, model, tokens_in, tokens_out, usd, _ in calls:
        assert (state, model) == ("stored", "smollm2")
        assert 20 < tokens_in < 1000 and 0 < tokens_out <= 8
        assert usd == pytest.approx((tokens_in * 1.0 + tokens_out * 2.0) / 1e6)
    replies = [Reply.from_json(row[-1]) for row in calls]
    turns = [entry for entry in entries if entry.kind is EntryKind.TURN]
    assert len(turns) + sum(branch.replies for branch in branches) == 2, "each reply is kept once"
    assert (turns[-1].content, turns[-1].tool_calls) in [(reply.text, reply.tool_calls) for reply in replies]
    assert entries[0].content == SYSTEM and "Task 1 of 1" in entries[1].content
    for reply in replies:  # this server tells log-probabilities, and ids in places of its own
        assert reply.tokens is not None and len(reply.tokens.logprobs) == reply.usage.tokens_out
        assert all(it <= 0 for it in reply.tokens.logprobs)
