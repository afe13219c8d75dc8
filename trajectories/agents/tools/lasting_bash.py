"""`bash` as SWE-agent's models know it: a command that takes long goes on, an empty one shows what it prints next, and
``ctrl+c`` ends it (SWE-PRM, listing 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from prchain.core.waiting import waiting_for
from trajectories.agents.tools.bash import (
    MAY_SET,
    PRINT_VARIABLES,
    changed_variables,
    entering,
    variables_of,
)
from trajectories.agents.tools.lasting_shell import LastingShell, ShellOutput
from trajectories.agents.tools.observations import GOES_ON, SHOWN_LINES, bytes_for
from trajectories.agents.tools.tool import Arguments, ToolResult, Workspace

INTERRUPT = "ctrl+c"
"""The command that ends the one that runs."""

RUNS = "running"
"""`Entry.error` of a command that was not run, because another one runs."""

_LOOK = 30.0
"""Seconds that an empty command waits at most for the end of the running one."""
_PATIENCE = 5.0
"""Seconds that an interrupted command may take to end."""

_BUSY = (
    "This was not run: the command before it still runs. An empty command shows what that prints next, "
    f"`{INTERRUPT}` ends it."
)
_IDLE = "No command runs."


class LastingBashArguments(Arguments):
    """See `LastingBash`."""

    command: str = Field(
        description="The command, as it would be typed; it may have several lines. Where the one before has the exit "
        f"code -1, it still runs: an empty command shows what it prints next, and `{INTERRUPT}` ends it."
    )


class LastingBash:
    """Runs a command in a shell that lasts over the attempt, and waits for it so long as `Workspace.timeout` says."""

    name: ClassVar[str] = "bash"
    arguments: ClassVar[type[Arguments]] = LastingBashArguments
    description = (
        "Run a command in a bash that lasts, and see what it prints. An exit code other than 0 stands below the "
        "output; -1 says that the command still runs."
    )

    def run(self, arguments: LastingBashArguments, workspace: Workspace) -> ToolResult:
        """See `trajectories.agents.tools.tool.Tool.run`."""
        shell, command = _shell(workspace), arguments.command
        runs, asked = shell.runs, command.strip()
        if asked in ("", INTERRUPT) and not runs:
            return ToolResult(_IDLE, details={"exit_code": 0})
        if asked not in ("", INTERRUPT) and runs:
            return ToolResult(_BUSY, RUNS)
        most = bytes_for(workspace.most)
        with waiting_for("the agent's command"):
            if asked == INTERRUPT:
                output = shell.interrupt(_PATIENCE, most)
            elif runs:
                output = shell.more(min(workspace.timeout, _LOOK), most)
            else:
                if not shell.begun:
                    shell.begin("\n".join(entering(workspace)), variables_of(workspace))
                output = shell.run(command, workspace.timeout, most)
        going = {GOES_ON: True} if runs or output.runs else {}
        exported = {} if output.runs or output.ended or not MAY_SET.search(command) else _variables(shell, workspace)
        return _result(output, workspace, {**going, **exported})


def _shell(workspace: Workspace) -> LastingShell:
    if workspace.shell is None:
        workspace.shell = LastingShell(workspace.sandbox)
    return workspace.shell


def _variables(shell: LastingShell, workspace: Workspace) -> Mapping[str, str]:
    """Details of an observation for the shell's exported variables, where they have changed."""
    try:
        text = shell.ask(PRINT_VARIABLES).decode("utf-8")
    except UnicodeDecodeError:
        return {}
    return changed_variables(workspace, text)


def _result(output: ShellOutput, workspace: Workspace, more: Mapping[str, Any]) -> ToolResult:
    text, omitted, lines = _text(output, workspace.most)
    moved = output.cwd if output.cwd != workspace.cwd else None
    workspace.cwd = output.cwd or workspace.cwd
    details: dict[str, Any] = {"exit_code": output.exit_code, SHOWN_LINES: lines, **more}
    if output.runs:
        details["running"] = True
    if omitted:
        details["omitted"] = omitted
    return ToolResult(
        "\n".join(filter(None, (text, _ending(output, workspace)))), details=details, worked=True, cwd=moved
    )


def _text(output: ShellOutput, most: int) -> tuple[str, int, int]:
    """The output without its last line break, head and tail of at most `most` characters; how many are left out; and
    how many lines are shown whole, of one that was cut those of its head."""
    head, tail = output.head.decode("utf-8", "replace"), output.tail.decode("utf-8", "replace")
    if not output.omitted and len(head + tail) <= most:
        text = (head + tail).removesuffix("\n")
        return text, 0, text.count("\n") + bool(head)
    whole = len(head) + len(tail) + output.omitted
    if not output.omitted:
        head = tail = head + tail
    first, last = head[: most - most // 2], tail[len(tail) - most // 2 :]
    omitted = whole - len(first) - len(last)
    text = f"{first}\n[... {omitted} characters left out ...]\n{last}".removesuffix("\n")
    return text, omitted, first.count("\n")


def _ending(output: ShellOutput, workspace: Workspace) -> str:
    """The line below an output; empty for a command that ended with 0."""
    if output.runs:
        return f"(exit code -1: the command still runs. It was waited for at most {workspace.timeout:g} seconds.)"
    if output.exit_code == 0 and not output.ended:
        return ""
    ended = "It ended the shell: the next command begins a new one." if output.ended else ""
    code = "" if output.exit_code is None else f"exit code {output.exit_code}"
    return f"({'. '.join(filter(None, (code, ended)))})"
