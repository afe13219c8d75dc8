"""Tasks that others published: where they are from, and what their publishers say of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "imports",
        sa.Column("chain_id", sa.String(16), nullable=False),
        sa.Column("source", sa.String(255), nullable=False),
        sa.Column("revision", sa.String(64)),
        sa.Column("split", sa.String(64)),
        sa.Column("form", sa.String(32), nullable=False),
        sa.Column("instance_id", sa.String(255), nullable=False),
        sa.Column("benchmark", sa.Boolean(), nullable=False),
        sa.Column("licence", sa.String(64)),
        sa.Column("difficulty", sa.String(64)),
        sa.Column("location", sa.Text()),
        sa.Column("base_commit", sa.String(64), nullable=False),
        sa.Column("patch", sa.Text(), nullable=False),
        sa.Column("breaks", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("test_patch", "f2p", "p2p")),
        sa.Column("image", sa.String(512)),
        sa.Column("image_by", sa.String(8)),
        sa.Column("workdir", sa.String(255)),
        sa.Column("test_command", sa.Text(), nullable=False),
        sa.Column("log_parser", sa.String(64)),
        sa.Column("imported_at", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name="fk_imports_chains", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", name="pk_imports"),
    )
    op.create_index("ix_imports_instance", "imports", ["instance_id"])
