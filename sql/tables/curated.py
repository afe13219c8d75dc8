"""The tables of curation: process graphs, their nodes and edges, what their two agents said; and the windows of
curated trajectories, their candidates, and what each step established."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class GraphRow(Base):
    """The process graph of one stage's reference patch, on the tree that the stage starts on (P2T, section 4.1)."""

    __tablename__ = "process_graphs"
    __table_args__ = (Index("ix_process_graphs_chain", "chain_id", "position"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Hash of `decided_by`."""
    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"))
    position: Mapped[int]
    trajectory_id: Mapped[str | None] = mapped_column(String(16))
    """The trajectory on whose work the stage starts; null where the tree follows from the chain alone."""
    start_tree: Mapped[str] = mapped_column(String(64))
    """S_t: the graph belongs to no other tree."""
    target_tree: Mapped[str] = mapped_column(String(64))
    """S_t with the reference patch of the stage."""
    models: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: purpose (``proposer``, ``critic``) to model and sampling settings."""
    options: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: every option, also those at their default (`trajectories.curation.graphs.options.GraphOptions`)."""
    decided_by: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: all that decides the graph (`trajectories.curation.graphs.identity.GraphIdentity`)."""
    outcome: Mapped[str] = mapped_column(String(32))
    """``running``; ``converged``, ``dry`` or ``capped`` (how its rounds ended); ``insufficient``, ``cyclic``,
    ``inexpressible``, ``reference_conflicts``, ``already_done``; or a failure's name, which the next run may try again.
    `trajectories.curation.graphs.outcomes`."""
    reason: Mapped[str | None] = mapped_column(Text)
    rounds: Mapped[int]
    """Rounds that are over."""
    empty_rounds: Mapped[int]
    """Rounds in a row, up to the last one, in which nothing was proposed."""
    dropped_rounds: Mapped[int]
    """Rounds of which an agent gave no answer that fits."""
    dropped_edges: Mapped[int]
    """Edges that would have closed a cycle."""
    feedback: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: what the next round's proposer is told."""
    notes: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: why rounds were dropped."""
    usd: Mapped[float | None]
    """What its calls cost; null where a price is not known."""
    tokens_in: Mapped[int]
    tokens_out: Mapped[int]
    seconds: Mapped[float]
    worker: Mapped[str | None] = mapped_column(String(64))
    """Who works on it while it is ``running``: host, process and its start."""
    started_at: Mapped[str] = mapped_column(String(32))
    finished_at: Mapped[str | None] = mapped_column(String(32))


class GraphNode(Base):
    """One candidate node, kept or not."""

    __tablename__ = "graph_nodes"

    graph_id: Mapped[str] = mapped_column(ForeignKey("process_graphs.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """The order in which candidates were made; 0 is the first."""
    name: Mapped[str] = mapped_column(String(64))
    """Unique in its graph."""
    kind: Mapped[str] = mapped_column(String(32))
    """One of `trajectories.curation.graphs.nodes.NodeKind`."""
    statement: Mapped[str] = mapped_column(Text)
    statement_hash: Mapped[str] = mapped_column(String(16))
    """Of the canonical statement."""
    action: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: the action of its unlocker (`trajectories.curation.graphs.nodes.Action`)."""
    claimed: Mapped[str] = mapped_column(Text)
    """The evidence as the model quoted it."""
    observation: Mapped[str] = mapped_column(Text)
    """What the action printed when it was run again; empty where it was not."""
    round: Mapped[int]
    """The round that made it."""
    verdict: Mapped[str] = mapped_column(String(16))
    """One of `trajectories.curation.graphs.candidates.NodeVerdict`."""
    verdict_round: Mapped[int]
    """The round of the verdict: a node that was kept can fall later."""
    reasons: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of ``{"rule", "words"}``: why it was not kept as it was."""
    level: Mapped[int | None]
    """In the graph: 0 needs no other node; null for one that was not kept, and while rounds go on."""


class GraphEdge(Base):
    """One edge: the node `source` comes before the node `target`."""

    __tablename__ = "graph_edges"

    graph_id: Mapped[str] = mapped_column(ForeignKey("process_graphs.id", ondelete="CASCADE"), primary_key=True)
    source: Mapped[int] = mapped_column(primary_key=True)
    """A node's ordinal."""
    target: Mapped[int] = mapped_column(primary_key=True)
    reason: Mapped[str] = mapped_column(Text)
    """The entity that the target's action names and the source first shows; or ``order``: of milestones."""


class GraphMessage(Base):
    """One message of the proposer or the critic, written in the transaction that ends its step."""

    __tablename__ = "graph_messages"

    graph_id: Mapped[str] = mapped_column(ForeignKey("process_graphs.id", ondelete="CASCADE"), primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True)
    purpose: Mapped[str] = mapped_column(String(16), primary_key=True)
    """``proposer`` or ``critic``."""
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """0 is the first message."""
    entry: Mapped[dict[str, Any]] = mapped_column(JsonText())
    """JSON object: the fields of `trajectories.model.Entry`."""


class CurationWindow(Base):
    """One window of a curated trajectory (P2T, section 4.2): where it began, and which candidate was committed."""

    __tablename__ = "curation_windows"

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """The stage."""
    number: Mapped[int] = mapped_column(primary_key=True)
    """1 is the stage's first."""
    graph_id: Mapped[str] = mapped_column(String(16))
    step: Mapped[int]
    """The last step that was committed before."""
    frontier: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: the nodes that could be established next; empty for a window without scores."""
    established: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: the nodes that were established before."""
    waiting: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: nodes that were established before one of their predecessors, and are not counted yet."""
    floor: Mapped[float]
    """In the unit of the options: a sum of progress, or a number of nodes."""
    chosen: Mapped[int | None]
    """The number of the candidate; null while the window is under way."""
    how: Mapped[str | None] = mapped_column(String(16))
    """``floor`` (the shortest above it), ``fallback`` (the most effective), ``random``, or ``plain`` (no scores)."""
    committed: Mapped[int]
    """Steps of it that were committed."""
    leftovers: Mapped[int]
    """Background processes that ended when the sandbox went back to the committed step."""
    seconds: Mapped[float]


class CurationCandidate(Base):
    """One candidate of a window: a seed, or its variant with one rewritten step. Written in one transaction."""

    __tablename__ = "curation_candidates"
    __table_args__ = (
        ForeignKeyConstraint(
            ["trajectory_id", "position", "window_number"],
            ["curation_windows.trajectory_id", "curation_windows.position", "curation_windows.number"],
            ondelete="CASCADE",
        ),
    )

    trajectory_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    window_number: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """Seeds come first, from 0; then each seed's variant."""
    seed: Mapped[int]
    """The number of its seed; of a seed its own."""
    place: Mapped[int | None]
    """The step of the seed that was rewritten, from 0; null for a seed, and where nothing could be picked."""
    target: Mapped[str | None] = mapped_column(String(64))
    """The node that the rewritten step shall lead to."""
    outcome: Mapped[str] = mapped_column(String(32))
    """``open`` (it has the window's steps), ``submitted``, another ending of `trajectories.model.Ending`, a failure of
    its sandbox; of a variant that was dropped: ``no_place``, ``no_reply``, ``malformed``, ``ungrounded``."""
    reason: Mapped[str | None] = mapped_column(Text)
    steps: Mapped[int]
    progress: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list, one object a step: ``progress`` (Prog), ``counted`` and ``premature`` (names of nodes)."""
    grounded: Mapped[bool | None]
    """Ground; null for a seed, and where it was not looked at."""
    effectiveness: Mapped[float]
    length: Mapped[int]
    """In the unit of the options."""
    tree: Mapped[str | None] = mapped_column(String(64))
    """The tree after its last step."""
    rewrite: Mapped[dict[str, Any] | None] = mapped_column(JsonText())
    """JSON object: what the curator wrote (``text``, ``calls``); null for a seed, and without a reply."""
    faults: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of ``{"rule", "words"}``: why a rewritten step was not taken."""
    entries: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: its messages from the window's start on (`trajectories.model.Entry`)."""
    notes: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: answers of the verifier that could not be used."""
    verifier_calls: Mapped[int]
    leftovers: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: background processes after each step."""
    usd: Mapped[float | None]
    """What its calls cost; null where a price is not known."""
    seconds: Mapped[float]


class Establishment(Base):
    """A node that a step of a candidate established."""

    __tablename__ = "establishments"
    __table_args__ = (
        ForeignKeyConstraint(
            ["trajectory_id", "position", "window_number", "candidate"],
            [
                "curation_candidates.trajectory_id",
                "curation_candidates.position",
                "curation_candidates.window_number",
                "curation_candidates.number",
            ],
            ondelete="CASCADE",
        ),
    )

    trajectory_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    window_number: Mapped[int] = mapped_column(primary_key=True)
    candidate: Mapped[int] = mapped_column(primary_key=True)
    node: Mapped[str] = mapped_column(String(64), primary_key=True)
    step: Mapped[int]
    evidence: Mapped[str] = mapped_column(Text)
    """The quote that shows it."""
