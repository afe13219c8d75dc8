"""The replies of the demo's scripted models in a curated run: `prchain.core.llm.scripted` lines, made from
``windows.toml``.

As in `prchain.demo.script`, a line matches by the text of the conversation, the newest step first. The blinded
agent has no lines of its own until the curator has written a step: before, it does what it does in a plain rollout.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from prchain.demo.turns import AgentTurn, calls_of
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.curation.windows.establishing import NodeFinding, VerifierReply
from trajectories.curation.windows.judging import GroundReply
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND

_STRICT = ConfigDict(extra="forbid", frozen=True)


class Author(StrEnum):
    """Who takes a step."""

    PLAIN = "plain"
    """The agent, as in a plain rollout: the call stands in ``answers``."""
    CURATOR = "curator"
    AGENT = "agent"
    """The agent, after the step above."""


class CuratedTurn(AgentTurn):
    """A step of a curated run, and the quotes with which the verifier says what it establishes."""

    by: Author = Author.AGENT
    target: str | None = None
    """Of a step of the curator's: the statement of the node that it is written towards."""
    establishes: Mapping[str, str] = {}
    """Node to quote."""


class CuratedStageAnswers(BaseModel):
    """The steps of one stage; each stands behind all that it can follow."""

    model_config = _STRICT

    opening: str
    """How the query of the stage begins."""
    steps: tuple[CuratedTurn, ...] = Field(min_length=1)


class WindowAnswers(BaseModel):
    """The stages of the curated trajectory."""

    model_config = _STRICT

    stages: tuple[CuratedStageAnswers, ...] = Field(min_length=1)


def read_window_answers() -> WindowAnswers:
    """The answers."""
    text = (resources.files("prchain.demo") / "windows.toml").read_text(encoding="utf-8")
    return WindowAnswers.model_validate(tomllib.loads(text))


def window_lines(workdir: str | None) -> Iterator[dict[str, Any]]:
    """The lines of the script, which have to come before those of plain rollouts. `workdir` as for `calls_of`."""
    yield from reversed([line for stage in read_window_answers().stages for line in _stage(stage, workdir)])


def _stage(stage: CuratedStageAnswers, workdir: str | None) -> Iterator[dict[str, Any]]:
    """The lines of a stage, the oldest step first."""
    before = stage.opening
    for number, turn in enumerate(stage.steps, 1):
        calls = [
            {"id": f"curated_{number}_{place}", "name": name, "arguments": arguments}
            for place, (name, arguments) in enumerate(calls_of(turn, workdir), 1)
        ]
        yield {"purpose": ESTABLISH, "contains": turn.say, "reply": _found(turn)}
        if turn.by is Author.AGENT:
            yield {"purpose": AGENT, "contains": before, "reply": turn.say, "tool_calls": calls}
        elif turn.by is Author.CURATOR:
            yield {"purpose": CURATOR, "contains": turn.target, "reply": turn.say, "tool_calls": calls}
            yield {"purpose": GROUND, "contains": turn.say, "reply": GroundReply(valid=True, reasons=[]).model_dump()}
        before = turn.say


def _found(turn: CuratedTurn) -> dict[str, Any]:
    nodes = [
        NodeFinding(id=name, established=True, evidence=quote, reason="") for name, quote in turn.establishes.items()
    ]
    return VerifierReply(nodes=nodes).model_dump()
