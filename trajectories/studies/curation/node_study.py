"""What the nodes of process graphs come to (P2T, appendix B and figure 3)."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean, median
from typing import Any

from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_table
from sql.store import Store
from sql.tables import Chain, GraphRow, Repository
from trajectories.curation.graphs.candidates import NodeCandidate
from trajectories.curation.graphs.nodes import NodeKind
from trajectories.curation.graphs.outcomes import BUILT, CONVERGED, FINAL
from trajectories.curation.graphs.rows import read_candidates
from trajectories.curation.graphs.svg import bars_svg, spread_svg, stacks_svg
from trajectories.studies.curation.study_files import Study

FIGURES = ("shares", "means", "sizes", "rounds", "gates", "stacks", "spreads")
"""What is drawn."""

IN_SCOPE = tuple(kind for kind in NodeKind if kind not in {NodeKind.CODE_EDIT, NodeKind.VALIDATION})
"""The kinds whose nodes the paper counts (P2T, appendix B)."""

_BIN = 5


@dataclass(frozen=True, slots=True)
class StudiedGraph:
    """A graph that is over, for counting."""

    id: str
    outcome: str
    rounds: int
    candidates: tuple[NodeCandidate, ...]


def studied_graphs(store: Store, repository: str | None = None) -> list[StudiedGraph]:
    """The graphs that are over."""
    query = (
        select(GraphRow.id, GraphRow.outcome, GraphRow.rounds, Repository.owner, Repository.name)
        .join(Chain, Chain.id == GraphRow.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(GraphRow.outcome.in_(sorted(FINAL)))
        .order_by(GraphRow.id)
    )
    with store.reading() as tx:
        return [
            StudiedGraph(name, outcome, rounds, read_candidates(tx, name))
            for name, outcome, rounds, owner, repo in list(tx.connection.execute(query))
            if repository is None or f"{owner}/{repo}".lower() == repository.lower()
        ]


def node_study(graphs: Sequence[StudiedGraph]) -> dict[str, Any]:
    """Share, mean and coverage of each kind, sizes, rounds and gates.

    Kinds, sizes and rounds are of graphs that can be used; outcomes and gates are of all. Shares and sizes leave edits
    and validations out, as the paper's do. ``coverage`` is the share of graphs with at least one node of the kind. A
    gate counts each candidate that it took out or changed.
    """
    used = _usable(graphs)
    per_graph = [_kinds(graph) for graph in used]
    in_scope = [sum(counts[kind] for kind in IN_SCOPE) for counts in per_graph]
    sizes = sorted(in_scope)
    total = sum(sizes)
    rounds = Counter(graph.rounds for graph in used)
    gates = Counter(fault.rule for graph in graphs for candidate in graph.candidates for fault in {*candidate.reasons})
    verdicts = Counter(str(candidate.verdict) for graph in graphs for candidate in graph.candidates)
    return {
        "graphs": len(graphs),
        "outcomes": dict(sorted(Counter(graph.outcome for graph in graphs).items())),
        "usable": len(used),
        "nodes": sum(map(Counter.total, per_graph)),
        "in_scope": total,
        "kinds": {
            str(kind): {
                "nodes": sum(counts[kind] for counts in per_graph),
                "share": _ratio(sum(counts[kind] for counts in per_graph), total) if kind in IN_SCOPE else None,
                "mean": round(mean(counts[kind] for counts in per_graph), 3) if per_graph else None,
                "coverage": _ratio(sum(counts[kind] > 0 for counts in per_graph), len(used)),
            }
            for kind in NodeKind
        },
        "size": {
            "median": median(sizes) if sizes else None,
            "mean": round(mean(sizes), 3) if sizes else None,
            "smallest": sizes[0] if sizes else None,
            "largest": sizes[-1] if sizes else None,
        },
        "sizes": {f"{low}-{low + _BIN - 1}": count for low, count in sorted(_binned(sizes).items())},
        "rounds": {str(number): count for number, count in sorted(rounds.items())},
        "converged_by_round_3": _ratio(
            sum(graph.outcome == CONVERGED and graph.rounds <= 3 for graph in used), len(used)
        ),
        "verdicts": dict(sorted(verdicts.items())),
        "gates": dict(sorted(gates.items())),
    }


def _usable(graphs: Sequence[StudiedGraph]) -> list[StudiedGraph]:
    return [graph for graph in graphs if graph.outcome in BUILT]


def _kinds(graph: StudiedGraph) -> Counter[NodeKind]:
    return Counter(it.node.kind for it in graph.candidates if it.kept)


def _in_scope(graph: StudiedGraph) -> Counter[NodeKind]:
    return Counter({kind: count for kind, count in _kinds(graph).items() if kind in IN_SCOPE})


def _binned(sizes: Sequence[int]) -> Counter[int]:
    return Counter(size - size % _BIN for size in sizes)


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def node_rows(graphs: Sequence[StudiedGraph]) -> str:
    """CSV: one row per usable graph, with its rounds, its size and the number of nodes of each kind."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", "outcome", "rounds", "nodes", *map(str, NodeKind)])
    for graph in _usable(graphs):
        counts = _kinds(graph)
        writer.writerow([graph.id, graph.outcome, graph.rounds, counts.total(), *(counts[kind] for kind in NodeKind)])
    return text.getvalue()


