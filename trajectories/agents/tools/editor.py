"""The editor: shows files with line numbers and changes them by exact text.

Commands and arguments are those of the str_replace_editor that SWE-agent, OpenHands and Anthropic's models know, so
that a model trained elsewhere finds its way. It reads and writes through the sandbox, as the sandbox's user.
"""

from __future__ import annotations

import hashlib
import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

from pydantic import Field

from prchain.core.errors import SandboxFileError
from prchain.core.storable import clean_text
from trajectories.agents.tools.edits import EDITOR, UNDO
from trajectories.agents.tools.observations import cut
from trajectories.agents.tools.texts import Text, numbered
from trajectories.agents.tools.tool import Arguments, ToolResult, Workspace

_LARGEST = 4 << 20
"""Bytes of a file that is shown or edited."""

_AROUND = 4
"""Lines shown before and after an edit."""

_TIMEOUT = 60.0
_LONGEST_LIST = 1 << 20
_REGULAR = ("regular file", "regular empty file")


class EditorArguments(Arguments):
    """See `Editor`."""

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"] = Field(description="What to do.")
    path: str = Field(description="Absolute path of the file, or, for `view`, of a folder.")
    file_text: str | None = Field(default=None, description="For `create`: what the new file holds.")
    old_str: str | None = Field(
        default=None, description="For `str_replace`: the text to replace. It must stand in the file exactly once."
    )
    new_str: str | None = Field(
        default=None,
        description="For `str_replace`: what takes its place; none deletes the text. For `insert`: the new lines.",
    )
    insert_line: int | None = Field(
        default=None, description="For `insert`: the line after which the text goes in; 0 is the file's beginning."
    )
    view_range: list[int] | None = Field(
        default=None,
        description="For `view` of a file: first and last line, counted from 1; [20, -1] is from 20 to the end.",
        min_length=2,
        max_length=2,
    )


@dataclass(frozen=True, slots=True)
class _Stat:
    kind: str
    size: int
    mode: int


