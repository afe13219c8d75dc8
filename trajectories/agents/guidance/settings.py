"""The settings of a process reward model: which variant, when it is asked, and what becomes of its words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from prchain.core.told import Told, Within
from trajectories.agents.guidance.taxonomy import Taxonomy, load_taxonomy
from trajectories.agents.guidance.variants import VARIANTS, PrmStyle, PrmVariant, Reads, ReplyForm, variant_name

PURPOSE = "prm"
"""The purpose of its questions, in settings and ledger."""

SAMPLING: Mapping[str, float] = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 4096}
"""How it is sampled where the settings do not say (SWE-PRM, section 4.2; the tokens are ours)."""

EVERY, WINDOW = 5, 8
"""n and k (section 4.2)."""

_AXES = ("style", "example", "reads", "action")

_USUAL: Mapping[str, Any] = {
    "reply": "text",
    "keep": "all",
    "send": "all",
    "schedule": "every",
    "detectors": "report",
    "evidence": "quoted",
    "words": "framed",
    "rules": "ours",
}
"""Setting to the value that an id leaves out. A line is never changed."""


PRM = Within("--prm", "Guidance", "Let a process reward model guide the agent; without a variant D.")


def _told(help: str, why: str, **more: Any) -> Told:
    return Told(help, PRM, why, **more)


class Schedule(StrEnum):
    """When the model is asked."""

    EVERY = "every"
    """After every n-th step (SWE-PRM, section 3.2.2)."""
    NONE = "none"
    ADAPTIVE = "adaptive"
    """Where a detector fires, after three failed steps in a row, or ten without a changed tree (section 6 leaves it to
    future work; the numbers are ours)."""


class PrmSettings(BaseModel):
    """All settings. Made of texts, as ``--observer prm:NAME=VALUE,...`` has them; ``variant`` stands for four axes.

    Raises pydantic's `ValidationError`, and `UsageError` for a taxonomy that cannot be read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    style: Annotated[
        PrmStyle, _told("What it is told of what can go wrong, and how much it says.", "an axis of table 1")
    ] = PrmStyle.DETAILED
    example: Annotated[bool, _told("Whether its prompt shows a reply.", "an axis of table 1")] = True
    reads: Annotated[Reads, _told("What the agent reads of it.", "an axis of table 1")] = Reads.ALL
    action: Annotated[bool, _told("Whether it recommends one next call.", "an axis of table 1")] = False
    every: Annotated[int, _told("Steps from one window's end to the next one's.", "cost", least=1)] = Field(
        default=EVERY, ge=1
    )
    window: Annotated[int, _told("Steps that it reads.", "cost", least=1)] = Field(default=WINDOW, ge=1)
    reply: Annotated[ReplyForm, _told("The form of its reply.", "models that keep to a schema")] = "text"
    keep: Annotated[Literal["all", "last"], _told("What of its words stays in the conversation.", "long stages")] = (
        "all"
    )
    send: Annotated[
        Literal["all", "suboptimal"],
        _told("Whether the agent is told of all windows, or of suboptimal ones.", "table 4's calls suggest it"),
    ] = "all"
    schedule: Annotated[Schedule, _told("When it is asked.", "asks where there is a reason to")] = Schedule.EVERY
    detectors: Annotated[
        Literal["off", "report", "tell"],
        _told("Findings of code: stored, and told to the agent beside the model's.", "figures without a model"),
    ] = "report"
    evidence: Annotated[
        Literal["quoted", "any"],
        _told(
            "Which findings count and are told: those whose evidence stands in the window, or all.",
            "SWE-PRM's listings take observations, too",
        ),
    ] = "quoted"
    words: Annotated[
        Literal["framed", "raw"],
        _told(
            "Whether the agent reads what counts of a reply, in a frame; or the reply as it is, read or not.",
            "the paper tells of no frame and no check",
        ),
    ] = "framed"
    rules: Annotated[
        Literal["ours", "paper"],
        _told(
            "The rules of its prompt: ours; or the few of SWE-PRM's listings, by which evidence may be an observation.",
            "ours find fewer errors, and take a quote alone",
        ),
    ] = "ours"
    taxonomy: Annotated[
        str | None,
        _told("A TOML file with categories of your own.", "other agents err otherwise", metavar="FILE"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _from_variant(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        chosen = dict(values)
        name = chosen.pop("variant", None)
        if name is not None:
            if name not in VARIANTS:
                raise ValueError(f"there is no variant {name!r}; known are {', '.join(VARIANTS)}")
            if own := [axis for axis in _AXES if axis in chosen]:
                raise ValueError(f"variant {name} says what {own[0]} is; give the one or the other")
            chosen |= VARIANTS[name]._asdict()
        elif chosen.get("style") == PrmStyle.SIMPLE:
            chosen = {"example": False} | chosen
        return chosen

    @field_validator("taxonomy")
    @classmethod
    def _readable(cls, path: str | None) -> str | None:
        load_taxonomy(path)
        return path

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.style is PrmStyle.SIMPLE:
            if self.example or self.action or self.reads is not Reads.ALL:
                raise ValueError("the simple style is free prose: it has no example, no action and no parts to read")
            if self.reply == "json":
                raise ValueError("the simple style is free prose, and has no reply in JSON")
            if self.taxonomy is not None:
                raise ValueError("the simple style has no taxonomy")
        return self

    @property
    def variant(self) -> PrmVariant:
        """Its point on the axes."""
        return PrmVariant(self.style, self.example, self.reads, self.action)

    @property
    def name(self) -> str:
        """The variant's name."""
        return variant_name(self.variant)

    @cached_property
    def categories(self) -> Taxonomy | None:
        """The taxonomy; None for the simple style."""
        return None if self.style is PrmStyle.SIMPLE else load_taxonomy(self.taxonomy)

    @property
    def decided(self) -> dict[str, Any]:
        """What a reading and its use depend on, as JSON values; settings at their usual value are left out, and the
        taxonomy is named by its hash."""
        row = self.model_dump(mode="json")
        axes = {name: row[name] for name in (*_AXES, "every", "window")}
        if self.schedule is not Schedule.EVERY:
            del axes["every"]
        # The simple style has no findings, and a prompt of its own.
        of_none = {"evidence", "rules"} if self.style is PrmStyle.SIMPLE else set[str]()
        other = {name: row[name] for name, usual in _USUAL.items() if row[name] != usual and name not in of_none}
        taxonomy = {} if self.categories is None else {"taxonomy": self.categories.hash}
        return {**axes, **other, **taxonomy}
