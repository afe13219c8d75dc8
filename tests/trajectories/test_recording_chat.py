"""The dialect of chat completions, read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import RequestUnfit
from prchain.core.llm.model import Message, Reply, ToolCall, Usage
from trajectories.recording.chat import events, read_asked, whole

TEXTS = st.text(max_size=40)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    model=st.just("small"),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
    reasoning=st.none() | TEXTS.filter(bool),
    tool_calls=st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=3).map(tuple),
    usage=st.builds(Usage, st.integers(0, 9), st.none(), st.integers(0, 9)),
)


def read_stream(data: bytes) -> dict[str, Any]:
    """What a reader makes of a stream, by the API reference: deltas of one message are put together."""
    *lines, last = [line.removeprefix(b"data: ") for line in data.split(b"\n\n")[:-1]]
    assert last == b"[DONE]"
    found: dict[str, Any] = {"content": "", "reasoning_content": "", "calls": {}, "finish": None, "usage": None}
    for chunk in map(json.loads, lines):
        assert chunk["object"] == "chat.completion.chunk"
        found["usage"] = chunk.get("usage") or found["usage"]
        for choice in chunk["choices"]:
            delta = choice["delta"]
            found["content"] += delta.get("content") or ""
            found["reasoning_content"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                found["calls"][call["index"]] = ToolCall(call["id"], **call["function"])
            found["finish"] = choice["finish_reason"] or found["finish"]
    return found


@given(REPLIES)
def test_a_stream_says_what_the_whole_answer_says(reply: Reply) -> None:
    read = read_stream(b"".join(events(reply, "x", 1, with_usage=True)))
    answer = json.loads(whole(reply, "x", 1))
    (choice,) = answer["choices"]
    assert read["content"] == (choice["message"]["content"] or "") == reply.text
    assert (read["reasoning_content"] or None) == choice["message"].get("reasoning_content") == reply.reasoning
    assert tuple(read["calls"].values()) == reply.tool_calls
    told = [ToolCall(call["id"], **call["function"]) for call in choice["message"].get("tool_calls", ())]
    assert tuple(told) == reply.tool_calls
    assert read["finish"] == choice["finish_reason"]
    assert read["usage"] == answer["usage"]


def test_a_reply_with_calls_ends_as_agents_expect_it() -> None:
    called = Reply("", "small", tool_calls=(ToolCall("c", "bash", "{}"),))
    assert json.loads(whole(called, "x", 1))["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_tells_what_was_used_only_where_it_was_asked_for() -> None:
    reply = Reply("hi", "small", usage=Usage(3, 1, 2))
    assert read_stream(b"".join(events(reply, "x", 1, with_usage=False)))["usage"] is None
    assert json.loads(whole(reply, "x", 1))["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    assert json.loads(whole(Reply("hi", "small"), "x", 1))["usage"] is None


def test_messages_are_read_in_every_form_that_agents_send() -> None:
    body = {
        "model": "any",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "done"},
            {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function"}, 5],
    }
    asked = read_asked(json.dumps(body).encode())
    assert asked.messages == (
        Message("system", "Be\nbrief."),
        Message("user", "see\n[image left out]"),
        Message("assistant", "", (ToolCall("c", "bash", '{"a": 1}'),), reasoning="hm"),
        Message("tool", "done", tool_call_id="c"),
        Message("assistant", "", (ToolCall("", "f", "{}"),)),
    )
    assert (asked.stream, asked.with_usage, asked.tools) == (True, True, ({"type": "function"},))
    assert asked.body == body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"messages": []}',
        b'{"messages": "hi"}',
        b'{"messages": [5]}',
        b'{"messages": [{"role": "robot", "content": "hi"}]}',
        b'{"messages": [{"role": ["user"], "content": "hi"}]}',
        b'{"messages": [{"role": "user", "content": "hi"}], "n": 2}',
        b'{"messages": [{"role": "user", "content": "hi"}], "n": [1]}',
    ],
)
def test_what_is_no_request_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(RequestUnfit) as refused:
        read_asked(body)
    assert "\n" not in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "reasoning_content", "function_call"), JSON),
)


@given(st.lists(MESSAGE, min_size=1, max_size=3), JSON, JSON)
def test_fields_of_odd_types_are_no_defect(messages: list[Any], tools: Any, options: Any) -> None:
    body = {"messages": messages, "tools": tools, "stream_options": options}
    asked = read_asked(json.dumps(body).encode())
    assert len(asked.messages) == len(messages)
