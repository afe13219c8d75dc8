"""The folder that agents work in, and the model that they ask: it answers by what the last result says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prchain.core.llm.model import Reply, Request, ToolCall, Usage

FILE, CONTENT = "sums.py", "def add(a, b):\n    return a - b\n"
TASK = "add subtracts; mend it."
TITLE, LOOK, WHY, MENDED, DONE = "Sum mends", "I look.", "Look first.", "It subtracts.", "Done."
MEND = "sed -i s/-/+/ sums.py && echo MENDED"
HAND_IN = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent takes for the end; others are done where nothing is called."""

OWN = (TASK, CONTENT, f"{FILE}\n", "MENDED\n")
"""Our words in what an agent tells its model."""

SHELLS = ("bash", "run_shell_command")
"""What agents call a tool that runs a command."""


def shell_of(tools: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The tool of a request that runs commands."""
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    return next((functions[name] for name in SHELLS if name in functions), None)


def answer(request: Request) -> Reply:
    """The reply to a request: a title, a look, the mend, or the end."""
    assert request.body is not None
    tool = shell_of(request.body.get("tools") or [])
    last, number = request.messages[-1], len(request.messages)
    if tool is None:
        return says(TITLE)
    if last.role != "tool":
        return says(LOOK, *calls_of(tool, number, "ls", f"cat {FILE}"), reasoning=WHY)
    if "MENDED" in last.content:
        return says(DONE, *(calls_of(tool, number, HAND_IN) if has_commands_alone(request) else ()))
    return says(MENDED, *calls_of(tool, number, MEND))


def has_commands_alone(request: Request) -> bool:
    """Whether commands are all that the agent has, so that its end is one."""
    assert request.body is not None
    return len(request.body["tools"]) == 1


def calls_of(tool: Mapping[str, Any], number: int, *commands: str) -> tuple[ToolCall, ...]:
    """Calls of a tool that runs commands; `number` tells their ids from those of other requests."""
    needed = tool["parameters"].get("required", ())
    more = {name: value for name, value in {"description": "run", "is_background": False}.items() if name in needed}
    return tuple(
        ToolCall(f"call_{number}_{at}", str(tool["name"]), json.dumps({"command": command, **more}))
        for at, command in enumerate(commands)
    )


def says(text: str, *calls: ToolCall, reasoning: str | None = None) -> Reply:
    """A reply of that model."""
    finish = "tool_calls" if calls else "stop"
    return Reply(text, "big", finish, tool_calls=calls, reasoning=reasoning, usage=Usage(100, None, 9))
