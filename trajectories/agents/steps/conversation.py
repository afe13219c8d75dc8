"""The steps of a conversation: each an assistant turn with its observations, and what they say and show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from prchain.core.llm.model import ToolCall
from trajectories.agents.scaffolds.context import BYTES_PER_TOKEN
from trajectories.agents.scaffolds.turns import read_object
from trajectories.model import Entry, EntryKind


@dataclass(frozen=True)
class Step:
    """One step. `observations` are the results of the turn's calls, in order."""

    turn: Entry
    observations: tuple[Entry, ...]

    @property
    def number(self) -> int:
        """Counted over the whole trajectory."""
        return self.turn.step

    @cached_property
    def calls(self) -> tuple[tuple[ToolCall, Mapping[str, Any], Entry | None], ...]:
        """Each call with its arguments (empty where they are no object) and its observation."""
        results = {entry.tool_call_id: entry for entry in self.observations if entry.tool_call_id is not None}
        return tuple((call, arguments_of(call), results.get(call.id)) for call in self.turn.tool_calls)

    @property
    def shown(self) -> str:
        """What the observations show."""
        return "\n".join(entry.content for entry in self.observations)

    @property
    def words(self) -> str:
        """What the assistant says: its text, its reasoning, and what it writes into calls."""
        texts = [said(self.turn), *(text for _, arguments, _ in self.calls for text in texts_of(arguments))]
        return "\n".join(filter(None, texts))

    @property
    def failed(self) -> bool:
        """Whether the turn was faulty, or any of its calls failed."""
        return self.turn.error is not None or any(entry.error is not None for entry in self.observations)

    @property
    def empty(self) -> bool:
        """Whether the assistant acts without a word."""
        return not said(self.turn).strip()

    @property
    def submits(self) -> bool:
        """Whether it hands the work in."""
        return any(entry.details.get("submitted") for entry in self.observations)

    @property
    def action(self) -> tuple[tuple[str, str], ...]:
        """What its calls are, to find repetitions."""
        return tuple((call.name, " ".join(call.arguments.split())) for call in self.turn.tool_calls)

    @property
    def response_tokens(self) -> int:
        """Tokens of the reply, estimated where no endpoint has counted them."""
        if self.turn.tokens_out is not None:
            return self.turn.tokens_out
        return int(self.turn.details.get("estimate", {}).get("out", 0))

    @property
    def observation_tokens(self) -> int:
        """Tokens of the observations, estimated by bytes."""
        count = sum(len(entry.content.encode("utf-8", "replace")) for entry in self.observations)
        return -(-count // BYTES_PER_TOKEN)


def told_tokens(tokens_out: int | None, details: Mapping[str, Any]) -> int | None:
    """Tokens of a turn, from its row's `tokens_out` and `details`; None where no endpoint has counted them. One that a
    curator wrote was no reply of the agent's model, so the estimate stands for it, as in a candidate's length."""
    if tokens_out is None and "curated" in details and (found := details.get("estimate")):
        return int(found["out"])
    return tokens_out


def steps_of(entries: Iterable[Entry]) -> list[Step]:
    """The steps among entries, in order."""
    steps: list[tuple[Entry, list[Entry]]] = []
    for entry in entries:
        if entry.kind is EntryKind.TURN:
            steps.append((entry, []))
        elif entry.kind is EntryKind.OBSERVATION and steps:
            steps[-1][1].append(entry)
    return [Step(turn, tuple(observations)) for turn, observations in steps]


def said(turn: Entry) -> str:
    """The text and the reasoning of a turn."""
    return "\n".join(filter(None, (turn.reasoning, turn.content)))


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call; empty where they are no JSON object."""
    value = read_object(call.arguments)
    return value if isinstance(value, dict) else {}


def texts_of(value: Any) -> Iterator[str]:
    """The texts in a JSON value, without those of keys; numbers as they are written."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def transcript(entries: Sequence[Entry]) -> str:
    """A conversation as one text, for readers who judge it; without the system message."""
    return "\n\n".join(filter(None, map(_paragraph, entries)))


def _paragraph(entry: Entry) -> str:
    match entry.kind:
        case EntryKind.SYSTEM:
            return ""
        case EntryKind.TURN:
            calls = [f"call of {call.name}: {call.arguments}" for call in entry.tool_calls]
            return "\n".join([f"[step {entry.step}] assistant:", *filter(None, [said(entry), *calls])])
        case EntryKind.OBSERVATION:
            about = f" of {entry.tool_name}" if entry.tool_name else ""
            return f"[step {entry.step}] observation{about}:\n{entry.content}"
    return f"user:\n{entry.content}"
