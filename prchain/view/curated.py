"""The page of a curated trajectory: the process graph of each stage filling up, and the candidates of each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prchain.view.options import ViewOptions
from prchain.view.places import chain_page
from prchain.view.process_graphs import GraphPicture, graph_of, picture
from prchain.view.texts import cut
from sql.store import Store, Transaction
from sql.tables import CurationWindow
from trajectories.curation.graphs.candidates import NodeVerdict
from trajectories.curation.windows.candidates import DROPPED, GOES_ON
from trajectories.curation.windows.report import curated_page
from trajectories.curation.windows.selection import FloorUnit, HowChosen

_TOLERANCE = 1e-9
_SHOWN = 3_000
"""Characters of a rewritten step."""
_PLOT_WIDTH, _PLOT_HEIGHT = 300, 150
"""Of the picture of a window's candidates."""


@dataclass(frozen=True, slots=True)
class CandidateView:
    """A candidate of a window."""

    row: Mapping[str, Any]
    """What `prchain curate show` tells of it."""
    chosen: bool
    scored: bool
    """Whether it has a place among the candidates by effectiveness and length."""
    why: str
    """Why it was committed, or why not."""
    nodes: tuple[str, ...]
    early: tuple[str, ...]
    rewrite: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class WindowView:
    """A window."""

    row: Mapping[str, Any]
    candidates: tuple[CandidateView, ...]
    known: int
    """Nodes that were established before it."""
    longest: int
    most: float
    floor_y: float | None
    """Where the floor stands in the picture; None where it is of another unit."""


@dataclass(frozen=True, slots=True)
class FilledStage:
    """A stage: its graph with the steps that established its nodes, and its windows."""

    position: int
    graph: str
    graph_page: str | None
    picture: GraphPicture | None
    """None where the graph is not there any more."""
    nodes: int
    steps: tuple[tuple[int, tuple[str, ...]], ...]
    """The steps that established nodes, and which."""
    points: str
    """How nodes fill up along the steps, as a line of an SVG of 100 by 100."""
    windows: tuple[WindowView, ...]


@dataclass(frozen=True, slots=True)
class CuratedView:
    """The page."""

    trajectory: Mapping[str, Any]
    options: tuple[tuple[str, str], ...]
    stages: tuple[FilledStage, ...]


def is_curated(tx: Transaction, trajectory: str) -> bool:
    """Whether a trajectory has windows of curation."""
    return bool(tx.count(CurationWindow, trajectory_id=trajectory))


def curated_view(store: Store, trajectory: str, options: ViewOptions) -> CuratedView:
    """The page of a curated trajectory. Raises `UsageError` for another one."""
    page = curated_page(store, trajectory)
    given = page["options"]
    by_stage: dict[int, list[Mapping[str, Any]]] = {}
    for window in page["windows"]:
        by_stage.setdefault(window["stage"], []).append(window)
    stages = tuple(_stage(store, at, windows, page, given, options) for at, windows in sorted(by_stage.items()))
    told = tuple((name, str(value)) for name, value in given.items())
    slim = {name: page[name] for name in ("id", "chain_id", "outcome", "reason", "model", "steps", "usd")}
    return CuratedView(slim, told, stages)


def _stage(
    store: Store,
    position: int,
    windows: Sequence[Mapping[str, Any]],
    page: Mapping[str, Any],
    given: Mapping[str, Any],
    options: ViewOptions,
) -> FilledStage:
    graph = graph_of(store, windows[-1]["graph"])
    kept = [node for node in graph["nodes"] if node["verdict"] == NodeVerdict.KEEP] if graph else []
    steps = filled(windows)
    by_step: dict[int, list[str]] = {}
    for name, step in steps.items():
        by_step.setdefault(step, []).append(name)
    link = chain_page(page["chain_id"], f"graph-{windows[-1]['graph']}.html") if graph else None
    return FilledStage(
        position,
        windows[-1]["graph"],
        link,
        picture(kept, graph["edges"], steps) if graph else None,
        len(kept),
        tuple((step, tuple(names)) for step, names in sorted(by_step.items())),
        _stairs(by_step, windows, len(kept)),
        tuple(_window(window, given, options) for window in windows),
    )


