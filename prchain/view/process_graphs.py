"""A process graph as a page shows it: its nodes by level and kind as a picture, and what was proposed and not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from prchain.core.errors import UsageError
from prchain.view.layers import NODE, Edge, LaidOut, lay_out
from prchain.view.texts import beginning
from sql.store import Store, Transaction
from sql.tables import GraphRow
from trajectories.curation.graphs.candidates import NodeVerdict
from trajectories.curation.graphs.graph import ORDER
from trajectories.curation.graphs.report import graph_page

_LEFT, _TOP, _HEIGHT, _DOWN = 10, 8, 62, 40
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
    levels: dict[int, list[str]] = {}
    for node in nodes:
        levels.setdefault(node["level"] or 0, []).append(node["name"])
    rows = [
        found[start : start + _ACROSS_MOST]
        for _, found in sorted(levels.items())
        for start in range(0, len(found), _ACROSS_MOST)
    ]
    reasons = {(str(edge["source"]), str(edge["target"])): str(edge["reason"]) for edge in edges}
    laid = lay_out(rows, list(reasons))
    known = steps or {}
    drawn = [_node(node, _LEFT + laid.x[node["name"]], _down(laid.row[node["name"]]), known) for node in nodes]
    lines = [_line(laid, edge, reasons[edge]) for edge in laid.ways]
    kinds = tuple(dict.fromkeys(str(node["kind"]) for node in nodes))
    height = max(_down(len(rows)) - _DOWN, 0) + _TOP
    return GraphPicture(2 * _LEFT + laid.width, height, NODE, _HEIGHT, tuple(drawn), tuple(lines), kinds)


def _down(row: int) -> int:
    return _TOP + row * (_HEIGHT + _DOWN)


def _node(node: Mapping[str, Any], x: int, y: int, steps: Mapping[str, int]) -> DrawnGraphNode:
    step = steps.get(node["name"])
    text = " ".join(str(node["statement"]).split())
    lines = wrap(beginning(text, _CHARACTERS * (_LINES + 1)), _CHARACTERS)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1]} …"]
    words = f"{node['kind']}: {text}"
    established = f" Established at step {step}." if step else ""
    return DrawnGraphNode(str(node["name"]), str(node["kind"]), tuple(lines), words + established, x, y, step)


def _line(laid: LaidOut, edge: Edge, reason: str) -> DrawnPrerequisite:
    source, target = edge
    x, y = (_LEFT + laid.x[source] + NODE // 2, _down(laid.row[source]) + _HEIGHT)
    path = f"M{x} {y}"
    for row, middle in (*laid.ways[edge], (laid.row[target], laid.x[target] + NODE // 2)):
        to_x, to_y = _LEFT + middle, _down(row)
        path += f"C{x} {(y + to_y) // 2} {to_x} {(y + to_y) // 2} {to_x} {to_y}"
        x, y = to_x, to_y
        if row != laid.row[target]:
            y += _HEIGHT
            path += f"V{y}"
    words = "the order of milestones" if reason == ORDER else reason
    return DrawnPrerequisite(path, reason == ORDER, f"{source} before {target}: {words}")
