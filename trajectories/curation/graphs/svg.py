"""Drawings as SVG: a process graph by levels, bars of counts, and how samples spread. The writer of XML escapes every
text in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, quantiles
from textwrap import wrap
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from prchain.core.console.terminal import clean
from prchain.core.storable import clean_text
from trajectories.curation.graphs.graph import ORDER, ProcessGraph
from trajectories.curation.graphs.nodes import Node, NodeKind

COLOURS: Mapping[NodeKind, str] = {
    NodeKind.STATIC_FACT: "#dbe9f6",
    NodeKind.DYNAMIC_FACT: "#fde3c8",
    NodeKind.REPRODUCE_SCRIPT: "#d9efd5",
    NodeKind.ISSUE_ANALYSIS: "#e6e6e6",
    NodeKind.FIX_PLAN: "#efe2f4",
    NodeKind.CODE_EDIT: "#f8d3d3",
    NodeKind.VALIDATION: "#e4dcf3",
}

_WIDTH, _HEIGHT = 220, 74
_ACROSS, _DOWN = 40, 56
_MARGIN = 24
_CHARACTERS, _LINES = 34, 3
_BAR, _ROW, _LABELS = 420, 26, 170
_TRACK = 44
_STACK = 200


def graph_svg(graph: ProcessGraph, title: str) -> str:
    """The graph from top to bottom, one row a level; dashed edges are the order of milestones."""
    rows: dict[int, list[Node]] = {}
    for node in graph.nodes:
        rows.setdefault(graph.levels[node.name], []).append(node)
    widest = max((len(row) for row in rows.values()), default=1)
    width = 2 * _MARGIN + widest * (_WIDTH + _ACROSS) - _ACROSS
    height = 2 * _MARGIN + _DOWN + max(len(rows), 1) * (_HEIGHT + _DOWN)
    root = _root(width, height, title)
    corners: dict[str, tuple[float, float]] = {}
    for level, row in sorted(rows.items()):
        left = (width - len(row) * (_WIDTH + _ACROSS) + _ACROSS) / 2
        for place, node in enumerate(row):
            corners[node.name] = left + place * (_WIDTH + _ACROSS), _MARGIN + _DOWN + level * (_HEIGHT + _DOWN)
    for edge in graph.edges:
        (x1, y1), (x2, y2) = corners[edge.source], corners[edge.target]
        points = {"x1": x1 + _WIDTH / 2, "y1": y1 + _HEIGHT, "x2": x2 + _WIDTH / 2, "y2": y2}
        line = SubElement(root, "line", _numbers(points), stroke="#777")
        if edge.reason == ORDER:
            line.set("stroke-dasharray", "5 4")
        line.set("marker-end", "url(#arrow)")
        SubElement(line, "title").text = _text(f"{edge.source} -> {edge.target}: {edge.reason}")
    for node in graph.nodes:
        _box(root, node, *corners[node.name])
    return _written(root)


def _box(root: Element, node: Node, left: float, top: float) -> None:
    group = SubElement(root, "g")
    SubElement(group, "title").text = _text(f"{node.statement}\n{node.action.words()}")
    corner = {"x": left, "y": top, "width": _WIDTH, "height": _HEIGHT, "rx": 6}
    SubElement(group, "rect", _numbers(corner), fill=COLOURS[node.kind], stroke="#555")
    _label(group, left + 8, top + 16, f"{node.name}: {node.kind}", weight="bold")
    lines = wrap(_text(node.statement), _CHARACTERS)
    for number, line in enumerate(lines[:_LINES]):
        more = " ..." if number == _LINES - 1 and len(lines) > _LINES else ""
        _label(group, left + 8, top + 34 + 14 * number, line + more)


def bars_svg(title: str, counts: Mapping[str, float], words: Sequence[str], curve: Sequence[float] = ()) -> str:
    """Horizontal bars; `words` stand behind them, one for each. `curve` are shares of 1, one for each bar, which a line
    goes through: a distribution's own, added up."""
    root = _root(_LABELS + _BAR + 2 * _MARGIN + 120, 2 * _MARGIN + _DOWN + _ROW * len(counts), title)
    _bars(root, _MARGIN + _DOWN, counts, words)
    if curve:
        tops = (_MARGIN + _DOWN + place * _ROW + (_ROW - 8) / 2 for place in range(len(curve)))
        points = (f"{_MARGIN + _LABELS + _BAR * share:.6g},{top:.6g}" for share, top in zip(curve, tops, strict=True))
        SubElement(root, "polyline", points=" ".join(points), fill="none", stroke="#a33")
    return _written(root)


def panels_svg(title: str, panels: Mapping[str, Mapping[str, float]]) -> str:
    """Bars in panels below each other, each with its name and a scale of its own; its number stands behind a bar."""
    height = 2 * _MARGIN + _DOWN + sum(_DOWN + _ROW * len(counts) for counts in panels.values())
    root, top = _root(_LABELS + _BAR + 2 * _MARGIN + 120, height, title), _MARGIN + _DOWN
    for name, counts in panels.items():
        _label(root, _MARGIN, top, name, weight="bold")
        _bars(root, top + 14, counts, [f"{count:,}" for count in counts.values()])
        top += _DOWN + _ROW * len(counts)
    return _written(root)


