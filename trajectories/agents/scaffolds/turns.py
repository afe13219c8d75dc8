"""A model's reply as a turn of an agent: its calls, its fault, and the answer to a fault.

Nothing is dropped: a faulty turn stays in the conversation, with an answer on its fault. Messages to the endpoint are
made valid, since one call with broken JSON in the history makes servers refuse every later turn (vLLM and llama.cpp
parse the arguments of earlier calls again; OpenAI checks ids and names).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from prchain.core.llm.finishes import decoded_again
from prchain.core.llm.model import Message, Reply, ToolCall
from prchain.core.storable import clean_text
from trajectories.agents.tools.tool import Arguments, Tool
from trajectories.model import Entry, TurnFault

NOT_RUN = "not_run"
"""`Entry.error` of a call that was not run: after a submission, after the sandbox ended, or without time left."""

_LONGEST_ID = 128
_LONGEST_NAME = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_COMPLAINTS = 5
_LONGEST_COMPLAINT = 300
_NO_TEXT = "(no text)"
"""In place of an assistant's empty message, which some endpoints refuse."""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One call of a turn: the tool to run, or the words for the model instead."""

    call: ToolCall
    tool: Tool | None = None
    arguments: Arguments | None = None
    fault: TurnFault | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A parsed reply. `words` answer it where it has no call to answer."""

    calls: tuple[ParsedCall, ...]
    fault: TurnFault | None = None
    words: str = ""


def named_calls(reply: Reply, step: int) -> tuple[ToolCall, ...]:
    """The reply's calls in storable characters, each with an id of its own.

    The id is ours where the model's is missing, a duplicate within the reply, or too long. Arguments that were encoded
    as JSON twice, as vLLM does with models that encode them themselves, are decoded once (`decoded_twice` says which).
    """
    ids: set[str] = set()
    calls = []
    for number, call in enumerate(reply.tool_calls, 1):
        id_ = clean_text(call.id)
        if not id_ or id_ in ids or len(id_) > _LONGEST_ID:
            id_ = f"call_{step}_{number}"
            while id_ in ids:
                id_ += "_"
        ids.add(id_)
        arguments = decoded_again(call.arguments) or call.arguments
        calls.append(ToolCall(id_, clean_text(call.name), clean_text(arguments)))
    return tuple(calls)


def decoded_twice(reply: Reply, calls: tuple[ToolCall, ...]) -> list[str]:
    """The ids of those of the calls (`named_calls`) whose arguments the reply had encoded twice."""
    pairs = zip(reply.tool_calls, calls, strict=True)
    return [call.id for raw, call in pairs if decoded_again(raw.arguments) is not None]


def read_turn(reply: Reply, calls: tuple[ToolCall, ...], tools: Mapping[str, Tool], ending: str) -> ParsedReply:
    """Parse a reply with these calls (`named_calls`). `ending` says in words how work is submitted.

    A reply that was cut off or refused runs nothing: its calls may be incomplete.
    """
    if reply.refusal or reply.finish == "content_filter":
        words = "You did not answer. This is software work in a sandbox; go on with the task by calling a tool."
        return _nothing_runs(calls, TurnFault.REFUSAL, words)
    if reply.finish == "length":
        words = (
            "Your reply reached the limit of its length before it was complete, and nothing of it was run. Be briefer: "
            "think less at a time, and write long files in several parts."
        )
        return _nothing_runs(calls, TurnFault.CUT_OFF, words)
    if not calls:
        fault = TurnFault.NO_CALL if reply.text.strip() else TurnFault.EMPTY
        complaint = "Your reply calls no tool" if fault is TurnFault.NO_CALL else "Your reply was empty"
        return ParsedReply((), fault, f"{complaint}. Every reply has to call one. If the task is done, {ending}.")
    parsed = tuple(_call(call, tools) for call in calls)
    return ParsedReply(parsed, next((call.fault for call in parsed if call.fault), None))


def _nothing_runs(calls: tuple[ToolCall, ...], fault: TurnFault, words: str) -> ParsedReply:
    return ParsedReply(tuple(ParsedCall(call, fault=fault, words=words) for call in calls), fault, words)


def _call(call: ToolCall, tools: Mapping[str, Tool]) -> ParsedCall:
    tool = tools.get(call.name)
    if tool is None:
        words = f"There is no tool of that name. There are: {', '.join(tools)}."
        return ParsedCall(call, fault=TurnFault.UNKNOWN_TOOL, words=words)
    value = read_object(call.arguments)
    if isinstance(value, str):
        words = f"The arguments of {tool.name} are no JSON object ({value}). Nothing was run; call it again."
        return ParsedCall(call, tool, fault=TurnFault.BAD_ARGUMENTS, words=words)
    try:
        return ParsedCall(call, tool, tool.arguments.model_validate(value))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        complaints = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'they'}: {fault['msg']}"[:_LONGEST_COMPLAINT]
            for fault in faults[:_COMPLAINTS]
        )
        words = f"The arguments of {tool.name} do not fit: {complaints}. Nothing was run; call it again."
        return ParsedCall(call, tool, fault=TurnFault.BAD_ARGUMENTS, words=words)


def read_object(text: str) -> dict[str, Any] | str:
    """A call's arguments as an object (an empty text is an empty object); or, as a text, why they are no object."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return " ".join(str(error).split())[:_LONGEST_COMPLAINT]
    return value if isinstance(value, dict) else f"a {type(value).__name__}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def valid_tool_name(name: str) -> str:
    """A tool's name in the form that endpoints take."""
    return _NO_NAME.sub("_", name)[:_LONGEST_NAME] or "unknown"


def sent(entry: Entry, *, reasoning: bool) -> Message:
    """The entry as a message to a model, in a form that endpoints accept.

    Arguments that are an object stay byte for byte; others are quoted in an object. `reasoning` says whether the turn's
    reasoning is sent, too, an empty text where it had none.
    """
    if entry.role != "assistant":
        return Message(entry.role, entry.content, (), entry.tool_call_id)
    content = entry.content
    if not content and not entry.tool_calls:
        content = str(entry.details.get("refusal") or _NO_TEXT)
    calls = tuple(ToolCall(call.id, valid_tool_name(call.name), _valid(call.arguments)) for call in entry.tool_calls)
    return Message(entry.role, content, calls, None, (entry.reasoning or "") if reasoning else None)


def _valid(arguments: str) -> str:
    if not arguments.strip():
        return "{}"
    value = read_object(arguments)
    if isinstance(value, dict) and _encodable(value):
        return arguments
    return json.dumps({"malformed": arguments})


def _encodable(value: Any) -> bool:
    """Whether it holds no lone surrogate, which strict parsers refuse."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True
