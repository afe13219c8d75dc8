"""Handing the work in."""

from __future__ import annotations

from typing import ClassVar

from trajectories.agents.tools.tool import Arguments, ToolResult, Workspace


class SubmitArguments(Arguments):
    """None."""


class Submit:
    """Ends the attempt."""

    name: ClassVar[str] = "submit"
    arguments: ClassVar[type[Arguments]] = SubmitArguments
    description = (
        "Hand in your work as it now lies in the repository. Call it alone, once the task is done and you have checked "
        "it: calls after it are not run."
    )

    def run(self, arguments: SubmitArguments, workspace: Workspace) -> ToolResult:
        """See `trajectories.agents.tools.tool.Tool.run`."""
        return ToolResult("Your work was handed in.", submits=True)