class _EditRefused(Exception):
    """The request cannot be done; `name` and `words` go to the model."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(words)
        self.name = name
        self.words = words


class Editor:
    """Shows and changes files."""

    name: ClassVar[str] = EDITOR
    arguments: ClassVar[type[Arguments]] = EditorArguments
    description = (
        "Look at files and folders, and create and edit text files. `view` shows a file with line numbers, or what "
        "lies in a folder, two levels deep. `create` makes a file that does not exist yet. `str_replace` replaces a "
        "text that stands exactly once in the file: give it with its indentation, and with enough lines around it to "
        "be the only one. `insert` puts lines after a line. `undo_edit` takes back the last edit that this tool made "
        "in the file."
    )

    def run(self, arguments: EditorArguments, workspace: Workspace) -> ToolResult:
        """See `trajectories.agents.tools.tool.Tool.run`."""
        commands: Mapping[str, Callable[[EditorArguments, Workspace], ToolResult]] = {
            "view": _view,
            "create": _create,
            "str_replace": _str_replace,
            "insert": _insert,
            UNDO: _undo_edit,
        }
        details: dict[str, Any] = {"command": arguments.command, "path": arguments.path}
        try:
            if not posixpath.isabs(arguments.path):
                full = posixpath.normpath(posixpath.join(workspace.sandbox.config.workdir, arguments.path))
                raise _EditRefused("relative_path", f"The path has to be absolute. Do you mean {full}?")
            result = commands[arguments.command](arguments, workspace)
        except _EditRefused as declined:
            return ToolResult(cut(f"ERROR: {declined.words}", workspace.most), declined.name, details)
        except SandboxFileError as error:
            # A write may have come half way.
            worked = arguments.command != "view"
            return ToolResult(cut(f"ERROR: {error}", workspace.most), "file_error", details, worked=worked)
        return ToolResult(result.content, details={**details, **result.details}, worked=result.worked)


def _view(arguments: EditorArguments, workspace: Workspace) -> ToolResult:
    path = arguments.path
    stat = _stat(workspace, path)
    if stat is None:
        _missing(path)
    if stat.kind == "directory":
        if arguments.view_range is not None:
            raise _EditRefused("is_directory", f"{path} is a folder; view_range is for files.")
        return ToolResult(
            _listing(workspace, path), details={"view": {"path": posixpath.normpath(path), "folder": True}}
        )
    content, text = _read(workspace, path, stat)
    lines = text.lines()
    first, last = _range(arguments.view_range, len(lines), path)
    numbered_lines, count = numbered(lines[first - 1 : last], first, workspace.most)
    end = first + count - 1
    view = {"path": posixpath.normpath(path), "first": first, "last": end, "lines": len(lines)}
    view["content"] = hashlib.sha256(content).hexdigest()[:12]
    if not lines:
        return ToolResult(f"{path} is empty.", details={"view": view})
    where = f"Lines {first} to {end} of {path}, which has {len(lines)}:"
    note = f"\n[Lines {end + 1} to {last} did not fit; view them with view_range.]" if end < last else ""
    return ToolResult(f"{where}\n{numbered_lines}{note}", details={"view": view})


def _create(arguments: EditorArguments, workspace: Workspace) -> ToolResult:
    path = arguments.path
    if arguments.file_text is None:
        raise _EditRefused("missing_argument", "`create` needs file_text.")
    if _stat(workspace, path) is not None:
        raise _EditRefused(
            "exists", f"{path} exists already. `create` makes new files alone; edit it with `str_replace`."
        )
    details = _write(workspace, path, None, arguments.file_text.encode(), 0o644)
    return ToolResult(f"{path} was created.", details=details, worked=True)


def _str_replace(arguments: EditorArguments, workspace: Workspace) -> ToolResult:
    path, old = arguments.path, arguments.old_str
    if not old:
        raise _EditRefused("missing_argument", "`str_replace` needs old_str, which cannot be empty.")
    stat, content, text = _open(workspace, path)
    old, new = text.with_text(old).text, text.with_text(arguments.new_str or "").text
    if old == new:
        raise _EditRefused("no_change", "old_str and new_str are the same; nothing was changed.")
    offsets = text.places(old)
    if not offsets:
        similar = text.similar(old)
        hint = f" Line {similar[0]} begins a text that differs in white space alone." if similar else ""
        raise _EditRefused("no_match", f"old_str does not stand in {path} as it is given; nothing was changed.{hint}")
    if len(offsets) > 1:
        at = ", ".join(str(text.line_at(offset)) for offset in offsets[:20])
        raise _EditRefused(
            "several_matches",
            f"old_str stands {len(offsets)} times in {path}, in the lines {at}; nothing was changed. Give more of the "
            "lines around the one that you mean.",
        )
    after = text.with_text(text.text[: offsets[0]] + new + text.text[offsets[0] + len(old) :])
    details = _write(workspace, path, content, after.content(), stat.mode)
    return _edited(workspace, path, details, after, text.line_at(offsets[0]), new.count("\n") + 1)


def _insert(arguments: EditorArguments, workspace: Workspace) -> ToolResult:
    path, at = arguments.path, arguments.insert_line
    if at is None or arguments.new_str is None:
        raise _EditRefused("missing_argument", "`insert` needs insert_line and new_str.")
    stat, content, text = _open(workspace, path)
    lines = text.lines()
    if not 0 <= at <= len(lines):
        raise _EditRefused(
            "bad_range", f"insert_line has to be between 0 and {len(lines)}, the number of lines of {path}."
        )
    new = text.with_text(arguments.new_str).text.removesuffix("\n")
    ends = text.text.endswith("\n") or not lines
    whole = "\n".join([*lines[:at], new, *lines[at:]])
    after = text.with_text(f"{whole}\n" if ends or at == len(lines) else whole)
    details = _write(workspace, path, content, after.content(), stat.mode)
    return _edited(workspace, path, details, after, at + 1, new.count("\n") + 1)


def _undo_edit(arguments: EditorArguments, workspace: Workspace) -> ToolResult:
    path = arguments.path
    last = workspace.edits.last(path)
    if last is None:
        raise _EditRefused("nothing_to_undo", f"No edit of {path} is remembered that could be taken back.")
    stat = _stat(workspace, path)
    (before,) = last
    if before is None:
        result = workspace.sandbox.exec(f"rm -f -- {shlex.quote(path)}", timeout=_TIMEOUT)
        if result.exit_code != 0:
            raise _EditRefused("file_error", f"{path} cannot be removed: {' '.join(result.text.split())[-200:]}")
    else:
        workspace.sandbox.write(path, before, mode=stat.mode if stat else 0o644)
    workspace.edits.take_back(path)
    if before is None:
        return ToolResult(f"{path} was removed again: this tool had created it.", worked=True)
    return ToolResult(f"The last edit of {path} was taken back.", worked=True)


def _edited(
    workspace: Workspace, path: str, details: Mapping[str, Any], text: Text, line: int, count: int
) -> ToolResult:
    """The result of an edit: the changed lines, and some around them. `details` is stored."""
    lines = text.lines()
    first = max(line - _AROUND, 1)
    numbered_lines, _ = numbered(lines[first - 1 : line + count - 1 + _AROUND], first, workspace.most)
    words = f"{path} was changed. It now reads, from line {first} on:\n{numbered_lines}"
    return ToolResult(words, details=details, worked=True)


def _open(workspace: Workspace, path: str) -> tuple[_Stat, bytes, Text]:
    stat = _stat(workspace, path)
    if stat is None:
        _missing(path)
    content, text = _read(workspace, path, stat)
    return stat, content, text


def _missing(path: str) -> NoReturn:
    raise _EditRefused("missing", f"There is no {path}.")


def _stat(workspace: Workspace, path: str) -> _Stat | None:
    """Kind, size and mode of a path, links followed; None where nothing is there. Reading a FIFO would hang."""
    command = f"LC_ALL=C stat -L -c '%F:%s:%a' -- {shlex.quote(path)}"
    result = workspace.sandbox.exec(command, timeout=_TIMEOUT, output_limit=4096)
    kind, _, rest = result.output.decode("utf-8", "replace").strip().partition(":")
    size, _, mode = rest.partition(":")
    if result.exit_code != 0 or not size.isdecimal() or not mode.isdecimal():
        if b"Permission denied" in result.output:
            raise _EditRefused("no_permission", f"You may not look at {path}.")
        return None
    return _Stat(kind, int(size), int(mode, 8) & 0o7777)


def _read(workspace: Workspace, path: str, stat: _Stat) -> tuple[bytes, Text]:
    if stat.kind == "directory":
        raise _EditRefused("is_directory", f"{path} is a folder.")
    if stat.kind not in _REGULAR:
        raise _EditRefused("no_file", f"{path} is no regular file but a {stat.kind}.")
    if stat.size > _LARGEST:
        raise _EditRefused("too_large", f"{path} has {stat.size:,} bytes, which is too large for this tool; use bash.")
    content = workspace.sandbox.read(path)
    text = Text.of(content)
    if text is None:
        raise _EditRefused("binary", f"{path} is a binary file of {len(content):,} bytes.")
    return content, text


def _write(workspace: Workspace, path: str, before: bytes | None, content: bytes, mode: int) -> Mapping[str, Any]:
    """Write a file. Returns details for the observation, with the content before."""
    if len(content) > _LARGEST:
        raise _EditRefused("too_large", f"{path} would have {len(content):,} bytes, too many for this tool; use bash.")
    workspace.sandbox.write(path, content, mode=mode)
    return workspace.edits.remember(path, before)


def _range(view_range: list[int] | None, count: int, path: str) -> tuple[int, int]:
    """The first and the last line to show; of an empty file 1 and 0."""
    if view_range is None:
        return 1, count
    first, last = view_range
    if last == -1:
        last = count
    if not 1 <= first <= max(count, 1) or last < first - (count == 0):
        raise _EditRefused("bad_range", f"view_range {view_range} fits no lines of {path}, which has {count}.")
    return first, min(last, count)


def _listing(workspace: Workspace, path: str) -> str:
    """What lies in a folder, two levels deep, hidden names left out."""
    command = f"find {shlex.quote(posixpath.join(path, '.'))} -mindepth 1 -maxdepth 2 -name '.*' -prune -o -mindepth 1 "
    command += "-maxdepth 2 -printf '%y %P\\0'"
    result = workspace.sandbox.exec(f"{command} 2>/dev/null", timeout=_TIMEOUT, output_limit=_LONGEST_LIST)
    whole = result.output[: result.head] if result.omitted else result.output
    names = []
    for row in whole.split(b"\0")[:-1]:
        kind, _, name = row.decode("utf-8", "replace").partition(" ")
        names.append(f"{name}/" if kind == "d" else name)
    printable = [clean_text(name if name.isprintable() else repr(name)) for name in sorted(names)]
    note = "\nThere is more, which did not fit." if result.omitted else ""
    return (
        f"{path} holds, two levels deep and without hidden names:\n" + cut("\n".join(printable), workspace.most) + note
    )
