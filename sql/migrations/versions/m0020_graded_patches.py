"""What hidden tests say of patches that came from elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "graded_patches",
        sa.Column("chain_id", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tree", sa.String(64), nullable=False),
        sa.Column("proof", sa.String(64), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("grade", sa.Text(), nullable=False),
        sa.Column("graded_at", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name="fk_graded_patches_chains", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", "position", "tree", "proof", name="pk_graded_patches"),
    )
