from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from prchain.core import errors
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage
from prchain.core.llm.wire import serialised
from tests.endpoint import Answer, FakeClock, FakeEndpoint, Part, completion, cut, error, in_turn, raw

KEY = "sk-made-up-key-0123456789abcdef"

PLAIN = Reply("ab", "small")

NO_CALL = ToolCall("", "", "")

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def model(fake: FakeEndpoint, clock: FakeClock, endpoint_of: Callable[..., Endpoint]) -> OpenAIModel:
    time: dict[str, Any] = {"clock": clock, "wall": clock, "sleep": clock.sleep, "random": lambda: 0.5}
    return OpenAIModel("small", endpoint_of(fake.url, max_tries=4, max_wait_seconds=300, **time))


@pytest.fixture
def endpoint_of() -> Iterator[Callable[..., Endpoint]]:
    """Makes endpoints, and closes them after the test."""
    with ExitStack() as stack:

        def make(url: str, **options: Any) -> Endpoint:
            endpoint = Endpoint(url, KEY, **options)
            stack.callback(endpoint.close)
            return endpoint

        yield make


def asking(text: str = "How are you?", **options: Any) -> Request:
    return Request((Message("system", "Be brief."), Message("user", text)), max_tokens=50, **options)


def test_a_question_is_sent_as_it_is_and_its_reply_read_whole(fake: FakeEndpoint, model: OpenAIModel) -> None:
    fake.part = completion("fine", reasoning_content="hm")
    reply = model.complete(asking(temperature=0.5, top_p=0.9, purpose="judge", subject="x:1"))
    (call,) = fake.calls
    assert call.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}],
        "max_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
    }
    assert (call.path, call.key) == ("/v1/chat/completions", KEY)
    assert reply == Reply("fine", "small", reasoning="hm", usage=Usage(call.size, None, 5))


def test_what_is_left_to_the_endpoint_is_not_sent_so_stored_replies_stay_found(
    fake: FakeEndpoint, model: OpenAIModel
) -> None:
    model.complete(asking())
    assert fake.calls[0].body is not None and not {"temperature", "top_p"} & fake.calls[0].body.keys()
    assert serialised(asking(), "small") != serialised(asking(top_p=0.9), "small")


