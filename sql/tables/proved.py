"""The tables of images, and of what test runs say of chains before an agent works on them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class BuiltImage(Base):
    """What became of the image of one repository's manifests, or of a stage's checkout, when it was last built or
    looked for. What has no row here or in `StageTests` is another database's."""

    __tablename__ = "images"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    """As the engine names it; it holds the hash of the manifests, or the chain's id and the stage's position."""
    repository: Mapped[str] = mapped_column(String(255))
    recipe: Mapped[str] = mapped_column(String(64))
    outcome: Mapped[str] = mapped_column(String(32))
    """``built``, or the name of the error that ended the build."""
    reason: Mapped[dict[str, Any] | None] = mapped_column(JsonText())
    """JSON object ``{"message", "step", "lines", "hangs_on"}``: the log's decisive lines, and a hash of the settings of
    builds and the recipe; null where it was built."""
    notes: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: where the image is less than the manifests asked for."""
    as_of: Mapped[str | None] = mapped_column(String(32))
    """The date as of which dependencies were resolved; null for the newest that the index had."""
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    seconds: Mapped[float]
    repairs: Mapped[int]
    """How many changes of a model the recipe needed."""
    built_at: Mapped[str] = mapped_column(String(32))


class Validation(Base):
    """Whether a chain's tests show its work: every stage's reference was replayed, in order."""

    __tablename__ = "validations"

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """``proved``, ``unproved`` (a stage has no tests), or a failure's name; `environments.proofs.validate`."""
    reason: Mapped[str | None] = mapped_column(Text)
    backend: Mapped[str] = mapped_column(String(16))
    seconds: Mapped[float]
    validated_at: Mapped[str] = mapped_column(String(32))


class StageTests(Base):
    """The tests of one stage, sorted by runs on B_t and on M_t, and where they can be run again."""

    __tablename__ = "stage_tests"

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """``proved``, ``unproved``, ``not_reached`` or a failure's name."""
    reason: Mapped[str | None] = mapped_column(Text)
    image: Mapped[str | None] = mapped_column(String(255))
    """Of the dependencies; null where tests ran in a local sandbox, or no image could be had."""
    recipe: Mapped[str | None] = mapped_column(String(64))
    runner: Mapped[str | None] = mapped_column(String(16))
    """A name of `environments.suites.runners`."""
    command: Mapped[str | None] = mapped_column(Text)
    """One line of shell that runs `files` and prints how each test ended (`environments.suites.plaincommands`)."""
    files: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of the test files that are run; paths of M_t."""
    classes: Mapped[dict[str, Any]] = mapped_column(JsonText())
    """JSON object: the fields of `environments.suites.outcomes.ClassifiedTests`, each a list of test ids."""
    removed: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: F2P tests of earlier stages that upstream removed or rewrote before M_t; they do not gate."""
    tampered: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: functions of the runner that the reference itself replaces."""
    baseline: Mapped[dict[str, Any]] = mapped_column(JsonText(), default=dict, server_default="{}")
    """JSON object: what else M_t's runs show of the runner (`environments.suites.baseline.RunnerBaseline`)."""
    stage_image: Mapped[str | None] = mapped_column(String(255))
    """An image whose work folder is a checkout of S_t = B_t, where one was asked for (SWE-bench's harness needs it)."""
    strength: Mapped[dict[str, Any] | None] = mapped_column(JsonText())
    """JSON object: what the proof is worth (`sql.strength.Strength`); null where nobody has measured it."""
    seconds: Mapped[float]


class ReferenceRun(Base):
    """One test run on B_t plus overlay (before) or on M_t (after), or one that measures what the proof is worth."""

    __tablename__ = "reference_runs"

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    side: Mapped[str] = mapped_column(String(8), primary_key=True)
    """``before`` or ``after``; ``own`` on B_t with its own tests; ``undone`` on M_t with a part of the work undone."""
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """1 is the first run of this side. Of ``undone``, 0 is M_t itself, and each undoing has two."""
    key: Mapped[str] = mapped_column(String(64))
    """Hash of all that decides the run (tree with overlay, image, command, files): a stored run with another key is of
    another day, and not used."""
    statuses: Mapped[dict[str, Any]] = mapped_column(JsonText())
    """JSON object: test id to status."""
    exit_code: Mapped[int | None]
    timed_out: Mapped[bool]
    complete: Mapped[bool]
    infra: Mapped[str | None] = mapped_column(String(32))
    notes: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list."""
    tampered: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list."""
    baseline: Mapped[dict[str, Any]] = mapped_column(JsonText(), default=dict, server_default="{}")
    """JSON object: as in `StageTests`, of this run."""
    tail: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float]
    ran_at: Mapped[str] = mapped_column(String(32))


Index("ix_images_repository", BuiltImage.repository)
