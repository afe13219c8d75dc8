"""A chain as a picture: its stages in a row, the edges between them, and in grey the neighbours that no chain took.

Pure: places and lines of an SVG, which the template writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prchain.view.texts import beginning, known_from, sureness, title_of

_LEFT, _STEP, _TOP, _WIDTH, _HEIGHT = 10, 330, 34, 220, 58
_GREY_BELOW, _GREY_WIDTH, _GREY_HEIGHT = 126, 150, 40
_MOST_GREY = 10
_ARC = 26
_TITLE = 31


@dataclass(frozen=True, slots=True)
class ChainEdge:
    """A pair of pull requests, the later one first, as `sql.tables.Dependency` holds it."""

    source: int
    target: int
    relation: str
    confidence: float
    sources: str
    outcome: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A pull request in the picture."""

    number: int
    title: str
    x: int
    y: int
    width: int
    height: int
    stage: int
    """0 of a neighbour."""


@dataclass(frozen=True, slots=True)
class GraphLine:
    """An edge in the picture: a path, and words where it has room."""

    path: str
    style: str
    """``link`` of the chain's own, ``skip`` of others between its stages, ``grey``."""
    label: str
    label_x: int
    label_y: int
    title: str
    arrow: str
    """Points of its head."""


@dataclass(frozen=True, slots=True)
class ChainGraph:
    """The picture."""

    width: int
    height: int
    nodes: tuple[DrawnNode, ...]
    lines: tuple[GraphLine, ...]
    left_out: int
    """Neighbours that have no room."""


def chain_graph(numbers: Sequence[int], titles: Mapping[int, str], edges: Sequence[ChainEdge]) -> ChainGraph:
    """The picture of a chain of the pull requests `numbers`."""
    places = {number: index for index, number in enumerate(numbers)}
    spans = [abs(places[it.source] - places[it.target]) for it in edges if {it.source, it.target} <= places.keys()]
    top = max([_TOP, *(_ARC * span + 12 for span in spans if span > 1)])
    below = top + _GREY_BELOW
    nodes = [
        DrawnNode(
            number,
            _short(titles.get(number, ""), number, _TITLE),
            _LEFT + index * _STEP,
            top,
            _WIDTH,
            _HEIGHT,
            index + 1,
        )
        for number, index in places.items()
    ]
    grey = _neighbours(places, edges)
    shown = grey[:_MOST_GREY]
    width = _LEFT * 2 + (len(numbers) - 1) * _STEP + _WIDTH
    gap = _GREY_WIDTH + 14
    width = max(width, _LEFT * 2 + len(shown) * gap)
    for index, number in enumerate(shown):
        short = _short(titles.get(number, ""), number, 22)
        nodes.append(DrawnNode(number, short, _LEFT + index * gap, below, _GREY_WIDTH, _GREY_HEIGHT, 0))
    known = {node.number: node for node in nodes}
    lines = [_line(known[it.source], known[it.target], it) for it in edges if {it.source, it.target} <= known.keys()]
    lines.sort(key=lambda line: line.style != "grey")
    return ChainGraph(
        width,
        below + _GREY_HEIGHT + 8 if shown else top + _HEIGHT + 12,
        tuple(nodes),
        tuple(lines),
        len(grey) - len(shown),
    )


def _neighbours(places: Mapping[int, int], edges: Sequence[ChainEdge]) -> list[int]:
    """Pull requests beside the chain, those that were surest first."""
    best: dict[int, float] = {}
    for edge in edges:
        for number in {edge.source, edge.target} - places.keys():
            best[number] = max(best.get(number, 0.0), edge.confidence)
    return sorted(best, key=lambda number: (-best[number], number))


def _line(later: DrawnNode, earlier: DrawnNode, edge: ChainEdge) -> GraphLine:
    pair = f"#{edge.source} builds on #{edge.target}"
    relation = edge.relation.replace("_", " ")
    known, outcome = known_from(edge.sources), edge.outcome.replace("_", " ")
    title = f"{pair}: {relation}, {sureness(edge.confidence)}, known from {known}; {outcome}"
    label = f"{relation} {edge.confidence:.2f}"
    if not (later.stage and earlier.stage):
        x1, x2 = later.x + later.width // 2, earlier.x + earlier.width // 2
        y1, y2 = (later.y + later.height, earlier.y) if later.stage else (later.y, earlier.y + earlier.height)
        if not (later.stage or earlier.stage):
            y1 = y2 = later.y + later.height
        middle = (y1 + y2) // 2
        return GraphLine(f"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}", "grey", "", 0, 0, title, "")
    if later.stage == earlier.stage + 1:
        y = later.y + later.height // 2
        x1, x2 = earlier.x + earlier.width, later.x
        arrow = f"{x1},{y} {x1 + 8},{y - 5} {x1 + 8},{y + 5}"
        return GraphLine(f"M{x2} {y}L{x1 + 8} {y}", "link", label, (x1 + x2) // 2, y - 26, title, arrow)
    x1, x2 = later.x + later.width // 2, earlier.x + earlier.width // 2
    top = later.y - _ARC * (abs(later.stage - earlier.stage))
    arrow = f"{x2},{earlier.y} {x2 - 5},{earlier.y - 8} {x2 + 5},{earlier.y - 8}"
    path = f"M{x1} {later.y}C{x1} {top} {x2} {top} {x2} {earlier.y - 8}"
    return GraphLine(path, "skip", label, (x1 + x2) // 2, top + 12, title, arrow)


def _short(text: str, number: int, most: int) -> str:
    line = title_of(" ".join(text.split()), number)
    if len(line) <= most:
        return line
    whole = beginning(line, most - 1)
    return f"{whole if len(whole) > most // 2 else line[: most - 1]}…"  # a long word says more than none
