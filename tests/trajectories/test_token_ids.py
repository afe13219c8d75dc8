"""Token ids and log-probabilities: from an endpoint's answer to the rows and to the exports that hold them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import RowUnreadable
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.model import Message, Reply, ToolCall, Usage
from prchain.core.llm.setup import make_gateway
from prchain.core.llm.token_ids import ReplyTokens, tokens_of
from prchain.core.settings import PurposeSettings, Settings
from sql.store import Store
from sql.tables import MessageTokens, TrajectoryMessage
from tests.databases import new_database
from tests.endpoint import FakeEndpoint, completion, raw
from tests.memory_ledger import MemoryLedger
from tests.trajectories.recordingworld import TOOL
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import RECORDED
from trajectories.programs.branches import branches_beside
from trajectories.recording.chat import AskedChat, read_asked
from trajectories.recording.conversation import Answered, Branch, RecordedConversations
from trajectories.recording.exchanges import SentRequest, unpacked
from trajectories.recording.recorder import ProgramRecorder
from trajectories.recording.storing import RecordedProgram, store_branch
from trajectories.rows import read_tokens
from trajectories.tokens import SeenTokens, packed, sequence_of, whole_tokens
from trajectories.tokens import unpacked as unpacked_tokens

VLLM = {
    "prompt_token_ids": [1, 2, 3],
    "choice": {"token_ids": [7, 8], "logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"logprob": 0}]}},
}
SGLANG = {
    "choice": {
        "prompt_token_ids": [1, 2, 3],
        "meta_info": {"output_token_logprobs": [[-0.5, 7, None], [0.0, 8, "b"]]},
    }
}
LATER_SGLANG = {
    "choice": {
        "prompt_token_ids": [1, 2, 3],
        "response_token_ids": [7, 8],
        "logprobs": {"content": [{"logprob": -0.5}, {"logprob": 0.0}]},
    }
}
GIVEN = ReplyTokens((1, 2, 3), (7, 8), (-0.5, 0.0))


@pytest.mark.parametrize("told", [VLLM, SGLANG, LATER_SGLANG])
def test_what_each_server_gives_is_read(told: dict[str, Any]) -> None:
    assert tokens_of(told, told["choice"]) == GIVEN


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, None),
        ({"token_ids": None, "logprobs": None, "meta_info": None}, None),
        ({"token_ids": [1, -1]}, None),
        ({"token_ids": [1, True]}, None),
        (
            {"token_ids": "12", "logprobs": {"content": [{"logprob": "x"}]}, "meta_info": {"output_token_logprobs": 5}},
            None,
        ),
        ({"token_ids": [1, 2], "logprobs": {"content": [{"logprob": -1.0}]}}, ReplyTokens(reply=(1, 2))),
        ({"logprobs": {"content": [{"logprob": -1.0}, 5]}}, None),
        ({"logprobs": {"content": [{"logprob": -1.0}]}}, ReplyTokens(logprobs=(-1.0,))),
        ({"logprobs": {"content": [{"logprob": float("nan")}]}}, None),
    ],
)
def test_what_is_no_token_is_left_out(choice: dict[str, Any], expected: ReplyTokens | None) -> None:
    assert tokens_of({}, choice) == expected


def test_a_stored_reply_has_its_tokens_and_one_without_is_stored_as_before() -> None:
    plain = Reply("hi", "small", tool_calls=(ToolCall("c", "bash", "{}"),), usage=Usage(1, 0, 2))
    assert "tokens" not in json.loads(plain.to_json())
    told = replace(plain, tokens=GIVEN)
    assert Reply.from_json(told.to_json()) == told
    long = replace(plain, tokens=ReplyTokens(tuple(range(50_000)), (), ()))
    assert len(long.to_json()) < 200_000, "compressed"


# ---- how a turn is kept

IDS = st.lists(st.integers(0, 3), max_size=9).map(tuple)


@given(st.lists(st.tuples(st.integers(0, 30), IDS, IDS), max_size=8))
def test_turns_are_put_together_as_they_came(steps: list[tuple[int, tuple[int, ...], tuple[int, ...]]]) -> None:
    seen: tuple[int, ...] = ()
    given_: list[ReplyTokens] = []
    for keep, new, reply in steps:  # a prompt begins with a part of what was seen
        given_.append(ReplyTokens(seen[:keep] + new, reply, tuple(-0.5 for _ in reply)))
        seen = given_[-1].prompt + reply
    kept = SeenTokens()
    turns = [kept.take(tokens) for tokens in given_]
    stored = [(number, replace(turn, added=unpacked_tokens(packed(turn.added)))) for number, turn in enumerate(turns)]
    assert [tokens for _, tokens in whole_tokens(stored)] == given_


def test_a_long_conversation_is_kept_by_what_each_turn_adds() -> None:
    seen: list[int] = []
    kept = SeenTokens()
    total = 0
    for number in range(100):
        prompt = [*seen, *range(number * 300, number * 300 + 250)]
        turn = kept.take(ReplyTokens(tuple(prompt), tuple(range(50))))
        seen = [*prompt, *range(50)]
        total += len(turn.added.prompt)
    assert total == 100 * 250


def test_tokens_that_cannot_be_read_are_said_by_name() -> None:
    with pytest.raises(RowUnreadable, match="token ids"):
        unpacked_tokens(b"x")


def test_a_conversation_whose_prompts_go_on_from_each_other_is_one_sequence() -> None:
    first = ReplyTokens((1, 2), (3, 4), (-0.1, -0.2))
    second = ReplyTokens((1, 2, 3, 4, 9), (5,), (-0.3,))
    found = sequence_of([(first, True), (second, False)])
    assert found is not None
    assert (found.ids, found.prompt) == ((1, 2, 3, 4, 9, 5), 2)
    assert (found.mask, found.logprobs) == ((1, 1, 0, 0), (-0.1, -0.2, 0.0, -0.3))


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [(None, True)],
        [(ReplyTokens((1,), (2,), ()), True)],
        [(ReplyTokens((1,), (2,), (0.0,)), True), (ReplyTokens((1, 3), (4,), (0.0,)), True)],
        [(ReplyTokens((1,), (2,), (0.0,)), True), (ReplyTokens((1,), (4,), (0.0,)), True)],
        [(ReplyTokens((), (2,), (0.0,)), True)],
    ],
)
def test_what_is_no_one_sequence_is_none(turns: list[tuple[ReplyTokens | None, bool]]) -> None:
    assert sequence_of(turns) is None


# ---- asking for them

QUESTION = Question("agent", "record/x", None, (Message("user", "Hello"),))
BODY = {"messages": [{"role": "user", "content": "Hello"}]}
ASKED = {"logprobs", "return_token_ids", "return_prompt_token_ids", "return_meta_info"}


def answers(told: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "hi"}
    choice = {"index": 0, "finish_reason": "stop", "message": message, **told["choice"]}
    return {"model": "m", "choices": [choice]} | {name: it for name, it in told.items() if name != "choice"}


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("may", [True, False])
def test_an_endpoint_is_asked_for_them_where_the_settings_say_so_and_nothing_forbids_it(
    wanted: bool, may: bool
) -> None:
    with FakeEndpoint(raw(answers(VLLM))) as fake, closing(Endpoint(fake.url, "key")) as endpoint:
        route = Route(OpenAIModel("m", endpoint), token_ids=wanted)
        gateway = Gateway(MemoryLedger(), route)
        reply = gateway.forward(QUESTION, BODY, token_ids=lambda: may).value
        assert (reply.tokens == GIVEN) is (wanted and may)
        assert (fake.calls[0].body.keys() >= ASKED) is (wanted and may)
        assert gateway.forward(QUESTION, BODY, token_ids=lambda: may).stored


def test_nobody_else_is_given_them() -> None:
    with FakeEndpoint(raw(answers(VLLM))) as fake, closing(Endpoint(fake.url, "key")) as endpoint:
        gateway = Gateway(MemoryLedger(), Route(OpenAIModel("m", endpoint), token_ids=True))
        assert gateway.complete(QUESTION).value.tokens is None
        assert not fake.calls[0].body.keys() & ASKED


def test_a_reply_of_which_something_was_taken_out_has_none() -> None:
    told = answers(VLLM)
    told["choices"][0]["message"]["content"] = "the key is secret-of-mine"
    with FakeEndpoint(raw(told)) as fake, closing(Endpoint(fake.url, "secret-of-mine")) as endpoint:
        gateway = Gateway(MemoryLedger(), Route(OpenAIModel("m", endpoint), token_ids=True))
        reply = gateway.forward(QUESTION, BODY).value
        assert reply.tokens is None and "secret" not in reply.text


def test_the_setting_is_a_purposes() -> None:
    settings = Settings(llm_model="m", purposes={"agent": PurposeSettings(token_ids=True)})
    gateway = make_gateway(settings, MemoryLedger())
    with closing(gateway):
        assert gateway.routes["agent"].token_ids
        assert gateway.default is not None and not gateway.default.token_ids


# ---- keeping and exporting them


def answered(text: str, tokens: ReplyTokens | None, *calls: ToolCall) -> Answered:
    reply = Reply(text, "small", tool_calls=calls, usage=Usage(9, 0, 2), tokens=tokens)
    return Answered(reply, 0.5, 1.0, "2026-01-01T00:00:00Z")


SYSTEM, QUERY = Message("system", "Be brief."), Message("user", "Mend it.")
FIRST = ReplyTokens((1, 2), (3, 4), (-0.25, -0.5))
SECOND = ReplyTokens((1, 2, 3, 4, 9), (5,), (-0.125,))


def conversation(clean: Callable[[str], str] = str, observed: str = "a.py") -> tuple[RecordedConversations, Branch]:
    all_ = RecordedConversations(clean)
    call = ToolCall("c", "bash", '{"command": "ls"}')
    body: dict[str, Any] = {"messages": []}
    all_.take([SYSTEM, QUERY], [TOOL], answered("", FIRST, call), SentRequest(body))
    on = [SYSTEM, QUERY, Message("assistant", "", (call,)), Message("tool", observed, tool_call_id="c")]
    return all_, all_.take(on, [TOOL], answered("Done.", SECOND), SentRequest(body))[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    new_database(tmp_path / "p.db")
    opened = Store.open(str(tmp_path / "p.db"))
    yield opened
    opened.close()


PROGRAM = RecordedProgram("run", "toy", "small")


def exported(store: Store, folder: Path, form: str, **options: Any) -> Any:
    chosen = ExportOptions(outcomes=frozenset({RECORDED}), **options)
    out = folder / ("atif" if form == "atif" else f"{form}.jsonl")
    export(store, chosen_format(form, chosen), chosen, out, force=True)
    file = next(out.glob("*.json")) if form == "atif" else out
    return json.loads(file.read_text())


def test_tokens_are_rows_of_their_own_and_are_put_together(store: Store) -> None:
    _, branch = conversation()
    store_branch(store, PROGRAM, branch, 0)
    with store.reading() as tx:
        name = PROGRAM.trajectory_id(branch)
        assert read_tokens(tx, name) == {2: FIRST, 4: SECOND}
        assert [row[0] for row in tx.rows(MessageTokens, "shared", trajectory_id=name)] == [0, 4]
    with store.transaction() as tx:
        tx.delete(TrajectoryMessage, trajectory_id=name, ordinal=4)
    with store.reading() as tx:
        assert read_tokens(tx, name) == {2: FIRST}


def test_slime_has_what_was_sampled_token_by_token_and_atif_the_metrics(store: Store, tmp_path: Path) -> None:
    store_branch(store, PROGRAM, conversation()[1], 0)
    line = exported(store, tmp_path, "slime")
    assert line["tokens"] == [1, 2, 3, 4, 9, 5]
    assert (line["response_length"], line["loss_mask"]) == (4, [1, 1, 0, 1])
    assert line["rollout_log_probs"] == [-0.25, -0.5, 0.0, -0.125]
    steps = [it for it in exported(store, tmp_path, "atif")["steps"] if it["source"] == "agent"]
    told = [
        {name: it["metrics"][name] for name in ("prompt_token_ids", "completion_token_ids", "logprobs")} for it in steps
    ]
    assert told[1] == {"prompt_token_ids": [1, 2, 3, 4, 9], "completion_token_ids": [5], "logprobs": [-0.125]}
    for form in ("swift", "trl", "openai"):
        options = {"masks": frozenset(), "refinements": "keep"} if form == "trl" else {}
        assert not {"tokens", "loss_mask"} & exported(store, tmp_path, form, **options).keys()


@pytest.mark.parametrize("observed", ["mail to ada@example.org", "see <|im_end|> here"])
def test_after_what_an_export_takes_out_no_ids_tell_it(store: Store, tmp_path: Path, observed: str) -> None:
    store_branch(store, PROGRAM, conversation(observed=observed)[1], 0)
    assert "tokens" not in exported(store, tmp_path, "slime")
    metrics = [it["metrics"] for it in exported(store, tmp_path, "atif")["steps"] if it["source"] == "agent"]
    assert ["completion_token_ids" in it for it in metrics] == [True, False]


def test_a_turn_of_which_something_is_taken_out_keeps_no_ids() -> None:
    _, branch = conversation(lambda text: text.replace("Done", "[redacted]"))
    assert [it.tokens is not None for it in branch.entries if it.kind is EntryKind.TURN] == [True, False]


def test_ids_of_a_branch_are_kept_with_its_reply_unless_something_was_taken_out() -> None:
    opening = Entry(1, 1, 1, 0, EntryKind.QUERY, "user", "q")
    for clean, kept in ((str, True), (lambda text: text.replace("One", "[redacted]"), False)):
        all_ = RecordedConversations(str)
        all_.take([QUERY], [TOOL], answered("One.", FIRST), SentRequest({"messages": []}))
        main, _ = all_.take([SYSTEM], [TOOL], answered("Two.", None), SentRequest({"messages": []}))
        (row,) = branches_beside(main, all_.branches, opening, clean)
        assert (unpacked(row.exchanges)[0].reply.tokens == FIRST) is kept


def test_a_request_that_holds_a_secret_is_sent_without_asking_for_ids() -> None:
    with FakeEndpoint(completion("hi")) as fake, closing(Endpoint(fake.url, "key")) as endpoint:
        gateway = Gateway(MemoryLedger(), Route(OpenAIModel("m", endpoint), token_ids=True))
        recorder = ProgramRecorder(gateway, "run", lambda branch, first: None, ("token-of-mine",))

        def ask(text: str) -> AskedChat:
            return read_asked(json.dumps({"messages": [{"role": "user", "content": text}]}).encode())

        for text in ("Mend it.", "Mend it with token-of-mine"):
            recorder.answer(ask(text), lambda: True, again=False)
        assert [call.body.keys() >= ASKED for call in fake.calls] == [True, False]
        assert recorder.found_secrets.total() == 1, "looking for them counts none twice"
