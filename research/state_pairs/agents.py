"""Agents that did not do exactly what the developers did: trees between B_{t-1} and M_{t-1}, and beside them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git import Hunk, path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore

Block = tuple[list[bytes], list[bytes]]
"""The lines of a part of a file before and after the reference; equal where it changed nothing."""


def perturbed(store: TreeStore, base: str, landed: str, way: str, generator: random.Random) -> str:
    """The tree of an agent that did the work from `base` to `landed` in a `way`, one of `WAYS`."""
    if way == "nothing":
        return store.tree_of(base)
    changes: dict[bytes, TreeEntry | None] = {}
    touched = store.diff(base, landed)
    texts = [change for change in touched if change.new and change.new.mode in (FILE, EXECUTABLE)]
    source = [change for change in texts if kind_of(path_text(change.path)) is FileKind.SOURCE] or texts
    if way == "without_tests_and_docs":
        for change in touched:
            if kind_of(path_text(change.path)) is not FileKind.SOURCE:
                changes[change.path] = change.old
        changes[b"agents_own_notes.txt"] = TreeEntry(FILE, store.write_blob(b"what I did\n"))
    else:
        [patch] = store.patches([(base, landed)])
        hunks = {file.path: file.hunks for file in patch if file.status in "AM"}
        source = [change for change in source if path_text(change.path) in hunks]
        for change in source if way == "rewritten" else generator.sample(source, min(1, len(source))):
            old, new = (store.blobs([entry.blob])[0] if entry else b"" for entry in (change.old, change.new))
            if b"\0" in new:
                continue
            blocks = blocks_of(lines_of(old), lines_of(new), hunks[path_text(change.path)])
            assert change.new
            content = b"".join(_WAYS[way](blocks, generator))
            changes[change.path] = TreeEntry(change.new.mode, store.write_blob(content))
    return store.edit(landed, changes)


def lines_of(text: bytes) -> list[bytes]:
    return [line for line in re.split(rb"(?<=\n)", text) if line]


def blocks_of(old: list[bytes], new: list[bytes], hunks: tuple[Hunk, ...]) -> list[Block]:
    blocks, done = [], 0
    for hunk in hunks:
        # A count of 0 names the line before.
        start, before = (line - 1 if count else line for line, count in (hunk[2:4], hunk[0:2]))
        blocks.append((new[done:start], new[done:start]))
        done = start + hunk.new_count
        blocks.append((old[before : before + hunk.old_count], new[start:done]))
    return [*blocks, (new[done:], new[done:])]


def _dropped(blocks: list[Block], generator: random.Random) -> list[bytes]:
    """The reference without one of its hunks."""
    changed = [index for index, (before, after) in enumerate(blocks) if before != after]
    chosen = generator.choice(changed) if changed else None
    return [line for index, block in enumerate(blocks) for line in block[0 if index == chosen else 1]]


def _tweaked(blocks: list[Block], generator: random.Random) -> list[bytes]:
    """The reference with one of its lines rewritten."""
    lines = [line for _, after in blocks for line in after]
    own = [index for index, line in _numbered(blocks) if line.strip()]
    if own:
        index = generator.choice(own)
        lines[index] = _rewrite(lines[index])
    return lines


def _shifted(blocks: list[Block], generator: random.Random) -> list[bytes]:
    """The reference with one of its blocks some lines further down."""
    out: list[bytes] = []
    waiting: list[bytes] = []
    changed = [index for index, (before, after) in enumerate(blocks) if before != after and after]
    chosen = generator.choice(changed) if changed else None
    for index, (_, after) in enumerate(blocks):
        if index == chosen:
            waiting = after
        elif waiting:
            out += after[:3] + waiting + after[3:]
            waiting = []
        else:
            out += after
    return out + waiting


def _rewritten(blocks: list[Block], _: random.Random) -> list[bytes]:
    """Every line of the reference rewritten."""
    return [_rewrite(line) if before != after and line.strip() else line for before, after in blocks for line in after]


def _numbered(blocks: list[Block]) -> list[tuple[int, bytes]]:
    found, number = [], 0
    for before, after in blocks:
        for line in after:
            if before != after:
                found.append((number, line))
            number += 1
    return found


def _rewrite(line: bytes) -> bytes:
    text = line.rstrip(b"\r\n")
    return text + b"  // otherwise" + line[len(text) :]


_WAYS: dict[str, Callable[[list[Block], random.Random], list[bytes]]] = {
    "tweaked": _tweaked,
    "dropped": _dropped,
    "shifted": _shifted,
    "rewritten": _rewritten,
}
WAYS = (*_WAYS, "without_tests_and_docs", "nothing")
