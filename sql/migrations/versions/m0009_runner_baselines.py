"""What the reference's own test runs show of the runner: its plugins, the tree's hooks, the canaries that are fit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for table in ("stage_tests", "reference_runs"):
        op.add_column(table, sa.Column("baseline", sa.Text(), server_default="{}", nullable=False))
