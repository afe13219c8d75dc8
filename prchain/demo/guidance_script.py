"""The replies of the demo's scripted models where a process reward model guides: lines made from ``guidance.toml``.

As in `prchain.demo.script`, a line matches by the text of the conversation, the newest state first. These rollouts
are known by their system prompt, that of an agent with bash alone. Their lines carry estimates of their tokens: what
guidance costs is part of the story.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from prchain.demo.turns import AgentTurn, calls_of
from trajectories.agents.guidance.settings import PURPOSE as PRM
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.tools.observations import SUBMISSION

_STRICT = ConfigDict(extra="forbid", frozen=True)

SYSTEM = "You have one tool, `bash`"
"""Stands in the prompt of agents with bash alone, and in no other."""


class GuidedTurn(BaseModel):
    """A step: its words, and either the turn of a plain rollout whose calls it makes or a command."""

    model_config = _STRICT

    say: str
    like: str | None = None
    bash: str | None = None


class ScriptedDetection(BaseModel):
    """What is said of a category that is detected."""

    model_config = _STRICT

    evidence: str
    recovery: str


class GuidedWindow(BaseModel):
    """What the process reward model says of the window that holds the text `sees`."""

    model_config = _STRICT

    sees: str
    status: Literal["On track", "Needs correction", "Critical intervention required"]
    guidance: str
    detects: Mapping[str, ScriptedDetection] = {}


class GuidanceAnswers(BaseModel):
    """All steps and windows, in order. The last step of `loop` is taken again and again until somebody speaks; the
    `steps` follow the guidance of the first window."""

    model_config = _STRICT

    loop: tuple[GuidedTurn, ...] = Field(min_length=1)
    steps: tuple[GuidedTurn, ...] = Field(min_length=1)
    windows: tuple[GuidedWindow, ...] = Field(min_length=1)


def read_guidance_answers() -> GuidanceAnswers:
    """The answers."""
    text = (resources.files("prchain.demo") / "guidance.toml").read_text(encoding="utf-8")
    return GuidanceAnswers.model_validate(tomllib.loads(text))


def guidance_lines(turns: Mapping[str, AgentTurn]) -> Iterator[dict[str, Any]]:
    """The lines of the script, which have to come before all others of the agent. `turns` are those of plain rollouts
    by their words; the calls are made with bash."""
    answers = read_guidance_answers()
    told = answers.windows[0].guidance.strip().split("\n")[0]
    states = [*_states(answers.loop, SYSTEM), *_states(answers.steps, told)]
    for number, (before, turn) in reversed(list(enumerate(states, 1))):
        calls = [
            {"id": f"guided_{number}_{place}", "name": "bash", "arguments": arguments}
            for place, arguments in enumerate(_commands(turn, turns), 1)
        ]
        yield {"purpose": AGENT, "contains": before, "reply": turn.say, "tool_calls": calls, "usage": "estimate"}
    for window in reversed(answers.windows):
        yield {"purpose": PRM, "contains": window.sees, "reply": window_reply(window), "usage": "estimate"}


def window_reply(window: GuidedWindow) -> str:
    """What the process reward model replies, in the form that its prompt asks for."""
    lines = []
    for number, category in enumerate(load_taxonomy().categories, 1):
        found = window.detects.get(category.name)
        lines += [f"{number}. {category.title}", f"DETECTED: {'Yes' if found else 'No'}"]
        lines += [f"EVIDENCE: {found.evidence}", f"RECOVERY_ACTION: {found.recovery}"] if found else []
    return "\n".join([*lines, f"TASK_STATUS: {window.status}", f"OVERALL_GUIDANCE: {window.guidance.strip()}"])


def _states(turns: tuple[GuidedTurn, ...], before: str) -> Iterator[tuple[str, GuidedTurn]]:
    """Each turn behind the text that it answers."""
    for turn in turns:
        yield before, turn
        before = turn.say


def _commands(turn: GuidedTurn, turns: Mapping[str, AgentTurn]) -> Iterator[dict[str, Any]]:
    plain = AgentTurn(say=turn.say, bash=turn.bash) if turn.like is None else turns[turn.like]
    for name, arguments in calls_of(plain, None):
        yield {"command": f"echo {SUBMISSION}"} if name == "submit" else arguments
