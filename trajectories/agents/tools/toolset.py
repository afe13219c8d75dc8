"""The sets of tools that an agent can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prchain.core.errors import UsageError
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.editor import Editor
from trajectories.agents.tools.lasting_bash import LastingBash
from trajectories.agents.tools.observations import SUBMISSION
from trajectories.agents.tools.submit import Submit
from trajectories.agents.tools.think import Think
from trajectories.agents.tools.tool import Tool, schema_of

ToolsetName = Literal["bash", "full", "swe-agent"]
ShellName = Literal["plain", "swe-agent"]


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools by name, with their schemas and settings."""

    name: ToolsetName
    tools: Mapping[str, Tool]
    schemas: tuple[Mapping[str, Any], ...]
    """Their schemas for the model, in OpenAI's form."""
    ending: str
    """Words on how work is submitted."""
    session: bool
    """Whether commands share a session."""


def _toolset(name: ToolsetName, tools: tuple[Tool, ...], ending: str, *, session: bool) -> Toolset:
    return Toolset(name, {tool.name: tool for tool in tools}, tuple(map(schema_of, tools)), ending, session)


def toolset(name: ToolsetName, shell: ShellName = "plain") -> Toolset:
    """The set of that name: ``bash`` is mini-swe-agent's, ``full`` adds editor, think and submit, and ``swe-agent`` is
    this without think (SWE-PRM, section 3.1). With `shell` its `bash` lets commands go on (listing 1). Raises
    `UsageError` where a set has no such shell."""
    if shell == "swe-agent" and name != "swe-agent":
        raise UsageError("shell=swe-agent is the shell of SWE-agent's tools: add --tools swe-agent")
    if name == "bash":
        ending = f"run the command `echo {SUBMISSION}`, alone"
        return _toolset(name, (Bash(session=False),), ending, session=False)
    thinking = () if name == "swe-agent" else (Think(),)
    bash: Tool = LastingBash() if shell == "swe-agent" else Bash(session=True)
    tools: tuple[Tool, ...] = (bash, Editor(), *thinking, Submit())
    return _toolset(name, tools, "call the tool `submit`", session=True)
