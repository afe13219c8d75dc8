"""From the requests of a program to conversations: pure.

A program sends its whole conversation with each request. What goes on from the end of a conversation that is known
adds to it; what goes on from another place in it (a summary in place of the beginning, a sub-agent, the request for a
title) is a *branch*: a conversation of its own, which begins with copies of what it shares with the one it left. Each
reply stands in one of them as its own, so that it is under loss once.

Messages are compared by their role, their text but for white space around it, and their calls by name and arguments:
agents make ids of calls anew, and leave reasoning out. In a system prompt, times and UUIDs do not count; nor does in
any message what the agent is known to change (`RecordedConversations`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from prchain.core.llm.model import Message, Reply, ToolCall
from prchain.core.storable import clean_text
from trajectories.model import Entry, EntryKind, Reason, TurnFault
from trajectories.recording.exchanges import Exchange, ExchangeLog, SentRequest
from trajectories.tokens import SeenTokens

Clean = Callable[[str], str]
"""Takes secrets out of a text."""

_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d{1,2}:\d\d(?::\d\d)?\b"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_LONGEST_ID = 128
_Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""What a message is compared by: role, text, and its calls by name and arguments. Python's own hash of it costs a tenth
of a digest, and a request has all messages before it."""
COPIED_REPLY = "trained"
"""``copied`` of a turn that is under loss where it was copied from; True of any other message."""
_UNTRAINED: Mapping[str, Any] = {"loss": {"train": False, "reason": str(Reason.UNTRAINED)}}


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request."""

    reply: Reply
    usd: float | None
    seconds: float
    at: str
    """When it was there, as ISO 8601."""


@dataclass(slots=True)
class _Node:
    """A message in the tree of all that was said; the root is none."""

    parent: _Node | None = None
    branch: Branch | None = None
    entry: Entry | None = None
    """None for the root."""
    children: dict[_Key, _Node] = field(default_factory=dict)
    words: tuple[Entry, ...] = ()
    """Of observers, which stand behind it and which the program does not know."""


@dataclass(slots=True)
class Branch:
    """A conversation, as it stands."""

    number: int
    """From 0 on; 0 is the first that the program began."""
    entries: list[Entry]
    left: Branch | None = None
    """The one that it branched off from."""
    shared: int = 0
    """Turns that it has from there."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Those of its last request."""
    replies: list[int] = field(default_factory=list)
    """Ordinals of the replies that are its own."""
    last_reply: int = 0
    """Which of all replies that were taken its last one is; from 1 on."""
    log: ExchangeLog = field(default_factory=ExchangeLog, repr=False)
    """Its own requests and replies, as they went over the wire: as many as `replies`."""
    _tip: _Node = field(default_factory=_Node, repr=False)
    _seen: SeenTokens = field(default_factory=SeenTokens, repr=False)


