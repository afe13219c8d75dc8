"""Connections: opaque cursors made from keys, and the pages between them."""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[Any, int]


class BadCursor(ValueError):
    """Not a cursor of this connection in this order."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One connection in one order; a cursor of another one is refused."""

    seed: int
    name: str

    def _seal(self, body: bytes) -> bytes:
        return hashlib.blake2b(f"{self.seed}/{self.name}/".encode() + body, digest_size=6).digest()

    def write(self, key: Key) -> str:
        body = json.dumps(key).encode()
        return base64.b64encode(b"cursor:v2:" + self._seal(body) + body).decode()

    def read(self, cursor: str) -> Key:
        try:
            raw = base64.b64decode(cursor, validate=True)
            seal, body = raw[10:16], raw[16:]
            if not raw.startswith(b"cursor:v2:") or seal != self._seal(body):
                raise ValueError
            first, second = json.loads(body)
        except ValueError:
            raise BadCursor(f"`{cursor}` does not appear to be a valid cursor.") from None
        return first, second


def order_of(thing: Any) -> Key:
    key: Key = thing.order
    return key


@dataclass(slots=True)
class PageInfo:
    """A page's ends; cursors are only made when requested. The last two fields are for faults."""

    scope: Scope
    first_key: Key | None
    last_key: Key | None
    has_next_page: bool
    has_previous_page: bool
    end: str | None = None
    lost: bool = False

    @property
    def start_cursor(self) -> str | None:
        return self.scope.write(self.first_key) if self.first_key is not None else None

    @property
    def end_cursor(self) -> str | None:
        if self.lost:
            return None
        if self.end is not None:
            return self.end
        return self.scope.write(self.last_key) if self.last_key is not None else None


@dataclass(slots=True)
class Edge:
    cursor: str
    node: Any


@dataclass(slots=True)
class Page:
    """What a connection field resolves to."""

    nodes: Sequence[Any]
    keys: Sequence[Key]
    total_count: int
    filtered_count: int
    page_info: PageInfo
    updated_at: str = ""

    @property
    def page_count(self) -> int:
        return len(self.nodes)

    @property
    def edges(self) -> list[Edge]:
        scope = self.page_info.scope
        return [Edge(scope.write(key), node) for key, node in zip(self.keys, self.nodes, strict=True)]


def cut(
    items: Sequence[Any],
    scope: Scope,
    *,
    first: int | None = None,
    last: int | None = None,
    after: str | None = None,
    before: str | None = None,
    descending: bool = False,
    keys: Sequence[Key] | None = None,
    key: Callable[[Any], Key] = order_of,
    total: int | None = None,
) -> Page:
    """Cut a page out of items that are sorted in rising order of their keys.

    Cursors name keys, not positions: insertions and deletions elsewhere move no page.
    """
    if keys is None:
        keys = [key(item) for item in items]
    low, high = 0, len(items)
    early, late = (before, after) if descending else (after, before)
    if early:
        low = bisect_right(keys, scope.read(early))
    if late:
        high = bisect_left(keys, scope.read(late))
    high = max(low, high)
    start, stop = low, high
    from_low = (first is not None) is not descending
    size = first if first is not None else last
    if size is not None:
        start, stop = (low, min(high, low + size)) if from_low else (max(low, high - size), high)
    chosen, names = list(items[start:stop]), list(keys[start:stop])
    more_high, more_low = stop < len(items), start > 0
    if descending:
        chosen.reverse()
        names.reverse()
        more_high, more_low = more_low, more_high
    info = PageInfo(scope, names[0] if names else None, names[-1] if names else None, more_high, more_low)
    return Page(chosen, names, len(items) if total is None else total, high - low, info)
