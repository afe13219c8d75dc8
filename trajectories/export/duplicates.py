"""Samples that say the same.

By ``trees``: of trajectories of one chain whose stages end with the same trees, the one stays that needed the fewest
rounds, then the fewest steps, then the lowest sample number, of those that can be exported at all. By ``conversation``:
of equal conversations (roles, texts and calls) the first stays. Trees imply conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Protocol, TypeVar

from trajectories.export.samples import Reason, Sample, SampleMessage, ended

SAME_TREES = "duplicate_trees"
SAME_CONVERSATION = "duplicate_conversation"


class EndState(Protocol):
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


E = TypeVar("E", bound=EndState)


def same_trees(found: Iterable[E]) -> list[list[E]]:
    """The trajectories that ended alike, together, the best one first; in the order in which these were found.

    A trajectory of which a tree is not known is like no other.
    """
    groups: dict[tuple[str, bytes | str], list[E]] = {}
    order: dict[str, int] = {}
    for place, end in enumerate(found):
        groups.setdefault((end.chain_id, end.trees or end.id), []).append(end)
        order[end.id] = place
    alike = [sorted(group, key=lambda end: (end.attempts, end.steps, end.sample, end.id)) for group in groups.values()]
    return sorted(alike, key=lambda group: order[group[0].id])


class Conversations:
    """The conversations that were seen, as 16 bytes each."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def repeats(self, sample: Sample) -> bool:
        """Whether an equal conversation was asked about before; remembers this one."""
        *_, whole = _digests(sample.turns)
        return self._repeats(whole)

    def unrepeated(self, sample: Sample) -> Sample:
        """The sample without loss on the turns that were asked about before, after equal beginnings; remembers the
        others. Trajectories that branch off from one another share a beginning."""
        turns = [
            replace(turn, train=False, reason=Reason.CONTEXT) if turn.train and self._repeats(digest) else turn
            for turn, digest in zip(sample.turns, _digests(sample.turns), strict=True)
        ]
        return ended(replace(sample, turns=tuple(turns)))

    def _repeats(self, digest: bytes) -> bool:
        new = digest not in self._seen
        self._seen.add(digest)
        return not new


def _digests(turns: Sequence[SampleMessage]) -> Iterator[bytes]:
    """Of the conversation up to each turn."""
    digest = blake2b(digest_size=16)
    for turn in turns:
        parts = (turn.role, turn.content, turn.reasoning or "")
        for part in (*parts, *(part for call in turn.tool_calls for part in (call.name, call.arguments))):
            text = part.encode("utf-8", "surrogatepass")
            digest.update(len(text).to_bytes(8, "big"))
            digest.update(text)
        yield digest.digest()
