"""Some samples at random, the same ones for the same seed: the size-matched baseline (P2T, section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from heapq import nsmallest

NOT_DRAWN = "not_drawn"


def drawn(ids: Iterable[str], count: int, seed: int) -> frozenset[str]:
    """`count` of the ids at random, or all if there are fewer.

    Those with the lowest hashes with the seed: the order of the ids does not matter, and a larger `count` draws the
    same ones and more.
    """
    # The word keeps these hashes apart from those of the split, so that one does not follow from the other.
    return frozenset(nsmallest(count, ids, key=lambda name: (sha256(f"draw:{seed}:{name}".encode()).digest(), name)))
