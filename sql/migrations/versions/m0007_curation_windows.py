"""Curated trajectories: their windows, the candidates of each, and what every step established."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "curation_windows",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("graph_id", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("frontier", sa.Text(), nullable=False),
        sa.Column("established", sa.Text(), nullable=False),
        sa.Column("waiting", sa.Text(), nullable=False),
        sa.Column("floor", sa.Double(), nullable=False),
        sa.Column("chosen", sa.Integer(), nullable=True),
        sa.Column("how", sa.String(length=16), nullable=True),
        sa.Column("committed", sa.Integer(), nullable=False),
        sa.Column("leftovers", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_curation_windows_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", "number", name=op.f("pk_curation_windows")),
    )
    op.create_table(
        "curation_candidates",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("window_number", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("target", sa.String(length=64), nullable=True),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("grounded", sa.Boolean(), nullable=True),
        sa.Column("effectiveness", sa.Double(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("tree", sa.String(length=64), nullable=True),
        sa.Column("rewrite", sa.Text(), nullable=True),
        sa.Column("faults", sa.Text(), nullable=False),
        sa.Column("entries", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("verifier_calls", sa.Integer(), nullable=False),
        sa.Column("leftovers", sa.Text(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "position", "window_number"],
            ["curation_windows.trajectory_id", "curation_windows.position", "curation_windows.number"],
            name=op.f("fk_curation_candidates_curation_windows"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "trajectory_id", "position", "window_number", "number", name=op.f("pk_curation_candidates")
        ),
    )
    op.create_table(
        "establishments",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("window_number", sa.Integer(), nullable=False),
        sa.Column("candidate", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(length=64), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "position", "window_number", "candidate"],
            [
                "curation_candidates.trajectory_id",
                "curation_candidates.position",
                "curation_candidates.window_number",
                "curation_candidates.number",
            ],
            name=op.f("fk_establishments_curation_candidates"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "trajectory_id", "position", "window_number", "candidate", "node", name=op.f("pk_establishments")
        ),
    )
