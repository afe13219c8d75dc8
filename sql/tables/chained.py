"""The tables of chains and of the tasks made of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class Dependency(Base):
    """A pair of landed pull requests of which something says that the source builds on the target."""

    __tablename__ = "dependencies"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "source"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["repository_id", "target"],
            ["pull_requests.repository_id", "pull_requests.number"],
            name="fk_dependencies_target_pull_requests",
            ondelete="CASCADE",
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[int] = mapped_column(primary_key=True)
    relation: Mapped[str] = mapped_column(String(16))
    """The most telling relation among the citations of this pair; ``changes_code`` where there is none."""
    confidence: Mapped[float]
    """0 to 1; `chains.edges.evidence`."""
    signs: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of ``{"sign": name, "weight": number, "detail": text}``: why the confidence is what it is."""
    sources: Mapped[str] = mapped_column(String(32), default="citation", server_default="citation")
    """Comma-separated: ``citation``, ``stack``, ``lineage``; `chains.edges.pairs`."""
    outcome: Mapped[str] = mapped_column(String(32))
    """``kept``, or why no chain may use the edge; `chains.outcomes`."""


class Candidate(Base):
    """What became of a landed pull request when chains were chosen by one strategy."""

    __tablename__ = "candidates"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    strategy: Mapped[str] = mapped_column(String(16), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """Exactly one of `chains.outcomes`."""
    reason: Mapped[str | None] = mapped_column(Text)


class Chain(Base):
    """A sequence of pull requests, each of which builds on the one before it."""

    __tablename__ = "chains"
    __table_args__ = (Index("ix_chains_repository", "repository_id"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Hash of the repository's name, the numbers and the landed commits; `chains.identity`. Of an import: of its data
    set, its name and its content; `chains.imports.instance`."""
    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"))
    length: Mapped[int]
    licence: Mapped[str | None] = mapped_column(String(64))
    """SPDX id of the licence at the last stage; null where its file is not recognised, or there is none."""
    language: Mapped[str | None] = mapped_column(String(32))
    """The language of most source lines that its stages change."""


class ChainStage(Base):
    """One stage of a chain: the work of one pull request, and why it follows the stage before."""

    __tablename__ = "chain_stages"
    __table_args__ = (Index("ix_chain_stages_number", "repository_id", "number"),)

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """1 is the first."""
    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"))
    number: Mapped[int]
    """Of its pull request. Of an import: the number at the end of its name, or 0."""
    branch: Mapped[str] = mapped_column(String(255))
    """Empty of an import."""
    base_sha: Mapped[str] = mapped_column(String(64))
    """B_t. Of an import whose patch brings a fault in: a commit of ours, which holds the fault."""
    landed_sha: Mapped[str] = mapped_column(String(64))
    """M_t. Of an import: a commit of ours, B_t with the reference patch; empty while no repository holds B_t."""
    landed_at: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(Text)
    source_files: Mapped[int]
    source_lines: Mapped[int]
    """Lines added and removed in the source patch."""
    test_files: Mapped[int]
    test_lines: Mapped[int]
    relation: Mapped[str | None] = mapped_column(String(16))
    """To the stage before; null for the first."""
    confidence: Mapped[float | None]
    signs: Mapped[list[Any] | None] = mapped_column(JsonText())
    """As in `Dependency`."""
    worth: Mapped[float | None]
    """0 to 1: how likely it makes a sensible task; `chains.stages.worth`. Null where it has no program text."""
    worth_signs: Mapped[list[Any] | None] = mapped_column(JsonText())
    """As `signs`."""


class Selection(Base):
    """That one strategy chose a chain, and whether it still stands."""

    __tablename__ = "selections"

    strategy: Mapped[str] = mapped_column(String(16), primary_key=True)
    """``reference``, ``lineage``, ``evidence``, ``temporal`` or ``single``; `chains.options`. Or ``imported``, or
    ``survey``."""
    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    score: Mapped[float]
    """The sum of its edges' confidences."""
    outcome: Mapped[str] = mapped_column(String(32))
    """``selected`` or ``retired``; ``waiting`` for an import without a repository."""
    reason: Mapped[str | None] = mapped_column(Text)
    selected_at: Mapped[str] = mapped_column(String(32))


class ChainBuild(Base):
    """When a strategy last chose the chains of a repository, and at which floors."""

    __tablename__ = "chain_builds"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    strategy: Mapped[str] = mapped_column(String(16), primary_key=True)
    built_at: Mapped[str] = mapped_column(String(32))
    serial: Mapped[int]
    """Larger than that of every build before, of any repository."""
    floor: Mapped[float | None]
    """The least confidence of an edge; null for strategies that do not look at who builds on whom."""
    worth: Mapped[float | None]
    """The least worth of a stage."""


class Task(Base):
    """The task made of a chain: the overview, and by `TaskStage` one query a stage."""

    __tablename__ = "tasks"

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """``ready``, ``chain_rejected``, ``query_rejected``, ``overview_rejected`` or the name of an error."""
    reason: Mapped[str | None] = mapped_column(Text)
    overview: Mapped[str | None] = mapped_column(Text)
    findings: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of what the leak check says of the overview as it stands; warnings, where the task is ready."""
    attempts: Mapped[int]
    """How often the overview was written."""
    model: Mapped[str | None] = mapped_column(String(255))
    prompts: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object of prompt name to its hash."""
    created_at: Mapped[str] = mapped_column(String(32))


class TaskStage(Base):
    """The query of one stage, with what it was made from and what was found in it."""

    __tablename__ = "task_stages"

    chain_id: Mapped[str] = mapped_column(ForeignKey("tasks.chain_id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """``ready``, ``query_rejected``, ``not_reached`` or the name of an error."""
    reason: Mapped[str | None] = mapped_column(Text)
    plan: Mapped[str | None] = mapped_column(Text)
    """The execution plan that the query was written from; never shown to an agent."""
    query: Mapped[str | None] = mapped_column(Text)
    interface: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of what the hidden tests need and B_t does not have, an object each
    (`prchain.core.code.needs.Need`)."""
    files: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of the paths of the source patch."""
    findings: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of what the leak check, and the reviewer where it was asked, say of the query as it stands."""
    attempts: Mapped[int]
