"""The edits that make a stage's reference patch, as nodes, derived when the rig runs: no text of others is kept.

Each changed file becomes as few texts to replace as its changed lines need, a new file is created, and one that is gone
is removed. A text to replace has as many lines around the change as make it unique at its turn.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeChange, TreeStore
from trajectories.agents.tools.texts import Text
from trajectories.curation.graphs.shapes import ActionReply, NodeReply


def edits_of(trees: TreeStore, changes: Sequence[TreeChange]) -> list[NodeReply]:
    """The nodes that make these changes, in order; their names are ``edit1``, ``edit2`` and so on."""
    nodes: list[NodeReply] = []
    for change in changes:
        path = path_text(change.path)
        old, new = (None if entry is None else trees.blob(entry.blob) for entry in (change.old, change.new))
        for number, action in enumerate(_file_edits(path, old, new), 1):
            name = f"edit{len(nodes) + 1}"
            statement = f"Edit {number} of `{path}`"
            nodes.append(NodeReply(id=name, kind="code_edit", statement=statement, action=action))
    return nodes


def _file_edits(path: str, old: bytes | None, new: bytes | None) -> Iterator[ActionReply]:
    if old == new:
        return
    if old is not None and new is not None and old:
        before, after = Text.of(old), Text.of(new)
        if before is not None and after is not None and before.crlf == after.crlf:
            for part, replacement in replacements(before.text, after.text):
                yield ActionReply(tool="str_replace", path=path, old=part, new=replacement)
            return
    if old is not None:
        yield ActionReply(tool="bash", command=f"rm {shlex.quote(path)}")
    if new is not None:
        yield ActionReply(tool="create", path=path, content=new.decode("utf-8", "surrogateescape"))


def replacements(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Pairs of a text to replace and its replacement that make `new` of a text that is not empty, in order. Each stands
    exactly once in the text that those before have made."""
    before, after = _lines(old), _lines(new)
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        current = [*after[:start], *before[first:]]  # what the replacements so far have made
        top, bottom = start, start + last - first
        while not _is_unique("".join(current), "".join(current[top:bottom])):
            top, bottom = max(0, top - 1), min(len(current), bottom + 1)
        part = "".join(current[top:bottom])
        inner = [*current[top:start], *after[start:end], *current[start + last - first : bottom]]
        yield part, "".join(inner)


def _is_unique(text: str, part: str) -> bool:
    return bool(part) and len(Text(text).places(part)) == 1


def _lines(text: str) -> list[str]:
    """The lines with their ends; a last one may have none."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
