"""Calls of tools as text, for models that were trained on SWE-agent's protocol and servers that read no calls:

    I look at the folder.
    <function=bash>
    <parameter=command>
    ls
    </parameter>
    </function>

They exist on the wire alone: a reply is read into calls, and earlier calls and results are told as text, so that a
stored conversation, and what is exported of it, is the same as with an endpoint's own calls. Reading is as tolerant as
the parsers of servers: tags that are not closed, attributes in place of ``=``, quotes, ``<tool_call>`` around a call, a
bare body, arguments as JSON. What is no call then, or does not fit the tool, is told to the model as any fault is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from prchain.core.llm.model import Message, Reply, ToolCall
from prchain.core.llm.prompts import Prompt, load_prompt

FORM = "<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>"
"""What a call looks like, in words for the model."""

_OPENING = r"(?:\s{0,9}=|\s{1,9}name\s{0,9}=)\s{0,9}[\"']?([^\s\"'<>]{1,200})[\"']?\s{0,9}>"
_FUNCTION = re.compile(rf"<function{_OPENING}", re.IGNORECASE)
_PARAMETER = re.compile(rf"\s*<parameter{_OPENING}", re.IGNORECASE)
_CLOSED = re.compile(r"(?:\s*</parameter\s{0,9}>)?\s*</function\s{0,9}>", re.IGNORECASE)
_END = r"</parameter\s{0,9}>(?=\s*(?:</?parameter|</?function|</?tool_call|\Z))"
_VALUE_CLOSED = re.compile(_END, re.IGNORECASE)
_LINE_CLOSED = re.compile(rf"^[ \t]*{_END}", re.IGNORECASE | re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*(?:<parameter(?:=|\s+name)|</?function|</?tool_call)|\Z", re.IGNORECASE | re.MULTILINE)
"""What ends a value whose own end is missing, at the beginning of a line."""
_BODY_END = re.compile(r"</?function\b|</?tool_call\b|\Z", re.IGNORECASE)
_WRAPPING = re.compile(r"</?tool_call\s{0,9}>", re.IGNORECASE)


class TextCall(NamedTuple):
    """A call as it was written: values by key, or a body without keys."""

    name: str
    values: Mapping[str, str]
    body: str = ""


def parse(text: str) -> tuple[str, tuple[TextCall, ...]]:
    """What a reply says besides its calls, and the calls."""
    said: list[str] = []
    calls: list[TextCall] = []
    place = 0
    while found := _FUNCTION.search(text, place):
        said.append(text[place : found.start()])
        call, place = _call(text, found)
        calls.append(call)
    said.append(text[place:])
    if not calls:
        return text, ()
    words = (_WRAPPING.sub("", part).strip() for part in said)
    return "\n\n".join(filter(None, words)), tuple(calls)


def _call(text: str, found: re.Match[str]) -> tuple[TextCall, int]:
    """The call that begins there, and where it ends."""
    values: dict[str, str] = {}
    place = found.end()
    while opening := _PARAMETER.match(text, place):
        values[opening[1]], place = _value(text, opening.end())
    body = ""
    if not values and (end := _BODY_END.search(text, place)):
        body, place = text[place : end.start()].strip(), end.start()
    closed = _CLOSED.match(text, place)
    return TextCall(found[1], values, body), closed.end() if closed else place


def _value(text: str, place: int) -> tuple[str, int]:
    """The value that begins there, without the line breaks that set it off, and where what follows begins."""
    following = _NEXT.search(text, place)
    assert following is not None  # the end of the text at least
    end = following.start()
    value = re.sub(r"</parameter\s{0,9}>\s*\Z", "", text[place:end], flags=re.IGNORECASE)
    # A value on lines of its own ends on one, too: what its lines say of the protocol is a part of it.
    for form in (_LINE_CLOSED, _VALUE_CLOSED) if text.startswith("\n", place) else (_VALUE_CLOSED,):
        closed = form.search(text, place)
        if closed is not None and closed.start() <= following.start():
            value, end = text[place : closed.start()], closed.end()
            break
    return value.removeprefix("\n").removesuffix("\n"), end


def read(reply: Reply, tools: Sequence[Mapping[str, Any]]) -> Reply:
    """The reply with the calls in its text as calls; one that an endpoint has read already stays as it is."""
    if reply.tool_calls:
        return reply
    said, calls = parse(reply.text)
    if not calls:
        return reply
    shapes = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    named = tuple(ToolCall("", call.name, _arguments(call, shapes.get(call.name, {}))) for call in calls)
    return replace(reply, text=said, tool_calls=named)


def _arguments(call: TextCall, shape: Mapping[str, Any]) -> str:
    """The arguments as JSON: what is no text by the tool's schema is read as JSON, where it is any."""
    properties: Mapping[str, Any] = shape.get("properties", {})
    values = dict(call.values)
    if call.body:
        try:
            if isinstance(json.loads(call.body), dict):
                return call.body
        except (ValueError, RecursionError):
            pass
        required = shape.get("required", [])
        if len(required) != 1:
            return call.body
        values = {required[0]: call.body}
    return json.dumps({key: _typed(value, properties.get(key, {})) for key, value in values.items()})


def _typed(value: str, shape: Mapping[str, Any]) -> Any:
    kinds = {one.get("type") for one in (shape, *shape.get("anyOf", ()))} - {None, "null"}
    if not kinds or "string" in kinds:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def written(call: ToolCall) -> str:
    """A call as text; `parse` reads it back."""
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return f"<function={call.name}>\n{call.arguments}\n</function>"
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    parameters = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts.items())
    return f"<function={call.name}>\n{parameters}</function>"


def prompt() -> Prompt:
    """The prompt that tells the form, and the tools."""
    return load_prompt("trajectories.agents.scaffolds", "text_calls")


def on_the_wire(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages without a call and without a tool's message, and with the form of calls in the system's message."""
    told = prompt().render(tools=[tool["function"] for tool in tools])[0].content
    texts: list[Message] = []
    answers = False
    for message in messages:
        if message.role == "tool":
            before = texts.pop().content + "\n\n" if answers else ""
            texts.append(Message("user", before + message.content))
        elif message.role == "system" and not texts:
            texts.append(replace(message, content=f"{message.content}\n\n{told}"))
        else:
            calls = "\n".join(map(written, message.tool_calls))
            content = "\n\n".join(filter(None, (message.content, calls)))
            texts.append(replace(message, content=content, tool_calls=()))
        answers = message.role == "tool"
    return tuple(texts)
