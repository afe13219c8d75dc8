"""The wire: a request as the body of ``/chat/completions``, and the body of an answer as a reply.

The answer is read field by field, never trusted to have a type: endpoints that call themselves compatible differ, and
a proxy in between may answer anything. See OpenAI's API reference, "Chat", "Create chat completion".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from prchain.core.errors import EndpointIncompatible
from prchain.core.llm.error_bodies import ErrorBody, read_error
from prchain.core.llm.finishes import LENGTH, broke_off, finish_of, is_of_unread_call
from prchain.core.llm.message_parts import said_in
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage
from prchain.core.llm.replies import in_words, keys_in_words
from prchain.core.llm.token_ids import ASKS, tokens_of
from prchain.core.secrets.scrub import redact_reply
from prchain.core.storable import clean_text

MOST_TOKENS = 2**31 - 1
"""A larger count of tokens is no count; it would not fit the ledger's column either."""

_EVENT = re.compile(rb"^data:[ \t]*(\{.*)$", re.M)
"""An event of a stream with JSON as its data (HTML, "Server-sent events")."""

_WEB_PAGE = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml|!--)", re.I)
"""How a web page begins: what a site, or a proxy's login, answers to any address."""

_LONGEST_FINISH = 32


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint was found not to take."""

    schema_in_words: bool = False
    """It refuses ``response_format``: the last message tells the model the schema."""
    completion_tokens: bool = False
    """It wants ``max_completion_tokens`` for ``max_tokens``, as OpenAI's reasoning models do."""
    no_reasoning: bool = False
    """It gives ``reasoning_content`` and does not take it back."""


