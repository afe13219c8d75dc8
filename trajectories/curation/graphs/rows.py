"""Process graphs in the database: reading and writing their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, select, update

from prchain.core.errors import UsageError
from prchain.core.llm.model import ToolCall
from prchain.core.processes.alive import this_process
from prchain.core.timestamps import now
from sql.store import Store, Transaction
from sql.tables import GraphEdge, GraphMessage, GraphNode, GraphRow
from trajectories.agents.scaffolds.scaffold import Record
from trajectories.curation.graphs.candidates import NodeCandidate, NodeVerdict
from trajectories.curation.graphs.gates import NodeFault
from trajectories.curation.graphs.graph import Prerequisite, ProcessGraph
from trajectories.curation.graphs.nodes import Action, Node, NodeKind
from trajectories.curation.graphs.outcomes import FINAL, RUNNING
from trajectories.curation.graphs.rounds import GraphState
from trajectories.model import Entry, EntryKind
from trajectories.sums import calls_of

_NODE = (
    "ordinal",
    "name",
    "kind",
    "statement",
    "action",
    "claimed",
    "observation",
    "round",
    "verdict",
    "verdict_round",
    "reasons",
)


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A graph as it is stored. `outcome` None: there is no row of it yet."""

    outcome: str | None
    state: GraphState


def read_outcome(tx: Transaction, graph_id: str) -> str | None:
    """The outcome of a graph; None where there is none."""
    return next((row[0] for row in tx.rows(GraphRow, "outcome", id=graph_id)), None)


def read_state(tx: Transaction, graph_id: str) -> StoredGraph:
    """The state of a graph after its last whole round."""
    columns = ("outcome", "rounds", "empty_rounds", "dropped_rounds", "feedback", "notes")
    row = next(iter(tx.rows(GraphRow, *columns, id=graph_id)), None)
    if row is None:
        return StoredGraph(None, GraphState())
    outcome, rounds, empty, dropped, feedback, notes = row
    state = GraphState(read_candidates(tx, graph_id), tuple(feedback), rounds, empty, dropped, tuple(notes))
    return StoredGraph(str(outcome), state)


def read_candidates(tx: Transaction, graph_id: str) -> tuple[NodeCandidate, ...]:
    """The candidates of a graph, in the order in which they were made."""
    return tuple(_candidate(row) for row in tx.rows(GraphNode, *_NODE, graph_id=graph_id))


def _candidate(row: Sequence[Any]) -> NodeCandidate:
    values = dict(zip(_NODE, row, strict=True))
    node = Node(
        values["name"],
        NodeKind(values["kind"]),
        values["statement"],
        Action.from_row(values["action"]),
        values["observation"],
        values["round"],
    )
    reasons = tuple(NodeFault(reason["rule"], reason["words"]) for reason in values["reasons"])
    return NodeCandidate(node, values["claimed"], NodeVerdict(values["verdict"]), values["verdict_round"], reasons)


def read_graph(tx: Transaction, graph_id: str) -> ProcessGraph:
    """The nodes that are kept, and their edges."""
    candidates = read_candidates(tx, graph_id)
    names = [candidate.node.name for candidate in candidates]
    edges = [
        Prerequisite(names[source], names[target], reason)
        for source, target, reason in tx.rows(GraphEdge, "source", "target", "reason", graph_id=graph_id)
    ]
    return ProcessGraph(tuple(candidate.node for candidate in candidates if candidate.kept), tuple(edges))


def find_graph(tx: Transaction, prefix: str) -> str:
    """The id of the one graph whose id begins with `prefix`. Raises `UsageError`."""
    start = prefix.strip().lower()
    query = select(GraphRow.id).where(GraphRow.id.startswith(start, autoescape=True)).order_by(GraphRow.id).limit(2)
    found = [str(name) for (name,) in tx.connection.execute(query)] if start else []
    if not found:
        raise UsageError(f"no graph's id begins with {prefix!r}; `prchain curate list` lists them")
    if len(found) > 1:
        raise UsageError(f"several graphs' ids begin with {prefix}; write more of it")
    return found[0]


def begin_graph(tx: Transaction, row: Mapping[str, Any]) -> None:
    """Write the row of a graph that begins or goes on; what its rounds have come to stays."""
    running = {"outcome": RUNNING, "reason": None, "worker": str(this_process()), "finished_at": None}
    if read_outcome(tx, row["id"]) is not None:
        tx.connection.execute(update(GraphRow).where(GraphRow.id == row["id"]).values(**running))
        return
    counts = dict.fromkeys(("rounds", "empty_rounds", "dropped_rounds", "dropped_edges", "tokens_in", "tokens_out"), 0)
    sums = {"feedback": [], "notes": [], "usd": 0.0, "seconds": 0.0, "started_at": now()}
    tx.upsert(GraphRow, [{**row, **running, **counts, **sums}])


