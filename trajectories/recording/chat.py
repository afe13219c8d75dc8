"""The dialect of OpenAI's ``/chat/completions``, from the side that answers: pure, from bytes to values and back.

See OpenAI's API reference, "Chat": "Create chat completion" and "Streaming"; HTML, "Server-sent events".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prchain.core.errors import RequestUnfit
from prchain.core.llm.model import Message, Reply, Role, ToolCall

_LONE = re.compile("[\ud800-\udfff]")
"""Surrogates without their other half: no UTF-8 has them."""

_HALVES = (b"\\u", b"\xed", b"\0")
"""Without one of these no text of a body has such a half: JSON's escape, its bytes in UTF-8, and UTF-16 or 32."""

PATH = "/v1/chat/completions"

PING = b": waiting\n\n"
"""A comment of a stream of events: it keeps a connection open, and readers pass it over."""

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class AskedChat:
    """What a program asks."""

    body: Mapping[str, Any]
    """As it was sent."""
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    stream: bool = False
    with_usage: bool = False
    """Whether a stream ends with the tokens that were used."""
    digest: str = ""
    """Of the bytes that were sent: a client sends the same ones again."""


def read_asked(data: bytes) -> AskedChat:
    """The request that a body holds. Raises `RequestUnfit`, whose words are for the program."""
    try:
        body = json.loads(data, parse_constant=_no_number)
        if any(sign in data for sign in _HALVES):
            body = _encodable(body)
    except (ValueError, RecursionError):
        raise RequestUnfit("the body is no JSON") from None
    if not isinstance(body, dict):
        raise RequestUnfit("the body is no object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestUnfit("messages must be a list with at least one message")
    if body.get("n", 1) not in (None, 1):  # a tuple: it may be a list
        raise RequestUnfit("n must be 1: one reply is recorded to each request")
    tools = body.get("tools")
    options = body.get("stream_options")
    return AskedChat(
        body,
        tuple(_message(number, message) for number, message in enumerate(messages, 1)),
        tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else (),
        body.get("stream") is True,
        isinstance(options, dict) and options.get("include_usage") is True,
        hashlib.sha256(data).hexdigest(),
    )


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON (RFC 8259, section 6)")


def _encodable(value: Any) -> Any:
    """The value with its texts as they can be sent: programs that count in UTF-16 cut characters in two."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def _message(number: int, message: Any) -> Message:
    role = _ROLES.get(str(message.get("role"))) if isinstance(message, dict) else None
    if role is None:
        raise RequestUnfit(f"message {number} is none of {', '.join(_ROLES)}")
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        calls = [{"function": message["function_call"]}] if message.get("function_call") else []
    answered, thoughts = message.get("tool_call_id"), message.get("reasoning_content")
    return Message(
        role,
        content_text(message.get("content")),
        tuple(map(_call, calls)),
        answered if isinstance(answered, str) else None,
        thoughts if isinstance(thoughts, str) else None,
    )


def _call(call: Any) -> ToolCall:
    call = call if isinstance(call, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    return ToolCall(
        str(call.get("id") or ""),
        str(function.get("name") or ""),
        arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


def content_text(content: Any) -> str:
    """The text of a message's content; of a part that is none, what was left out."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(map(_part, content))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    return f"[{str(part.get('type'))[:32].removesuffix('_url')} left out]"


def whole(reply: Reply, name: str, created: int) -> bytes:
    """The answer in one piece; `name` is its id, `created` the time in seconds since 1970."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": reply.refusal}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply.tool_calls)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(reply)}
    head = _head(reply, name, created, "chat.completion")
    return json.dumps(head | {"choices": [choice], "usage": _usage(reply)}).encode()


def events(reply: Reply, name: str, created: int, *, with_usage: bool) -> Iterator[bytes]:
    """The answer as a stream: what it says, its end, what it used where that was asked for, and ``[DONE]``."""
    head = _head(reply, name, created, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.reasoning:
        deltas.append({"reasoning_content": reply.reasoning})
    if reply.text:
        deltas.append({"content": reply.text})
    if reply.refusal:
        deltas.append({"refusal": reply.refusal})
    deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(_calls(reply.tool_calls))]
    ends = [None] * len(deltas) + [finish_of(reply)]
    for delta, finish in zip([*deltas, {}], ends, strict=True):
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def failure(words: str, kind: str, code: str | None = None) -> bytes:
    """The body of an answer that is an error."""
    return json.dumps({"error": {"message": words, "type": kind, "param": None, "code": code}}).encode()


def failure_event(words: str, kind: str, code: str | None = None) -> bytes:
    """An error in a stream that has begun."""
    return b"data: " + failure(words, kind, code) + b"\n\n"


def models(name: str) -> bytes:
    """The answer to ``/v1/models``: the one model that there is."""
    model = {"id": name, "object": "model", "created": 0, "owned_by": "prchain"}
    return json.dumps({"object": "list", "data": [model]}).encode()


def finish_of(reply: Reply) -> str:
    """Why the reply ended, in the dialect's words."""
    return "tool_calls" if reply.tool_calls and reply.finish == "stop" else reply.finish


def _calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _usage(reply: Reply) -> dict[str, Any] | None:
    """What the reply used; None where its endpoint did not say."""
    used = reply.usage
    if used.tokens_in is None or used.tokens_out is None:
        return None
    tokens_in, tokens_out = used.tokens_in, used.tokens_out
    cached = {} if used.tokens_cached is None else {"prompt_tokens_details": {"cached_tokens": used.tokens_cached}}
    counts = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return counts | cached


def _head(reply: Reply, name: str, created: int, kind: str) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": created, "model": reply.model}


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
