"""When each strategy last chose the chains of a repository."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

BUILDS = """
INSERT INTO chain_builds (repository_id, strategy, built_at, serial)
SELECT c.repository_id, s.strategy, max(s.selected_at), row_number() OVER (ORDER BY max(s.selected_at), s.strategy)
FROM selections AS s JOIN chains AS c ON c.id = s.chain_id
GROUP BY c.repository_id, s.strategy
"""


def upgrade() -> None:
    op.create_table(
        "chain_builds",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.String(16), nullable=False),
        sa.Column("built_at", sa.String(32), nullable=False),
        sa.Column("serial", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Double()),
        sa.Column("worth", sa.Double()),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_chain_builds_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", "strategy", name="pk_chain_builds"),
    )
    op.execute(BUILDS)
