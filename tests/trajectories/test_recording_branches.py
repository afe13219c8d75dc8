"""What an agent program asks beside the conversation of its attempt: kept as it was sent, and exported once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import RowUnreadable
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Usage
from sql.tables import Trajectory, TrajectoryBranch
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from tests.trajectories.recordingworld import TOOL
from tests.trajectories.rolloutworld import PolicyModel, RolloutWorld, rollout_world
from tests.trajectories.test_programs import OPTIONS, finishes
from tests.trajectories.test_recording_conversations import QUERY, SYSTEM, answer, call, said, same, told
from tests.trajectories.toyagent import install_toy
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.branches import read_branches
from trajectories.export.branches import as_main, beside_main
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.model import Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.programs.branches import branches_beside
from trajectories.programs.calls import AttemptCalls, tools_of
from trajectories.recording.chat import read_asked
from trajectories.recording.conversation import Branch, RecordedConversations
from trajectories.recording.exchanges import Exchange, ExchangeLog, SentRequest, packed, unpacked
from trajectories.rollouts.rollout import roll

OPENING = Entry(1, 2, 1, 0, EntryKind.QUERY, "user", "Mend it.")


def body(messages: Sequence[Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": it.role, "content": it.content} for it in messages], **more}


def take(all_: RecordedConversations, messages: Sequence[Any], text: str, *calls: Any, **more: Any) -> Branch:
    return all_.take(messages, [TOOL], answer(text, *calls), SentRequest(body(messages, **more)))[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=2),
    max_leaves=4,
)
BODIES = st.fixed_dictionaries({"messages": st.lists(VALUES, max_size=4)}, optional={"tools": VALUES, "seed": VALUES})


@given(st.lists(BODIES, max_size=5))
def test_whatever_was_sent_comes_back_as_it_was(bodies: list[dict[str, Any]]) -> None:
    exchanges = [
        Exchange(it, number, Reply(f"r{number}", "small", usage=Usage(1, None, 2)), 0.5, 1.0, "2026")
        for number, it in enumerate(bodies)
    ]
    log = ExchangeLog()
    for exchange in exchanges:
        log.add(exchange)
    assert [*log.exchanges()] == exchanges
    assert unpacked(packed(exchanges, same)) == exchanges


def test_a_long_conversation_takes_the_room_of_its_last_request() -> None:
    messages = [{"role": "user", "content": f"{number} {'x' * 50} {number * 7919}"} for number in range(400)]
    exchanges = [Exchange({"messages": messages[:end]}, 0, Reply("r", "m")) for end in range(4, 400, 4)]
    once = len(packed([Exchange({"messages": messages}, 0, Reply("r", "m"))], same))
    assert len(packed(exchanges, same)) < 3 * once


@pytest.mark.parametrize("data", [b"", b"x", packed([], same)[:-3]])
def test_what_cannot_be_read_is_said_by_name(data: bytes) -> None:
    with pytest.raises(RowUnreadable, match="requests of an agent program"):
        unpacked(data)


def test_a_conversation_that_ends_the_attempt_is_no_branch_and_its_beginnings_are_none() -> None:
    all_ = RecordedConversations(same)
    take(all_, [SYSTEM, QUERY], "", call("ls"))
    main = take(all_, [SYSTEM, QUERY, said(call("ls")), told("a.py")], "Done.")
    assert branches_beside(main, all_.branches, OPENING, same) == []


def test_what_was_said_after_the_place_where_the_conversation_left_is_a_branch() -> None:
    all_ = RecordedConversations(same)
    take(all_, [SYSTEM, QUERY], "", call("ls"))
    on = [SYSTEM, QUERY, said(call("ls")), told("a.py")]
    left = take(all_, on, "One way.")
    take(all_, [*on, said(text="One way."), told("go on")], "Further.")
    main = take(all_, [SYSTEM, QUERY, said(call("ls")), told("b.py")], "Another way.")
    title = take(all_, [QUERY], "A title", seed=5)
    rows = branches_beside(main, all_.branches, OPENING, same)
    assert [(it.position, it.attempt, it.number, it.parent, it.replies) for it in rows] == [
        (2, 1, left.number, None, 2),
        (2, 1, title.number, None, 1),
    ]
    sent = [exchange.body for exchange in unpacked(rows[0].exchanges)]
    assert sent == [body(on), body([*on, said(text="One way."), told("go on")])]
    (asked,) = unpacked(rows[1].exchanges)
    assert asked.body == body([QUERY], seed=5) and asked.reply.text == "A title"
    assert (asked.reply.usage.tokens_in, asked.usd) == (9, 0.5)


def test_a_branch_of_a_branch_gives_what_all_of_them_share_to_the_conversation() -> None:
    all_ = RecordedConversations(same)
    history = [SYSTEM, QUERY]
    for number in range(3):
        take(all_, history, f"reply {number}")
        history = [*history, said(text=f"reply {number}"), told(f"on {number}")]
    second = take(all_, [*history[:4], told("elsewhere")], "second")
    main = take(all_, [*history[:4], told("elsewhere"), said(text="second"), told("on")], "second, on")
    assert main is second
    rows = branches_beside(main, all_.branches, OPENING, same)
    texts = [exchange.reply.text for row in rows for exchange in unpacked(row.exchanges)]
    assert texts == ["reply 1", "reply 2"]


def test_a_secret_is_in_no_branch() -> None:
    all_ = RecordedConversations(same)
    take(all_, [QUERY], "It is hunter2.", call("echo hunter2"), user={"hunter2": ["hunter2"]})
    main = take(all_, [SYSTEM, QUERY], "Done.")
    (row,) = branches_beside(main, all_.branches, OPENING, lambda text: text.replace("hunter2", "[redacted]"))
    (kept,) = unpacked(row.exchanges)
    assert "hunter2" not in repr(kept) and kept.body["user"] == {"[redacted]": ["[redacted]"]}


@given(st.lists(st.integers(0, 6), min_size=1, max_size=10), st.integers(0, 99))
def test_each_reply_is_in_the_conversation_or_in_one_branch(jumps: Sequence[int], which: int) -> None:
    all_, histories = RecordedConversations(same), [[SYSTEM, QUERY]]
    for number, jump in enumerate(jumps):
        history = histories[jump % len(histories)]
        take(all_, history, f"reply {number}")
        histories.append([*history, said(text=f"reply {number}"), told(f"on {number}")])
    main = all_.branches[which % len(all_.branches)]
    rows = branches_beside(main, all_.branches, OPENING, same)
    beside = [exchange.reply.text for row in rows for exchange in unpacked(row.exchanges)]
    own = [it.content for it in main.entries if it.kind is EntryKind.TURN]
    assert sorted([*own, *beside]) == sorted(f"reply {number}" for number in range(len(jumps)))


# ---- agents whose words change


def test_what_an_agent_is_known_to_change_does_not_part_its_conversation() -> None:
    patterns = (r"Today's date: \w+ \w+ \d+ \d+", r"msg_[0-9a-f]+")
    all_ = RecordedConversations(same, patterns)
    first = take(all_, [SYSTEM, told("msg_1a2b"), QUERY], "One.")
    later = [SYSTEM, told("msg_99ff"), QUERY, said(text="One."), told("on")]
    assert take(all_, later, "Two.") is first
    assert take(all_, [SYSTEM, told("msg_x"), QUERY], "Three.") is not first
    assert take(RecordedConversations(same), later, "Four.").number == 0


# ---- which conversation ends an attempt


def attempt_calls() -> AttemptCalls:
    gateway = Gateway(MemoryLedger(), Route(FakeModel(lambda request: f"to {request.messages[-1].content}")))
    spec = AttemptSpec("t/1", 0, 2, 1, (OPENING,))
    return AttemptCalls(gateway, LoopSettings.of(RolloutOptions()), spec, lambda: None, same)


def ask(calls: AttemptCalls, *said: str, tools: Sequence[Any] = ()) -> None:
    roles = itertools.cycle(("user", "assistant"))
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    asked = read_asked(json.dumps({"messages": messages, "tools": [*tools]}).encode())
    calls.answer(asked, lambda: True, again=False)


def test_a_title_that_comes_last_does_not_end_the_attempt_of_an_agent_with_tools() -> None:
    calls = attempt_calls()
    ask(calls, "A title, please, early")
    ask(calls, "Mend it.", tools=[TOOL])
    ask(calls, "A title, please")
    assert calls.last is not None and calls.last.entries[0].content == "Mend it."
    assert calls.used.steps == 3, "all of them count"


def test_without_tools_the_last_reply_ends_it() -> None:
    calls = attempt_calls()
    ask(calls, "Mend it.")
    ask(calls, "Now this.")
    assert calls.last is not None and calls.last.entries[0].content == "Now this."


def test_tools_are_those_of_the_last_request() -> None:
    calls = attempt_calls()
    other = {"type": "function", "function": {"name": "edit", "parameters": {"type": "object"}}}
    ask(calls, "Mend it.", tools=[TOOL, other])
    ask(calls, "Mend it.", "to Mend it.", "Go on.", tools=[other])
    assert calls.last is not None and len(calls.conversations.branches) == 1
    assert tools_of(calls.last) == [other]


# ---- what was recorded without a chain


def test_of_a_recorded_run_the_last_reply_of_those_with_tools_is_of_the_one_that_ends_it() -> None:
    rows: list[tuple[str, str | None, Mapping[str, Any]]] = [
        ("agent", "run", {"last_reply": 4, "with_tools": True}),
        ("helper", "run", {"last_reply": 3, "with_tools": True}),
        ("title", "run", {"last_reply": 9, "with_tools": False}),
        ("alone", "other", {"last_reply": 1, "with_tools": False}),
        ("older", "before", {}),
        ("older too", "before", {}),
    ]
    assert beside_main(rows) == {"helper", "title"}


def test_what_a_conversation_has_from_one_that_is_not_written_is_under_loss_in_it() -> None:
    all_ = RecordedConversations(same)
    made_up = said(text="I never said that.")
    take(all_, [SYSTEM, QUERY, made_up, told("x")], "One.")
    on = [SYSTEM, QUERY, made_up, told("x"), said(text="One."), told("on")]
    take(all_, on, "Two.")
    branch = take(all_, [*on[:-1], told("elsewhere")], "Three.")
    turns = [it for it in branch.entries if it.kind is EntryKind.TURN]
    assert ["loss" in it.details for it in turns] == [True, True, False]
    assert ["loss" in it.details for it in as_main(turns)] == [True, False, False]
    assert [it.details.get("copied") for it in as_main(turns)] == [True, None, None]


# ---- rollouts and their export


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2)]) as made:
        yield made


def samples(world: RolloutWorld, form: str, **options: Any) -> list[dict[str, Any]]:
    out = world.folder / f"out-{form}"
    chosen = ExportOptions(**options)
    export(world.store, chosen_format(form, chosen), chosen, out.with_suffix(".jsonl"), force=True)
    return [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("mode", "beside"), [("titles", 1), ("compacts", 1)])
def test_each_reply_of_a_rollout_is_under_loss_once_with_all_branches(
    world: RolloutWorld, mode: str, beside: int
) -> None:
    install_toy(world.folder, mode)
    name = roll(world.context(PolicyModel(finishes), **OPTIONS), world.chains[0], 0)
    assert world.outcome(name)[0] == "accepted"
    with world.store.reading() as tx:
        rows = read_branches(tx, name)
    assert [(row.position, row.attempt, row.replies) for row in rows] == [(1, 1, beside), (2, 1, beside)]
    calls = len([call for call in world.calls() if call[0] == "agent"])
    main = samples(world, "slime")
    everything = samples(world, "slime", branches="all")
    under_loss = [sum(message["step_loss_mask"] for message in it["messages"]) for it in everything]
    assert sum(under_loss) == calls
    assert [it["metadata"]["sample_id"] for it in everything[: len(main)]] == [
        it["metadata"]["sample_id"] for it in main
    ]
    branches = everything[len(main) :]
    assert len(branches) == 2 and sum(under_loss[len(main) :]) == 2 * beside
    assert [it["metadata"]["usd"] for it in branches] == [None, None], "the cost is the whole trajectory's"
    assert all(it["metadata"]["trajectory_id"] == name for it in everything)
    words = str(branches[0]["messages"])
    assert ("A title, please" in words) is (mode == "titles")
    assert (json.loads(branches[0]["tools"]) == []) is (mode == "titles")


def test_branches_are_deleted_with_their_trajectory(
    world: RolloutWorld,
) -> None:
    install_toy(world.folder, "titles")
    context = world.context(PolicyModel(finishes), **OPTIONS)
    name = roll(context, world.chains[0], 0)
    assert len(world.rows(TrajectoryBranch, "number", trajectory_id=name)) == 2
    with world.store.transaction() as tx:
        tx.delete(Trajectory, id=name)
    assert world.rows(TrajectoryBranch, "number", trajectory_id=name) == []