def test_tools_and_their_calls_go_both_ways(fake: FakeEndpoint, model: OpenAIModel) -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    fake.part = completion(None, finish_reason="tool_calls", tool_calls=[called])
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    call = ToolCall("c0", "bash", "{}")
    history = (Message("user", "go"), Message("assistant", "", (call,)), Message("tool", "done", tool_call_id="c0"))
    reply = model.complete(Request(history, 50, tools=(tool,)))
    assert reply.tool_calls == (ToolCall("c1", "bash", '{"command": "ls"}'),)
    assert (reply.text, reply.finish) == ("", "tool_calls")
    body = fake.calls[0].body
    assert body["tools"] == [tool]
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "bash", "arguments": "{}"}
    assert body["messages"][2] == {"role": "tool", "content": "done", "tool_call_id": "c0"}


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(10, 4, 2),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(10, 4, 2, 5),
        ),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, Usage(32, None, 103)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 9}, Usage(32, None, 9)),
        ({"prompt_tokens": 32, "total_tokens": 135}, Usage(32)),
        ({"prompt_tokens": "10", "completion_tokens": 2.0, "prompt_tokens_details": {"cached_tokens": True}}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": 10**30, "prompt_tokens_details": 5}, Usage()),
        ([], Usage()),
        (None, Usage()),
    ],
)
def test_usage_is_taken_where_it_is_counts_and_left_out_where_it_is_not(
    usage: Any, read: Usage, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = raw({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert model.complete(asking()).usage == read


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"content": None, "refusal": "I will not"}, Reply("", "small", refusal="I will not")),
        ({"content": [{"type": "text", "text": "a"}, 5, {"type": "image"}, {"type": "text", "text": "b"}]}, PLAIN),
        ({"content": {"text": "x"}, "tool_calls": "none", "refusal": 5, "reasoning": []}, Reply("", "small")),
        ({"content": "<think>hm {}</think>\n\nyes", "reasoning": None}, Reply("yes", "small", reasoning="hm {}")),
        ({"content": "ab", "tool_calls": [None, {"function": 5}]}, replace(PLAIN, tool_calls=(NO_CALL, NO_CALL))),
        (
            {"content": "", "tool_calls": [{"id": 7, "function": {"name": "f", "arguments": {"a": 1}}}]},
            Reply("", "small", tool_calls=(ToolCall("", "f", '{"a": 1}'),)),
        ),
        ({"content": "a\x00b\ud800"}, Reply("a�b�", "small")),
        ({"content": f"my key is {KEY}"}, Reply("my key is [redacted]", "small")),
        ({}, Reply("", "small")),
    ],
)
def test_a_message_of_odd_types_is_read_as_what_it_is_sure_to_say(
    message: Any, read: Reply, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = raw({"choices": [{"finish_reason": None, "message": message}], "model": 5})
    assert model.complete(asking()) == read


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"NaN",
        [],
        "text",
        {},
        {"choices": []},
        {"choices": None},
        {"choices": {"0": 1}},
        {"choices": [5]},
        {"choices": [{}]},
        {"choices": [{"message": "hi"}]},
        {"error": {"message": f"no luck for {KEY}"}},
    ],
)
def test_a_body_that_is_no_completion_is_the_endpoints_fault_and_may_have_been_paid_for(
    body: Any, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = raw(body)
    with pytest.raises(errors.EndpointIncompatible, match=r"the endpoint .*; is llm_base_url right") as caught:
        model.complete(asking())
    assert caught.value.billed
    assert caught.value.infrastructure == "endpoint"
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    "page", [b"<html>502</html>", b"\n<!DOCTYPE html><title>Sign in</title>", b"<?xml version='1.0'?><Error/>"]
)
def test_a_web_page_with_status_200_is_the_endpoints_fault_and_was_not_paid_for(
    page: bytes, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = raw(page)
    with pytest.raises(errors.EndpointIncompatible, match="answered with a web page") as caught:
        model.complete(asking())
    assert not caught.value.billed and len(fake.calls) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_cost_nothing_is_sent_again_with_growing_pauses(
    status: int, fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    fake.part = in_turn(error(status), error(status), error(status), completion())
    assert model.complete(asking()).text == "fine"
    assert clock.slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, errors.EndpointUnreachable), (429, errors.RateLimited), (408, errors.EndpointUnreachable)],
)
def test_it_gives_up_after_max_tries(
    status: int, kind: type[errors.LlmError], fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = error(status, "busy")
    with pytest.raises(kind, match=f"{status}: busy") as caught:
        model.complete(asking())
    assert len(fake.calls) == 4
    assert not caught.value.billed


@pytest.mark.parametrize(
    "headers",
    [
        lambda clock: {"retry-after": "40"},
        lambda clock: {"retry-after": formatdate(clock() + 40, usegmt=True)},
        lambda clock: {"retry-after-ms": "40000", "retry-after": "9"},
    ],
)
def test_retry_after_is_honoured_in_seconds_and_as_a_date(
    headers: Callable[[FakeClock], dict[str, str]], fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    fake.part = in_turn(error(429, headers=headers(clock)), completion())
    model.complete(asking())
    assert clock.slept == [40.5]


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "99:99", ""])
def test_a_retry_after_that_says_nothing_leaves_the_usual_pause(
    value: str, fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    fake.part = in_turn(error(429, headers={"retry-after": value}), completion())
    model.complete(asking())
    assert clock.slept == [0.5]


def test_a_pause_longer_than_allowed_is_not_waited_for(
    fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    fake.part = error(429, headers={"retry-after": "301"})
    with pytest.raises(errors.RateLimited, match="max_wait_seconds") as caught:
        model.complete(asking())
    assert caught.value.seconds > 300
    assert clock.slept == []


def test_all_waits_of_a_call_together_keep_the_limit(fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock) -> None:
    fake.part = error(429, headers={"retry-after": "120"})
    with pytest.raises(errors.RateLimited):
        model.complete(asking())
    assert sum(clock.slept) <= 300
    assert len(fake.calls) == 3


def test_a_pause_that_one_call_is_told_holds_for_all_calls_of_the_endpoint(
    fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    other = OpenAIModel("other", model.endpoint)
    model.endpoint.be_quiet(25)
    other.complete(asking())
    assert clock.slept == [25]


LIMITED = {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "m is rate-limited"}}}
BROKEN_OFF = {
    "choices": [
        {"finish_reason": "error", "message": {"content": ""}, "error": {"code": 502, "message": "the stream closed"}}
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
}


@pytest.mark.parametrize(
    ("part", "slept"),
    [
        (raw(LIMITED, billed=False), [0.5]),
        (raw(LIMITED, billed=False, headers={"retry-after": "40"}), [40.5]),
        (raw([LIMITED], billed=False), [0.5]),
        (raw(BROKEN_OFF, billed=False), [0.5]),
    ],
)
def test_an_error_within_a_200_that_passes_is_waited_for_and_asked_again(
    part: Part, slept: list[float], fake: FakeEndpoint, model: OpenAIModel, clock: FakeClock
) -> None:
    fake.part = in_turn(part, completion())
    assert model.complete(asking()).text == "fine"
    assert clock.slept == slept and len(fake.bill) == 1


@pytest.mark.parametrize(
    ("body", "kind", "calls"),
    [
        (LIMITED, errors.RateLimited, 4),
        (BROKEN_OFF, errors.EndpointUnreachable, 4),
        ({"error": {"code": 402, "message": "pay"}}, errors.EndpointRefused, 1),
        ({"error": {"code": 400, "message": "prompt is too long"}}, errors.ContextTooLong, 1),
    ],
)
def test_an_error_within_a_200_that_stays_ends_as_its_status_does_and_costs_nothing(
    body: Any, kind: type[errors.LlmError], calls: int, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = raw(body, billed=False)
    with pytest.raises(kind, match=r"answered 200 with an error \(\d+\): ") as caught:
        model.complete(asking())
    assert not caught.value.billed and len(fake.calls) == calls


def test_money_that_ran_out_is_no_limit_to_wait_for(fake: FakeEndpoint, model: OpenAIModel) -> None:
    fake.part = error(429, "You exceeded your quota", code="insufficient_quota")
    with pytest.raises(errors.EndpointRefused, match="quota"):
        model.complete(asking())
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    ("part", "kind", "billed", "words"),
    [
        (error(401, "Incorrect API key"), errors.EndpointRefused, False, "OPENAI_API_KEY"),
        (error(403), errors.EndpointRefused, False, "key"),
        (error(402, "pay"), errors.EndpointRefused, False, "402: pay"),
        (error(404, "no such model"), errors.EndpointRefused, False, "llm_model"),
        (error(400, "temperature is not supported"), errors.EndpointRefused, False, "temperature"),
        (error(307, headers={"location": "http://127.0.0.1:1/"}), errors.EndpointRefused, False, "llm_base_url"),
        (error(400, "This model's maximum context length is 8192 tokens"), errors.ContextTooLong, False, "8192"),
        (error(400, "x", code="context_length_exceeded"), errors.ContextTooLong, False, "400"),
        (
            error(400, "request (20 tokens)", type="exceed_context_size_error"),
            errors.ContextTooLong,
            False,
            "20 tokens",
        ),
        (error(413), errors.ContextTooLong, False, "too large"),
        (
            lambda call: Answer(
                400, b'[{"error": {"message": "input token count (9) exceeds the maximum number of tokens"}}]'
            ),
            errors.ContextTooLong,
            False,
            "token count",
        ),
        (error(500, "the request exceeds the available context size"), errors.ContextTooLong, False, "500"),
        (
            error(
                400, "max_completion_tokens is too large: 50. The maximum context length is 9, your prompt has 8 tokens"
            ),
            errors.ContextTooLong,
            False,
            "too large",
        ),
        (error(502, billed=True), errors.EndpointUnreachable, True, "502"),
        (error(504, billed=True), errors.EndpointTimeout, True, "504"),
        (error(524, billed=True), errors.EndpointTimeout, True, "524"),
        (cut(-1), errors.EndpointUnreachable, True, "cut"),
        (cut(0), errors.EndpointUnreachable, True, "cut"),
        (cut(20), errors.EndpointUnreachable, True, "cut"),
        (raw(b"not gzip", headers={"content-encoding": "gzip"}), errors.EndpointUnreachable, True, "Decoding"),
    ],
)
def test_every_other_failure_has_a_name_is_sent_once_and_says_whether_it_may_be_paid(
    part: Part, kind: type[errors.LlmError], billed: bool, words: str, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = part
    with pytest.raises(errors.LlmError, match=words) as caught:
        model.complete(asking())
    assert type(caught.value) is kind
    assert caught.value.billed == billed == bool(fake.bill)
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"words", b"[]", b'{"error": "x"}', b'{"detail": [{"loc": 1}]}', b'{"error": {"message": 5}}', b"\xff"],
)
def test_an_error_whose_body_has_any_form_is_named_all_the_same(
    body: bytes, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = lambda call: Answer(400, body)
    with pytest.raises(errors.EndpointRefused, match="answered 400"):
        model.complete(asking())


@pytest.mark.parametrize("part", [completion(delay=5), raw(b" " * 100, trickle=0.05)])
def test_an_answer_that_does_not_end_in_time_is_a_timeout_that_may_be_paid(
    part: Part, fake: FakeEndpoint, endpoint_of: Callable[..., Endpoint]
) -> None:
    fake.part = part
    with pytest.raises(errors.EndpointTimeout, match="llm_timeout_seconds") as caught:
        OpenAIModel("small", endpoint_of(fake.url, timeout_seconds=0.3)).complete(asking())
    assert caught.value.billed
    assert len(fake.calls) == 1


def test_an_endpoint_that_is_not_there_is_tried_again_and_named(
    clock: FakeClock, endpoint_of: Callable[..., Endpoint]
) -> None:
    with FakeEndpoint() as gone:
        url = gone.url
    model = OpenAIModel("small", endpoint_of(url, max_tries=3, clock=clock, wall=clock, sleep=clock.sleep))
    with pytest.raises(errors.EndpointUnreachable, match=r"127\.0\.0\.1:\d+ cannot be reached.*llm_base_url") as caught:
        model.complete(asking())
    assert not caught.value.billed
    assert len(clock.slept) == 2


def test_a_schema_is_sent_with_the_request(fake: FakeEndpoint, model: OpenAIModel) -> None:
    model.complete(asking(schema=SCHEMA, schema_name="Verdict"))
    assert fake.calls[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Verdict", "strict": True, "schema": SCHEMA},
    }


def test_an_endpoint_that_ignores_the_schema_is_told_its_keys_in_every_question(
    fake: FakeEndpoint, model: OpenAIModel
) -> None:
    model.complete(asking(schema=SCHEMA))
    correction = Message("user", "Your reply holds no JSON object.")
    model.complete(Request((Message("user", "How?"), Message("assistant", "Well."), correction), 50, schema=SCHEMA))
    keys = '\n\nReply with one JSON object alone, which has the keys "score" (number).'
    assert [call.last for call in fake.calls] == [f"How are you?{keys}", f"{correction.content}{keys}"]
    assert fake.calls[1].body["messages"][0]["content"] == "How?"


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_that_refuses_response_format_is_told_the_schema_in_words_from_then_on(
    status: int, fake: FakeEndpoint, model: OpenAIModel
) -> None:
    def part(call: Any) -> Answer:
        refuses = "response_format" in call.body
        return (error(status, "response_format is not supported here") if refuses else completion('{"score": 1}'))(call)

    fake.part = part
    model.complete(asking(schema=SCHEMA))
    model.complete(asking(schema=SCHEMA))
    assert [("response_format" in call.body) for call in fake.calls] == [True, False, False]
    assert json.dumps(SCHEMA, sort_keys=True) in fake.calls[1].last
    assert fake.calls[1].last.startswith("How are you?")
    model.complete(asking())
    assert "JSON" not in fake.calls[-1].last


def test_a_model_that_wants_max_completion_tokens_gets_them(fake: FakeEndpoint, model: OpenAIModel) -> None:
    def part(call: Any) -> Answer:
        words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return (error(400, words) if "max_tokens" in call.body else completion())(call)

    fake.part = part
    model.complete(asking())
    model.complete(asking())
    assert [call.body.get("max_completion_tokens") for call in fake.calls] == [None, 50, 50]


def test_an_endpoint_that_refuses_every_form_is_asked_no_more_than_once_in_each(
    fake: FakeEndpoint, model: OpenAIModel
) -> None:
    fake.part = error(400, "response_format and max_completion_tokens are both wrong")
    with pytest.raises(errors.EndpointRefused):
        model.complete(asking(schema=SCHEMA))
    assert len(fake.calls) == 3


def test_no_more_calls_run_at_once_than_the_endpoint_takes_whatever_the_model(
    fake: FakeEndpoint, endpoint_of: Callable[..., Endpoint]
) -> None:
    endpoint = endpoint_of(fake.url, concurrency=3)
    fake.part = completion(delay=0.02)
    models = [OpenAIModel("a", endpoint), OpenAIModel("b", endpoint)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: models[i % 2].complete(asking(str(i))), range(24)))
    assert len(fake.calls) == 24
    assert fake.busiest == 3


def test_a_slot_is_given_back_after_a_failure(fake: FakeEndpoint, endpoint_of: Callable[..., Endpoint]) -> None:
    model = OpenAIModel("a", endpoint_of(fake.url, concurrency=1, max_tries=1))
    fake.part = in_turn(error(400), cut(), raw(b"x"), completion())
    for _ in range(3):
        with pytest.raises(errors.LlmError):
            model.complete(asking())
    thread = threading.Thread(target=lambda: model.complete(asking()), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


def test_the_key_shows_in_no_repr_and_in_no_error(fake: FakeEndpoint, model: OpenAIModel) -> None:
    fake.part = error(401, f"Incorrect API key provided: {KEY}")
    with pytest.raises(errors.EndpointRefused) as caught:
        model.complete(asking())
    assert KEY not in str(caught.value)
    assert KEY not in repr(model)


def test_text_that_cannot_be_encoded_is_sent_without_what_cannot(fake: FakeEndpoint, model: OpenAIModel) -> None:
    model.complete(asking("a\ud800b\x00"))
    assert fake.calls[0].last == "a�b�"
