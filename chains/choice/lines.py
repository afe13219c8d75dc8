"""Paths that lie end to end, joined into lines and cut anew.

The first paths decide where a long line of work is cut. Moving a single cut gains nothing; all have to move.
Nodes are positions in reference order, weights whole numbers, as in `chains.choice.packing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Path = tuple[int, ...]


def lines(pieces: Sequence[Path], before: Sequence[Mapping[int, float]]) -> list[Path]:
    """The disjoint paths, joined where an edge leads from the end of one to the start of another, heaviest edges first.

    `before[v]` maps each node with an edge to v to the weight of that edge. Pieces that are not joined are left out.
    """
    starts = {piece[0]: piece for piece in pieces}
    ends = {piece[-1] for piece in pieces}
    links = sorted(
        (-weight, earlier, later) for later in starts for earlier, weight in before[later].items() if earlier in ends
    )
    follows: dict[int, int] = {}
    joined: set[int] = set()
    for _, earlier, later in links:
        if earlier not in follows and later not in joined:
            follows[earlier] = later
            joined.add(later)
    found = []
    for first, piece in starts.items():
        if first not in joined and piece[-1] in follows:
            line = list(piece)
            while line[-1] in follows:
                line += starts[follows[line[-1]]]
            found.append(tuple(line))
    return found


def best_cut(line: Path, before: Sequence[Mapping[int, float]], shortest: int, longest: int) -> list[Path]:
    """The parts of a path, of `shortest` to `longest` nodes, with the greatest sum of weights; nodes may drop out."""
    totals, starts = [0.0], [0]
    for end in range(1, len(line) + 1):
        totals.append(totals[-1])
        starts.append(end)
        weight = 0.0
        for start in range(end - 2, max(-1, end - longest - 1), -1):
            weight += before[line[start + 1]][line[start]]
            if end - start >= shortest and totals[start] + weight > totals[end]:
                totals[end], starts[end] = totals[start] + weight, start
    parts = []
    end = len(line)
    while end > 0:
        if starts[end] == end:
            end -= 1
        else:
            parts.append(line[starts[end] : end])
            end = starts[end]
    return parts