def _bars(root: Element, top: float, counts: Mapping[str, float], words: Sequence[str]) -> None:
    most = max(counts.values(), default=0) or 1
    for (name, count), word in zip(counts.items(), words, strict=True):
        fill = COLOURS[NodeKind(name)] if name in set(NodeKind) else "#dbe9f6"
        bar = {"x": _MARGIN + _LABELS, "y": top, "width": _BAR * count / most, "height": _ROW - 8}
        _label(root, _MARGIN, top + 13, name)
        SubElement(root, "rect", _numbers(bar), fill=fill, stroke="#555")
        _label(root, _MARGIN + _LABELS + _BAR * count / most + 8, top + 13, word)
        top += _ROW


def stacks_svg(title: str, columns: Sequence[Mapping[NodeKind, int]]) -> str:
    """A column for each graph, with its nodes by kind on each other; and what colour a kind has."""
    kinds = [kind for kind in NodeKind if any(column.get(kind) for column in columns)]
    root = _root(_LABELS + _BAR + 2 * _MARGIN + 120, 2 * _MARGIN + _DOWN + _STACK + _ROW * len(kinds), title)
    most = max((sum(column.values()) for column in columns), default=0) or 1
    wide, foot = _BAR / max(1, len(columns)), _MARGIN + _DOWN + _STACK
    for place, column in enumerate(columns):
        top = float(foot)
        for kind in kinds:
            height = _STACK * column.get(kind, 0) / most
            top -= height
            part = {"x": _MARGIN + _LABELS + wide * place, "y": top, "width": wide, "height": height}
            SubElement(root, "rect", _numbers(part), fill=COLOURS[kind])
    _label(root, _MARGIN, _MARGIN + _DOWN + 13, f"{most:,} nodes at most")
    for place, kind in enumerate(kinds):
        top = foot + 10 + _ROW * place
        square = {"x": _MARGIN + _LABELS, "y": top, "width": 14, "height": 14}
        SubElement(root, "rect", _numbers(square), fill=COLOURS[kind], stroke="#555")
        _label(root, _MARGIN + _LABELS + 22, top + 12, str(kind))
    return _written(root)


def spread_svg(title: str, groups: Mapping[str, Sequence[float]], unit: str) -> str:
    """How the values of each group spread, on one scale from 0: a line for each value, a box from the first quartile to
    the third with the median in it, and a diamond at the mean."""
    height = 2 * _MARGIN + _DOWN + _TRACK * len(groups) + 20
    root = _root(_LABELS + _BAR + 2 * _MARGIN + 120, height, title)
    left, most = _MARGIN + _LABELS, max((max(values, default=0) for values in groups.values()), default=0) or 1
    for place, (name, values) in enumerate(groups.items()):
        top = _MARGIN + _DOWN + place * _TRACK
        words = f"mean {fmean(values):.4g}{unit}" if values else "none"
        _label(root, _MARGIN, top + 17, f"{name}: {words}")
        fill = COLOURS[NodeKind.STATIC_FACT if place % 2 else NodeKind.DYNAMIC_FACT]
        _spread(root, [left + _BAR * value / most for value in values], top, fill)
    bottom = _MARGIN + _DOWN + _TRACK * len(groups)
    SubElement(root, "line", _numbers({"x1": left, "y1": bottom, "x2": left + _BAR, "y2": bottom}), stroke="#777")
    for part in (0.0, 0.5, 1.0):
        _label(root, left + _BAR * part, bottom + 16, f"{most * part:.4g}{unit}")
    return _written(root)


def _spread(root: Element, places: Sequence[float], top: float, fill: str) -> None:
    if len(places) > 1:
        low, middle, high = quantiles(places, method="inclusive")
        box = {"x": low, "y": top + 2, "width": high - low, "height": _TRACK - 20}
        SubElement(root, "rect", _numbers(box), fill=fill, stroke="#555")
        line = {"x1": middle, "y1": top + 2, "x2": middle, "y2": top + _TRACK - 18}
        SubElement(root, "line", _numbers(line), stroke="#555")
    for place in places:
        line = {"x1": place, "y1": top + 6, "x2": place, "y2": top + _TRACK - 22}
        SubElement(root, "line", _numbers(line), stroke="#333", opacity="0.3")
    if places:
        centre, middle = fmean(places), top + (_TRACK - 16) / 2
        corners = ((centre, middle - 6), (centre + 5, middle), (centre, middle + 6), (centre - 5, middle))
        points = " ".join(f"{x:.6g},{y:.6g}" for x, y in corners)
        SubElement(root, "polygon", points=points, fill="#333")


def _root(width: float, height: float, title: str) -> Element:
    size = {"width": width, "height": height}
    root = Element("svg", _numbers(size), xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}")
    marker = SubElement(SubElement(root, "defs"), "marker", id="arrow", viewBox="0 0 8 8", refX="8", refY="4")
    marker.attrib |= {"markerWidth": "7", "markerHeight": "7", "orient": "auto"}
    SubElement(marker, "path", d="M0 0 L8 4 L0 8 z", fill="#777")
    SubElement(root, "rect", width="100%", height="100%", fill="white")
    _label(root, _MARGIN, _MARGIN + 8, title, weight="bold")
    return root


def _label(parent: Element, left: float, top: float, text: str, *, weight: str = "normal") -> None:
    label = SubElement(parent, "text", _numbers({"x": left, "y": top}))
    label.attrib |= {"font-family": "sans-serif", "font-size": "11", "font-weight": weight}
    label.text = _text(text)


def _text(text: str) -> str:
    """What XML can hold, in one line."""
    return clean(clean_text(text).encode("utf-8", "replace").decode()).replace("\ufffe", "").replace("\uffff", "")


def _numbers(values: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{value:.6g}" for name, value in values.items()}


def _written(root: Element) -> str:
    indent(root)
    return tostring(root, encoding="unicode") + "\n"
