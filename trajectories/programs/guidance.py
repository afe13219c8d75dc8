"""Observers of an agent program: they are asked when it tells what a step has shown, and what they say goes into the
requests that we send on. The program never sees it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from prchain.core.llm.model import Message
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from trajectories.agents.scaffolds.context import OLD_GUIDANCE
from trajectories.agents.scaffolds.scaffold import Observer, Record
from trajectories.model import Entry, EntryKind
from trajectories.recording.chat import AskedChat


@dataclass(frozen=True, slots=True)
class Advised:
    """What observers said after one step."""

    words: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    stop: bool = False
    reason: str | None = None


@dataclass
class ProgramObservers:
    """Those of one attempt. Several requests may come at once; observers are asked one after the other."""

    observers: Sequence[Observer]
    _advised: dict[str, Advised] = field(default_factory=dict, repr=False)
    """By the hash of the messages that were said before."""
    _asking: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def advised(self, asked: AskedChat, entries: Sequence[Entry], position: int, attempt: int) -> Advised:
        """What they say to a request whose conversation, with earlier stages, are the `entries`; the same again where
        it comes again. Raises `LlmError`."""
        if not self.observers or not _ends_a_step(entries, position, attempt):
            return Advised()
        key = hashes(asked.messages)[-1]
        with self._asking:
            if key not in self._advised:
                self._advised[key] = self._ask(entries)
            return self._advised[key]

    def _ask(self, entries: Sequence[Entry]) -> Advised:
        words: list[Entry] = []
        records: list[Record] = []
        stop, reason = False, None
        last = entries[-1]
        for observer in self.observers:
            advice = observer(entries)
            if advice is None:
                continue
            if advice.record is not None:
                records.append(advice.record)
            if advice.guidance:
                kind, text = EntryKind.GUIDANCE, clean_text(advice.guidance)
                details = dict(advice.details)
                words.append(Entry(0, 1, 1, last.step, kind, "user", text, details=details, at=now()))
            if advice.stop:
                stop, reason = True, advice.reason
        if stop and words:
            words[-1] = replace(words[-1], details={**words[-1].details, "stop": True, "reason": reason})
        return Advised(tuple(words), tuple(records), stop, reason)

    def records(self, messages: Sequence[Message]) -> list[Record]:
        """What observers keep of their own, of the steps that a request tells of."""
        found = (self._advised.get(key) for key in hashes(messages))
        return [record for advised in found if advised is not None for record in advised.records]


def _ends_a_step(entries: Sequence[Entry], position: int, attempt: int) -> bool:
    """Whether a conversation ends with what the agent's tools have shown; without tools its own words for it. A summary
    or a title that it asks for is no step."""
    turns = [
        entry
        for entry in entries
        if entry.kind is EntryKind.TURN and entry.at and (entry.position, entry.attempt) == (position, attempt)
    ]
    last = entries[-1]
    if not turns or last.kind is not EntryKind.OBSERVATION:
        return False
    return last.role == "tool" or not any(turn.tool_calls for turn in turns)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request as we send it on."""

    asked: AskedChat
    words: tuple[int, ...] = ()
    """Which of its messages are words of observers, from 0 on."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What its turn records of words that were left out, since newer ones of the same observer took their place."""


def with_words(asked: AskedChat, words: Mapping[int, Sequence[Entry]]) -> Forwarded:
    """A request with the words behind the messages of these numbers."""
    if not words:
        return Forwarded(asked)
    last = {
        entry.details.get("observer"): entry
        for _, said in sorted(words.items())
        for entry in said
        if entry.details.get("keep") == "last"
    }
    body: list[Any] = []
    messages: list[Message] = []
    numbers, left_out = [], 0
    for number, (raw, message) in enumerate(zip(asked.body["messages"], asked.messages, strict=True)):
        body.append(raw)
        messages.append(message)
        for entry in words.get(number, ()):
            old = entry.details.get("keep") == "last" and last[entry.details.get("observer")] is not entry
            left_out += old
            text = OLD_GUIDANCE if old else entry.content
            numbers.append(len(body))
            body.append({"role": "user", "content": text})
            messages.append(Message("user", text))
    record = {"dropped": {"below": 0, "observations": 0, "guidance": left_out}} if left_out else {}
    sent = replace(asked, body={**asked.body, "messages": body}, messages=tuple(messages))
    return Forwarded(sent, tuple(numbers), record)


def hashes(messages: Sequence[Message]) -> list[str]:
    """One of each beginning of the messages, from the first alone to all."""
    whole, found = sha256(), []
    for message in messages:
        calls = [(call.name, call.arguments) for call in message.tool_calls]
        whole.update(repr((message.role, message.content, message.tool_call_id, calls)).encode("utf-8", "replace"))
        found.append(whole.hexdigest())
    return found
