"""How large the connections of a generated pull request are."""

from __future__ import annotations

import random
import tomllib
from bisect import bisect_left
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path

_FILE = Path(__file__).with_name("sizes.toml")

# Exact sizes that every larger world contains: nothing, a page of the sweep and one more, a page of 100 and one more.
EDGES: tuple[dict[str, int], ...] = (
    dict.fromkeys(("comments", "reviews", "threads", "labels", "closing", "timeline"), 0) | {"commits": 1},
    dict.fromkeys(("comments", "commits", "reviews", "threads", "labels", "closing", "timeline"), 101),
    *({name: count} for name in ("comments", "commits", "reviews", "timeline") for count in (30, 31, 100)),
    *({"labels": count} for count in (20, 21, 100)),
    *({"closing": count} for count in (10, 11, 100)),
    *({"threads": count} for count in (20, 21, 100)),
    {"threads": 1, "thread_comments": 101},
    {"comments": 230},
)


@dataclass(frozen=True)
class Classes:
    """A distribution over counts: classes of (from, to, percent)."""

    classes: tuple[tuple[int, int, float], ...]

    def __post_init__(self) -> None:
        if abs(sum(percent for _, _, percent in self.classes) - 100) > 1e-6:
            raise ValueError(f"the shares of {self.classes} do not add up to 100 %")
        object.__setattr__(self, "_bounds", tuple(accumulate(percent for _, _, percent in self.classes)))

    def draw(self, rng: random.Random) -> int:
        bounds: tuple[float, ...] = self.__dict__["_bounds"]
        low, high, _ = self.classes[min(bisect_left(bounds, rng.random() * 100), len(self.classes) - 1)]
        return low if low == high else rng.randint(low, high)

    def share_above(self, limit: int) -> float:
        """Return the share (0 to 1) of counts above `limit`."""
        total = 0.0
        for low, high, percent in self.classes:
            above = max(0, high - max(low, limit + 1) + 1)
            total += percent * above / (high - low + 1)
        return total / 100

    @classmethod
    def exactly(cls, count: int) -> Classes:
        return cls(((count, count, 100.0),))


@dataclass(frozen=True)
class Sizes:
    """The distribution of each connection of a pull request."""

    comments: Classes
    commits: Classes
    reviews: Classes
    threads: Classes
    thread_comments: Classes
    labels: Classes
    closing: Classes
    timeline: Classes

    @classmethod
    def load(cls, path: Path | None = None) -> Sizes:
        """Read a distribution; without a path that of the bench (sizes.toml, which says where it comes from)."""
        table = tomllib.loads((path or _FILE).read_text(encoding="utf-8"))
        return cls(**{f.name: Classes(tuple(map(tuple, table[f.name]["classes"]))) for f in fields(cls)})
