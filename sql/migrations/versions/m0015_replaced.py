"""How many secrets of each kind a run replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("mine_runs", sa.Column("replaced", sa.Text()))
