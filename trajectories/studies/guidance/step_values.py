"""Steps of a conversation as JSON values that are safe to publish: for rows of training data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prchain.core.llm.model import ToolCall
from trajectories.export.chat import as_text, chat_message
from trajectories.export.scrubber import Scrubber
from trajectories.model import Entry, EntryKind, Reason

Json = dict[str, Any]

_TOLD = {EntryKind.COMMENT, EntryKind.GUIDANCE}


def step_values(entries: Iterable[Entry], scrubber: Scrubber, most: int | None = None) -> list[Json]:
    """The steps among entries, at most so many: number, attempt, what was told to the agent right before, its thought
    and reasoning, calls and observations. Texts are scrubbed as exports scrub them."""
    steps: list[Json] = []
    told: list[Json] = []
    for entry in entries:
        if entry.kind is EntryKind.TURN:
            if len(steps) == most:
                break
            steps.append(_turn(entry, told, scrubber))
            told = []
        elif entry.kind is EntryKind.OBSERVATION and steps:
            message = scrubber.turn(entry, False, Reason.OBSERVATION, reasoning=True)
            observation = {"tool": message.name, "text": message.content, "error": entry.error}
            steps[-1]["observations"].append(observation)
        elif entry.kind in _TOLD:
            told.append({"kind": str(entry.kind), "text": scrubber.text(entry.content)})
    return steps


def messages(entries: Iterable[Entry], scrubber: Scrubber) -> list[Json]:
    """Entries as messages in OpenAI's form, scrubbed."""
    turns = (scrubber.turn(entry, False, Reason.CONTEXT, reasoning=True) for entry in entries)
    return [chat_message(turn, as_text) for turn in turns]


def call_value(call: str, scrubber: Scrubber) -> Json:
    """A call that is written as its name and its arguments, scrubbed."""
    name, _, arguments = call.partition(" ")
    [value] = _calls((ToolCall("", name, arguments),), scrubber)
    return value


def _turn(turn: Entry, told: list[Json], scrubber: Scrubber) -> Json:
    message = scrubber.turn(turn, False, Reason.TURN, reasoning=True)
    return {
        "step": turn.step,
        "attempt": turn.attempt,
        "told": told,
        "thought": message.content,
        "reasoning": message.reasoning,
        "calls": _values(message.tool_calls),
        "error": turn.error,
        "observations": [],
    }


def _calls(calls: Sequence[ToolCall], scrubber: Scrubber) -> list[Json]:
    turn = Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "", tool_calls=tuple(calls))
    return _values(scrubber.turn(turn, False, Reason.TURN, reasoning=True).tool_calls)


def _values(calls: Sequence[ToolCall]) -> list[Json]:
    return [{"name": call.name, "arguments": call.arguments} for call in calls]
