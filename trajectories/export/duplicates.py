"""Samples that say the same.

By ``trees``: of trajectories of one chain whose stages end with the same trees, the one stays that needed the fewest
rounds, then the fewest steps, then the lowest sample number. By ``conversation``: of equal conversations (roles, texts
and calls) the first stays. Trees imply conversations.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Protocol

from trajectories.export.samples import Sample

SAME_TREES = "duplicate_trees"
SAME_CONVERSATION = "duplicate_conversation"


class Ended(Protocol):
    """What tells whether two trajectories ended alike, and which of them is the better one."""

    @property
    def id(self) -> str: ...
    @property
    def chain_id(self) -> str: ...
    @property
    def trees(self) -> bytes | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def sample(self) -> int: ...


def same_trees(found: Iterable[Ended]) -> dict[str, str]:
    """The id of every trajectory that is left out, to the id of the one that stays for it.

    A trajectory of which a tree is not known is like no other.
    """
    best: dict[tuple[str, bytes], str] = {}
    dropped: dict[str, str] = {}
    for one in sorted(found, key=lambda each: (each.attempts, each.steps, each.sample, each.id)):
        if one.trees is None:
            continue
        kept = best.setdefault((one.chain_id, one.trees), one.id)
        if kept != one.id:
            dropped[one.id] = kept
    return dropped


class Conversations:
    """The conversations that were seen, as 16 bytes each."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def repeats(self, sample: Sample) -> bool:
        """Whether an equal conversation was asked about before; remembers this one."""
        digest = blake2b(digest_size=16)
        for turn in sample.turns:
            parts = (turn.role, turn.content, turn.reasoning or "")
            for part in (*parts, *(part for call in turn.tool_calls for part in (call.name, call.arguments))):
                text = part.encode("utf-8", "surrogatepass")
                digest.update(len(text).to_bytes(8, "big"))
                digest.update(text)
        new = digest.digest() not in self._seen
        self._seen.add(digest.digest())
        return not new
