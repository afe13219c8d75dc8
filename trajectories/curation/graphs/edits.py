"""Edits as values: what an edit node's action makes of the files of a tree, and whether all of them are the reference.

An edit works on bytes, as the editor of the agents does (`trajectories.agents.tools.editor`): a text that is
replaced stands in the file exactly once, byte for byte, and a new file does not exist yet (P2T, R6 and H6).
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prchain.core.git.output import path_text
from prchain.core.git.trees import LINK, SUBMODULE, TreeEntry, TreeStore
from trajectories.agents.tools.texts import Text
from trajectories.curation.graphs.nodes import Action, ActionTool, Node

_MOST_LISTED = 5

_PLAIN_COMMAND = re.compile(r"(?:[ \t]++|[^\s'\"\\*?\[\]{}();&|<>$`~#!]++|\\[ -~]|'[^'\r\n]*+'|\"[^\"$`\\!\r\n]*+\")*+")
"""Words that bash splits and reads as `shlex` does: nothing that it expands outside of quotes."""

FileContents = Mapping[str, bytes | None]
"""Path in the repository to content; None for a file that is not there."""


class EditFault(Exception):
    """An edit that cannot be made; its text says why."""


def edited(action: Action, read: Callable[[str], bytes | None]) -> dict[str, bytes | None]:
    """The files that an edit changes, with their contents after it; `read` gives those before.

    Besides the two actions that write, a command may take files away or move them, as no other action can:
    ``rm PATH...`` and ``mv OLD NEW``, with or without ``git``. Raises `EditFault`.
    """
    match action.tool:
        case ActionTool.CREATE:
            return _created(action, read)
        case ActionTool.STR_REPLACE:
            return _replaced(action, read)
        case ActionTool.BASH:
            return _moved(str(action.command), read)
        case _:
            raise EditFault("an edit creates a file, replaces a text, or moves or removes files by `rm` or `mv`")


def _created(action: Action, read: Callable[[str], bytes | None]) -> dict[str, bytes | None]:
    path = str(action.path)
    if read(path) is not None:
        raise EditFault(f"{path} exists already; replace texts in it instead")
    return {path: str(action.content).encode("utf-8", "surrogateescape")}


def _replaced(action: Action, read: Callable[[str], bytes | None]) -> dict[str, bytes | None]:
    path, old, new = str(action.path), str(action.old), str(action.new)
    content = read(path)
    if content is None:
        raise EditFault(f"there is no file {path} at this point")
    text = Text.of(content)
    if text is None:
        raise EditFault(f"{path} is a binary file")
    if not old:
        raise EditFault("the text to replace is empty")
    if old == new:
        raise EditFault("it changes nothing")
    old = text.with_text(old).text
    places = text.places(old)
    if not places:
        near = text.similar(old)
        hint = f"; line {near[0]} begins a text that differs in white space alone" if near else ""
        raise EditFault(f"the text to replace does not stand in {path} byte for byte{hint}")
    if len(places) > 1:
        lines = ", ".join(str(text.line_at(place)) for place in places[:_MOST_LISTED])
        raise EditFault(f"the text to replace stands {len(places)} times in {path} (lines {lines}); give more of it")
    after = text.text[: places[0]] + text.with_text(new).text + text.text[places[0] + len(old) :]
    return {path: text.with_text(after).content()}


def _moved(command: str, read: Callable[[str], bytes | None]) -> dict[str, bytes | None]:
    words = shlex.split(command) if _PLAIN_COMMAND.fullmatch(command.strip()) else []
    if words[:1] == ["git"]:
        words = words[1:]
    program, paths = (words or [""])[0], [word for word in words[1:] if word not in {"-f", "-q", "--"}]
    if any(path.startswith("-") for path in paths):
        program = ""
    paths = list(map(posixpath.normpath, paths))
    match program, paths:
        case "rm", [_, *_]:
            _there(paths, read)
            return dict.fromkeys(paths)
        case "mv", [old, new]:
            _there([old], read)
            if read(new) is not None:
                raise EditFault(f"{new} exists already")
            return {old: None, new: read(old)}
    raise EditFault("as an edit, a command is `rm PATH...` or `mv OLD NEW` alone, and names files")


def _there(paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
    for path in paths:
        if read(path) is None:
            raise EditFault(f"there is no file {path} at this point")


@dataclass(slots=True)
class EditedTree:
    """The files of a tree as a series of edits leaves them."""

    trees: TreeStore
    entries: Mapping[bytes, TreeEntry]
    """Of the tree that the edits begin on."""
    changed: dict[str, bytes | None] = field(default_factory=dict)
    """Path to content after the edits so far; only paths that an edit has touched."""
    made: frozenset[str] = frozenset()
    """Paths of files that an edit has made where there was none: they have no mode of before."""

    def read(self, path: str) -> bytes | None:
        """The content of a file after the edits so far; None where there is none. A submodule raises `EditFault`."""
        if path in self.changed:
            return self.changed[path]
        entry = self.entries.get(path.encode("utf-8", "surrogateescape"))
        if entry is not None and entry.mode == SUBMODULE:
            raise EditFault(f"{path} is a submodule")
        return None if entry is None else self.trees.blob(entry.blob)

    def apply(self, action: Action) -> None:
        """Make an edit. Raises `EditFault`."""
        after = edited(action, self.read)
        writes = any(content is not None for content in after.values())
        for path, content in after.items():
            self._require_place(path, writes=content is not None)
            if writes and self._is_link(path):
                raise EditFault(f"{path} is a link, and no text")
            if content is not None and action.tool is ActionTool.BASH and self._is_folder(path):
                raise EditFault(f"{path} is a folder")
        self.made |= {path for path, content in after.items() if content is not None and not self._is_there(path)}
        self.changed |= after

    def _require_place(self, path: str, *, writes: bool) -> None:
        """Check that a path is of the repository, and not below a file or a link."""
        parts = path.split("/")
        if path.startswith("/") or parts[0] in {"", ".", ".."} or any(part.lower() == ".git" for part in parts):
            raise EditFault(f"{path} is no file of the repository")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        if writes and (place := next(filter(self._is_there, above), None)) is not None:
            raise EditFault(f"{place} is no folder")

    def _is_there(self, path: str) -> bool:
        if path in self.changed:
            return self.changed[path] is not None
        return path.encode("utf-8", "surrogateescape") in self.entries

    def _is_link(self, path: str) -> bool:
        entry = self.entries.get(path.encode("utf-8", "surrogateescape"))
        return path not in self.changed and entry is not None and entry.mode == LINK

    def _is_folder(self, path: str) -> bool:
        """Whether the tree has files below a path: the folder stays where edits take them all away."""
        below = path.encode("utf-8", "surrogateescape") + b"/"
        return any(name.startswith(f"{path}/") for name in self.changed) or any(
            name.startswith(below) for name in self.entries
        )

    def apply_all(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Make the edits of these nodes in order; name of each one that could not be made, and why."""
        faults = {}
        for node in nodes:
            try:
                self.apply(node.action)
            except EditFault as fault:
                faults[node.name] = str(fault)
        return faults

    def blob(self, path: bytes) -> str | None:
        """The id of a file's content after the edits; None where there is no file."""
        name = path_text(path)
        if name not in self.changed:
            entry = self.entries.get(path)
            return None if entry is None else entry.blob
        content = self.changed[name]
        return None if content is None else self.trees.name_of("blob", content)
