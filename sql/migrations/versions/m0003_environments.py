"""The tables of images, and of what test runs say of chains."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "images",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("repository", sa.String(length=255), nullable=False),
        sa.Column("recipe", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("as_of", sa.String(length=32), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("repairs", sa.Integer(), nullable=False),
        sa.Column("built_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_images")),
    )
    op.create_index("ix_images_repository", "images", ["repository"], unique=False)
    op.create_table(
        "reference_runs",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(length=8), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("statuses", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("timed_out", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("infra", sa.String(length=32), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("tampered", sa.Text(), nullable=False),
        sa.Column("tail", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("ran_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_reference_runs_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", "side", "ordinal", name=op.f("pk_reference_runs")),
    )
    op.create_table(
        "stage_tests",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("image", sa.String(length=255), nullable=True),
        sa.Column("recipe", sa.String(length=64), nullable=True),
        sa.Column("runner", sa.String(length=16), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("classes", sa.Text(), nullable=False),
        sa.Column("removed", sa.Text(), nullable=False),
        sa.Column("tampered", sa.Text(), nullable=False),
        sa.Column("stage_image", sa.String(length=255), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_stage_tests_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_stage_tests")),
    )
    op.create_table(
        "validations",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("validated_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_validations_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_validations")),
    )
