"""Where the price of a call is from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("llm_calls", sa.Column("priced_by", sa.String(64)))
