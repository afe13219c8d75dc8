"""Running the actions of nodes again, on the tree that the stage starts on, and comparing what they print.

A node's observation counts only where its action gives it again (P2T, appendix D: R4, R5, H3). Each action runs in a
shell of its own in the repository's root, on the files that the nodes before it have made: `Replayer.observe` says
which. What a command did is undone before the next.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import SandboxFileError
from prchain.core.storable import clean_text
from trajectories.agents.tools.bash import Bash, BashArguments
from trajectories.agents.tools.editor import Editor, EditorArguments
from trajectories.agents.tools.observations import ADVICE
from trajectories.agents.tools.tool import ToolResult, Workspace
from trajectories.curation.graphs.edits import FileContents
from trajectories.curation.graphs.gates import NodeFault
from trajectories.curation.graphs.masking import LEFT_OUT, absent_line, shows
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind

_FILES_TIMEOUT = 60.0
_TOLD_CHARACTERS = 160
_SHORTEST_PASSAGE = 12
"""Characters of a passage of the problem statement that says something."""
_TOLD_LINES = 12
"""Lines of a real output that a fault quotes."""

_END = "</output>"
"""What stands behind the output of a command, on the same line where the output does not end it
(`trajectories.agents.tools.observations`)."""

_DONE = re.compile(r"<returncode>0</returncode>$", re.MULTILINE)

_FRAME = re.compile(
    rf"</?(?:output|output_head|output_tail|elided_chars|warning)>|\d+ characters elided|{re.escape(ADVICE)}"
    rf"|\[\.\.\. \d+ characters left out \.\.\.\]|Lines \d+ to \d+ of .+, which has \d+:|{re.escape(LEFT_OUT)}|"
)
"""Lines that stand around any output, or in place of what is left out: by themselves they show nothing. A return code
does, of a command that prints nothing."""

NO_FILES: FileContents = {}


@dataclass(frozen=True, slots=True)
class Replay:
    """What an action gave. `fault` says why it gave nothing: its file is not there, or its command took too long."""

    text: str
    fault: str | None = None


@dataclass(slots=True)
class Replayer:
    """Runs actions in a sandbox that holds S_t; `snapshot` is of that state.

    `timeout` is in seconds, for one command; `most` are the characters of an observation.
    """

    sandbox: Sandbox
    snapshot: str
    query: str
    timeout: float = 120.0
    most: int = 10_000
    _untouched: bool = field(default=False)
    """Whether the sandbox is as in the snapshot."""

    def reset(self) -> None:
        """Bring the sandbox back to S_t. Raises `SandboxError`."""
        if not self._untouched:
            self.sandbox.restore(self.snapshot)
        self._untouched = True

    def used(self) -> None:
        """Say that something else has worked in the sandbox."""
        self._untouched = False

    def observe(self, action: Action, files: FileContents = NO_FILES) -> Replay:
        """Take an action on S_t with these files over it (None: taken away). Raises `SandboxError`."""
        match action.tool:
            case ActionTool.THINK:
                return Replay("")
            case ActionTool.VIEW_PROBLEM:
                return Replay(self.query)
        self.reset()
        if files or action.tool is not ActionTool.VIEW:
            self._untouched = False
        workspace = Workspace(self.sandbox, timeout=self.timeout, most=self.most)
        try:
            self._lay(files)
        except SandboxFileError as error:  # a file where another node has a folder
            return Replay("", f"the files of other nodes cannot be laid beside it: {error}")
        result = self._take(action, workspace)
        text = clean_text(result.content)  # no database but SQLite takes a NUL
        return Replay(text, None if result.error is None else f"{result.error}: {' '.join(text.split())[:300]}")

    def _take(self, action: Action, workspace: Workspace) -> ToolResult:
        match action.tool:
            case ActionTool.VIEW:
                return Editor().run(self._arguments(action, "view", view_range=[action.first, action.last]), workspace)
            case ActionTool.STR_REPLACE:
                texts = {"old_str": action.old, "new_str": action.new}
                return Editor().run(self._arguments(action, "str_replace", **texts), workspace)
            case ActionTool.CREATE:
                result = Editor().run(self._arguments(action, "create", file_text=action.content), workspace)
                if result.error is not None or action.command is None:
                    return result
        return Bash(session=False).run(BashArguments(command=str(action.command)), workspace)

    def _arguments(self, action: Action, command: str, **values: object) -> EditorArguments:
        path = posixpath.join(self.sandbox.config.workdir, str(action.path))
        return EditorArguments.model_validate({"command": command, "path": path, **values})

    def _lay(self, files: FileContents) -> None:
        places = {posixpath.join(self.sandbox.config.workdir, path): content for path, content in files.items()}
        # First, since a folder may take the place of a file.
        if removed := sorted(place for place, content in places.items() if content is None):
            self.sandbox.exec(f"rm -f -- {shlex.join(removed)}", timeout=_FILES_TIMEOUT)
        for place, content in sorted(places.items()):
            if content is not None:
                self.sandbox.write(place, content)


def is_frame(text: str) -> bool:
    """Whether a text has nothing but lines that stand around any output."""
    return all(_FRAME.fullmatch(line.strip()) for line in text.split("\n"))


def observation_fault(node: Node, replay: Replay, claimed: str) -> NodeFault | None:
    """What is wrong with the evidence that a node claims, beside what its action gave; None where it stands there.

    Thoughts and edits need no evidence: the thought and the bytes are it.
    """
    rule = "R5" if node.kind in {NodeKind.REPRODUCE_SCRIPT, NodeKind.VALIDATION} else "R4"
    if replay.fault is not None:
        return NodeFault(rule, f"the action does not work on this tree: {replay.fault}")
    if node.kind is NodeKind.CODE_EDIT and node.action.tool is ActionTool.BASH and not _DONE.match(replay.text):
        return NodeFault("R6", f"the command does not work on this tree: {' '.join(replay.text.split())[:300]}")
    if node.kind in {NodeKind.ISSUE_ANALYSIS, NodeKind.FIX_PLAN, NodeKind.CODE_EDIT}:
        return None
    if is_frame(claimed):
        return NodeFault(rule, "no observation is recorded; quote the lines of the output that show the statement")
    if node.action.tool is ActionTool.VIEW_PROBLEM:  # its paragraphs are lines of their own
        shown = _folded(claimed) in _folded(replay.text) and len(_folded(claimed)) >= _SHORTEST_PASSAGE
    else:
        numbered = node.action.tool is ActionTool.VIEW
        shown = any(shows(text, claimed, numbered=numbered) for text in _quotable(replay.text))
    if shown:
        return None
    absent = absent_line(replay.text, claimed)
    which = "in this order" if absent is None else f"where this line is not printed: {absent[:_TOLD_CHARACTERS]!r}"
    lines = replay.text.splitlines()
    told = "\n".join(
        lines[:_TOLD_LINES] + ([f"[{len(lines) - _TOLD_LINES} more lines]"] if len(lines) > _TOLD_LINES else [])
    )
    return NodeFault(
        rule, f"the action, run again, does not print the observation that is recorded, {which}; it prints:\n{told}"
    )


def _quotable(text: str) -> tuple[str, ...]:
    """The text as it is; and, where an output does not end its last line, that line without the mark behind it: who
    quotes the line leaves the mark out."""
    return (text,) if not text.endswith(_END) else (text, f"{text.removesuffix(_END)}\n{_END}")


def _folded(text: str) -> str:
    return " ".join(text.split())


def files_for(node: Node, made: Mapping[str, Node], edits: FileContents) -> FileContents:
    """The files that lie over S_t when a node's action is run again.

    `made` maps the path of each script that earlier reproductions created to its node; a script counts where the
    action names it. `edits` are the files after all edits: they count for validations alone.
    """
    text = node.action.text
    scripts = {
        path: str(other.action.content).encode("utf-8", "surrogateescape")
        for path, other in made.items()
        if other.name != node.name and (path in text or posixpath.basename(path) in text)
    }
    return {**scripts, **edits} if node.kind is NodeKind.VALIDATION else scripts
