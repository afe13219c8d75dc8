"""Trajectories of others: without a chain, and with a row that says where they are from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from prchain.core.errors import StoreCorrupt

revision = "0022"
down_revision = "0021"

RULE = "CONSTRAINT ck_trajectories_no_chain_is_imported CHECK ((chain_id IS NULL) = (scaffold = 'imported'))"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("trajectories", "chain_id", nullable=True)
        op.execute(f"ALTER TABLE trajectories ADD {RULE}")
    else:
        _amend_sqlite()
    op.create_table(
        "imported_trajectories",
        sa.Column("trajectory_id", sa.String(16), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("form", sa.String(32), nullable=False),
        sa.Column("source", sa.String(255)),
        sa.Column("licence", sa.String(64)),
        sa.Column("session", sa.String(255)),
        sa.Column("document", sa.String(255)),
        sa.Column("agent", sa.String(255), nullable=False),
        sa.Column("agent_version", sa.String(255), nullable=False),
        sa.Column("repository", sa.String(255)),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("told", "left_out")),
        sa.Column("imported_at", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.id"], name="fk_imported_trajectories_trajectories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trajectory_id", name="pk_imported_trajectories"),
    )
    op.create_index("ix_imported_trajectories_source", "imported_trajectories", ["source"])


def _amend_sqlite() -> None:
    """SQLite cannot alter a column. To drop the table and make it anew would delete, by their foreign keys, the
    messages of all trajectories; so its declaration is amended, as SQLite's documentation of ALTER TABLE has it for
    constraints that say nothing of how rows are stored."""
    connection = op.get_bind()
    where = "FROM sqlite_master WHERE type = 'table' AND name = 'trajectories'"
    declared = str(connection.exec_driver_sql(f"SELECT sql {where}").scalar_one())
    amended = declared.replace("chain_id VARCHAR(16) NOT NULL", "chain_id VARCHAR(16)").replace(
        "CONSTRAINT pk_trajectories", f"{RULE}, \n\tCONSTRAINT pk_trajectories"
    )
    if len(amended) != len(declared) - len(" NOT NULL") + len(f"{RULE}, \n\t"):
        raise StoreCorrupt("the table of trajectories is not as prchain made it")
    version = int(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
    connection.exec_driver_sql("PRAGMA writable_schema=ON")
    change = "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'trajectories'"
    connection.exec_driver_sql(change, (amended,))
    connection.exec_driver_sql(f"PRAGMA schema_version={version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema=RESET")