def filled(windows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Node to the step of the trajectory that established it: what committed steps showed. Pure."""
    found: dict[str, int] = {}
    for window in windows:
        last = window["step"] + window["committed"]
        for candidate in window["candidates"]:
            if candidate["number"] != window["chosen"]:
                continue
            for it in candidate["establishments"]:
                if it["step"] <= last:
                    found.setdefault(it["node"], it["step"])
    return found


def _stairs(by_step: Mapping[int, Sequence[str]], windows: Sequence[Mapping[str, Any]], nodes: int) -> str:
    first, last = windows[0]["step"], windows[-1]["step"] + windows[-1]["committed"]
    across = max(last - first, 1)
    points, count = ["0,100"], 0
    for step, names in sorted(by_step.items()):
        x = 100 * (step - first) / across
        points.append(f"{x:.2f},{100 - 100 * count / max(nodes, 1):.2f}")
        count += len(names)
        points.append(f"{x:.2f},{100 - 100 * count / max(nodes, 1):.2f}")
    return " ".join([*points, f"100,{100 - 100 * count / max(nodes, 1):.2f}"])


def _window(window: Mapping[str, Any], given: Mapping[str, Any], options: ViewOptions) -> WindowView:
    candidates = window["candidates"]
    longest = max((it["length"] for it in candidates), default=0) or 1
    by_progress = given["floor_unit"] == FloorUnit.PROGRESS
    most = max([it["effectiveness"] for it in candidates] + ([window["floor"]] if by_progress else []), default=0) or 1
    views = tuple(_candidate(it, window, candidates, given, options, longest, most) for it in candidates)
    floor_y = _PLOT_HEIGHT * (1 - window["floor"] / most) if by_progress and window["frontier"] else None
    return WindowView(window, views, len(window["established"]), longest, most, floor_y)


def _candidate(
    it: Mapping[str, Any],
    window: Mapping[str, Any],
    candidates: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    options: ViewOptions,
    longest: int,
    most: float,
) -> CandidateView:
    rewrite = it["rewrite"] or {}
    words = str(rewrite.get("text") or "") if options.reasoning else ""
    calls = [f"-> {call.get('name')}\n{call.get('arguments')}" for call in rewrite.get("calls") or ()]
    return CandidateView(
        {name: value for name, value in it.items() if name not in ("rewrite", "establishments")},
        it["number"] == window["chosen"],
        it["outcome"] not in DROPPED,
        why(it, window, candidates, given["floor_unit"]),
        tuple(name for step in it["counted"] for name in step),
        tuple(name for step in it["premature"] for name in step),
        cut("\n\n".join(filter(None, (words, *calls))), _SHOWN)[0],
        round(_PLOT_WIDTH * it["length"] / longest, 1),
        round(_PLOT_HEIGHT * (1 - it["effectiveness"] / most), 1),
    )


def why(it: Mapping[str, Any], window: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Why a candidate of a window was committed, or why another one was (`curation.windows.selection.choose`). Pure."""
    chosen = next((other for other in candidates if other["number"] == window["chosen"]), None)
    if it["outcome"] in DROPPED:
        faults = "; ".join(f"{fault['rule']}: {fault['words']}" for fault in it["faults"])
        return f"no candidate: {it['outcome'].replace('_', ' ')}{f' ({faults})' if faults else ''}"
    if chosen is None:
        return "the window is under way"
    if it is chosen:
        return {
            HowChosen.FLOOR: "committed: the shortest above the floor",
            HowChosen.FALLBACK: "committed: none clears the floor, and it is the most effective",
            HowChosen.RANDOM: "committed: drawn of those above the floor",
            HowChosen.PLAIN: "committed: nothing was left to establish",
        }[HowChosen(window["how"])]
    if it["outcome"] not in GOES_ON and chosen["outcome"] in GOES_ON:
        return f"ended: {it['outcome'].replace('_', ' ')}"
    value = it["effectiveness"] if unit == FloorUnit.PROGRESS else sum(map(len, it["counted"]))
    if window["how"] != HowChosen.FALLBACK and value < window["floor"] - _TOLERANCE:
        return f"below the floor: {value:.2f} of {window['floor']:g}"
    if window["how"] == HowChosen.RANDOM:
        return "not drawn"
    if window["how"] == HowChosen.FALLBACK and it["effectiveness"] < chosen["effectiveness"]:
        return f"less effective: {it['effectiveness']:.2f}, not {chosen['effectiveness']:.2f}"
    if it["length"] > chosen["length"]:
        return f"longer: {it['length']:,}, not {chosen['length']:,}"
    if it["length"] < chosen["length"]:
        return f"shorter, and less effective: {it['effectiveness']:.2f}, not {chosen['effectiveness']:.2f}"
    if it["effectiveness"] < chosen["effectiveness"]:
        return f"as long, and less effective: {it['effectiveness']:.2f}, not {chosen['effectiveness']:.2f}"
    return "as long and as effective; seeds and lower numbers come first"
