"""The tables of chains and tasks, and the ledger of what models were asked and cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "llm_calls",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("prompt", sa.String(length=64), nullable=False),
        sa.Column("prompt_hash", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("reserved_usd", sa.Double(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm_calls")),
    )
    op.create_index(
        "ix_llm_calls_key",
        "llm_calls",
        ["purpose", "subject", "sample", "attempt", "ordinal", "request_hash"],
        unique=False,
    )
    op.create_index("ix_llm_calls_run", "llm_calls", ["run", "state"], unique=False)
    op.create_table(
        "chains",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("licence", sa.String(length=64), nullable=True),
        sa.Column("language", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name=op.f("fk_chains_repositories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chains")),
    )
    op.create_index("ix_chains_repository", "chains", ["repository_id"], unique=False)
    op.create_table(
        "candidates",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id", "number"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_candidates_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "strategy", "number", name=op.f("pk_candidates")),
    )
    op.create_table(
        "chain_stages",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("branch", sa.String(length=255), nullable=False),
        sa.Column("base_sha", sa.String(length=64), nullable=False),
        sa.Column("landed_sha", sa.String(length=64), nullable=False),
        sa.Column("landed_at", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("source_files", sa.Integer(), nullable=False),
        sa.Column("source_lines", sa.Integer(), nullable=False),
        sa.Column("test_files", sa.Integer(), nullable=False),
        sa.Column("test_lines", sa.Integer(), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("signs", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_chain_stages_chains"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name=op.f("fk_chain_stages_repositories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_chain_stages")),
    )
    op.create_index("ix_chain_stages_number", "chain_stages", ["repository_id", "number"], unique=False)
    op.create_table(
        "dependencies",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("signs", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id", "source"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_dependencies_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["repository_id", "target"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name=op.f("fk_dependencies_target_pull_requests"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repository_id", "source", "target", name=op.f("pk_dependencies")),
    )
    op.create_table(
        "selections",
        sa.Column("strategy", sa.String(length=16), nullable=False),
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("selected_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_selections_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("strategy", "chain_id", name=op.f("pk_selections")),
    )
    op.create_table(
        "tasks",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("overview", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=True),
        sa.Column("prompts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["chain_id"], ["chains.id"], name=op.f("fk_tasks_chains"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_tasks")),
    )
    op.create_table(
        "task_stages",
        sa.Column("chain_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("plan", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("interface", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chain_id"], ["tasks.chain_id"], name=op.f("fk_task_stages_tasks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chain_id", "position", name=op.f("pk_task_stages")),
    )
