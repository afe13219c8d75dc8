"""Running commands: in a fresh shell each, as mini-swe-agent does, or in a session that keeps folder and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from environments.sandboxes.sandbox import Sandbox
from environments.sandboxes.streams import TOKEN
from prchain.core.waiting import waiting_for
from trajectories.agents.tools.observations import (
    bytes_for,
    command_details,
    command_error,
    command_observation,
    is_submission,
)
from trajectories.agents.tools.tool import Arguments, ToolResult, Workspace

SESSION = "agent"
"""The name of the agent's session in its sandbox."""

QUIET: Mapping[str, str] = {
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "LESS": "-R",
    "PIP_PROGRESS_BAR": "off",
    "TQDM_DISABLE": "1",
}
"""Variables that keep programs from paging and from drawing, where nobody looks; those of mini-swe-agent, and git's."""

MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval)\b|(?:^|[\s;&|(){}])\.\s")
"""Commands that can change the shell's folder. Only after these is the sandbox asked where it is: asking costs as much
as a command (measured: 10 ms to 15 ms)."""

MAY_SET = re.compile(
    r"(?:^|[\s;&|(){}])(?:\.\s|[A-Za-z_]\w*\+?=)|:="
    r"|\b(?:export|declare|typeset|unset|set|source|eval|read|mapfile|readarray|getopts|printf\s+-v)\b"
)
"""Commands that can change exported variables. Only after these is the sandbox asked for its variables."""

_SHELL_VARIABLES = f"PWD|OLDPWD|SHLVL|_|{TOKEN}"
"""Variables that the shell sets by itself, and that of a sandbox's stream."""

PRINT_VARIABLES = f"(unset {_SHELL_VARIABLES.replace('|', ' ')}; export -p) 2>/dev/null"
UNSET_VARIABLES = (
    f'for name in $(compgen -e); do case $name in {_SHELL_VARIABLES}) ;; *) unset "$name";; esac; done 2>/dev/null'
)

_TIMEOUT = 30.0
_LONGEST_CWD = 1024
_LONGEST_VARIABLES = 64 << 10
"""Bytes. More exported variables than that are not restored where the sandbox has to be made anew."""


class BashArguments(Arguments):
    """See `Bash`."""

    command: str = Field(description="The command, as it would be typed; it may have several lines.")


class Bash:
    """Runs a command; with `session` all commands share folder and exported variables, and `submit` is another tool's.

    Without a session, the command that prints mini-swe-agent's word submits.
    """

    name: ClassVar[str] = "bash"
    arguments: ClassVar[type[Arguments]] = BashArguments

    def __init__(self, *, session: bool) -> None:
        self._session = session

    @property
    def description(self) -> str:
        """See `trajectories.agents.tools.tool.Tool.description`."""
        lifetime = (
            "The working folder and exported variables last from one command to the next."
            if self._session
            else "Every command has a new shell: neither the working folder nor variables last."
        )
        return (
            f"Run a command in bash and see its return code and what it prints. {lifetime} The return code of a "
            "pipeline is that of its last command; where one before it failed, <pipestatus> shows the codes of all."
        )

    def run(self, arguments: BashArguments, workspace: Workspace) -> ToolResult:
        """See `trajectories.agents.tools.tool.Tool.run`."""
        environment = _begin(workspace) if self._session else {**QUIET, **workspace.environment}
        with waiting_for("the agent's command"):
            result = workspace.sandbox.exec(
                arguments.command,
                timeout=workspace.timeout,
                session=SESSION if self._session else None,
                environment=environment,
                output_limit=bytes_for(workspace.most),
                pipestatus=True,
            )
        content, omitted = command_observation(result, most=workspace.most, timeout=workspace.timeout)
        moved = self._session and MAY_MOVE.search(arguments.command) is not None
        exported = _variables(workspace) if self._session and MAY_SET.search(arguments.command) else {}
        return ToolResult(
            content,
            error=command_error(result),
            details={**command_details(result, omitted), **exported},
            submits=not self._session and is_submission(result),
            worked=True,
            cwd=_folder(workspace.sandbox) if moved else None,
        )


def _begin(workspace: Workspace) -> Mapping[str, str]:
    """The variables for the session's next command: all for the first command of an attempt, then none.

    The agent may change them in between. Where the sandbox was made anew in the middle of a stage, the session enters
    its folder again and sets its exported variables again; where the folder is gone, it begins in the workdir.
    """
    if workspace.session_ready:
        return {}
    if commands := entering(workspace):
        workspace.sandbox.exec("\n".join(commands), timeout=_TIMEOUT, session=SESSION)
    workspace.session_ready = True
    return variables_of(workspace)


def entering(workspace: Workspace) -> list[str]:
    """The commands with which a new shell enters the session's folder and has its exported variables again."""
    commands = []
    if workspace.cwd is not None and workspace.cwd != workspace.sandbox.config.workdir:
        commands.append(f"cd -- {shlex.quote(workspace.cwd)} 2>/dev/null")
    if workspace.variables is not None:
        commands += [UNSET_VARIABLES, workspace.variables]
    return commands


def variables_of(workspace: Workspace) -> Mapping[str, str]:
    """The variables of a session's first command, where they are not among those that it had."""
    return {} if workspace.whole else {**QUIET, **workspace.environment}


def _variables(workspace: Workspace) -> Mapping[str, str]:
    """Details of an observation for the session's exported variables: the commands that set them, where they have
    changed since the last such details."""
    result = workspace.sandbox.exec(PRINT_VARIABLES, timeout=_TIMEOUT, session=SESSION, output_limit=_LONGEST_VARIABLES)
    try:
        text = result.output.decode("utf-8")
    except UnicodeDecodeError:
        return {}
    return {} if result.exit_code != 0 or result.omitted else changed_variables(workspace, text)


def changed_variables(workspace: Workspace, text: str) -> Mapping[str, str]:
    """Details of an observation for what `PRINT_VARIABLES` printed; none where it is as before, or no variables."""
    if "\0" in text or not text.startswith("declare -"):
        return {}
    if workspace.whole and text == workspace.variables:
        return {}
    workspace.variables, workspace.whole = text, True
    return {"variables": text}


def _folder(sandbox: Sandbox) -> str | None:
    """The session's folder; None where the sandbox does not tell it clearly."""
    result = sandbox.exec("pwd", timeout=_TIMEOUT, session=SESSION, output_limit=4 * _LONGEST_CWD)
    if result.exit_code != 0 or result.omitted:
        return None
    try:
        path = result.output.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        return None
    return path if path.startswith("/") and len(path) <= _LONGEST_CWD and "\n" not in path else None
