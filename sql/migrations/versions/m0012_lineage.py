"""Whose lines each landed pull request changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

LINEAGE_EDGES = """
CREATE VIEW lineage_edges (
    repository, source, target, real_lines, share_of_source, share_of_target, source_lines, moved_lines,
    inserted_lines, functions, names, cited
) AS
SELECT
    r.owner || '/' || r.name,
    l.later,
    l.earlier,
    l.real_lines,
    CASE WHEN later.real_removed > 0 THEN 1.0 * l.real_lines / later.real_removed ELSE 0.0 END,
    CASE WHEN earlier.real_added > 0 THEN 1.0 * l.real_lines / earlier.real_added ELSE 0.0 END,
    l.source_lines,
    l.moved_lines,
    l.inserted_lines,
    l.functions,
    l.names,
    CASE WHEN EXISTS (
        SELECT 1
        FROM citations AS c
        WHERE c.repository_id = l.repository_id
            AND c.counted
            AND ((c.source = l.later AND c.target = l.earlier) OR (c.source = l.earlier AND c.target = l.later))
    ) THEN 1 ELSE 0 END
FROM lineage AS l
JOIN repositories AS r ON r.id = l.repository_id
JOIN lineage_landings AS later ON later.repository_id = l.repository_id AND later.number = l.later
JOIN lineage_landings AS earlier ON earlier.repository_id = l.repository_id AND earlier.number = l.earlier
"""


def upgrade() -> None:
    op.create_table(
        "lineage_walks",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("key_before", sa.String(64)),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("commits", "branches", "missing_blobs", "unread")),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_lineage_walks_repositories", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("repository_id", name="pk_lineage_walks"),
    )
    op.create_table(
        "lineage_landings",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=False)
            for name in ("owners", "removed_lines", "real_removed", "added_lines", "real_added", "moved_lines")
        ),
        sa.Column("same_as", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_lineage_landings_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", name="pk_lineage_landings"),
    )
    op.create_table(
        "lineage",
        *(
            sa.Column(name, sa.Integer(), nullable=False)
            for name in (
                "repository_id",
                "later",
                "earlier",
                "removed_lines",
                "real_lines",
                "source_lines",
                "moved_lines",
                "inserted_lines",
            )
        ),
        sa.Column("functions", sa.Text(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "later"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_lineage_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "later", "earlier", name="pk_lineage"),
    )
    op.create_index("ix_lineage_earlier", "lineage", ["repository_id", "earlier"])
    op.execute(LINEAGE_EDGES)
