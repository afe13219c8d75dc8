"""The conversation of a stage: its observations are computed from the base commit when the rig runs.

The tree is written into a folder of its own, regular files alone, and the looks of the conversation are run there. They
only read: the editor's `view`, and a few programs of the shell.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from environments.sandboxes.sandbox import ExecResult, SandboxConfig
from prchain.core.git.trees import EXECUTABLE, FILE, TreeStore
from prchain.core.llm.model import ToolCall
from research.rewrites.cases import HandCall, RewriteStage
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.observations import command_observation
from trajectories.agents.tools.texts import Text, numbered
from trajectories.model import Entry, EntryKind

WORKDIR = SandboxConfig(image="").workdir
_MOST = 10_000
"""Characters of an observation, as in a rollout."""
_TIMEOUT = 30.0
_READERS = frozenset({"cat", "find", "grep", "head", "ls", "sed", "tail", "wc"})
"""What a look may run: a tree of others lies there, and nothing of it is to be run."""


class LookRefused(Exception):
    """A look that the rig does not take."""


def write_tree(store: TreeStore, tree: str, folder: Path) -> None:
    """Write the regular files of a tree below a folder. Raises `GitError`."""
    entries = {path: entry for path, entry in store.entries(tree).items() if entry.mode in {FILE, EXECUTABLE}}
    bodies = store.blobs([entry.blob for entry in entries.values()])
    for path, body in zip(entries, bodies, strict=True):
        place = folder / path.decode("utf-8", "surrogateescape")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)


def conversation(stage: RewriteStage, folder: Path) -> list[Entry]:
    """The entries of a stage's conversation; `folder` holds the base. Raises `LookRefused`."""
    entries = [Entry(0, 1, 1, 0, EntryKind.QUERY, "user", stage.query)]
    for step, look in enumerate(stage.looks, 1):
        entries += turn(look, step)
        shown = observation(look, folder)
        entries.append(
            Entry(0, 1, 1, step, EntryKind.OBSERVATION, "tool", shown, tool_call_id=f"call_{step}", tool_name=look.tool)
        )
    return entries


def turn(call: HandCall, step: int) -> Iterator[Entry]:
    """The assistant's turn of a call."""
    calls = (ToolCall(f"call_{step}", call.tool, json.dumps(call.arguments)),)
    yield Entry(0, 1, 1, step, EntryKind.TURN, "assistant", call.words, tool_calls=calls)


def observation(look: HandCall, folder: Path) -> str:
    """What a look shows. Raises `LookRefused`."""
    if look.tool == EDITOR:
        return _view(look, folder)
    command = look.arguments.get("command")
    if look.tool != "bash" or not isinstance(command, str):
        raise LookRefused(f"a look is a view or a command of bash, not {look.tool}")
    done = _run(command, folder)
    return command_observation(done, most=_MOST, timeout=_TIMEOUT)[0]


def _run(command: str, folder: Path) -> ExecResult:
    """Run a pipe of reading programs, without a shell."""
    shown, code = b"", 0
    for arguments in _pipe(command):
        if not arguments or arguments[0] not in _READERS or any(it.startswith(("-exec", "-i")) for it in arguments):
            raise LookRefused(f"a look only reads: {command}")
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        done = subprocess.run(
            arguments, cwd=folder, input=shown, capture_output=True, timeout=_TIMEOUT, check=False, env=environment
        )
        shown, code = done.stdout + done.stderr, done.returncode
    return ExecResult(code, shown)


def _pipe(command: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in shlex.split(command):
        if word == "|":
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _view(look: HandCall, folder: Path) -> str:
    """What the editor shows of a file (`trajectories.agents.tools.editor`)."""
    path = str(look.arguments.get("path"))
    place = folder / path.removeprefix(f"{WORKDIR}/")
    text = Text.of(place.read_bytes()) if place.is_file() else None
    if look.arguments.get("command") != "view" or text is None:
        raise LookRefused(f"a look of the editor is a view of a file: {path}")
    lines = text.lines()
    given = look.arguments.get("view_range")
    first, last = (int(str(it)) for it in given) if isinstance(given, Sequence) else (1, -1)
    last = len(lines) if last == -1 else min(last, len(lines))
    rows, count = numbered(lines[first - 1 : last], first, _MOST)
    end = first + count - 1
    note = f"\n[Lines {end + 1} to {last} did not fit; view them with view_range.]" if end < last else ""
    return f"Lines {first} to {end} of {path}, which has {len(lines)}:\n{rows}{note}"