@dataclass(frozen=True, slots=True)
class FollowedRequest:
    """A request that goes on from the one before it, with its answer."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    known: int
    """How many of the messages were known."""
    answered: Answered
    words: tuple[int, ...] = ()
    """Which of the messages are words of observers."""


class RecordedConversations:
    """All that one program asks. `clean` takes secrets out of what is kept; what one of the `volatile` patterns matches
    does not count where messages are compared."""

    def __init__(self, clean: Clean, volatile: Sequence[str] = ()) -> None:
        self.branches: list[Branch] = []
        self.earlier = 0
        """How many entries the first conversation has of earlier (`know`)."""
        self._clean = clean
        self._volatile = re.compile("|".join(f"(?:{pattern})" for pattern in volatile)) if volatile else None
        self._root = _Node()
        self._taken = 0

    def know(self, entries: Sequence[Entry]) -> None:
        """Begin with what is stored of earlier: the first conversation, with those entries as its own."""
        branch = Branch(len(self.branches), [])
        self.branches.append(branch)
        node = self._root
        for ordinal, entry in enumerate(entries):
            kept = replace(entry, ordinal=ordinal)
            if entry.kind is EntryKind.GUIDANCE:
                branch.entries.append(kept)
                node.words += (kept,)
            else:
                node = self._add(branch, node, entry.message(), kept)
        branch._tip = node
        self.earlier = len(entries)

    def take(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        answered: Answered | None,
        sent: SentRequest | None = None,
        words: Sequence[Entry] = (),
    ) -> tuple[Branch, int]:
        """Take a request with its answer; returns the conversation that it belongs to and the ordinal of the first
        entry that is new in it. `sent` is the request as the model had it, which the branch keeps; `words` are those
        of observers behind its last message. Without an answer nothing follows them."""
        node, known = self._walk(messages)
        branch = node.branch
        if branch is None or branch._tip is not node:
            branch, first = self._branched(node), 0
            self.branches.append(branch)
        else:
            first = len(branch.entries)
        self._go_on(branch, node, messages, known, tools, answered, words)
        if sent is not None and answered is not None:
            told = answered.reply, answered.usd, answered.seconds, answered.at
            branch.log.add(Exchange(sent.body, sent.place(known), *told, words=sent.words))
        return branch, first

    def goes_on(self, branch: Branch, messages: Sequence[Message]) -> bool:
        """Whether a request goes on from the end of a conversation."""
        return self._walk(messages)[0] is branch._tip

    def results(self, messages: Sequence[Message]) -> int:
        """How many results of tools a request tells of that goes on from the end of a conversation."""
        node, known = self._walk(messages)
        if node.branch is None or node.branch._tip is not node:
            return 0
        return sum(message.role == "tool" for message in messages[known:])

    def foreseen(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Branch:
        """The conversation that a request leads to, as a copy that is not kept."""
        node, known = self._walk(messages)
        branch = self._branched(node)
        for at, message in enumerate(messages[known:], known):
            branch.entries.append(self._heard(branch, message, at == 0, bool(tools)))
        return branch

    def words(self, messages: Sequence[Message]) -> dict[int, tuple[Entry, ...]]:
        """What observers said behind messages of a request, by the number of the message from 0 on."""
        node, known = self._walk(messages)
        found: dict[int, tuple[Entry, ...]] = {}
        for number in reversed(range(known)):
            if node.words:
                found[number] = node.words
            node = node.parent or self._root
        return found

    def _walk(self, messages: Sequence[Message]) -> tuple[_Node, int]:
        """The last message that is known of those that begin a request, and how many are."""
        node, known = self._root, 0
        while known < len(messages) and (child := self._child(node, messages[known])) is not None:
            node, known = child, known + 1
        return node, known

    def _child(self, node: _Node, message: Message) -> _Node | None:
        found = node.children.get(self._key(message))
        if found is None and self.earlier and node.children:
            # What is stored is clean, and a program sends what it has.
            calls = (ToolCall(it.id, self._clean(it.name), self._clean(it.arguments)) for it in message.tool_calls)
            clean = replace(message, content=clean_text(self._clean(message.content)), tool_calls=tuple(calls))
            found = node.children.get(self._key(clean))
        return found

    def follow(self, requests: Iterable[FollowedRequest]) -> Branch:
        """The conversation of requests that are known to go on from each other. What was known before the first one is
        not under loss."""
        branch = self._branched(self._root)
        self.branches.append(branch)
        for it in requests:
            known = it.known if branch.entries else 0
            self._go_on(branch, branch._tip, it.messages, known, it.tools, it.answered)
            for number in it.words:
                entry = branch.entries[number]
                if number >= known:
                    branch.entries[number] = replace(entry, kind=EntryKind.GUIDANCE)
            self._note_left_out(branch, it)
        return branch

    @staticmethod
    def _note_left_out(branch: Branch, followed: FollowedRequest) -> None:
        """Let the last turn say how many words of observers its model did not see any more."""
        texts = ((branch.entries[at].content, followed.messages[at].content) for at in followed.words)
        if left_out := sum(said != sent for said, sent in texts):
            turn, record = branch.entries[-1], {"below": 0, "observations": 0, "guidance": left_out}
            branch.entries[-1] = replace(turn, details={**turn.details, "dropped": record})

    def _go_on(
        self,
        branch: Branch,
        node: _Node,
        messages: Sequence[Message],
        known: int,
        tools: Sequence[Mapping[str, Any]],
        answered: Answered | None,
        words: Sequence[Entry] = (),
    ) -> None:
        branch.tools = tuple(tools)
        for number, message in enumerate(messages[known:], known):
            node = self._add(branch, node, message, self._heard(branch, message, number == 0, bool(tools)))
        if words and known < len(messages):
            step, first = branch.entries[-1].step, len(branch.entries)
            node.words = tuple(replace(it, ordinal=at, step=step) for at, it in enumerate(words, first))
            branch.entries.extend(node.words)
        branch._tip = node
        if answered is None:
            return
        reply = Message("assistant", answered.reply.text or answered.reply.refusal or "", answered.reply.tool_calls)
        self._taken += 1
        branch.last_reply = self._taken
        branch.replies.append(len(branch.entries))
        branch._tip = self._add(branch, node, reply, self._turn(branch, reply, answered))

    def _branched(self, node: _Node) -> Branch:
        path: list[Entry] = []
        at: _Node | None = node
        while at is not None and at.entry is not None:
            path += [*reversed(at.words), at.entry]
            at = at.parent
        copies = [
            replace(entry, ordinal=ordinal, details={**entry.details, **_copied(entry)}, tokens=None)
            for ordinal, entry in enumerate(reversed(path))
        ]
        shared = sum(entry.kind is EntryKind.TURN for entry in copies)
        return Branch(len(self.branches), copies, node.branch, shared)

    def _key(self, message: Message) -> _Key:
        """What messages are compared by."""
        text = message.content.strip()
        if message.role == "system":
            text = _VOLATILE.sub("*", text)
        if self._volatile is not None:
            text = self._volatile.sub("*", text)
        return message.role, text, tuple((call.name, _canonical(call.arguments)) for call in message.tool_calls)

    def _add(self, branch: Branch, parent: _Node, message: Message, entry: Entry) -> _Node:
        branch.entries.append(entry)
        node = _Node(parent, branch, entry)
        parent.children.setdefault(self._key(message), node)
        return node

    def _heard(self, branch: Branch, message: Message, first: bool, with_tools: bool) -> Entry:
        """The entry of a message that the program sends, and that is no reply of ours."""
        content = self._clean(message.content)
        if message.role == "assistant":
            return self._entry(branch, EntryKind.TURN, message, content, details=_UNTRAINED, calls=message.tool_calls)
        if message.role == "tool":
            name = next((call.name for call in _calls_before(branch) if call.id == message.tool_call_id), None)
            kind, answered = EntryKind.OBSERVATION, message.tool_call_id
            return self._entry(branch, kind, message, content, tool_call_id=answered, tool_name=name)
        if message.role == "system":
            kind = EntryKind.SYSTEM if first else EntryKind.QUERY
            return self._entry(branch, kind, replace(message, role="system" if first else "user"), content)
        # Without tools, what a command printed comes back in the name of the user.
        answer = not with_tools and any(entry.kind is EntryKind.TURN for entry in branch.entries)
        return self._entry(branch, EntryKind.OBSERVATION if answer else EntryKind.QUERY, message, content)

    def _turn(self, branch: Branch, message: Message, answered: Answered) -> Entry:
        reply, usage = answered.reply, answered.reply.usage
        fault = None
        if reply.refusal:
            fault = TurnFault.REFUSAL
        elif reply.finish == "length":
            fault = TurnFault.CUT_OFF
        elif not reply.tool_calls and not reply.text.strip():
            fault = TurnFault.EMPTY
        content, reasoning = self._clean(message.content), self._clean(reply.reasoning) if reply.reasoning else None
        turn = self._entry(
            branch,
            EntryKind.TURN,
            message,
            content,
            calls=reply.tool_calls,
            reasoning=reasoning,
            error=fault,
            tokens_in=usage.tokens_in,
            tokens_cached=usage.tokens_cached,
            tokens_out=usage.tokens_out,
            usd=answered.usd,
            seconds=answered.seconds,
            at=answered.at,
        )
        said = [(call.name, call.arguments) for call in turn.tool_calls]
        whole = content == message.content and (reasoning or None) == (reply.reasoning or None)
        if reply.tokens is None or not whole or said != [(call.name, call.arguments) for call in reply.tool_calls]:
            return turn  # ids would tell what was taken out
        return replace(turn, tokens=branch._seen.take(reply.tokens))

    def _entry(
        self,
        branch: Branch,
        kind: EntryKind,
        message: Message,
        content: str,
        *,
        calls: Sequence[ToolCall] = (),
        **fields: Any,
    ) -> Entry:
        step = branch.entries[-1].step if branch.entries else 0
        kept = (ToolCall(call.id[:_LONGEST_ID], self._clean(call.name), self._clean(call.arguments)) for call in calls)
        return Entry(
            len(branch.entries),
            1,
            1,
            step + (kind is EntryKind.TURN),
            kind,
            message.role,
            content,
            tool_calls=tuple(kept),
            **fields,
        )


def _calls_before(branch: Branch) -> Sequence[ToolCall]:
    turns = (entry for entry in reversed(branch.entries) if entry.kind is EntryKind.TURN)
    return next((entry.tool_calls for entry in turns), ())


def _copied(entry: Entry) -> Mapping[str, Any]:
    """What a copy of the entry says of itself."""
    if entry.kind is not EntryKind.TURN:
        return {"copied": True}
    return {"copied": entry.details.get("copied", True if "loss" in entry.details else COPIED_REPLY), **_UNTRAINED}


@lru_cache(maxsize=4096)
def _canonical(arguments: str) -> str:
    """The value of a call's arguments: an agent may write the JSON anew."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments.strip()
