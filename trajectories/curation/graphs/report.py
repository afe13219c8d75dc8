"""Process graphs for people: the list, and the page of one graph with its tree and what fell out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import func, select

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table, shortened, summed
from prchain.core.processes.alive import Process
from sql.chosen import find_chain
from sql.store import Store
from sql.tables import Chain, GraphNode, GraphRow, Repository
from trajectories.curation.graphs.candidates import NodeCandidate, NodeVerdict
from trajectories.curation.graphs.graph import ORDER, ProcessGraph
from trajectories.curation.graphs.outcomes import RUNNING
from trajectories.curation.graphs.rows import find_graph, read_candidates, read_graph

_COLUMNS = (
    "id",
    "chain_id",
    "position",
    "trajectory_id",
    "start_tree",
    "target_tree",
    "outcome",
    "reason",
    "rounds",
    "dropped_rounds",
    "dropped_edges",
    "usd",
    "tokens_in",
    "tokens_out",
    "seconds",
    "worker",
    "started_at",
    "finished_at",
)

INTERRUPTED = "interrupted"
"""Shown for a running graph whose worker, a process of this machine, has ended: the next run goes on with it."""

_STATEMENT = 96
_REASON = 200


def list_graphs(
    store: Store, repository: str | None = None, chain: str | None = None, outcome: str | None = None
) -> list[dict[str, Any]]:
    """One row per graph, by repository, chain and stage. Raises `UsageError` for an unknown chain."""
    kept = (
        select(GraphNode.graph_id, func.count().label("nodes"))
        .where(GraphNode.verdict == NodeVerdict.KEEP)
        .group_by(GraphNode.graph_id)
        .subquery()
    )
    query = (
        select(
            *(getattr(GraphRow, name) for name in _COLUMNS),
            func.coalesce(kept.c.nodes, 0),
            Repository.owner,
            Repository.name,
        )
        .join(Chain, Chain.id == GraphRow.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .outerjoin(kept, kept.c.graph_id == GraphRow.id)
        .order_by(GraphRow.chain_id, GraphRow.position, GraphRow.id)
    )
    with store.reading() as tx:
        if chain is not None:
            query = query.where(GraphRow.chain_id == find_chain(tx, chain))
        rows = []
        for *values, nodes, owner, name in tx.connection.execute(query):
            row = {**dict(zip(_COLUMNS, values, strict=True)), "nodes": nodes, "repository": f"{owner}/{name}"}
            row["outcome"] = _outcome(row)
            if (repository is None or row["repository"].lower() == repository.lower()) and (
                outcome in {None, row["outcome"]}
            ):
                rows.append(row)
    return sorted(rows, key=lambda row: (row["repository"].lower(), row["chain_id"], row["position"], row["id"]))


def _outcome(row: Mapping[str, Any]) -> str:
    process = Process.parse(row["worker"] or "")
    gone = row["outcome"] == RUNNING and process is not None and process.is_gone
    return INTERRUPTED if gone else str(row["outcome"])


def print_graphs(rows: list[dict[str, Any]]) -> None:
    """Print the list, and below it the number of each outcome."""
    lines = [
        (
            row["id"],
            row["outcome"],
            row["nodes"],
            row["rounds"],
            "" if row["usd"] is None else f"{row['usd']:,.4f}",
            f"{row['repository']} {row['chain_id']} stage {row['position']}"
            + (f", after {row['trajectory_id']}" if row["trajectory_id"] else ""),
        )
        for row in rows
    ]
    if rows:
        say_table(("id", "outcome", "nodes", "rounds", "USD", "repository and chain"), lines)
    say(summed("graph", (row["outcome"] for row in rows)))


def graph_page(store: Store, prefix: str) -> dict[str, Any]:
    """Everything that is stored of one graph, by its id or the beginning of it. Raises `UsageError`."""
    with store.reading() as tx:
        name = find_graph(tx, prefix)
        columns = (*_COLUMNS, "models", "options", "decided_by", "feedback")
        row = dict(zip(columns, next(iter(tx.rows(GraphRow, *columns, id=name))), strict=True))
        page: dict[str, Any] = {
            **row,
            "outcome": _outcome(row),
        }
        candidates = read_candidates(tx, name)
        graph = read_graph(tx, name)
    levels = graph.levels
    page["nodes"] = [_node_row(candidate, levels) for candidate in candidates]
    page["edges"] = [{"source": it.source, "target": it.target, "reason": it.reason} for it in graph.edges]
    return page


def _node_row(candidate: NodeCandidate, levels: Mapping[str, int]) -> dict[str, Any]:
    node = candidate.node
    return {
        "name": node.name,
        "kind": str(node.kind),
        "statement": node.statement,
        "statement_hash": node.hash,
        "action": node.action.row(),
        "observation": node.observation,
        "round": node.round,
        "verdict": str(candidate.verdict),
        "verdict_round": candidate.verdict_round,
        "reasons": [fault._asdict() for fault in candidate.reasons],
        "level": levels.get(node.name) if candidate.kept else None,
    }


def stored_graph(store: Store, prefix: str) -> tuple[str, ProcessGraph]:
    """A stored graph and its id. Raises `UsageError`."""
    with store.reading() as tx:
        name = find_graph(tx, prefix)
        return name, read_graph(tx, name)


def print_graph(page: dict[str, Any]) -> None:
    """Print a page: the graph as a tree, then what was not kept and why."""
    say(f"graph {page['id']}: {page['outcome']}, {counted(page['rounds'], 'round')}")
    if page["reason"]:
        say_prose(f"reason: {page['reason']}", indent=2)
    after = f", on the work of trajectory {page['trajectory_id']}" if page["trajectory_id"] else ""
    say_prose(f"chain {page['chain_id']}, stage {page['position']}{after}; tree {page['start_tree'][:12]}", indent=2)
    models = sorted({model["model"] for model in page["models"].values()})
    tokens = f"{page['tokens_in']:,} tokens in, {page['tokens_out']:,} out"
    say(f"  {', '.join(models)}; {tokens}, {dollars(page['usd'])}")
    kept = [node for node in page["nodes"] if node["verdict"] == NodeVerdict.KEEP]
    dropped = f", {counted(page['dropped_edges'], 'edge')} dropped for a cycle" if page["dropped_edges"] else ""
    say(f"  {counted(len(kept), 'node')}, {counted(len(page['edges']), 'edge')}{dropped}")
    say()
    for line in tree_lines(page):
        say(line)
    fallen = [node for node in page["nodes"] if node["verdict"] != NodeVerdict.KEEP]
    if fallen:
        say()
        say(f"not kept: {summed('candidate', (node['verdict'] for node in fallen))}")
    for node in fallen:
        say(f"  {node['name']} ({node['kind']}), {node['verdict']} in round {node['verdict_round']}")
        say(f"    {shortened(node['statement'], _STATEMENT)}")
        for reason in node["reasons"]:
            say_prose(f"{reason['rule']}: {shortened(reason['words'], _REASON)}", indent=4)


def tree_lines(page: Mapping[str, Any]) -> Iterator[str]:
    """The kept nodes as a tree: each below the predecessor of the highest level, with its others named behind it."""
    nodes = {node["name"]: node for node in page["nodes"] if node["verdict"] == NodeVerdict.KEEP}
    before: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in page["edges"]:
        before[edge["target"]].append(edge["source"])
    below: dict[str | None, list[str]] = {}
    for name, sources in before.items():
        parent = max(reversed(sources), key=lambda source: nodes[source]["level"] or 0, default=None)
        below.setdefault(parent, []).append(name)
    reasons = {(edge["source"], edge["target"]): edge["reason"] for edge in page["edges"]}

    # A stack of our own: a chain of nodes may be longer than Python lets calls be deep.
    todo: list[tuple[str, str | None, str, str]] = [(name, None, "", "") for name in reversed(below.get(None, []))]
    while todo:
        name, parent, head, rest = todo.pop()
        node = nodes[name]
        others = [source for source in before[name] if source != parent]
        also = f"  (also after {', '.join(others)})" if others else ""
        reason = reasons.get((parent or "", name), ORDER)
        through = f" [{shortened(reason, 40)}]" if parent and reason != ORDER else ""
        yield f"{head}{name} {node['kind']}{through}: {shortened(node['statement'], _STATEMENT)}{also}"
        children = below.get(name, [])
        for child in reversed(children):
            last = child is children[-1]
            todo.append((child, name, f"{rest}{'`- ' if last else '|- '}", f"{rest}{'   ' if last else '|  '}"))
