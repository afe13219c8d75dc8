"""What a call may have changed, by its text and its observation."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.llm.model import ToolCall
from trajectories.agents.scaffolds.turns import NOT_RUN
from trajectories.agents.shell.commands import UnclearProgram, WrittenFile, absolute, read_command
from trajectories.agents.shell.programs import bash_command
from trajectories.agents.tools.edits import EDITOR
from trajectories.model import Entry

_CODE = frozenset({FileKind.SOURCE, FileKind.TEST})


class Change(Enum):
    """Whether a call changed anything, the tree or not."""

    NONE = "none"
    """It only looked."""
    MAYBE = "maybe"
    """It ran something."""
    SURE = "sure"
    """It wrote a file."""


class Effect(NamedTuple):
    """What a call did to files."""

    change: Change
    written: tuple[str, ...] = ()
    """Absolute paths of files that were written for sure."""

    def code(self, workdir: str) -> str | None:
        """The first written file of the repository that is code; None where there is none."""
        root = f"{workdir.rstrip('/')}/"
        for path in self.written:
            within = path.removeprefix(root)
            # Of what is copied nobody knows whether it goes into a folder; then both paths are among the written ones.
            doubtful = posixpath.dirname(path) in self.written
            if path.startswith(root) and not doubtful and language_of(within) and kind_of(within) in _CODE:
                return path
        return None


NO_EFFECT = Effect(Change.NONE)


def was_run(observation: Entry | None) -> bool:
    """Whether there is an answer to a call, and not only that its turn had ended before."""
    return observation is not None and observation.error != NOT_RUN


def effect_of(call: ToolCall, arguments: Mapping[str, Any], observation: Entry | None, cwd: str) -> Effect:
    """What a call did. `cwd` is the folder of the session before it."""
    if observation is None:
        return NO_EFFECT
    if call.name == EDITOR:
        path = arguments.get("path")
        if observation.error == "file_error":
            return Effect(Change.MAYBE)
        if observation.error is not None or arguments.get("command") == "view" or not isinstance(path, str):
            return NO_EFFECT
        return Effect(Change.SURE, (absolute(path),))
    command = bash_command(call, arguments, observation)
    if command is None:
        return NO_EFFECT
    acts = read_command(command, cwd, observation.cwd).acts
    if written := tuple(act.path for act in acts if isinstance(act, WrittenFile)):
        return Effect(Change.SURE, written)
    moved = observation.cwd is not None and observation.cwd != cwd
    unclear = moved or "variables" in observation.details or any(isinstance(act, UnclearProgram) for act in acts)
    return Effect(Change.MAYBE) if unclear else NO_EFFECT
