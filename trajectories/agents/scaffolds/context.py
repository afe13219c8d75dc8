"""The conversation as a model gets it, and how it is made to fit the model's context.

Two policies: under ``stop`` an attempt ends where the next request would not fit; under ``elide`` the contents of the
oldest observations are replaced by a line that says so, in requests and never in stored entries. An observation that
was left out stays out, so that endpoints find the prefix in their cache; many are left out at once, so that it happens
rarely. The turn of such a request records it (`Entry.details`, ``dropped``), so that the request can be made again.

Sizes are counted from the last usage that the endpoint reported, plus one token per four bytes of later entries;
without any usage, by bytes alone. The cost of adding an entry does not depend on the conversation's length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from prchain.core.llm.model import Message, Reply
from trajectories.agents.scaffolds.turns import sent
from trajectories.model import AgentUsage, Entry, EntryKind

Overflow = Literal["stop", "elide"]

BYTES_PER_TOKEN = 4
"""Of English and of code, about; as `prchain.core.llm.gateway` estimates."""

_WORTH = 400
"""Characters: a shorter observation is not worth leaving out."""

_KEPT_STEPS = 2
"""Observations of the last steps stay: the model is about to read them."""

_ROOM_LEFT = 2 / 3
"""A conversation is cut to this fraction of what would fit."""

OLD_GUIDANCE = "[Earlier guidance stood here; newer guidance has taken its place.]"
"""What stands in place of an observer's earlier words, where it keeps only its last."""

_FRAME = 16
"""Bytes of JSON around a message, about."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """Tokens of the next request."""

    tokens: int
    counted: bool
    """Whether it is based on an endpoint's own count; else it is an estimate by bytes."""

    def __str__(self) -> str:
        return f"about {self.tokens:,} tokens{'' if self.counted else ', by an estimate'}"


class Conversation:
    """A growing conversation: its stored entries, and its messages as sent.

    `position` is the current stage. Where the entries are a selection (older stages left out), usage from earlier
    stages does not count.
    """

    def __init__(
        self, entries: Sequence[Entry], *, position: int, tools: Sequence[Mapping[str, Any]], reasoning: bool
    ) -> None:
        self.entries: list[Entry] = []
        self.dropped = 0
        """How many observations are left out of what is sent."""
        self.dropped_below = 0
        """The ordinal below which they lie."""
        self.elided_guidance = 0
        """How many earlier words of observers are left out, where only their last are kept."""
        self._guided: dict[str, int] = {}
        """Observer to the place of its last words, of those that keep only these."""
        self._messages: list[Message] = []
        self._bytes = len(json.dumps(list(tools)))
        self._last_usage: tuple[int, int] | None = None
        """Tokens that an endpoint reported, and the number of bytes they stand for."""
        self._step = 0
        self._position = position
        self._whole = not entries or entries[-1].ordinal - entries[0].ordinal + 1 == len(entries)
        self._send_reasoning = reasoning
        self._has_reasoning = False
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
                self._last_usage = entry.tokens_in, self._bytes
            self._has_reasoning = self._has_reasoning or entry.reasoning is not None
        elif entry.kind is EntryKind.OBSERVATION and len(entry.content) > _WORTH:
            self._candidates.append(len(self.entries))
        elif entry.kind is EntryKind.GUIDANCE and entry.details.get("keep") == "last":
            self._replace_guidance(str(entry.details.get("observer", "")))
        self._step = max(self._step, entry.step)
        message = sent(entry, reasoning=self._send_reasoning and self._has_reasoning)
        self.entries.append(entry)
        self._messages.append(message)
        self._bytes += _size(message)

    def messages(self) -> tuple[Message, ...]:
        """The messages of the next request."""
        return tuple(self._messages)

    def size(self) -> ContextSize:
        """How long the next request's prompt is."""
        if self._last_usage is None:
            return ContextSize(-(-self._bytes // BYTES_PER_TOKEN), False)
        tokens, bytes_then = self._last_usage
        return ContextSize(max(tokens + -(-(self._bytes - bytes_then) // BYTES_PER_TOKEN), 1), True)

    def elide(self, most: int) -> bool:
        """Leave out old observations until the prompt has `most` tokens. Returns whether any was left out."""
        before = self.dropped
        newest = self._step - _KEPT_STEPS
        while self._next < len(self._candidates) and self.size().tokens > most:
            place = self._candidates[self._next]
            if self.entries[place].step > newest:
                break
            self._leave_out(place)
        return self.dropped > before

    def record(self) -> dict[str, Any]:
        """A turn's record of what its request left out, for `Entry.details`; empty where nothing was left out."""
        if not self.dropped and not self.elided_guidance:
            return {}
        record = {"below": self.dropped_below, "observations": self.dropped}
        return {"dropped": record | ({"guidance": self.elided_guidance} if self.elided_guidance else {})}

    def _drop_below(self, ordinal: int) -> None:
        while self._next < len(self._candidates) and self.entries[self._candidates[self._next]].ordinal < ordinal:
            self._leave_out(self._candidates[self._next])

    def _replace_guidance(self, observer: str) -> None:
        """Leave out the observer's last words: newer ones are about to be added."""
        if (place := self._guided.get(observer)) is not None:
            self._shorten(place, OLD_GUIDANCE)
            self.elided_guidance += 1
        self._guided[observer] = len(self.entries)

    def _shorten(self, place: int, words: str) -> None:
        message = self._messages[place]
        short = replace(message, content=words)
        self._messages[place] = short
        self._bytes += _size(short) - _size(message)

    def _leave_out(self, place: int) -> None:
        self._shorten(place, left_out(len(self.entries[place].content)))
        self._next += 1
        self.dropped += 1
        self.dropped_below = self.entries[place].ordinal + 1


def cut_to(room: int) -> int:
    """The number of tokens to which a prompt is cut that did not fit into `room` tokens."""
    return int(room * _ROOM_LEFT)


def left_out(characters: int) -> str:
    """What stands in place of an observation's content."""
    return f"[This output of {characters} characters is not shown any more, to save room. Ask for it again if needed.]"


def estimate(prompt: ContextSize, reply: Reply) -> dict[str, int]:
    """Estimated tokens of a turn whose endpoint reports none, for `Entry.details`: ``in`` and ``out``, by bytes."""
    calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    reply_bytes = (
        len(reply.text.encode("utf-8", "replace")) + len((reply.reasoning or "").encode("utf-8", "replace")) + calls
    )
    return {"in": prompt.tokens, "out": -(-reply_bytes // BYTES_PER_TOKEN)}


def used_by(entries: Iterable[Entry]) -> AgentUsage:
    """The usage of entries; tokens that an endpoint did not report count as estimated. A call is one that was
    answered."""
    steps, calls, tokens, usd, seconds = 0, 0, 0, 0.0, 0.0
    for entry in entries:
        seconds += entry.seconds
        calls += entry.kind is EntryKind.OBSERVATION and entry.tool_name is not None
        if entry.kind is EntryKind.TURN:
            estimated = entry.details.get("estimate", {})
            steps += 1
            tokens += estimated.get("in", 0) if entry.tokens_in is None else entry.tokens_in
            tokens += estimated.get("out", 0) if entry.tokens_out is None else entry.tokens_out
            usd += entry.usd or 0.0
    return AgentUsage(steps, tokens, usd, seconds, calls)


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments.encode()) + 3 * _FRAME for call in message.tool_calls)
    thought = len(message.reasoning.encode("utf-8", "replace")) if message.reasoning else 0
    return len(message.content.encode("utf-8", "replace")) + calls + thought + _FRAME
