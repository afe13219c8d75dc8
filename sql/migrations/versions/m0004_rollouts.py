"""The tables of rollouts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "trajectories",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.String(length=16), nullable=True),
        sa.Column("parent_step", sa.Integer(), nullable=True),
        sa.Column("scaffold", sa.String(length=32), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("judge", sa.String(length=255), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("options_hash", sa.String(length=64), nullable=False),
        sa.Column("prompts", sa.Text(), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("accepted", sa.Integer(), nullable=False),
        sa.Column("overview", sa.Text(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_trajectories_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trajectories")),
    )
    op.create_index("ix_trajectories_chain", "trajectories", ["chain_id", "sample"], unique=False)
    op.create_table(
        "trajectory_messages",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("tool_calls", sa.Text(), nullable=False),
        sa.Column("tool_call_id", sa.String(length=255), nullable=True),
        sa.Column("tool_name", sa.String(length=64), nullable=True),
        sa.Column("error", sa.String(length=32), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("tree", sa.String(length=64), nullable=True),
        sa.Column("cwd", sa.String(length=1024), nullable=True),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_trajectory_messages_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "ordinal", name=op.f("pk_trajectory_messages")),
    )
    op.create_table(
        "trajectory_stages",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("start_tree", sa.String(length=64), nullable=True),
        sa.Column("end_tree", sa.String(length=64), nullable=True),
        sa.Column("conflicts", sa.Text(), nullable=False),
        sa.Column("reset_tests", sa.Text(), nullable=False),
        sa.Column("check", sa.Text(), nullable=False),
        sa.Column("endings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name=op.f("fk_trajectory_stages_trajectories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", name=op.f("pk_trajectory_stages")),
    )
    op.create_table(
        "verdicts",
        sa.Column("trajectory_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("tree", sa.String(length=64), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=True),
        sa.Column("gate", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("shown", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("judge_error", sa.String(length=32), nullable=True),
        sa.Column("tests", sa.String(length=32), nullable=True),
        sa.Column("grade", sa.Text(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "position"],
            ["trajectory_stages.trajectory_id", "trajectory_stages.position"],
            name=op.f("fk_verdicts_trajectory_stages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "position", "attempt", name=op.f("pk_verdicts")),
    )
