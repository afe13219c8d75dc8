"""What decided each trajectory, whole: its id is the hash of it (`trajectories.identity`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    # Null for rows of before: what was not kept of them is not known.
    op.add_column("trajectories", sa.Column("decided_by", sa.Text(), nullable=True))
