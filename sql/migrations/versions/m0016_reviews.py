"""Where review comments stand, threads of reviews and whether they were resolved, and what GitHub did not give."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

REVIEW_COMMENTS = """
CREATE VIEW review_comments (
    repository, number, comment, review, review_state, reply_to, author, path, line, original_line, side, resolved,
    outdated, created_at, body
) AS
SELECT
    r.owner || '/' || r.name,
    c.number,
    c.key,
    c.review,
    v.state,
    c.reply_to,
    c.author,
    c.path,
    c.line,
    c.original_line,
    c.side,
    CASE WHEN t.is_resolved THEN 1 WHEN NOT t.is_resolved THEN 0 END,
    CASE WHEN t.is_outdated THEN 1 WHEN NOT t.is_outdated THEN 0 END,
    c.created_at,
    c.body
FROM pull_request_texts AS c
JOIN repositories AS r ON r.id = c.repository_id
LEFT JOIN pull_request_texts AS v
    ON v.repository_id = c.repository_id AND v.number = c.number AND v.field = 'review' AND v.key = c.review
LEFT JOIN review_threads AS t
    ON t.repository_id = c.repository_id AND t.number = c.number AND t.comment = COALESCE(c.reply_to, c.key)
WHERE c.field = 'review_comment'
"""


def upgrade() -> None:
    op.add_column("pull_request_texts", sa.Column("review", sa.String(255)))
    op.add_column("pull_request_texts", sa.Column("line", sa.Integer()))
    op.add_column("pull_request_texts", sa.Column("original_line", sa.Integer()))
    op.add_column("pull_request_texts", sa.Column("original_start_line", sa.Integer()))
    op.add_column("pull_request_texts", sa.Column("side", sa.String(8)))
    op.create_table(
        "review_threads",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("is_resolved", sa.Boolean(), nullable=False),
        sa.Column("is_outdated", sa.Boolean(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer()),
        sa.Column("original_line", sa.Integer()),
        sa.Column("original_start_line", sa.Integer()),
        sa.Column("side", sa.String(8)),
        sa.Column("comment", sa.String(255)),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_review_threads_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "key", name="pk_review_threads"),
    )
    op.create_table(
        "incomplete_parts",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("connection", sa.String(32), nullable=False),
        sa.Column("came", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_incomplete_parts_pull_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "number", "connection", name="pk_incomplete_parts"),
    )
    op.execute(REVIEW_COMMENTS)