def drawings(study: Mapping[str, Any], graphs: Sequence[StudiedGraph]) -> dict[str, str]:
    """Name of each figure to its SVG: those of P2T's figure 3, and rounds and gates."""
    kinds = {kind: values for kind, values in study["kinds"].items() if kind in IN_SCOPE}
    shares = {kind: 100 * (values["share"] or 0) for kind, values in kinds.items()}
    words = [f"{100 * (it['share'] or 0):.1f} %" for it in kinds.values()]
    means = {kind: it["mean"] or 0.0 for kind, it in kinds.items()}
    covered = [f"{it['mean'] or 0:g}, in {100 * (it['coverage'] or 0):.0f} % of graphs" for it in kinds.values()]
    bars = {
        "rounds": ("Graphs by number of rounds", study["rounds"]),
        "gates": ("Candidates by the rule that took them out or changed them", study["gates"]),
    }
    curve = [running / study["usable"] for running in accumulate(study["sizes"].values())]
    sizes = [
        f"{count:,}, up to here {100 * share:.0f} %"
        for count, share in zip(study["sizes"].values(), curve, strict=True)
    ]
    columns = sorted(map(_in_scope, _usable(graphs)), key=Counter.total)
    spreads = {str(kind): [column[kind] for column in columns] for kind in IN_SCOPE}
    title = f"Nodes by kind: {counted(study['in_scope'], 'node')} of {counted(study['usable'], 'graph')}"
    return {
        "shares": bars_svg(title, shares, words),
        "means": bars_svg("Nodes of a graph by kind, on average", means, covered),
        "sizes": bars_svg("Graphs by number of nodes; the line: all up to here", study["sizes"], sizes, curve),
        "stacks": stacks_svg("Nodes of each graph by kind, from small graphs to large ones", columns),
        "spreads": spread_svg("Nodes of a graph by kind", spreads, ""),
        **{name: bars_svg(head, counts, [str(it) for it in counts.values()]) for name, (head, counts) in bars.items()},
    }


def study_nodes(store: Store, repository: str | None = None) -> Study:
    """The study `nodes`."""
    graphs = studied_graphs(store, repository)
    row = node_study(graphs)
    return Study(row, node_rows(graphs), drawings(row, graphs), print_study)


def print_study(study: Mapping[str, Any]) -> None:
    """Print the study as a table, beside the paper's shares."""
    say(f"{counted(study['usable'], 'graph')} of {study['graphs']:,} can be used, {counted(study['nodes'], 'node')}")
    rows = [
        (kind, it["nodes"], _percent(it["share"]), it["mean"], _percent(it["coverage"]), PAPER.get(kind, ""))
        for kind, it in study["kinds"].items()
    ]
    say_table(("kind", "nodes", "share", "mean", "coverage", "the paper's share"), rows)
    size = study["size"]
    if size["median"] is not None:
        span = f"{size['smallest']} to {size['largest']}"
        say(f"size without edits and validations: median {size['median']:g}, mean {size['mean']:g}, {span}")
        rounds = ", ".join(f"{count:,} after {number}" for number, count in study["rounds"].items())
        say(f"rounds: {rounds}; converged by round 3: {_percent(study['converged_by_round_3'])} (the paper: 96%)")
    if study["gates"]:
        say("gates: " + ", ".join(f"{rule} {count:,}" for rule, count in study["gates"].items()))


PAPER: Mapping[str, str] = {
    "static_fact": "66.2%",
    "dynamic_fact": "16.7%",
    **dict.fromkeys(("reproduce_script", "issue_analysis", "fix_plan"), "5% to 6%"),
}
"""P2T, appendix B: shares of 33,106 nodes of 1,815 graphs, of which none is an edit or a validation."""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"
