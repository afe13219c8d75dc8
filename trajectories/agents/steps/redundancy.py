"""The views of files in a trajectory, and which of them show nothing new (P2T, section 5.3): pure, from its entries.

A view prints lines of a file: the editor's `view`, and ``cat``, ``head`` and ``sed -n`` in bash. It is covered where
earlier views of the same stage showed every line of it and the file was not changed in between. A new stage begins with
nothing seen: its tree holds upstream's work too.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.sandboxes.sandbox import WORKDIR
from trajectories.agents.shell.commands import CommandReading, ShownLines, WrittenFile, absolute, read_command
from trajectories.agents.shell.printing import END, Lines, merged
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.observations import SHOWN_LINES
from trajectories.model import Entry, EntryKind

_OUTPUT, _OUTPUT_END = "<output>\n", "</output>"
_HEAD, _HEAD_END = "<output_head>\n", "\n</output_head>"


@dataclass(frozen=True, slots=True)
class FileView:
    """Lines of a file that a step showed; `END` stands for the file's last line where its number is not known."""

    step: int
    path: str
    lines: Lines
    covered: bool


@dataclass(frozen=True, slots=True)
class Exploration:
    """How a trajectory looked at files."""

    steps: int
    """Assistant turns."""
    views: tuple[FileView, ...]

    @property
    def redundant(self) -> int:
        """How many views are covered."""
        return sum(view.covered for view in self.views)

    @property
    def redundant_share(self) -> float | None:
        """The covered share of the views; None where there are none."""
        return self.redundant / len(self.views) if self.views else None


def exploration(entries: Sequence[Entry]) -> Exploration:
    """The views in the entries of a trajectory. Never raises: what an agent wrote may be anything."""
    changed = {entry.step for entry in entries if entry.kind is EntryKind.OBSERVATION and entry.tree is not None}
    commands: dict[tuple[int, str], str] = {}
    views: list[FileView] = []
    stage = _StageFiles()
    position: int | None = None
    steps = 0
    for entry in entries:
        if entry.position != position:
            position, stage = entry.position, _StageFiles()
        match entry.kind:
            case EntryKind.QUERY:
                stage.cwd = _text(entry.details.get("workdir")) or stage.cwd
            case EntryKind.TURN:
                steps += 1
                commands |= _commands(entry)
            case EntryKind.OBSERVATION:
                command = commands.get((entry.step, entry.tool_call_id or ""))
                views += stage.observed(entry, command, entry.step in changed)
    return Exploration(steps, tuple(views))


