"""What knows of each pair of pull requests, and what each stage is worth as a task."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

STACKS = """
UPDATE dependencies SET sources = 'stack'
WHERE relation = 'stacked_on' AND NOT EXISTS (
    SELECT 1 FROM citations AS c
    WHERE c.repository_id = dependencies.repository_id AND c.source = dependencies.source
        AND c.target = dependencies.target AND c.counted AND c.relation <> 'stacked_on'
)
"""


def upgrade() -> None:
    # What was found before lineage was is cited or stacked.
    op.add_column("dependencies", sa.Column("sources", sa.String(32), nullable=False, server_default="citation"))
    op.execute(STACKS)
    op.add_column("chain_stages", sa.Column("worth", sa.Double()))
    op.add_column("chain_stages", sa.Column("worth_signs", sa.Text()))
