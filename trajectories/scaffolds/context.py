"""The conversation as it is sent, and how it is fitted into a model's context.

Two policies: under ``stop`` an attempt ends where the next request would not fit; under ``elide`` the contents of the
oldest observations are replaced by a line that says so, in what is sent and never in what is kept. What was once left
out stays out, so that endpoints find the prefix in their cache, and so much is left out at a time that it is rarely
done. A turn whose request left something out records it (`Entry.details`, ``dropped``), from which the same request can
be made again.

Sizes are counted from the last usage that the endpoint told, plus four bytes a token for what came after it; without
any usage, by bytes alone. Adding an entry costs the same however long the conversation is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from prchain.llm.model import Message, Reply
from trajectories.model import AgentUsage, Entry, EntryKind
from trajectories.scaffolds.turns import sent

Overflow = Literal["stop", "elide"]

BYTES_PER_TOKEN = 4
"""Of English and of code, about; as `prchain.llm.gateway` estimates."""

_WORTH = 400
"""Characters: a shorter observation is not worth leaving out."""

_KEPT_STEPS = 2
"""Observations of the last steps stay: the model is about to read them."""

_ROOM_LEFT = 2 / 3
"""What a conversation is cut to, as a part of what would fit."""

_FRAME = 16
"""Bytes of JSON around a message, about."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """Tokens of the next request."""

    tokens: int
    counted: bool
    """Whether an endpoint's own count is at the bottom of it; else it is an estimate by bytes."""

    def __str__(self) -> str:
        return f"about {self.tokens:,} tokens{'' if self.counted else ', by an estimate'}"


class Conversation:
    """A growing conversation: its entries as they are kept, and its messages as they are sent.

    `position` is the stage at work. Where the entries are a selection (older stages left out), usage that was told in
    earlier stages says nothing about it.
    """

    def __init__(
        self, entries: Sequence[Entry], *, position: int, tools: Sequence[Mapping[str, Any]], reasoning: bool
    ) -> None:
        self.entries: list[Entry] = []
        self.dropped = 0
        """How many observations are left out of what is sent."""
        self.dropped_below = 0
        """The ordinal below which they lie."""
        self._messages: list[Message] = []
        self._bytes = len(json.dumps(list(tools)))
        self._known: tuple[int, int] | None = None
        """Tokens that an endpoint told, and the bytes that it told them of."""
        self._step = 0
        self._position = position
        self._whole = not entries or entries[-1].ordinal - entries[0].ordinal + 1 == len(entries)
        self._send_reasoning = reasoning
        self._thinks = False
        self._candidates: list[int] = []
        """Places of observations that are worth leaving out, the oldest first."""
        self._next = 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Append an entry."""
        if entry.kind is EntryKind.TURN:
            self._drop_below(int((entry.details.get("dropped") or {}).get("below", 0)))
            if entry.tokens_in is not None and (self._whole or entry.position == self._position):
                self._known = entry.tokens_in, self._bytes
            self._thinks = self._thinks or entry.reasoning is not None
        elif entry.kind is EntryKind.OBSERVATION and len(entry.content) > _WORTH:
            self._candidates.append(len(self.entries))
        self._step = max(self._step, entry.step)
        message = sent(entry, reasoning=self._send_reasoning and self._thinks)
        self.entries.append(entry)
        self._messages.append(message)
        self._bytes += _size(message)

    def messages(self) -> tuple[Message, ...]:
        """What is sent."""
        return tuple(self._messages)

    def size(self) -> ContextSize:
        """How long the next request's prompt is."""
        if self._known is None:
            return ContextSize(-(-self._bytes // BYTES_PER_TOKEN), False)
        tokens, at = self._known
        return ContextSize(max(tokens + -(-(self._bytes - at) // BYTES_PER_TOKEN), 1), True)

    def elide(self, most: int) -> bool:
        """Leave out old observations until the prompt has `most` tokens; whether anything could be left out."""
        before = self.dropped
        newest = self._step - _KEPT_STEPS
        while self._next < len(self._candidates) and self.size().tokens > most:
            place = self._candidates[self._next]
            if self.entries[place].step > newest:
                break
            self._leave_out(place)
        return self.dropped > before

    def record(self) -> dict[str, Any]:
        """What a turn keeps of what its request left out, for `Entry.details`; empty where it was sent whole."""
        if not self.dropped:
            return {}
        return {"dropped": {"below": self.dropped_below, "observations": self.dropped}}

    def _drop_below(self, ordinal: int) -> None:
        while self._next < len(self._candidates) and self.entries[self._candidates[self._next]].ordinal < ordinal:
            self._leave_out(self._candidates[self._next])

    def _leave_out(self, place: int) -> None:
        message = self._messages[place]
        short = replace(message, content=left_out(len(self.entries[place].content)))
        self._messages[place] = short
        self._bytes += _size(short) - _size(message)
        self._next += 1
        self.dropped += 1
        self.dropped_below = self.entries[place].ordinal + 1


def cut_to(room: int) -> int:
    """To how many tokens a prompt is cut that did not fit into `room`."""
    return int(room * _ROOM_LEFT)


def left_out(characters: int) -> str:
    """What stands in place of an observation's content."""
    return f"[This output of {characters} characters is not shown any more, to save room. Ask for it again if needed.]"


def estimate(prompt: ContextSize, reply: Reply) -> dict[str, int]:
    """Tokens of a turn whose endpoint does not say them, for `Entry.details`: ``in`` and ``out``, by bytes."""
    calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    said = len(reply.text.encode("utf-8", "replace")) + len((reply.reasoning or "").encode("utf-8", "replace")) + calls
    return {"in": prompt.tokens, "out": -(-said // BYTES_PER_TOKEN)}


def used_by(entries: Iterable[Entry]) -> AgentUsage:
    """What entries used of limits; tokens that an endpoint did not tell count as they were estimated."""
    steps, tokens, usd, seconds = 0, 0, 0.0, 0.0
    for entry in entries:
        seconds += entry.seconds
        if entry.kind is EntryKind.TURN:
            guess = entry.details.get("estimate", {})
            steps += 1
            tokens += guess.get("in", 0) if entry.tokens_in is None else entry.tokens_in
            tokens += guess.get("out", 0) if entry.tokens_out is None else entry.tokens_out
            usd += entry.usd or 0.0
    return AgentUsage(steps, tokens, usd, seconds)


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments.encode()) + 3 * _FRAME for call in message.tool_calls)
    thought = len(message.reasoning.encode("utf-8", "replace")) if message.reasoning else 0
    return len(message.content.encode("utf-8", "replace")) + calls + thought + _FRAME
