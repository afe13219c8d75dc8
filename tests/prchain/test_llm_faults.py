"""What answers of every shape are called: errors of a status, and errors within a 200."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
import openai
import pytest

from prchain.core import errors
from prchain.core.llm.error_bodies import read_error
from prchain.core.llm.faults import EndpointFault, fault_of, fault_within
from prchain.core.llm.model import Reply
from prchain.core.llm.wire import FailedAnswer, reply_of

NOW = 1_790_000_000.0
WHERE = "the endpoint h"
KEY = "sk-made-up-key-0123456789abcdef"
TOO_LONG = "The input token count (9000) exceeds the maximum number of tokens allowed (5000)."


def encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def fault(status: int, body: Any, **headers: str) -> EndpointFault:
    """The fault of an answer with this status and body."""
    request = httpx2.Request("POST", "http://h/v1/chat/completions")
    answer = httpx2.Response(status, content=encoded(body), headers=headers, request=request)
    return fault_of(openai.APIStatusError("no", response=answer, body=None), WHERE, (KEY,), NOW)


def within(body: Any, **headers: str) -> EndpointFault:
    """The fault of an answer with status 200 and this body."""
    answer = reply_of(encoded(body), "m", (KEY,), WHERE, NOW)
    assert isinstance(answer, FailedAnswer)
    return fault_within(answer, headers, WHERE, (KEY,), NOW)


def choice(finish: str | None, content: str = "", usage: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "finish_reason": finish, "message": message} | fields], "usage": usage}


NOTHING_USED = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

FULL_SHAPES: dict[str, tuple[int, Any]] = {
    "openai": (400, {"error": {"message": "no", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
    "dashscope": (
        400,
        {
            "error": {
                "code": "invalid_parameter_error",
                "message": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 5000]",
                "type": "invalid_request_error",
            }
        },
    ),
    "gemini, a list": (400, [{"error": {"code": 400, "message": TOO_LONG, "status": "INVALID_ARGUMENT"}}]),
    "kimi": (400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 5000"}}),
    "zhipu": (400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    "zhipu, by the code alone": (400, {"error": {"code": 1261, "message": "no"}}),
    "dashscope's own": (400, {"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]"}),
    "a text": (400, b"Input is too long."),
    "a text of a proxy": (500, b"upstream said: prompt is too long: 213462 tokens > 200000 maximum"),
    "error is a text": (400, {"error": "the input length exceeds the context length"}),
    "vllm, at the top": (400, {"object": "error", "message": "maximum context length is 8 tokens", "code": 400}),
    "vllm, 500": (500, {"object": "error", "message": "The prompt (length 9) is longer than the max model length"}),
    "fastapi": (
        422,
        {
            "detail": [
                {
                    "loc": ["body", "messages", 1, "content"],
                    "msg": "String should have at most 4096 characters",
                    "ctx": {},
                }
            ]
        },
    ),
    "fastapi, a text": (422, {"detail": "Prompt too long: 9000 tokens exceeds max context window of 8192 tokens"}),
    "aws": (400, {"Message": "Input is too long for requested model.", "__type": "ValidationException"}),
    "cloudflare": (413, {"success": False, "errors": [{"code": 5021, "message": "exceeded this model context limit"}]}),
    "github models": (
        413,
        {"error": {"code": "tokens_limit_reached", "message": "Request body too large for m model."}},
    ),
    "openrouter, raw json": (
        400,
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps({"error": {"message": TOO_LONG}}), "provider_name": "A"},
            }
        },
    ),
    "json in a message": (502, {"error": {"message": json.dumps({"detail": "context length exceeded"})}}),
    "nested deep": (424, {"error": {"innererror": {"details": [{"reason": "x", "message": TOO_LONG}]}}}),
    "baidu": (400, {"error_code": 336103, "error_msg": "Prompt tokens too long"}),
    "minimax": (
        400,
        {"base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit"}},
    ),
    "nginx": (413, b"<html><head><title>413 Request Entity Too Large</title></head></html>"),
    "express": (413, {"message": "request entity too large", "expected": 9, "limit": 8, "type": "entity.too.large"}),
}


@pytest.mark.parametrize("shape", FULL_SHAPES)
def test_a_full_context_is_one_in_every_shape_and_at_every_status_and_is_not_sent_again(shape: str) -> None:
    found = fault(*FULL_SHAPES[shape])
    assert type(found.error) is errors.ContextTooLong
    assert not found.again and not found.error.billed


@pytest.mark.parametrize("shape", [shape for shape, (status, _) in FULL_SHAPES.items() if status not in {413}])
def test_a_full_context_is_one_within_a_200_too(shape: str) -> None:
    body = FULL_SHAPES[shape][1]
    if isinstance(body, bytes):
        body = {"error": body.decode()}
    assert type(within(body).error) is errors.ContextTooLong
    if isinstance(body, dict) and body.get("error"):
        assert type(within(choice("error", usage=NOTHING_USED, error=body["error"])).error) is errors.ContextTooLong


LIMITED, REFUSED = (errors.RateLimited, True), (errors.EndpointRefused, False)
DOWN, LATE = (errors.EndpointUnreachable, True), (errors.EndpointTimeout, True)
"""What an answer is called, and whether it is asked for again on the same reservation."""


def said(message: str, code: Any = None, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "code": code} | fields}


@pytest.mark.parametrize(
    ("status", "body", "named"),
    [
        (
            413,
            said("Request too large on tokens per minute (TPM): Limit 6, Requested 9", "rate_limit_exceeded"),
            LIMITED,
        ),
        (429, said("Too many tokens, please wait before trying again."), LIMITED),
        (429, said("您的账户已达到速率限制", "1302"), LIMITED),
        (413, said("image exceeds 5 MB maximum"), REFUSED),
        (400, said("max_tokens: 9 > 8, which is the maximum allowed number of output tokens"), REFUSED),
        (500, said("insufficient balance (1008)"), REFUSED),
        (429, said("您的账户已欠费", "1113"), REFUSED),
        (400, said("Your credit balance is too low"), REFUSED),
        (500, said("rpc error: code = DeadlineExceeded desc = context deadline exceeded"), DOWN),
        (500, said("upstream billing service timeout"), DOWN),
        (503, b"busy", DOWN),
        (502, b"bad gateway", (errors.EndpointUnreachable, False)),
    ],
)
def test_other_causes_of_a_status_keep_their_names(
    status: int, body: Any, named: tuple[type[errors.LlmError], bool]
) -> None:
    found = fault(status, body)
    assert (type(found.error), found.again) == named


@pytest.mark.parametrize(
    ("status", "body", "unexplained"),
    [
        (400, b"", True),
        (400, {"error": {"message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT"}}, True),
        (422, {"detail": "Unprocessable Entity"}, True),
        (400, {"error": {"message": "temperature must be between 0 and 2"}}, False),
        (400, {"error": {"message": "Unsupported parameter: 'tools'"}}, False),
        (401, b"", False),
        (404, b"", False),
    ],
)
def test_a_refusal_says_whether_it_names_a_cause(status: int, body: Any, unexplained: bool) -> None:
    error = fault(status, body).error
    assert isinstance(error, errors.EndpointRefused) and error.unexplained == unexplained


RAW = {"raw": "m is temporarily rate-limited upstream", "provider_name": "A"}
RAW_JSON = {"raw": '{"error": {"message": "the real words"}}'}
CLOSED = said("Upstream closed the stream", 502)


@pytest.mark.parametrize(
    ("body", "named", "words"),
    [
        (said("Provider returned error", 429, metadata=RAW), LIMITED, "rate-limited upstream"),
        (said("slow down", "429"), LIMITED, "slow down"),
        (said("slow down", "rate_limit_exceeded"), LIMITED, "slow down"),
        (said("slow down", type="rate_limit_error"), LIMITED, "slow down"),
        (said("slow down", status="RESOURCE_EXHAUSTED"), LIMITED, "slow down"),
        ({"error": "rate_limit_exceeded"}, LIMITED, "rate_limit_exceeded"),
        (said("您当前使用该API的并发数过高", "1302"), LIMITED, "1302"),
        ({"Response": {"Error": {"Code": "LimitExceeded", "Message": "slow down"}}}, LIMITED, "slow down"),
        ({"error_code": 110, "error_msg": "Access token invalid or no longer valid"}, REFUSED, "check the key"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail: no API secret key"}}, REFUSED, "the key"),
        ({"base_resp": {"status_code": 2013, "status_msg": "invalid params, no messages"}}, REFUSED, "2013"),
        ({"success": False, "errors": [{"code": 3040, "message": "Capacity temporarily exceeded"}]}, DOWN, "Capacity"),
        ({"code": 20012, "message": "The model x does not exist"}, REFUSED, "llm_model"),
        (b'data: {"error": {"code": 503, "message": "oops"}}\n\ndata: [DONE]\n\n', DOWN, "oops"),
        (b": ping\n\nevent: error\ndata: " + encoded(said("oops", type="overloaded_error")), DOWN, "oops"),
        ({"error": "429 Too Many Requests"}, LIMITED, "Too Many"),
        ({"error": "Rate limit reached, slow down"}, LIMITED, "slow down"),
        ({"error": "The model is overloaded"}, DOWN, "overloaded"),
        ({"error": True, "message": "Model gpt2 is currently loading"}, DOWN, "loading"),
        (said("您的账户已达到速率限制", "1302"), LIMITED, "1302"),
        (said("该模型当前访问量过大", "1305"), DOWN, "1305"),
        (said("resource exhausted", 8), LIMITED, "resource exhausted"),
        ({"code": "DataInspectionFailed", "message": "Output data may be inappropriate."}, REFUSED, "inappropriate"),
        ([said("slow down", 429)], LIMITED, "slow down"),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": None}, LIMITED, "rate limit"),
        ({"code": 429, "msg": "slow down", "success": False}, LIMITED, "slow down"),
        ({"code": 11202, "message": "AppIdQpsOverFlowError", "sid": "x"}, LIMITED, "Qps"),
        (said("Insufficient credits", 402), REFUSED, "Insufficient.*no credit left"),
        (said("no more", "insufficient_quota"), REFUSED, "no more.*no credit left"),
        (said("You have reached your specified API usage limits.", 400), REFUSED, "no credit left"),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, REFUSED, "no credit left"),
        (said(f"bad key {KEY}", 401), REFUSED, "check the key"),
        (said("no such model", 404), REFUSED, "llm_model"),
        (said("tools are wrong", 400), REFUSED, "tools"),
        (said("oops", 500), DOWN, "oops"),
        (said("oops", 502), DOWN, "oops"),
        (said("oops", "server_error"), DOWN, "oops"),
        (said("late", 504), LATE, "late"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, DOWN, "Overloaded"),
        ({"object": "error", "message": "oops", "type": "InternalServerError", "code": 500}, DOWN, "oops"),
        ({"detail": "oops", "status_code": 503}, DOWN, "oops"),
        (said("Provider returned error", 502, metadata=RAW_JSON), DOWN, "the real words"),
        (choice("error", usage=NOTHING_USED, **CLOSED), DOWN, "Upstream closed"),
        (choice("error", "Let me", {"completion_tokens": 9}, **CLOSED), DOWN, "Upstream closed"),
        (choice("stop", **said("slow down", 429)), LIMITED, "slow down"),
        (choice(None, **said("pay", 402)), REFUSED, "pay"),
        ({"choices": [said("oops", "overloaded")]}, DOWN, "oops"),
        (choice("error", usage=NOTHING_USED), DOWN, "finish_reason is 'error'"),
        (choice("abort"), DOWN, "finish_reason is 'abort'"),
        (
            {"choices": [{"finish_reason": {"type": "abort", "message": "x"}, "message": {"content": ""}}]},
            DOWN,
            "abort",
        ),
        (choice("ERROR", usage=NOTHING_USED, **said("the real words")), DOWN, "the real words"),
        (choice("network_error", usage=NOTHING_USED), DOWN, "network_error"),
        (choice("insufficient_system_resource", usage=NOTHING_USED), DOWN, "resource"),
        (choice("cancelled"), DOWN, "cancelled"),
        (choice("MALFORMED_FUNCTION_CALL", usage=NOTHING_USED), DOWN, "MALFORMED"),
        (choice("function_call_filter: UNEXPECTED_TOOL_CALL", usage=NOTHING_USED), DOWN, "function_call_filter"),
        (choice(None, usage=NOTHING_USED, native_finish_reason="MALFORMED_FUNCTION_CALL"), DOWN, "MALFORMED"),
    ],
)
def test_an_error_within_a_200_is_the_status_that_its_code_names_unbilled_and_in_its_real_words(
    body: Any, named: tuple[type[errors.LlmError], bool], words: str
) -> None:
    found = within(body)
    assert (type(found.error), found.again) == named
    assert not found.error.billed
    assert re.search(words, str(found.error))
    assert KEY not in str(found.error) and KEY not in found.words


@pytest.mark.parametrize(
    "body",
    [
        choice("error", "half a reply"),
        choice("failed", "", {"completion_tokens": 7}),
        choice("abort", "{", {"completion_tokens": 1}),
        choice("malformed_function_call", "", {"completion_tokens": 7}),
    ],
)
def test_a_reply_that_broke_off_after_a_model_worked_may_have_been_paid_for(body: Any) -> None:
    found = within(body)
    assert type(found.error) is errors.EndpointUnreachable
    assert found.error.billed and not found.again


@pytest.mark.parametrize(
    ("finish", "error"),
    [
        ("stop", None),
        ("stop", {}),
        ("stop", ""),
        ("stop", {"code": None, "message": None}),
        ("stop", {"code": 0, "message": "ok"}),
        ("stop", {"code": 200, "message": "success"}),
        ("length", False),
        ("tool_calls", []),
        ("malformed_function_call", None),
        ("end_turn", None),
    ],
)
def test_a_reply_beside_a_field_that_says_no_error_is_a_reply(finish: str, error: Any) -> None:
    for body in (choice(finish, "fine", error=error), choice(finish, "fine") | {"error": error}):
        assert isinstance(reply_of(encoded(body), "m"), Reply)


@pytest.mark.parametrize(
    ("own", "native", "finish"),
    [
        ("tool_calls", "MAX_TOKENS", "MAX_TOKENS"),
        ("stop", "length", "length"),
        (None, "end_turn", "end_turn"),
        (None, None, "stop"),
        ("tool_calls", "STOP", "tool_calls"),
        ("length", "STOP", "length"),
        ("stop", 5, "stop"),
    ],
)
def test_an_upstreams_finish_counts_where_it_tells_of_a_cut(own: str | None, native: Any, finish: str) -> None:
    found = reply_of(encoded(choice(own, "fine", native_finish_reason=native)), "m")
    assert isinstance(found, Reply) and found.finish == finish


@pytest.mark.parametrize(
    "body",
    [said("odd"), {"detail": "odd"}, {"message": "odd", "status": "ok"}, choice(None) | {"error": "odd"}],
)
def test_an_error_without_a_code_is_no_completion_in_its_own_words(body: Any) -> None:
    found = within(body)
    assert type(found.error) is errors.EndpointIncompatible and found.error.billed
    assert "odd" in str(found.error) and "llm_base_url" in str(found.error)


@pytest.mark.parametrize(
    ("error", "headers", "seconds"),
    [
        ({}, {"retry-after": "30"}, 30.0),
        ({"metadata": {"headers": {"Retry-After": "17"}}}, {}, 17.0),
        ({"metadata": {"headers": {"X-RateLimit-Reset": str(int((NOW + 40) * 1000))}}}, {}, 40.0),
        ({"retry_after": 12}, {}, 12.0),
        ({"metadata": {"retry_after_ms": 2500}}, {}, 2.5),
        ({"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "27.5s"}]}, {}, 27.5),
        ({"message": "Please try again in 1m26.5s."}, {}, 86.5),
        ({"message": "Please try again in 500ms."}, {}, 0.5),
        ({"message": "Please retry after 20 seconds."}, {}, 20.0),
        ({"message": "Please try again later."}, {}, None),
        ({"retry_after": -5}, {}, None),
        ({"retry_after": "soon"}, {}, None),
    ],
)
def test_the_pause_that_an_error_asks_for_is_honoured(
    error: Any, headers: dict[str, str], seconds: float | None
) -> None:
    body = {"error": {"code": 429, "message": "slow down"} | error}
    assert within(body, **headers).retry_after == seconds
    assert fault(429, body, **headers).retry_after == seconds


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", [], {}, "x", 5, None, {"error": {"message": 5}}, {"detail": [{"loc": 1}]}, [[[[[[[[["deep"]]]]]]]]],
     {"error": {"code": True, "type": []}}, b"[" * 100_000, {"error": {"metadata": {"raw": "{" * 5000}}}],
)  # fmt: skip
def test_a_body_of_any_shape_is_read(body: Any) -> None:
    read_error(encoded(body), NOW)
    assert "answered 400" in str(fault(400, body).error)


def test_what_an_error_quotes_of_a_request_is_no_cause() -> None:
    quoted = {"detail": [{"loc": ["body", "tool_choice"], "msg": "Field required", "input": {"messages": [TOO_LONG]}}]}
    assert type(fault(422, quoted).error) is errors.EndpointRefused
