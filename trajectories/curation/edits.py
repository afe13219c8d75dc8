"""Edits as values: what an edit node's action makes of the files of a tree, and whether all of them are the reference.

An edit works on bytes, as the editor of the agents does (`trajectories.scaffolds.tools.editor`): a text that is
replaced stands in the file exactly once, byte for byte, and a new file does not exist yet (P2T, R6 and H6).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prchain.git.output import path_text
from prchain.git.trees import TreeEntry, TreeStore
from trajectories.curation.nodes import Action, ActionTool, Node
from trajectories.scaffolds.tools.texts import Text

_MOST_LISTED = 5

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
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[:1] == ["git"]:
        words = words[1:]
    program, paths = (words or [""])[0], [word for word in words[1:] if word not in {"-f", "-q", "--"}]
    if any(path.startswith("-") or any(sign in path for sign in "*?[;&|<>$`\n") for path in paths):
        program = ""
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

    def read(self, path: str) -> bytes | None:
        """The content of a file after the edits so far; None where there is none."""
        if path in self.changed:
            return self.changed[path]
        entry = self.entries.get(path.encode("utf-8", "surrogateescape"))
        return None if entry is None else self.trees.blob(entry.blob)

    def apply(self, action: Action) -> None:
        """Make an edit. Raises `EditFault`."""
        self.changed |= edited(action, self.read)

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
