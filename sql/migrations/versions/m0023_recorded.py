"""What `prchain record` keeps has an outcome of its own; it was called imported."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"

_RECORDED = "SELECT trajectory_id FROM imported_trajectories WHERE form = 'chat/completions'"


def upgrade() -> None:
    for table, key in (("trajectories", "id"), ("trajectory_stages", "trajectory_id")):
        op.execute(f"UPDATE {table} SET outcome = 'recorded' WHERE outcome = 'imported' AND {key} IN ({_RECORDED})")
