"""A place to think aloud, which changes nothing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from trajectories.agents.tools.tool import Arguments, ToolResult, Workspace


class ThinkArguments(Arguments):
    """See `Think`."""

    thought: str = Field(description="What you are thinking about.")


class Think:
    """Takes a thought down."""

    name: ClassVar[str] = "think"
    arguments: ClassVar[type[Arguments]] = ThinkArguments
    description = (
        "Write a thought down, for instance to weigh two designs or to sum up what you have found. It runs nothing and "
        "changes nothing."
    )

    def run(self, arguments: ThinkArguments, workspace: Workspace) -> ToolResult:
        """See `trajectories.agents.tools.tool.Tool.run`."""
        return ToolResult("Your thought was noted.")
