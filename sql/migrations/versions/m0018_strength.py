"""What the proof of each stage is worth."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("stage_tests", sa.Column("strength", sa.Text()))
