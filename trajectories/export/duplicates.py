"""Duplicate samples.

``trees``: trajectories of one chain whose stages end with the same trees are duplicates. Of those that can be exported,
the one with the fewest rounds stays, then the fewest steps, then the lowest sample number; and a prefix is a duplicate
of its extension, which begins with it. ``conversation``: of equal
conversations (roles, texts and calls) the first stays. ``trees`` includes ``conversation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeVar

from trajectories.export.samples import Sample, SampleMessage, without_untrained_tail
from trajectories.model import Reason

SAME_TREES = "duplicate_trees"
SAME_CONVERSATION = "duplicate_conversation"
EXTENDED = "extended"
"""Of a prefix: its extension is there."""


class StandIn(NamedTuple):
    """Why a trajectory was left out, and the one that is written in its place."""

    reason: str
    trajectory: str


class EndState(Protocol):
    """What decides whether two trajectories ended with the same trees, and which of them is better."""

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
    """Groups of trajectories that ended with the same trees, the best one first; groups in the order of their best ones
    in `found`.

    A trajectory with an unknown tree is a group of its own.
    """
    groups: dict[tuple[str, bytes | str], list[E]] = {}
    order: dict[str, int] = {}
    for index, end in enumerate(found):
        groups.setdefault((end.chain_id, end.trees or end.id), []).append(end)
        order[end.id] = index
    sorted_groups = [
        sorted(group, key=lambda end: (end.attempts, end.steps, end.sample, end.id)) for group in groups.values()
    ]
    return sorted(sorted_groups, key=lambda group: order[group[0].id])


class Conversations:
    """The conversations so far, as 16 bytes each."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def knows(self, sample: Sample) -> bool:
        """Whether an equal conversation came before."""
        *_, digest = _digests(sample.turns)
        return digest in self._known

    def repeats(self, sample: Sample) -> bool:
        """Whether an equal conversation came before; remembers this one."""
        *_, digest = _digests(sample.turns)
        return self._repeats(digest)

    def unrepeated(self, sample: Sample) -> Sample:
        """The sample without loss on the turns that came before after an equal beginning; remembers the others.
        Branches of a trajectory share a beginning with it."""
        turns = [
            replace(turn, train=False, reason=Reason.CONTEXT) if turn.train and self._repeats(digest) else turn
            for turn, digest in zip(sample.turns, _digests(sample.turns), strict=True)
        ]
        return without_untrained_tail(replace(sample, turns=tuple(turns)))

    def _repeats(self, digest: bytes) -> bool:
        new = digest not in self._known
        self._known.add(digest)
        return not new


def _digests(turns: Sequence[SampleMessage]) -> Iterator[bytes]:
    """A digest of the conversation up to each turn."""
    digest = blake2b(digest_size=16)
    for turn in turns:
        parts = (turn.role, turn.content, turn.reasoning or "")
        for part in (*parts, *(part for call in turn.tool_calls for part in (call.name, call.arguments))):
            text = part.encode("utf-8", "surrogatepass")
            digest.update(len(text).to_bytes(8, "big"))
            digest.update(text)
        yield digest.digest()
