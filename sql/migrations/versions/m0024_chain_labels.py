"""What people say of chains."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "chain_labels",
        sa.Column("chain_id", sa.String(16), nullable=False),
        sa.Column("labeller", sa.String(64), nullable=False),
        sa.Column("label", sa.String(16), nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("labelled_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "labeller", name="pk_chain_labels"),
    )
