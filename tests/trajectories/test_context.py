from __future__ import annotations

import json

import pytest

from environments.sandboxes.sandbox import ExecResult
from prchain.core import errors
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Message, Reply, Request, Usage
from tests.endpoint import Answer, Call, FakeEndpoint, completion
from tests.environments.scripted_sandbox import ScriptedResult
from tests.memory_ledger import MemoryLedger
from tests.trajectories.agentworld import SUBMIT, Memory, Model, opening, requires_valid, runs, sandbox_of, spec, work
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.context import BYTES_PER_TOKEN, Conversation, left_out, used_by
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.model import AgentLimits, AgentUsage, Ending, Entry, EntryKind

LONG = ScriptedResult(lambda _: True, ExecResult(0, b"x" * 4000), repeat=True)
TOO_LONG = errors.ContextTooLong("too long")


def conversation(entries: list[Entry], **overrides: object) -> Conversation:
    options = {"position": 1, "tools": (), "reasoning": False} | overrides
    return Conversation(entries, **options)  # type: ignore[arg-type]


def steps(count: int, *, first: int = 2, tokens_in: int | None = None, content: str = "y" * 4000) -> list[Entry]:
    """Steps of one call each."""
    out: list[Entry] = []
    for step in range(1, count + 1):
        at = first + 2 * (step - 1)
        out.append(Entry(at, 1, 1, step, EntryKind.TURN, "assistant", "Look.", tokens_in=tokens_in, tokens_out=1))
        out.append(Entry(at + 1, 1, 1, step, EntryKind.OBSERVATION, "tool", content, tool_call_id="c"))
    return out


def elided(messages: tuple[Message, ...] | list[Message]) -> list[bool]:
    return ["not shown any more" in message.content for message in messages if message.role == "tool"]


def scaffold(**settings: object) -> ReactScaffold:
    return ReactScaffold("full", LoopSettings(max_tokens=100, **settings))  # type: ignore[arg-type]


def test_without_usage_the_size_is_an_estimate_and_says_so() -> None:
    talk = conversation(opening())
    assert not talk.size().counted and "estimate" in str(talk.size())
    before = talk.size().tokens
    talk.add(Entry(2, 1, 1, 0, EntryKind.COMMENT, "user", "z" * 4000))
    assert 1000 <= talk.size().tokens - before <= 1010


def test_usage_that_was_told_is_the_base_and_only_what_came_after_it_is_estimated() -> None:
    talk = conversation([*opening(), *steps(1, tokens_in=50_000)])
    size = talk.size()
    assert size.counted and "estimate" not in str(size)
    assert 50_000 + 4000 / BYTES_PER_TOKEN <= size.tokens < 51_100


def test_usage_of_an_earlier_stage_says_nothing_of_a_conversation_that_begins_anew() -> None:
    entries = [*opening(), *steps(1, first=40, tokens_in=50_000)]
    assert conversation(entries, position=1).size().counted
    assert not conversation(entries, position=2).size().counted
    assert conversation([*opening(), *steps(1, tokens_in=5)], position=2).size().counted, "nothing is missing here"


def test_the_oldest_observations_go_first_the_last_steps_stay_and_short_ones_too() -> None:
    entries = [*opening(), *steps(1, content="short"), *steps(6, first=4)]
    talk = conversation(entries)
    assert talk.elide(talk.size().tokens - 1500)
    assert elided(talk.messages()) == [False, True, True, False, False, False, False]
    assert talk.messages()[5].content == left_out(4000)
    talk.elide(0)
    assert elided(talk.messages()) == [False, True, True, True, True, False, False]
    assert not talk.elide(0), "there is no more"
    assert [entry.content for entry in talk.entries] == [entry.content for entry in entries], "what is kept is whole"


