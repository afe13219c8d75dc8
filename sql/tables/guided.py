"""The tables of process reward models: the windows of steps that they read, and what they found in each."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class PrmWindow(Base):
    """One reading of a window of steps (SWE-PRM, section 3.2.2): while the agent ran, or of a stored trajectory."""

    __tablename__ = "prm_windows"
    __table_args__ = (Index("ix_prm_windows_trajectory", "trajectory_id", "position", "last_step"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Hash of trajectory, replay, subject, attempt and last step."""
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"))
    replay: Mapped[str | None] = mapped_column(String(16))
    """Hash of the settings and models of a replay; null for a reading while the agent ran."""
    position: Mapped[int]
    """The stage."""
    attempt: Mapped[int]
    subject: Mapped[str] = mapped_column(String(255))
    """The ledger's subject of its question: the stage; inside curation, a candidate of a window."""
    first_step: Mapped[int]
    """`trajectory_messages.step`."""
    last_step: Mapped[int]
    variant: Mapped[str] = mapped_column(String(64))
    """``S``, ``C``, ``CG``, ``D``, ``DN``, ``DG``, ``DNG``, ``DR``, or the axes in words."""
    settings: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: settings that decide a reading (`trajectories.agents.guidance.settings.PrmSettings`)."""
    model: Mapped[str] = mapped_column(String(255))
    prompt_hash: Mapped[str] = mapped_column(String(16))
    taxonomy_hash: Mapped[str | None] = mapped_column(String(16))
    """Null for the simple style, which has no taxonomy."""
    status: Mapped[str | None] = mapped_column(String(32))
    """``on_track``, ``needs_correction`` or ``critical_intervention_required``; null for the simple style, and for a
    reply that could not be read."""
    suboptimal: Mapped[bool | None]
    """Whether a finding of the model was kept, or the status is not ``on_track``; null where nothing says so."""
    guidance: Mapped[str | None] = mapped_column(Text)
    recommended_action: Mapped[str | None] = mapped_column(Text)
    """Null where none was asked for, or what was given is no call of the agent's tools."""
    sent: Mapped[bool]
    """Whether the agent got it."""
    why_not: Mapped[str | None] = mapped_column(String(32))
    """``on_track`` (only suboptimal windows are told), ``replay``, or the fault."""
    fault: Mapped[str | None] = mapped_column(String(32))
    """``unreadable`` (no status, or no guidance), ``bad_reply``, ``model_refused``, ``context_too_long``; null for a
    reply that was read."""
    leaks: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: what the leak check says of the guidance. The model knows no reference: these are guesses."""
    tokens_in: Mapped[int | None]
    tokens_out: Mapped[int | None]
    usd: Mapped[float | None]
    """What its question cost when it was paid for; null where that is not known."""
    seconds: Mapped[float]


class PrmFinding(Base):
    """One category that was found in a window."""

    __tablename__ = "prm_findings"

    window_id: Mapped[str] = mapped_column(ForeignKey("prm_windows.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """The model's come first, in the order of the taxonomy."""
    category: Mapped[str] = mapped_column(String(48))
    found_by: Mapped[str] = mapped_column(String(32))
    """``model``, or the name of a detector."""
    evidence: Mapped[str] = mapped_column(Text)
    step: Mapped[int | None]
    """Where the evidence stands; null where it stands nowhere."""
    recovery: Mapped[str] = mapped_column(Text)
    kept: Mapped[bool]
    why: Mapped[str | None] = mapped_column(String(32))
    """Why it was dropped: ``unquoted``, its evidence does not stand in the window."""
