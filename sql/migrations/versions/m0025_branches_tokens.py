"""What agent programs ask beside their conversation, and the token ids of turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.create_table(
        "trajectory_branches",
        sa.Column("trajectory_id", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer()),
        sa.Column("replies", sa.Integer(), nullable=False),
        sa.Column("exchanges", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name="fk_trajectory_branches_trajectories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", "attempt", "number", name="pk_trajectory_branches"),
    )
    op.create_table(
        "message_tokens",
        sa.Column("trajectory_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("shared", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "ordinal"],
            ["trajectory_messages.trajectory_id", "trajectory_messages.ordinal"],
            name="fk_message_tokens_trajectory_messages",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "ordinal", name="pk_message_tokens"),
    )
