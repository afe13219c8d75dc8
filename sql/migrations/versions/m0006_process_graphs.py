"""Process graphs: the graphs, their nodes and edges, and the messages of the agents that make them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "process_graphs",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=True),
        sa.Column("start_tree", sa.String(length=64), nullable=False),
        sa.Column("target_tree", sa.String(length=64), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("empty_rounds", sa.Integer(), nullable=False),
        sa.Column("dropped_rounds", sa.Integer(), nullable=False),
        sa.Column("dropped_edges", sa.Integer(), nullable=False),
        sa.Column("feedback", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_process_graphs_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_process_graphs")),
    )
    op.create_index("ix_process_graphs_chain", "process_graphs", ["chain_id", "position"], unique=False)
    op.create_table(
        "graph_edges",
        sa.Column("graph_id", sa.String(length=16), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"], ["process_graphs.id"], name=op.f("fk_graph_edges_process_graphs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("graph_id", "source", "target", name=op.f("pk_graph_edges")),
    )
    op.create_table(
        "graph_messages",
        sa.Column("graph_id", sa.String(length=16), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"], ["process_graphs.id"], name=op.f("fk_graph_messages_process_graphs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("graph_id", "round", "purpose", "ordinal", name=op.f("pk_graph_messages")),
    )
    op.create_table(
        "graph_nodes",
        sa.Column("graph_id", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("statement", sa.Text(), nullable=False),
        sa.Column("statement_hash", sa.String(length=16), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("claimed", sa.Text(), nullable=False),
        sa.Column("observation", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("verdict_round", sa.Integer(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["graph_id"], ["process_graphs.id"], name=op.f("fk_graph_nodes_process_graphs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("graph_id", "ordinal", name=op.f("pk_graph_nodes")),
    )
