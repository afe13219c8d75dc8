"""Tables that walk every point of something are drawn from, by a seed; `make test-all` walks them whole.

A test marked `drawn(one_in)` runs one in so many of its cases, at least one; tests marked `drawn(one_in, table)` are
the cases of one table. A test marked `whole` runs in `make test-all` alone; of the tests of a file that run on either
database, one in eight runs on PostgreSQL, too.

The seed is `PRCHAIN_TEST_SEED`, 0 without it; the head of a run prints it, and CI takes another one each time.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")

ALL = bool(os.environ.get("PRCHAIN_TEST_ALL"))
"""Whether whatever is drawn from is walked whole."""

SEED = os.environ.get("PRCHAIN_TEST_SEED") or "0"


def drawn(rows: Sequence[Row], count: int, table: str) -> list[Row]:
    """Some rows of a table, in its order; the same ones in all processes of a run."""
    if ALL or count >= len(rows):
        return list(rows)
    places = random.Random(f"{SEED} {table}").sample(range(len(rows)), count)
    return [rows[place] for place in sorted(places)]


def is_drawn(name: str, one_in: int) -> bool:
    """Whether a point is one of those that are tried, for points that are known only when they are reached."""
    return ALL or zlib.crc32(f"{SEED} {name}".encode()) % one_in == 0
