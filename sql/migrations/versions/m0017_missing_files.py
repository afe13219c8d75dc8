"""How many files each landing needs that the mirror lacks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("landings", sa.Column("missing_files", sa.Integer()))
