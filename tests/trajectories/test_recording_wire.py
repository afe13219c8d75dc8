"""The dialect's writer under OpenAI's own reader, faults planted in it, and bodies in odd pieces and sizes."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Reply, ToolCall, Usage
from tests.endpoint import FakeEndpoint, completion
from tests.models import FakeModel
from tests.trajectories.recordingworld import recorder_of, recording
from tests.trajectories.sdkreader import read_stream, read_whole
from tests.trajectories.test_recording import post
from trajectories.recording.chat import PING, events, whole

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
CALLS = st.lists(st.builds(ToolCall, TEXTS.filter(bool), TEXTS, TEXTS), max_size=3).map(tuple)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    model=st.just("small"),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
    refusal=st.none() | TEXTS.filter(bool),
    reasoning=st.none() | TEXTS.filter(bool),
    tool_calls=CALLS,
    usage=st.just(Usage()) | st.builds(Usage, st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 9)),
)
TWO_CALLS = Reply(
    "On it.",
    "small",
    "tool_calls",
    reasoning="hm",
    tool_calls=(ToolCall("a", "bash", '{"command": "ls"}'), ToolCall("b", "edit", "{}")),
    usage=Usage(3, 1, 2),
)


def ended(reply: Reply) -> Reply:
    """The reply with its end in the dialect's words."""
    finish = "tool_calls" if reply.tool_calls and reply.finish == "stop" else reply.finish
    return Reply(reply.text, reply.model, finish, reply.refusal, reply.reasoning, reply.tool_calls, reply.usage)


def split(data: bytes, places: Sequence[int]) -> list[bytes]:
    cuts = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[one:other] for one, other in pairwise(cuts)]


@given(REPLIES, st.lists(st.integers(0, 9999), max_size=12), st.booleans())
def test_however_a_stream_is_split_openais_client_reads_the_reply(
    reply: Reply, places: list[int], waited: bool
) -> None:
    data = PING * waited + b"".join(events(reply, "x", 1, with_usage=True))
    assert read_stream(split(data, places)) == ended(reply)
    assert read_whole(whole(reply, "x", 1)) == ended(reply)


def test_a_stream_is_read_byte_by_byte() -> None:
    reply = Reply("né 😀", "small", reasoning="…", tool_calls=(ToolCall("a", "b", '{"c": "é"}'),))
    data = b"".join(events(reply, "x", 1, with_usage=True))
    assert read_stream([data[at : at + 1] for at in range(len(data))]) == ended(reply)


def test_comments_are_passed_over_wherever_they_stand() -> None:
    parts = [part for event in events(TWO_CALLS, "x", 1, with_usage=True) for part in (PING, PING, event)]
    assert read_stream(parts) == TWO_CALLS


def _without(words: str) -> Callable[[bytes], bytes]:
    return lambda event: b"" if words.encode() in event else event


def _changed(old: str, new: str) -> Callable[[bytes], bytes]:
    def change(event: bytes) -> bytes:
        return event.replace(old.encode(), new.encode())

    return change


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "a missing [DONE]": _without("[DONE]"),
    "a lost finish reason": _changed('"finish_reason": "tool_calls"', '"finish_reason": null'),
    "the end left out": _without('"finish_reason": "tool_calls"'),
    "a call at a wrong index": _changed('"tool_calls": [{"index": 0', '"tool_calls": [{"index": 1'),
    "two calls at one index": _changed('"tool_calls": [{"index": 1', '"tool_calls": [{"index": 0'),
    "a choice at a wrong index": _changed('"choices": [{"index": 0', '"choices": [{"index": 1'),
    "a call without its index": _changed('"tool_calls": [{"index": 0, ', '"tool_calls": [{'),
    "another kind of object": _changed('"object": "chat.completion.chunk"', '"object": "chat.completion"'),
    "no choices": _changed('"choices": [{', '"choice": [{'),
    "arguments that are no text": _changed('"arguments": "{}"', '"arguments": {}'),
    "half an event": lambda event: event[:-3] if b"reasoning_content" in event else event,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_writer_does_not_pass_the_reader(fault: str) -> None:
    written = [*events(TWO_CALLS, "x", 1, with_usage=True)]
    assert read_stream(written) == TWO_CALLS
    faulty = [FAULTS[fault](event) for event in written]
    assert faulty != written, "it is planted"
    try:
        read = read_stream(faulty)
    except Exception:
        return
    assert read != TWO_CALLS


WHOLE_FAULTS = {
    "a lost finish reason": ('"finish_reason": "tool_calls"', '"finish_reason": null'),
    "no choices": ('"choices"', '"choice"'),
    "a call without a name": ('"name": "bash", ', ""),
    "no role": ('"role": "assistant", ', ""),
}


@pytest.mark.parametrize("fault", WHOLE_FAULTS)
def test_a_fault_in_a_whole_answer_does_not_pass_the_reader(fault: str) -> None:
    written = whole(TWO_CALLS, "x", 1)
    assert read_whole(written) == TWO_CALLS
    old, new = WHOLE_FAULTS[fault]
    faulty = written.replace(old.encode(), new.encode())
    assert faulty != written
    with pytest.raises(Exception):  # noqa: B017  each fault has its own
        read_whole(faulty)


# ---- requests


def ask(body: bytes, server: Any, pieces: Sequence[bytes]) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.settimeout(60)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.002)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)
    return answer


def test_a_request_that_comes_in_pieces_is_one() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "né 😀"}]}, ensure_ascii=False).encode()
    model = FakeModel(lambda request: request.messages[-1].content)
    with recording(model) as server:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\n"
        sent = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        for places in ([], [*range(0, len(sent), 7)], [len(sent) - 1], [len(sent) - len(body)]):
            answer = ask(body, server, split(sent, places))
            assert json.loads(answer[answer.index(b"\r\n\r\n") :])["choices"][0]["message"]["content"] == "né 😀"


def test_ten_megabytes_are_answered_and_reach_the_endpoint_as_they_are() -> None:
    text = "0123456789abcdef" * (10 << 16)
    body = {"messages": [{"role": "user", "content": text}], "unknown": {"deep": [1, None]}, "stream": False}
    with (
        FakeEndpoint(completion("long")) as fake,
        closing(Endpoint(fake.url, "key")) as endpoint,
        recording(OpenAIModel("real", endpoint)) as server,
    ):
        status, answer = post(server, json.dumps(body).encode())
        assert status == 200 and answer["choices"][0]["message"]["content"] == "long"
        assert fake.calls[0].body["messages"] == body["messages"]
        assert fake.calls[0].body["unknown"] == {"deep": [1, None]}
        (branch,) = recorder_of(server).conversations.branches
        assert branch.entries[0].content == text


def test_an_endpoint_that_tells_no_usage_is_passed_on_without() -> None:
    with recording(FakeModel(lambda request: Reply("hi", "small"))) as server:
        body = {"messages": [{"role": "user", "content": "x"}]}
        assert post(server, json.dumps(body).encode())[1]["usage"] is None
        (branch,) = recorder_of(server).conversations.branches
        assert branch.entries[-1].tokens_in is None
