"""Readings of process reward models: windows of steps, and what was found in each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "prm_windows",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("replay", sa.String(length=16), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("first_step", sa.Integer(), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("variant", sa.String(length=64), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("prompt_hash", sa.String(length=16), nullable=False),
        sa.Column("taxonomy_hash", sa.String(length=16), nullable=True),
        sa.Column("status", sa.String(length=32), nullable=True),
        sa.Column("suboptimal", sa.Boolean(), nullable=True),
        sa.Column("guidance", sa.Text(), nullable=True),
        sa.Column("recommended_action", sa.Text(), nullable=True),
        sa.Column("sent", sa.Boolean(), nullable=False),
        sa.Column("why_not", sa.String(length=32), nullable=True),
        sa.Column("fault", sa.String(length=32), nullable=True),
        sa.Column("leaks", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_prm_windows_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prm_windows")),
    )
    op.create_index("ix_prm_windows_trajectory", "prm_windows", ["trajectory_id", "position", "last_step"])
    op.create_table(
        "prm_findings",
        sa.Column("window_id", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("category", sa.String(length=48), nullable=False),
        sa.Column("found_by", sa.String(length=32), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("recovery", sa.Text(), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("why", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["window_id"], ["prm_windows.id"], name=op.f("fk_prm_findings_prm_windows"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("window_id", "ordinal", name=op.f("pk_prm_findings")),
    )
