"""Where the nodes of a picture stand that is drawn row below row, and where its lines pass between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import networkx as nx

NODE, GAP, LANE = 216, 24, 12
"""Widths: of a node, between what stands in a row, and of the way of a line through a row."""
_SWEEPS = 4
"""Times that rows are ordered by those above them and by those below."""

Edge = tuple[str, str]
_Slot = str | tuple[Edge, int]
"""What takes room in a row: a node, or an edge that passes through this row."""


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Where all stands."""

    row: Mapping[str, int]
    """Node to the number of its row."""
    x: Mapping[str, int]
    """Node to its left side."""
    ways: Mapping[Edge, tuple[tuple[int, int], ...]]
    """The edges to draw, and through which rows each passes: the row's number, and where in it."""
    width: int


def lay_out(rows: Sequence[Sequence[str]], edges: Sequence[Edge]) -> LaidOut:
    """Order each row so that lines cross less, and lead long lines past the nodes of the rows between. An edge that
    follows from others is not drawn, nor one that leads upward or to a node that is in no row. Pure."""
    row = {name: place for place, names in enumerate(rows) for name in names}
    downward = [it for it in edges if it[0] in row and it[1] in row and row[it[0]] < row[it[1]]]
    direct = set(nx.transitive_reduction(nx.DiGraph(downward)).edges)
    between = {it: range(row[it[0]] + 1, row[it[1]]) for it in dict.fromkeys(downward) if it in direct}
    slots: list[list[_Slot]] = [list(names) for names in rows]
    links: list[tuple[_Slot, _Slot]] = []
    for edge, passed in between.items():
        for at in passed:
            slots[at].append((edge, at))
        links += pairwise([edge[0], *((edge, at) for at in passed), edge[1]])
    _untangle(slots, links)
    middle, width = _middles(slots)
    ways = {edge: tuple((at, middle[edge, at]) for at in passed) for edge, passed in between.items()}
    return LaidOut(row, {name: middle[name] - NODE // 2 for name in row}, ways, width)


def _untangle(slots: list[list[_Slot]], links: Sequence[tuple[_Slot, _Slot]]) -> None:
    """Order what stands in each row by the middle of what it is linked to, from above and from below in turn."""
    above: dict[_Slot, list[_Slot]] = {}
    below: dict[_Slot, list[_Slot]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    for sweep in range(_SWEEPS):
        for own in slots if sweep % 2 == 0 else reversed(slots):
            middle, _ = _middles(slots)
            linked = above if sweep % 2 == 0 else below
            own.sort(key=lambda it: fmean(middle[other] for other in linked.get(it, [it])))


def _middles(slots: Sequence[Sequence[_Slot]]) -> tuple[dict[_Slot, int], int]:
    """The middle of each slot where all rows are centred; and the width of the widest row."""
    widths = [[NODE if isinstance(it, str) else LANE for it in own] for own in slots]
    taken = [sum(own) + GAP * max(len(own) - 1, 0) for own in widths]
    widest = max(taken, default=0)
    middles: dict[_Slot, int] = {}
    for own, sizes, used in zip(slots, widths, taken, strict=True):
        x = (widest - used) // 2
        for it, size in zip(own, sizes, strict=True):
            middles[it] = x + size // 2
            x += size + GAP
    return middles, widest