def test_a_turn_s_record_gives_the_same_request_again() -> None:
    talk = conversation([*opening(), *steps(6)])
    assert talk.record() == {}
    talk.elide(talk.size().tokens - 1500)
    assert talk.record() == {"dropped": {"below": 6, "observations": 2}}
    turn = Entry(14, 1, 1, 7, EntryKind.TURN, "assistant", "Look.", details=talk.record())
    resumed = conversation([*opening(), *steps(6), turn])
    assert resumed.messages()[:-1] == talk.messages()
    talk.add(turn)
    assert resumed.size() == talk.size()


def measured(request: Request) -> Reply:
    """A reply whose usage equals the estimates, so that tests can count."""
    size = sum(len(message.content) for message in request.messages) // BYTES_PER_TOKEN
    return runs(str(len(request.messages)), usage=Usage(size, 0, 10))


def test_stop_ends_the_attempt_where_the_next_prompt_would_not_fit() -> None:
    model = Model([measured] * 9)
    attempt, _ = work(model, sandbox=sandbox_of(LONG), scaffold=scaffold(context_tokens=3100))
    assert attempt.ending is Ending.CONTEXT_LIMIT and "room for 3,000" in str(attempt.reason)
    assert len(model.requests) == 3, "an observation has 1,000 tokens and a bit"


def test_stop_without_a_known_context_ends_where_the_endpoint_refuses() -> None:
    model = Model([runs(), TOO_LONG])
    attempt, record = work(model, sandbox=sandbox_of(LONG), scaffold=scaffold())
    assert attempt.ending is Ending.CONTEXT_LIMIT and "too long" in str(attempt.reason)
    assert len(record.entries) == 2


def test_elide_keeps_every_request_within_the_context_and_says_what_was_left_out() -> None:
    model = Model([measured] * 30)
    attempt, record = work(
        model,
        sandbox=sandbox_of(LONG),
        scaffold=scaffold(context_tokens=8000, overflow="elide"),
        attempt_spec=spec(stage_limits=AgentLimits(steps=30)),
    )
    assert attempt.ending is Ending.STEP_LIMIT
    turns = [entry for entry in record.entries if entry.kind is EntryKind.TURN]
    for request, turn in zip(model.requests, turns, strict=True):
        requires_valid(request.messages)
        assert sum(len(message.content) for message in request.messages) < 7900 * BYTES_PER_TOKEN
        dropped = turn.details.get("dropped", {"observations": 0})
        assert dropped["observations"] == sum(elided(request.messages))
    changes = {turn.details.get("dropped", {}).get("below") for turn in turns}
    assert 2 <= len(changes) < 12, "much is left out at a time, so that prefixes last"


def test_elide_leaves_out_more_where_the_endpoint_still_refuses() -> None:
    model = Model([*[runs()] * 9, TOO_LONG, TOO_LONG, SUBMIT])
    attempt, _ = work(model, sandbox=sandbox_of(LONG), scaffold=scaffold(overflow="elide"))
    assert attempt.ending is Ending.SUBMITTED
    counts = [sum(elided(request.messages)) for request in model.requests[-3:]]
    assert 0 == counts[0] < counts[1] < counts[2]


def test_elide_takes_hold_of_a_refusal_that_is_taken_for_too_long_by_a_guess() -> None:
    bad = errors.EndpointRefused("h answered 400: Bad Request", unexplained=True)
    near = scaffold(context_tokens=7_800, overflow="elide")
    model = Model([*[measured] * 7, bad, SUBMIT])
    attempt, _ = work(model, sandbox=sandbox_of(LONG), scaffold=near)
    assert attempt.ending is Ending.SUBMITTED
    assert sum(elided(model.requests[-1].messages)) > sum(elided(model.requests[-2].messages))
    with pytest.raises(errors.EndpointRefused):
        work(Model([*[measured] * 2, bad]), sandbox=sandbox_of(LONG), scaffold=near)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, [{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens"}}]),
        (500, {"object": "error", "message": "prompt is longer than the maximum model length of 9"}),
        (200, {"error": {"code": "context_length_exceeded", "message": "no"}}),
    ],
)
def test_elide_takes_hold_whatever_the_endpoint_calls_it(status: int, body: object) -> None:
    called = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    sizes: list[int] = []

    def part(asked: Call) -> Answer:
        sizes.append(asked.size)
        if asked.size > 30_000:
            return Answer(status, json.dumps(body).encode())
        return completion("Look.", finish_reason="tool_calls", tool_calls=[called])(asked)

    with FakeEndpoint(part) as fake:
        endpoint = Endpoint(fake.url)
        gateway = Gateway(MemoryLedger(), Route(OpenAIModel("m", endpoint)))
        attempt = scaffold(overflow="elide").attempt(
            gateway, sandbox_of(LONG), spec(stage_limits=AgentLimits(steps=12)), Memory()
        )
        endpoint.close()
    assert attempt.ending is Ending.STEP_LIMIT
    refused = [at for at, size in enumerate(sizes) if size > 30_000]
    assert refused and all(sizes[at + 1] < sizes[at] for at in refused)
    assert gateway.spending().refused == len(refused) and gateway.spending().calls == 12


