"""The stages, their conversations and the rewritten steps that were written by hand: the files in ``stages``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

FOLDER = Path(__file__).with_name("stages")

_STRICT = ConfigDict(extra="forbid", frozen=True)

Split = Literal["tuned", "seen", "fresh"]
"""``tuned``: rules were changed because of the stage's rewrites. ``seen``: they were measured once, and then rules
were changed. ``fresh``: the last that were measured; docs/figures.md has the first figures of each set. A rule that was
tuned on a sample is measured on a fresh one."""

LeakSource = Literal["reference", "tests", "unseen", "words"]
"""Where a leak is from: what the source patch or the test patch adds; what the base has and the conversation has not
shown; words on how the step came about."""


class HandCall(BaseModel):
    """Words and one call of a tool of the agent."""

    model_config = _STRICT

    words: str = ""
    tool: str = "bash"
    arguments: dict[str, JsonValue]


class HandRewrite(HandCall):
    """A rewritten step. A leaking one names what it leaks, as the repository spells it: the rig proves that the
    repository has it and that the conversation has not."""

    honest: bool
    source: LeakSource | None = None
    leak: str | None = None
    subtle: bool = False
    """Whether the leak is disguised: another spelling, in a path, a pattern, code, or prose without quotes."""

    @model_validator(mode="after")
    def _leaks_or_not(self) -> HandRewrite:
        if self.honest != (self.source is None) or (self.leak is None) != (self.source in {None, "words"}):
            raise ValueError("a leaking rewrite says what it leaks and where that is from, and an honest one does not")
        return self


class RewriteStage(BaseModel):
    """A landed pull request: the conversation of an agent that works on it, and what a curator makes of its next
    step."""

    model_config = _STRICT

    repository: str
    number: int
    base: str
    landed: str
    split: Split
    query: str
    looks: tuple[HandCall, ...] = Field(min_length=1)
    replaced: HandCall
    """The step that the agent was about to take."""
    rewrites: tuple[HandRewrite, ...] = ()

    @property
    def key(self) -> str:
        """What tells the stage from others."""
        return f"{self.repository} #{self.number}"


def read_stages(folder: Path = FOLDER) -> list[RewriteStage]:
    """The stages, by the names of their files. Raises `pydantic.ValidationError`, `tomllib.TOMLDecodeError`."""
    files = sorted(folder.glob("*.toml"))
    return [RewriteStage.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files]
