"""Requests and replies of a conversation as they went over the wire, kept small: pure.

A request holds all that was said before. So each is kept by what it adds to the one before it, and all of a
conversation are compressed together.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prchain.core.errors import RowUnreadable
from prchain.core.llm.model import Reply

_LEVEL = 6


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as a model had it: the program's, with the words that observers put into it."""

    body: Mapping[str, Any]
    words: tuple[int, ...] = ()
    """Which of its messages are those words, from 0 on and rising."""

    def place(self, known: int) -> int:
        """How many of its messages were known before, where so many of the program's own were: what observers said
        behind one of these was, too."""
        for number in self.words:
            known += number <= known
        return known


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its reply."""

    body: Mapping[str, Any]
    """As it was sent on."""
    known: int
    """How many of its messages were known before."""
    reply: Reply
    usd: float | None = None
    seconds: float = 0.0
    at: str = ""
    words: tuple[int, ...] = ()
    """Which of its messages are words of observers."""


@dataclass(slots=True)
class _Added:
    """An exchange whose request holds what it adds to the one before: `shared` of its messages are that one's, and
    the fields `gone` are not in it any more."""

    shared: int
    gone: tuple[str, ...]
    exchange: Exchange


@dataclass(slots=True)
class ExchangeLog:
    """The exchanges of one conversation, in their order. Of a request it keeps what is new in it, and the last one."""

    _added: list[_Added] = field(default_factory=list)
    _last: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._added)

    def add(self, exchange: Exchange) -> None:
        """Add the next one."""
        self._added.append(_added(self._last, exchange))
        self._last = exchange.body

    def exchanges(self) -> Iterator[Exchange]:
        """All of them, with whole requests."""
        body: Mapping[str, Any] = {}
        for added in self._added:
            body = _whole(body, added)
            yield _with_body(added.exchange, body)


def packed(exchanges: Sequence[Exchange], clean: Callable[[str], str]) -> bytes:
    """Exchanges as they are stored: compressed, each text in them cleaned."""
    last: Mapping[str, Any] = {}
    rows = []
    for exchange in exchanges:
        added = _added(last, exchange)
        last = exchange.body
        reply = json.loads(exchange.reply.to_json())
        tokens = reply.pop("tokens", None)
        clean_reply = _cleaned(reply, clean)
        if tokens is not None and clean_reply == reply:  # else ids would tell what was taken out
            clean_reply["tokens"] = tokens
        row = {
            "shared": added.shared,
            "gone": list(added.gone),
            "known": exchange.known,
            "request": _cleaned(dict(added.exchange.body), clean),
            "reply": clean_reply,
            "usd": exchange.usd,
            "seconds": exchange.seconds,
            "at": exchange.at,
            **({"words": list(exchange.words)} if exchange.words else {}),
        }
        rows.append(row)
    return zlib.compress(json.dumps(rows).encode(), _LEVEL)


def unpacked(data: bytes) -> list[Exchange]:
    """What `packed` stored. Raises `RowUnreadable`."""
    try:
        rows = json.loads(zlib.decompress(data))
        found: list[Exchange] = []
        body: Mapping[str, Any] = {}
        for row in rows:
            reply = Reply.from_json(json.dumps(row["reply"]))
            words = tuple(row.get("words", ()))
            told = Exchange(row["request"], row["known"], reply, row["usd"], row["seconds"], row["at"], words)
            body = _whole(body, _Added(row["shared"], tuple(row["gone"]), told))
            found.append(_with_body(told, body))
        return found
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise RowUnreadable("the database holds requests of an agent program that cannot be read") from error


def _added(last: Mapping[str, Any], exchange: Exchange) -> _Added:
    body = exchange.body
    before, now = last.get("messages", ()), body["messages"]
    shared = next((at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(before), len(now)) if shared is None else shared
    new = {name: value for name, value in body.items() if name not in last or last[name] != value}
    gone = tuple(name for name in last if name not in body)
    return _Added(shared, gone, _with_body(exchange, {**new, "messages": now[shared:]}))


def _whole(before: Mapping[str, Any], added: _Added) -> dict[str, Any]:
    new = added.exchange.body
    kept = {name: value for name, value in before.items() if name not in added.gone}
    return {**kept, **new, "messages": [*before.get("messages", ())[: added.shared], *new["messages"]]}


def _with_body(exchange: Exchange, body: Mapping[str, Any]) -> Exchange:
    return replace(exchange, body=body)


def holds_nothing(value: Any, clean: Callable[[str], str]) -> bool:
    """Whether there is nothing in the texts of a JSON value that would be taken out."""
    return bool(_cleaned(value, clean) == value)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _cleaned(item, clean) for name, item in value.items()}
    return [_cleaned(item, clean) for item in value] if isinstance(value, list) else value
