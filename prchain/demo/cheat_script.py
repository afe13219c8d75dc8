"""The replies of the demo's scripted agent that cheats: lines made from ``cheat.toml``.

It is known by its system prompt, that of an agent with bash alone, and by its chain.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict

from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.tools.observations import SUBMISSION


class CheatingTurn(BaseModel):
    """A step: its words, and a command or the end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    say: str
    bash: str = ""
    submit: bool = False


def cheat_lines(system: str, query: str) -> Iterator[dict[str, Any]]:
    """The lines of the script, newest state first; `system` and `query` are texts of the prompt and of the task."""
    text = (resources.files("prchain.demo") / "cheat.toml").read_text(encoding="utf-8")
    turns = [CheatingTurn.model_validate(turn) for turn in tomllib.loads(text)["steps"]]
    before = [query, *(turn.say for turn in turns[:-1])]
    for number, (answers, turn) in reversed(list(enumerate(zip(before, turns, strict=True), 1))):
        command = f"echo {SUBMISSION}" if turn.submit else turn.bash.strip()
        call = {"id": f"cheat_{number}", "name": "bash", "arguments": {"command": command}}
        yield {"purpose": AGENT, "contains": [system, answers], "reply": turn.say, "tool_calls": [call]}
