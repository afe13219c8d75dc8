"""Why replies end, in the words of many endpoints; and that replies that were cut off count as such."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.finishes import broke_off, decoded_again, finish_of, with_finish
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage

WHOLE, HALF = '{"command": "touch part1"}', '{"command": "cat > long.py <<EOF\\nx = 1\\nx = 1'


def calls(*arguments: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"c{at}", "bash", text) for at, text in enumerate(arguments))


def asking(**options: Any) -> Request:
    return Request((Message("user", "go"),), 4096, **options)


@pytest.mark.parametrize(
    ("meaning", "words"),
    [
        (
            "length",
            "length MAX_TOKENS max_tokens maxTokens model_length max_output_tokens max_new_tokens max_length LENGTH "
            "limit model_context_window_exceeded context_length ERROR_LIMIT token_limit truncated incomplete",
        ),
        (
            "content_filter",
            "content_filter SAFETY sensitive RECITATION PROHIBITED_CONTENT BLOCKLIST SPII ERROR_TOXIC content-filter "
            "guardrail_intervened refusal content_filtered",
        ),
    ],
)
def test_what_endpoints_say_for_one_reason_is_one_word(meaning: str, words: str) -> None:
    for word in words.split():
        assert finish_of(word) == meaning, word
        assert not broke_off(word), word


BROKE_OFF = (
    "error ERROR abort aborted failed failure cancelled canceled network_error server_error engine_error timeout "
    "insufficient_system_resource upstream_error interrupted service_unavailable overloaded rate_limit_exceeded "
    "time_limit preempted killed shutdown not_finished"
)
ENDED = "stop STOP tool_calls tool_use function_call end_turn eos eos_token stop_sequence COMPLETE odd"


def test_reasons_that_say_that_nothing_came_of_it() -> None:
    assert all(map(broke_off, BROKE_OFF.split()))
    for word in ENDED.split():
        assert not broke_off(word) and finish_of(word) == word, word


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (Reply("", "m", "tool_calls", tool_calls=calls(WHOLE, HALF), usage=Usage(100, None, 4096)), "length"),
        (Reply("", "m", "stop", tool_calls=calls(HALF), usage=Usage(100, None, 4097)), "length"),
        (Reply("", "m", "tool_calls", tool_calls=calls(WHOLE, ""), usage=Usage(100, None, 4096)), "length"),
        (Reply("", "m", "tool_calls", tool_calls=calls(json.dumps(HALF)), usage=Usage(1, None, 4096)), "length"),
        (Reply("", "m", "MAX_TOKENS", tool_calls=calls(WHOLE, HALF)), "length"),
        (Reply("", "m", "model_length", tool_calls=calls(WHOLE)), "length"),
        (Reply("", "m", "max_tokens", tool_calls=calls(HALF), usage=Usage(100, None, 7)), "length"),
        (Reply(" ", "m", "stop", reasoning="I thought", usage=Usage(100, None, 4096)), "length"),
        (Reply("", "m", "tool_calls", tool_calls=calls(WHOLE, WHOLE), usage=Usage(100, None, 4096)), "tool_calls"),
        (Reply("", "m", "tool_calls", tool_calls=calls(HALF, WHOLE), usage=Usage(100, None, 4096)), "tool_calls"),
        (Reply("", "m", "tool_calls", tool_calls=calls(WHOLE, HALF), usage=Usage(100, None, 4095)), "tool_calls"),
        (Reply("", "m", "tool_calls", tool_calls=calls(WHOLE, HALF)), "tool_calls"),
        (Reply("", "m", "tool_calls", tool_calls=calls(json.dumps(WHOLE)), usage=Usage(1, None, 4096)), "tool_calls"),
        (Reply("done", "m", "stop", usage=Usage(100, None, 4096)), "stop"),
        (Reply("", "m", "stop", refusal="no", usage=Usage(100, None, 4096)), "stop"),
        (Reply("", "m", "content_filter", tool_calls=calls(HALF), usage=Usage(100, None, 4096)), "content_filter"),
    ],
)
def test_a_reply_at_its_limit_that_ends_in_the_middle_was_cut_off(reply: Reply, finish: str) -> None:
    assert with_finish(reply, asking()).finish == finish


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ('{"score": 0.5, "comm', "length"),
        ("First I look at the", "length"),
        ('```json\n{"score": 1}\n```', "stop"),
        ('{"score": 1}', "stop"),
        ('{"score": {}} is what I think.', "stop"),
        ('{"comment": "{"}', "stop"),
        ('A "{" begins it: {"comment": "\\"{"}', "stop"),
        ('{"comment": "}', "length"),
        ('{"comment": "x } y", "scores": [1, 2', "length"),
    ],
)
def test_an_object_that_was_asked_for_and_is_not_closed_at_the_limit_was_cut_off(text: str, finish: str) -> None:
    reply = Reply(text, "m", usage=Usage(100, None, 4096))
    assert with_finish(reply, asking(schema={"type": "object"})).finish == finish


@pytest.mark.parametrize(
    ("arguments", "decoded"),
    [
        (json.dumps(WHOLE), WHOLE),
        (f" {json.dumps('{}')} ", "{}"),
        (json.dumps('{"a": "é\\n"}'), '{"a": "é\\n"}'),
        (WHOLE, None),
        ("", None),
        (json.dumps("ls"), None),
        (json.dumps(json.dumps([1])), None),
        (json.dumps(HALF), None),
        (json.dumps(json.dumps(WHOLE)), None),
        ('"{', None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_that_were_encoded_twice_are_decoded_once_more(arguments: str, decoded: str | None) -> None:
    assert decoded_again(arguments) == decoded


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_any_object_that_was_encoded_twice_is_found_and_none_that_was_encoded_once(value: dict[str, Any]) -> None:
    once = json.dumps(value)
    assert decoded_again(json.dumps(once)) == once
    assert decoded_again(once) is None
