"""What hidden tests say of trees, those of agents too, in place of what they say of patches, which a proof's hash of
before does not find any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.drop_table("graded_patches")
    op.create_table(
        "graded_trees",
        sa.Column("chain_id", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tree", sa.String(64), nullable=False),
        sa.Column("proof", sa.String(64), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("grade", sa.Text(), nullable=False),
        sa.Column("graded_for", sa.String(64)),
        sa.Column("graded_at", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name="fk_graded_trees_chains", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", "tree", "proof", name="pk_graded_trees"),
    )
