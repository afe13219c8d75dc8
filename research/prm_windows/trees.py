"""Guessing which commands of a real trajectory gave the repository another tree: its file does not say.

A state that comes back is not known as the same, so no tree alternates here.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass, field

from prchain.core.llm.model import ToolCall
from trajectories.agents.guidance.effects import Change, effect_of
from trajectories.agents.shell.programs import bash_command, read_run
from trajectories.agents.steps.conversation import arguments_of
from trajectories.model import Entry

_CODE_WRITES = re.compile(
    r"\.write_(?:text|bytes)\(|\bopen\([^\n]{0,200}?,\s{0,8}(?:mode=)?['\"](?:[wax]|rb?\+)|\bwriteFileSync\("
)
"""What code holds that writes a file."""
_TOOL_WRITES = re.compile(
    r"\bgit (?:-C \S{1,200} )?"
    r"(?:am|apply|checkout|cherry-pick|clean|merge|mv|pull|rebase|reset|restore|revert|rm|stash|switch)\b"
    r"|\bpatch (?:-|<)|\bperl -\w{0,8}i|\bsed -\w{0,8}i"
)
"""Programs that change files which the command does not name."""
_WORD = re.compile(r"[^\s'\"=;&|<>()]+")
_LENGTH = 40


@dataclass(slots=True)
class TreeGuess:
    """Reads the commands of a conversation in order."""

    workdir: str
    _tree: str = ""
    _writers: set[str] = field(default_factory=set)
    """Names of scripts that the agent wrote and that write files."""

    def after(self, call: ToolCall, observation: Entry) -> str | None:
        """A name for the tree after a call; None where it stays as it was."""
        arguments = arguments_of(call)
        command = bash_command(call, arguments, observation)
        if command is None:
            return None
        effect = effect_of(call, arguments, observation, self.workdir)
        root = f"{self.workdir.rstrip('/')}/"
        inside = any(path.startswith(root) for path in effect.written)
        if not inside and not (effect.change is not Change.NONE and self._may_write(command)):
            self._remember(command, effect.written)
            return None
        self._remember(command, effect.written)
        self._tree = hashlib.sha256(f"{self._tree}\n{command}".encode("utf-8", "replace")).hexdigest()[:_LENGTH]
        return self._tree

    def _may_write(self, command: str) -> bool:
        if _TOOL_WRITES.search(command):
            return True
        names = {posixpath.basename(word) for word in _WORD.findall(command)}
        return read_run(command).executes and (bool(names & self._writers) or bool(_CODE_WRITES.search(command)))

    def _remember(self, command: str, written: tuple[str, ...]) -> None:
        if _CODE_WRITES.search(command):
            self._writers.update(map(posixpath.basename, written))
