"""Why a reply ended, whatever an endpoint calls it, and whether it was cut off without saying so.

Providers have words of their own for OpenAI's ``length`` and ``content_filter``: Mistral ``model_length``, Gemini
``MAX_TOKENS`` and ``SAFETY``, Z.ai ``sensitive`` and ``model_context_window_exceeded``, Cohere ``ERROR_LIMIT`` and
``ERROR_TOXIC``. Others say that the reply broke off: ``error``, ``abort`` of vLLM and SGLang, DeepSeek's
``insufficient_system_resource``, Z.ai's ``network_error``; or that the model wrote a call which the endpoint could not
read and does not give: Gemini's ``MALFORMED_FUNCTION_CALL``. See their API references.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from prchain.core.llm.model import Reply, Request

LENGTH = "length"
CONTENT_FILTER = "content_filter"

_LENGTH = re.compile(r"^limit$|length|max.*tokens?|tokens?_?limit|error_?limit|context|truncat|incomplete")
_FILTERED = re.compile(
    r"(?<!function_call_)filter|safety|sensitive|toxic|recitation|prohibited|blocklist|spii|guardrail|moderat|policy|refus"
)
_BROKE_OFF = re.compile(
    r"error|abort|fail|cancel|interrupt|insufficient|overload|unavailable|time_?d?_?(?:out|limit)|exhaust|rate_?limit"
    r"|preempt|kill|shut_?down|crash|disconnect|not_?finished"
)
_UNREAD_CALL = re.compile(r"malformed|unexpected_tool_call|too_many_tool_calls|missing_thought_signature")

_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.S)
"""Of JSON: braces in it open and close nothing. The last may have no end."""


def finish_of(word: str) -> str:
    """What a reason to end is called here: ``length``, ``content_filter``, or the word itself."""
    folded = _folded(word)
    if _FILTERED.search(folded):
        return CONTENT_FILTER
    return LENGTH if _LENGTH.search(folded) else word


def broke_off(word: str) -> bool:
    """Whether a reason to end says that the reply is none: its endpoint failed while it was made."""
    return finish_of(word) not in {LENGTH, CONTENT_FILTER} and _BROKE_OFF.search(_folded(word)) is not None


def is_of_unread_call(word: str) -> bool:
    """Whether a reason to end says that the endpoint could not read the call that ends the reply."""
    return _UNREAD_CALL.search(_folded(word)) is not None


def with_finish(reply: Reply, request: Request) -> Reply:
    """The reply, with a finish that says that it was cut off where it was, also where its endpoint does not say so.

    It was where it has as many tokens as it might have and ends in the middle: its last call's arguments are no JSON,
    it has no text yet, or the object that was asked for is not closed.
    """
    finish = finish_of(reply.finish)
    if finish not in {LENGTH, CONTENT_FILTER} and _is_full(reply, request) and _is_open(reply, request):
        finish = LENGTH
    return reply if finish == reply.finish else replace(reply, finish=finish)


def decoded_again(arguments: str) -> str | None:
    """The JSON text of an object that was encoded as JSON twice; None where it was encoded once, or is no object."""
    if not arguments.lstrip().startswith('"'):
        return None
    inner = _json(arguments)
    return inner if isinstance(inner, str) and isinstance(_json(inner), dict) else None


def _is_full(reply: Reply, request: Request) -> bool:
    return reply.usage.tokens_out is not None and reply.usage.tokens_out >= request.max_tokens


def _is_open(reply: Reply, request: Request) -> bool:
    if reply.tool_calls:
        arguments = reply.tool_calls[-1].arguments
        return not isinstance(_json(arguments), dict) and decoded_again(arguments) is None
    outside = _STRING.sub("", reply.text[max(reply.text.find("{"), 0) :])
    opened, closed = outside.count("{"), outside.count("}")
    return not reply.refusal and (not reply.text.strip() or (request.schema is not None and not 0 < opened <= closed))


def _json(text: str) -> object:
    """The value of a text; None where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _folded(word: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", word).casefold()