def _commands(turn: Entry) -> Iterator[tuple[tuple[int, str], str]]:
    for call in turn.tool_calls:
        if call.name == Bash.name:
            try:
                arguments = json.loads(call.arguments)
            except (ValueError, RecursionError):
                continue
            command = _text(arguments.get("command")) if isinstance(arguments, dict) else None
            if command is not None:
                yield (turn.step, call.id), command


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class _Ranges:
    """Line numbers, as ranges in order that neither overlap nor touch."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def covers(self, first: int, last: int) -> bool:
        place = bisect_right(self._firsts, first) - 1
        return place >= 0 and last <= self._lasts[place]

    def add(self, first: int, last: int) -> None:
        low = bisect_left(self._lasts, first - 1)
        high = bisect_right(self._firsts, last + 1)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]


@dataclass(slots=True)
class _StageFiles:
    """What was seen of the files of one stage, from its first message on."""

    cwd: str = WORKDIR
    """The folder of the session."""
    _seen: dict[str, _Ranges] = field(default_factory=dict)
    _contents: dict[str, str] = field(default_factory=dict)
    """Hash of what the editor showed last of a file."""

    def observed(self, entry: Entry, command: str | None, changed: bool) -> Iterator[FileView]:
        """The views of an observation. `changed`: the step changed the tree."""
        if entry.tool_name == EDITOR:
            yield from self._edited(entry)
        elif command is not None and (entry.error is None or "exit_code" in entry.details):
            yield from self._ran(entry, read_command(command, self.cwd, entry.cwd), changed)
        self.cwd = entry.cwd or self.cwd

    def _edited(self, entry: Entry) -> Iterator[FileView]:
        details = entry.details
        path = _text(details.get("path"))
        view = details.get("view")
        if isinstance(view, Mapping):
            shown = _text(view.get("path")) or path
            first, last, count = (view.get(name) for name in ("first", "last", "lines"))
            if shown is not None and isinstance(first, int) and isinstance(last, int):
                shown = absolute(shown)
                content = _text(view.get("content"))
                if content is not None and self._contents.get(shown, content) != content:
                    self._forget(shown)
                if content is not None:
                    self._contents[shown] = content
                ends = isinstance(count, int) and last >= count
                lines = ((first, last),) if first <= last else ((END, END),)
                yield self._view(entry.step, shown, lines, ((first, END),) if ends else lines)
        elif path is not None and entry.error in {None, "file_error"} and details.get("command") != "view":
            self._forget(absolute(path))

    def _ran(self, entry: Entry, reading: CommandReading, changed: bool) -> Iterator[FileView]:
        failed = entry.error is not None or entry.details.get("exit_code", 0) != 0
        shown = sum(isinstance(act, ShownLines) for act in reading.acts)
        output = _Output.of(entry) if shown and not failed else None
        for act in reading.acts:
            if isinstance(act, WrittenFile):
                self._forget(act.path)
            elif isinstance(act, ShownLines):
                if output is not None:
                    lines, seen = output.lines_of(act, alone=reading.alone and shown == 1)
                    yield self._view(entry.step, act.path, lines, seen)
            elif changed:
                # Any program may have changed any file.
                self._seen.clear()
                self._contents.clear()

    def _view(self, step: int, path: str, lines: Lines, seen: Lines) -> FileView:
        ranges = self._seen.setdefault(path, _Ranges())
        covered = all(ranges.covers(first, last) for first, last in lines)
        for first, last in seen:
            ranges.add(first, last)
        return FileView(step, path, lines, covered)

    def _forget(self, path: str) -> None:
        self._seen.pop(path, None)
        self._contents.pop(path, None)


@dataclass(frozen=True, slots=True)
class _Output:
    """How many lines an observation shows; of one that was cut, how many of its head."""

    count: int
    cut: bool

    @classmethod
    def of(cls, entry: Entry) -> _Output:
        text, shown = entry.content, entry.details.get(SHOWN_LINES)
        if isinstance(shown, int):
            return cls(shown, cut=bool(entry.details.get("omitted")))
        if (start := text.find(_HEAD)) >= 0 and entry.details.get("omitted"):
            end = text.find(_HEAD_END, start)
            return cls(text.count("\n", start + len(_HEAD), end if end >= 0 else len(text)), cut=True)
        start, end = text.find(_OUTPUT), text.rfind(_OUTPUT_END)
        start, end = (start + len(_OUTPUT), end) if 0 <= start < end else (0, len(text))
        ends = end <= start or text[end - 1] == "\n"
        return cls(text.count("\n", start, end) + (not ends), cut=bool(entry.details.get("omitted")))

    def lines_of(self, act: ShownLines, *, alone: bool) -> tuple[Lines, Lines]:
        """The lines that a view shows, and those that count as seen after it.

        `alone`: nothing else printed. Then the number of lines printed says where the file ends; of an output that was
        cut, the head and the last line were seen. Without that a view shows what it asks for.
        """
        wanted = merged(act.lines)
        if not alone:
            return (wanted, ()) if self.cut else (wanted, wanted)
        shown = _first_lines(wanted, self.count)
        if self.cut:
            shown = merged([*shown, (wanted[-1][1], wanted[-1][1])])
            return shown, shown
        if shown == wanted:
            return wanted, wanted
        # The file ends where the lines end: a later view of all of it shows no more than this.
        ends = shown[-1] if shown else (wanted[0][0], wanted[0][0] - 1)
        return shown or ((END, END),), (*shown[:-1], (ends[0], END))


def _first_lines(lines: Lines, count: int) -> Lines:
    out: list[tuple[int, int]] = []
    for first, last in lines:
        if count <= 0:
            break
        out.append((first, min(last, first + count - 1)))
        count -= last - first + 1
    return tuple(out)