PLAIN = Dialect()


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An answer of status 200 that is no reply: an error stands in its place, or it broke off."""

    error: ErrorBody
    finish: str = ""
    """How it says that it broke off, where it does."""
    billed: bool = False
    """Whether what came of a reply may have been paid for."""


_OURS = frozenset(
    {
        *("model", "models", "route", "provider", "service_tier"),
        *("max_tokens", "max_completion_tokens", "stream", "stream_options"),
    }
)
"""What is never taken over from a body of others: it is set here, or would change the model, the price (OpenAI's
``service_tier``; OpenRouter's ``models``, ``route`` and ``provider``) or the form of the answer."""


def body_of(request: Request, model: str, dialect: Dialect = PLAIN) -> dict[str, Any]:
    """The JSON body that asks `model` for a reply to the request."""
    body: dict[str, Any] = {"model": model}
    if request.body is not None:
        body |= {name: value for name, value in request.body.items() if name not in _OURS}
    else:
        messages = request.messages
        if request.schema is not None and dialect.schema_in_words:
            messages = _with_words(messages, in_words(request.schema))
        elif request.schema is not None:
            messages = _with_words(messages, keys_in_words(request.schema))
            schema = {"name": request.schema_name, "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body["messages"] = [_message(message, dialect) for message in messages]
    body["max_completion_tokens" if dialect.completion_tokens else "max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.tools:
        body["tools"] = list(request.tools)
    return {**body, **ASKS} if request.token_ids else body


def serialised(request: Request, model: str) -> bytes:
    """Everything that is sent, as canonical JSON: a stored reply is found by it.

    The dialect is left out, so that a stored reply is still found when the endpoint's dialect changes.
    """
    return _json(body_of(request, model))


def most_bytes(request: Request, model: str, body: bytes) -> int:
    """The size, in bytes, of the largest body that the request may be sent as; `body` is what `serialised` gave.

    A request without a schema has one body only. Long conversations are such, and to write one out takes time.
    """
    if request.schema is None:
        return len(body)
    return max(len(body), len(_json(body_of(request, model, Dialect(schema_in_words=True)))))


def reply_of(
    body: bytes,
    model: str,
    secrets: tuple[str, ...] = (),
    where: str = "the endpoint",
    now: float = 0.0,
    *,
    token_ids: bool = False,
) -> Reply | FailedAnswer:
    """The reply that an answer's body holds, without the secrets and without characters that no database takes; or the
    error that it holds instead, which is not cleaned. `now` is the time in seconds since 1970. With `token_ids` the
    reply has those that the body holds, unless something was taken out of it.

    Raises `EndpointIncompatible`, which names the endpoint as `where`. It counts as billed, since a model may have
    worked, but for a web page: what serves pages asks no model.
    """

    def broken(what: str, *, billed: bool = True) -> EndpointIncompatible:
        return EndpointIncompatible(
            f"{where} answered with {what}, where a chat completion was expected; is llm_base_url right?", billed=billed
        )

    if _WEB_PAGE.match(body):
        raise broken("a web page", billed=False)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        error = _error_in_events(body, now)
        if error is None:
            raise broken("no JSON") from None
        return FailedAnswer(error)
    if isinstance(answer, list) and answer and isinstance(answer[0], dict) and answer[0].get("error"):
        return FailedAnswer(read_error(answer, now))
    if not isinstance(answer, dict):
        raise broken("no object")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        error = read_error(answer, now, surely=False)
        if error.words:
            return FailedAnswer(error)
        raise broken("no choices")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    reply = _reply(answer, choice, message, model) if isinstance(message, dict) else None
    failed = _failed(answer, choice, reply, now)
    if failed is not None:
        return failed
    if reply is None:
        raise broken("no message")
    clean = _cleaned(reply, secrets)
    return replace(clean, tokens=tokens_of(answer, choice)) if token_ids and clean == reply else clean


def _error_in_events(body: bytes, now: float) -> ErrorBody | None:
    """The error that ends a stream of events, which some gateways answer though none was asked for; None without."""
    events = _EVENT.findall(body)
    try:
        last = json.loads(events[-1]) if events else None
    except (ValueError, RecursionError):
        return None
    return read_error(last, now) if isinstance(last, dict) and last.get("error") else None


def _reply(answer: dict[str, Any], choice: dict[str, Any], message: dict[str, Any], model: str) -> Reply:
    calls = message.get("tool_calls")
    finish = _finish(choice) or "stop"
    text, thoughts = said_in(message, cut=finish_of(finish) == LENGTH)
    return Reply(
        text=text,
        model=_text(answer.get("model")) or model,
        finish=finish,
        refusal=_text(message.get("refusal")) or None,
        reasoning=thoughts or None,
        tool_calls=tuple(map(_tool_call, calls)) if isinstance(calls, list) else (),
        usage=_usage(answer.get("usage")),
    )


def _failed(answer: dict[str, Any], choice: dict[str, Any], reply: Reply | None, now: float) -> FailedAnswer | None:
    """The error beside or in place of a reply, at the top, in the choice or in its message; None where there is none.

    An error without a status beside a whole reply is none: some endpoints fill the field whatever happens.
    """
    message = choice.get("message")
    places = (answer, choice, message if isinstance(message, dict) else {})
    error = next((read_error(place["error"], now) for place in places if place.get("error")), ErrorBody())
    finish = _finish(choice)
    if broke_off(finish) or (is_of_unread_call(finish) and not (reply is not None and reply.text.strip())):
        tokens_out = reply.usage.tokens_out if reply is not None else None
        said = reply is not None and bool(reply.text or reply.reasoning or reply.tool_calls)
        return FailedAnswer(error, finish[:_LONGEST_FINISH], billed=said if tokens_out is None else tokens_out > 0)
    said_nothing = reply is None or not (reply.text.strip() or reply.refusal or reply.tool_calls)
    if error.status is not None or (error.words and said_nothing):
        return FailedAnswer(error)
    return None


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, sort_keys=True).encode(errors="replace")


def _with_words(messages: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """The messages with words at the end of the last one that the user wrote."""
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        return (*messages, Message("user", words))
    extended = replace(messages[last], content=f"{messages[last].content}\n\n{words}")
    return (*messages[:last], extended, *messages[last + 1 :])


def _message(message: Message, dialect: Dialect) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "content": clean_text(message.content)}
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    if message.reasoning is not None and not dialect.no_reasoning:
        out["reasoning_content"] = clean_text(message.reasoning)
    return out


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _finish(choice: dict[str, Any]) -> str:
    """The reason to end: a text, or an object with a type, as SGLang's own interface gives it.

    OpenRouter gives the upstream's word beside its own (``native_finish_reason``; see its guide on responses), which
    counts where it tells of a cut that the other does not, or where there is no other.
    """
    reason = choice.get("finish_reason")
    own = _text(reason.get("type") if isinstance(reason, dict) else reason)
    native = _text(choice.get("native_finish_reason"))
    return native if not own or (finish_of(own) == own and finish_of(native) == LENGTH) else own


def _tool_call(value: Any) -> ToolCall:
    call = value if isinstance(value, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some endpoints parse them already
        arguments = json.dumps(arguments)
    return ToolCall(_text(call.get("id")), _text(function.get("name")), _text(arguments))


def _usage(value: Any) -> Usage:
    """Tokens as the endpoint counted them.

    Some endpoints leave reasoning out of ``completion_tokens`` and count it in ``total_tokens`` alone: see xAI's guide
    "Consumption and Rate Limits". It is paid as the reply is, so what the total has beyond the prompt is the reply.
    """
    usage = value if isinstance(value, dict) else {}
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    tokens_in, tokens_out, total = (_count(usage.get(f"{part}_tokens")) for part in ("prompt", "completion", "total"))
    if tokens_in is not None and tokens_out is not None and total is not None:
        tokens_out = max(tokens_out, total - tokens_in)
    return Usage(tokens_in, _count(details.get("cached_tokens")), tokens_out, _count(details.get("cache_write_tokens")))


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _cleaned(reply: Reply, secrets: tuple[str, ...]) -> Reply:
    def clean(text: str) -> str:
        return redact_reply(clean_text(text), secrets)

    return replace(
        reply,
        text=clean(reply.text),
        model=clean(reply.model)[:255],
        finish=clean(reply.finish)[:_LONGEST_FINISH],
        refusal=clean(reply.refusal) if reply.refusal else None,
        reasoning=clean(reply.reasoning) if reply.reasoning else None,
        tool_calls=tuple(ToolCall(clean(c.id), clean(c.name), clean(c.arguments)) for c in reply.tool_calls),
    )
