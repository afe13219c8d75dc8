"""Where the price of each call is from. Calls of before were paid by the prices of the settings, if by any."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("llm_calls", sa.Column("prices", sa.String(length=64), nullable=True))
    calls = sa.table("llm_calls", sa.column("prices"), sa.column("reserved_usd"))
    op.execute(calls.update().where(calls.c.reserved_usd.is_not(None)).values(prices="settings"))
