"""A process graph as a page shows it: its nodes by level and kind as a picture, and what was proposed and not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from prchain.core.errors import UsageError
from prchain.view.texts import beginning
from sql.store import Store, Transaction
from sql.tables import GraphRow
from trajectories.curation.graphs.candidates import NodeVerdict
from trajectories.curation.graphs.graph import ORDER
from trajectories.curation.graphs.report import graph_page

_LEFT, _TOP, _WIDTH, _HEIGHT, _ACROSS, _DOWN = 10, 8, 216, 62, 24, 40
_CHARACTERS, _LINES = 33, 2
_ACROSS_MOST = 5
"""Nodes of a level that stand in one row; the others stand in rows below it."""


@dataclass(frozen=True, slots=True)
class DrawnGraphNode:
    """A node in the picture."""

    name: str
    kind: str
    lines: tuple[str, ...]
    title: str
    x: int
    y: int
    step: int | None
    """The step of the trajectory that established it; None where none did, or there is no trajectory."""


@dataclass(frozen=True, slots=True)
class DrawnPrerequisite:
    """An edge in the picture."""

    path: str
    order: bool
    """Whether it is the order of milestones alone."""
    title: str


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """The picture."""

    width: int
    height: int
    node_width: int
    node_height: int
    nodes: tuple[DrawnGraphNode, ...]
    lines: tuple[DrawnPrerequisite, ...]
    kinds: tuple[str, ...]
    """Those that it holds, in the order in which they first appear."""


@dataclass(frozen=True, slots=True)
class ProcessGraphView:
    """The page of a graph."""

    row: Mapping[str, Any]
    """What `prchain curate show` tells of it."""
    models: str
    picture: GraphPicture
    kept: tuple[Mapping[str, Any], ...]
    fallen: tuple[Mapping[str, Any], ...]


def graphs_of(tx: Transaction, chain_id: str) -> list[tuple[str, int, str]]:
    """Id, stage and outcome of the graphs of a chain."""
    rows = tx.rows(GraphRow, "id", "position", "outcome", chain_id=chain_id)
    return sorted(((str(id_), int(at), str(outcome)) for id_, at, outcome in rows), key=lambda it: (it[1], it[0]))


def process_graph_view(store: Store, graph: str, chain_id: str) -> ProcessGraphView | None:
    """The page of one graph of a chain; None where it has no such graph."""
    with store.reading() as tx:
        if graph not in {id_ for id_, _, _ in graphs_of(tx, chain_id)}:
            return None
    row = graph_page(store, graph)
    kept = [node for node in row["nodes"] if node["verdict"] == NodeVerdict.KEEP]
    fallen = [node for node in row["nodes"] if node["verdict"] != NodeVerdict.KEEP]
    names = ", ".join(sorted({str(model["model"]) for model in row["models"].values()}))
    return ProcessGraphView(row, names, picture(kept, row["edges"]), tuple(kept), tuple(fallen))


def graph_of(store: Store, graph: str) -> Mapping[str, Any] | None:
    """What is stored of a graph; None where it is not there any more."""
    try:
        return graph_page(store, graph)
    except UsageError:
        return None


def picture(
    nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]], steps: Mapping[str, int] | None = None
) -> GraphPicture:
    """The picture of kept nodes, level below level; `steps` says which step established a node. Pure."""
    levels: dict[int, list[Mapping[str, Any]]] = {}
    for node in nodes:
        levels.setdefault(node["level"] or 0, []).append(node)
    drawn: dict[str, DrawnGraphNode] = {}
    y = _TOP
    for _, found in sorted(levels.items()):
        for start in range(0, len(found), _ACROSS_MOST):
            for place, node in enumerate(found[start : start + _ACROSS_MOST]):
                x = _LEFT + place * (_WIDTH + _ACROSS)
                drawn[node["name"]] = _node(node, x, y, (steps or {}).get(node["name"]))
            y += _HEIGHT + _DOWN
    lines = [
        _line(drawn[edge["source"]], drawn[edge["target"]], str(edge["reason"]))
        for edge in edges
        if edge["source"] in drawn and edge["target"] in drawn
    ]
    right = max((it.x for it in drawn.values()), default=_LEFT) + _WIDTH + _LEFT
    kinds = tuple(dict.fromkeys(str(node["kind"]) for node in nodes))
    return GraphPicture(right, max(y - _DOWN + _TOP, _TOP), _WIDTH, _HEIGHT, tuple(drawn.values()), tuple(lines), kinds)


def _node(node: Mapping[str, Any], x: int, y: int, step: int | None) -> DrawnGraphNode:
    text = " ".join(str(node["statement"]).split())
    lines = wrap(beginning(text, _CHARACTERS * (_LINES + 1)), _CHARACTERS)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1]} …"]
    words = f"{node['kind']}: {text}"
    established = f" Established at step {step}." if step else ""
    return DrawnGraphNode(str(node["name"]), str(node["kind"]), tuple(lines), words + established, x, y, step)


def _line(source: DrawnGraphNode, target: DrawnGraphNode, reason: str) -> DrawnPrerequisite:
    x1, x2 = source.x + _WIDTH // 2, target.x + _WIDTH // 2
    y1, y2 = source.y + _HEIGHT, target.y
    middle = (y1 + y2) // 2
    title = f"{source.name} before {target.name}: {'the order of milestones' if reason == ORDER else reason}"
    return DrawnPrerequisite(f"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}", reason == ORDER, title)