def write_round(tx: Transaction, graph_id: str, state: GraphState, seconds: float) -> None:
    """Write what a round came to, which took so many seconds in this process."""
    tx.connection.execute(delete(GraphNode).where(GraphNode.graph_id == graph_id))
    tx.upsert(GraphNode, [_node_row(graph_id, place, it) for place, it in enumerate(state.candidates)])
    values = {
        "rounds": state.rounds,
        "empty_rounds": state.empty_rounds,
        "dropped_rounds": state.dropped_rounds,
        "feedback": state.feedback,
        "notes": state.notes,
        "seconds": GraphRow.seconds + seconds,
        **calls_of(tx, graph_id),
    }
    tx.connection.execute(update(GraphRow).where(GraphRow.id == graph_id).values(**values))


def _node_row(graph_id: str, ordinal: int, candidate: NodeCandidate) -> dict[str, Any]:
    node = candidate.node
    return {
        "graph_id": graph_id,
        "ordinal": ordinal,
        "name": node.name,
        "kind": node.kind,
        "statement": node.statement,
        "statement_hash": node.hash,
        "action": node.action.row(),
        "claimed": candidate.claimed,
        "observation": node.observation,
        "round": node.round,
        "verdict": candidate.verdict,
        "verdict_round": candidate.verdict_round,
        "reasons": [fault._asdict() for fault in candidate.reasons],
        "level": None,
    }


def write_graph(tx: Transaction, graph_id: str, state: GraphState, graph: ProcessGraph) -> None:
    """Write the edges of a graph and the levels of its nodes."""
    ordinals = {candidate.node.name: place for place, candidate in enumerate(state.candidates)}
    tx.connection.execute(delete(GraphEdge).where(GraphEdge.graph_id == graph_id))
    tx.upsert(
        GraphEdge,
        [
            {
                "graph_id": graph_id,
                "source": ordinals[edge.source],
                "target": ordinals[edge.target],
                "reason": edge.reason,
            }
            for edge in graph.edges
        ],
    )
    for name, level in graph.levels.items():
        place = (GraphNode.graph_id == graph_id, GraphNode.ordinal == ordinals[name])
        tx.connection.execute(update(GraphNode).where(*place).values(level=level))
    dropped = {"dropped_edges": len(graph.dropped)}
    tx.connection.execute(update(GraphRow).where(GraphRow.id == graph_id).values(**dropped))


def end_graph(tx: Transaction, graph_id: str, outcome: str, reason: str | None) -> None:
    """Write how a graph ended; of a failure, its rows stay for the next run. A final outcome is not written over."""
    if read_outcome(tx, graph_id) in FINAL:
        return
    values = {"outcome": outcome, "reason": reason, "worker": None, "finished_at": now(), **calls_of(tx, graph_id)}
    tx.connection.execute(update(GraphRow).where(GraphRow.id == graph_id).values(**values))


def read_messages(tx: Transaction, graph_id: str, round_: int, purpose: str) -> list[Entry]:
    """What an agent has said and seen in a round, as far as it is stored."""
    rows = tx.rows(GraphMessage, "ordinal", "entry", graph_id=graph_id, round=round_, purpose=purpose)
    return [entry_from(values) for _, values in rows]


def entry_from(values: dict[str, Any]) -> Entry:
    """The entry whose fields, as JSON has them, these are."""
    calls = tuple(ToolCall(**call) for call in values.pop("tool_calls"))
    return Entry(**{**values, "kind": EntryKind(values["kind"]), "tool_calls": calls})


class MessageRecorder:
    """The recorder of an agent's round (`trajectories.agents.scaffolds.scaffold.Recorder`): each call one
    transaction."""

    def __init__(self, store: Store, graph_id: str, round_: int, purpose: str) -> None:
        self._store = store
        self._key = {"graph_id": graph_id, "round": round_, "purpose": purpose}

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        """See `Recorder`."""
        rows = [{**self._key, "ordinal": entry.ordinal, "entry": asdict(entry)} for entry in entries]
        with self._store.transaction() as tx:
            tx.upsert(GraphMessage, rows)
            for record in records:
                record(tx)

    def tree(self) -> str | None:
        """See `Recorder`: its calls are run again instead."""
        return None

    def restored(self, tree: str) -> None:
        """See `Recorder`."""
