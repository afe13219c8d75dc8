"""What the proof of each stage is worth."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("stage_tests", sa.Column("strength", sa.Text()))