def test_elide_ends_where_the_last_steps_alone_are_too_long() -> None:
    model = Model([measured] * 30)
    attempt, _ = work(model, sandbox=sandbox_of(LONG), scaffold=scaffold(context_tokens=1500, overflow="elide"))
    assert attempt.ending is Ending.CONTEXT_LIMIT


def test_the_endpoint_s_refusal_makes_the_policy_run_once_a_step() -> None:
    model = Model([measured, measured, measured, measured, TOO_LONG, measured, TOO_LONG, TOO_LONG])
    attempt, record = work(model, sandbox=sandbox_of(LONG), scaffold=scaffold(overflow="elide"))
    assert attempt.ending is Ending.CONTEXT_LIMIT
    assert sum(elided(model.requests[4].messages)) == 0 < sum(elided(model.requests[5].messages))
    assert record.entries[8].details["dropped"]["observations"] == sum(elided(model.requests[5].messages))


def test_an_attempt_that_left_things_out_asks_the_same_again_after_a_kill() -> None:
    ledger = MemoryLedger()
    elides = scaffold(context_tokens=8000, overflow="elide")
    limits = AgentLimits(steps=12)
    _, whole = work(
        Model([measured] * 12),
        sandbox=sandbox_of(LONG),
        scaffold=elides,
        attempt_spec=spec(stage_limits=limits),
        ledger=ledger,
    )
    for count in range(0, 12, 3):
        stored = [entry for batch in whole.batches[:count] for entry in batch]
        attempt_spec = spec([*opening(), *stored], stage_limits=limits, stage_used=used_by(stored))
        _, rest = work(Model([]), sandbox=sandbox_of(LONG), scaffold=elides, attempt_spec=attempt_spec, ledger=ledger)
        assert [entry.details.get("dropped") for entry in [*stored, *rest.entries]] == [
            entry.details.get("dropped") for entry in whole.entries
        ]


def test_other_failures_of_the_endpoint_are_no_overflow() -> None:
    with pytest.raises(errors.RateLimited):
        work(Model([errors.RateLimited("later")]), scaffold=scaffold(overflow="elide"))


def test_what_was_used_is_read_from_entries() -> None:
    reported = Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "", tokens_in=10, tokens_out=5, usd=0.5, seconds=2.0)
    guessed = Entry(
        1, 1, 1, 2, EntryKind.TURN, "assistant", "", tokens_out=5, details={"estimate": {"in": 7, "out": 9}}
    )
    observation = Entry(2, 1, 1, 2, EntryKind.OBSERVATION, "tool", "", seconds=1.0)
    assert used_by([reported, guessed, observation]) == AgentUsage(2, 27, 0.5, 3.0)


def test_a_submission_fits_where_a_step_more_would_not() -> None:
    attempt, _ = work(Model([runs(), SUBMIT]), sandbox=sandbox_of(LONG), scaffold=scaffold(context_tokens=100_000))
    assert attempt.ending is Ending.SUBMITTED
