"""Running commands: in a fresh shell each, as mini-swe-agent does, or in a session that keeps folder and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from environments.sandboxes.sandbox import Sandbox
from trajectories.scaffolds.observations import (
    bytes_for,
    command_details,
    command_error,
    command_observation,
    is_submission,
)
from trajectories.scaffolds.tools.tool import Arguments, ToolResult, Workspace

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

_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval)\b|(?:^|[\s;&|(){}])\.\s")
"""Commands that can change the shell's folder. Only after these is the sandbox asked where it is: asking costs as much
as a command (measured: 10 ms to 15 ms)."""

_MAY_SET = re.compile(
    r"(?:^|[\s;&|(){}])(?:\.\s|[A-Za-z_]\w*\+?=)|:="
    r"|\b(?:export|declare|typeset|unset|set|source|eval|read|mapfile|readarray|getopts|printf\s+-v)\b"
)
"""Commands that can change exported variables, which the sandbox is asked for after these."""

_OWN = "PWD|OLDPWD|SHLVL|_"
"""Variables that the shell sets by itself."""

_TELL = f"(unset {_OWN.replace('|', ' ')}; export -p) 2>/dev/null"
_FORGET = f'for name in $(compgen -e); do case $name in {_OWN}) ;; *) unset "$name";; esac; done 2>/dev/null'

_ASKING = 30.0
_LONGEST_CWD = 1024
_LONGEST_VARIABLES = 64 << 10
"""Bytes. What an agent exports beyond that is not restored where its sandbox has to be made anew."""


class BashArguments(Arguments):
    """See `Bash`."""

    command: str = Field(description="The command, as it would be typed; it may have several lines.")


class Bash:
    """Runs a command; with `session` all commands share folder and exported variables, and `submit` is another tool's.

    Without one the command that prints mini-swe-agent's word hands the work in.
    """

    name: ClassVar[str] = "bash"
    arguments: ClassVar[type[Arguments]] = BashArguments

    def __init__(self, *, session: bool) -> None:
        self._session = session

    @property
    def description(self) -> str:
        """See `trajectories.scaffolds.tools.tool.Tool.description`."""
        kept = (
            "The working folder and exported variables last from one command to the next."
            if self._session
            else "Every command has a new shell: neither the working folder nor variables last."
        )
        return f"Run a command in bash and see what it prints. {kept}"

    def run(self, arguments: BashArguments, place: Workspace) -> ToolResult:
        """See `trajectories.scaffolds.tools.tool.Tool.run`."""
        result = place.sandbox.exec(
            arguments.command,
            timeout=place.timeout,
            session=SESSION if self._session else None,
            environment=_begin(place) if self._session else {**QUIET, **place.environment},
            output_limit=bytes_for(place.most),
        )
        content, omitted = command_observation(result, most=place.most, timeout=place.timeout)
        moved = self._session and _MAY_MOVE.search(arguments.command) is not None
        told = _variables(place) if self._session and _MAY_SET.search(arguments.command) else {}
        return ToolResult(
            content,
            error=command_error(result),
            details={**command_details(result, omitted), **told},
            submits=not self._session and is_submission(result),
            worked=True,
            cwd=_folder(place.sandbox) if moved else None,
        )


def _begin(place: Workspace) -> Mapping[str, str]:
    """The variables to give the session with its next command: all with the first of an attempt, then none.

    The agent may set them otherwise in between. The sandbox may have been made anew in the middle of a stage: then the
    session's folder is entered again and its exported variables are set again; where the folder is gone, the session
    begins in the workdir.
    """
    if place.begun:
        return {}
    again = []
    if place.cwd is not None and place.cwd != place.sandbox.config.workdir:
        again.append(f"cd -- {shlex.quote(place.cwd)} 2>/dev/null")
    if place.variables is not None:
        again += [_FORGET, place.variables]
    if again:
        place.sandbox.exec("\n".join(again), timeout=_ASKING, session=SESSION)
    place.begun = True
    return {} if place.whole else {**QUIET, **place.environment}


def _variables(place: Workspace) -> Mapping[str, str]:
    """What an observation's details keep of the session's exported variables: commands that set them, where these are
    others than were told last."""
    result = place.sandbox.exec(_TELL, timeout=_ASKING, session=SESSION, output_limit=_LONGEST_VARIABLES)
    try:
        text = result.output.decode("utf-8")
    except UnicodeDecodeError:
        return {}
    if result.exit_code != 0 or result.omitted or "\0" in text or not text.startswith("declare -"):
        return {}
    if place.whole and text == place.variables:
        return {}
    place.variables, place.whole = text, True
    return {"variables": text}


def _folder(sandbox: Sandbox) -> str | None:
    """The session's folder; None where the sandbox does not tell it clearly."""
    result = sandbox.exec("pwd", timeout=_ASKING, session=SESSION, output_limit=4 * _LONGEST_CWD)
    if result.exit_code != 0 or result.omitted:
        return None
    try:
        path = result.output.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        return None
    return path if path.startswith("/") and len(path) <= _LONGEST_CWD and "\n" not in path else None
