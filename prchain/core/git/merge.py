"""Three-way merges of trees, without a work tree, in which our side wins every conflict.

The merge is git's own: `git merge-tree --write-tree` on commits made for it, and `git merge-file --ours` for texts in
conflict. Renames of files are followed: where upstream moves a file that the agent changed, the change goes with it;
otherwise the moved file would bring the reference's lines back. Renames of folders are not guessed.
"""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from prchain.core.errors import MergeUnsupported
from prchain.core.git.output import path_text
from prchain.core.git.trees import LINK, SUBMODULE, TreeEntry, TreeStore, commit_body

_SNIFFED = 8000
"""Bytes in which a NUL makes a file binary, as for git."""


class ConflictKind(StrEnum):
    """What the two sides did to a path. The merge always holds our side."""

    CONTENT = "content"
    BINARY = "binary"
    DELETE_MODIFY = "delete_modify"
    MODE = "mode"
    SYMLINK = "symlink"
    TYPE = "type"
    """A file here, a symbolic link there."""
    RENAME = "rename"
    """Renamed to two names, renamed here and deleted there, or renamed onto another file."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path in conflict. `hunks` counts text conflicts (as `git merge-file` cuts them; 0 where there is no text).

    `lost_lines` are the lines that their side added since the base and that the merged file does not hold.
    """

    path: bytes
    kind: ConflictKind
    hunks: int = 0
    lost_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged tree, and what was in conflict, by path."""

    tree: str
    conflicts: tuple[Conflict, ...] = ()


def merge3(store: TreeStore, base: str, ours: str, theirs: str) -> Merge:
    """Merge the trees (or commits' trees) `ours` and `theirs` over `base`; ours wins where they conflict.

    Raises `MergeUnsupported` for a conflict in a submodule or between a file and a folder, `IncompleteRepository`
    where objects are missing.
    """
    trees = store.trees_of([base, ours, theirs])
    first = commit_body(trees[0], (), b"base\n")
    root = store.name_of("commit", first)
    bodies = [first, commit_body(trees[1], (root,), b"ours\n"), commit_body(trees[2], (root,), b"theirs\n")]
    _, our_commit, their_commit = store.write("commit", bodies)
    # Messages also for merges that git calls clean: where a rename collides with another path, it writes markers and
    # exits 0.
    with store.stream(
        "merge-tree", "--write-tree", "--messages", "-z", our_commit, their_commit, fine=(0, 1)
    ) as output:
        report = _parse(output.read())
    if not report.stages and not report.messages:
        return Merge(report.tree)
    _refuse(report)
    sides = _Sides(*(store.entries(tree) for tree in trees))
    resolutions = sorted(_resolved(store, report, sides), key=lambda resolution: resolution.path)
    edits: dict[bytes, TreeEntry | None] = {path: None for path in report.paths() if not sides.know(path)}
    for resolution in resolutions:
        edits |= resolution.edits
    return Merge(store.edit(report.tree, edits), tuple(resolution.conflict for resolution in resolutions))


class _Message(NamedTuple):
    kind: str
    paths: tuple[bytes, ...]


class _MergeReport(NamedTuple):
    """What `git merge-tree` prints: the tree, stages 1 to 3 of each path in conflict, and messages."""

    tree: str
    stages: dict[bytes, dict[int, TreeEntry]]
    messages: list[_Message]

    def paths(self) -> set[bytes]:
        return {*self.stages, *(path for message in self.messages for path in message.paths)}


class _Sides(NamedTuple):
    base: dict[bytes, TreeEntry]
    ours: dict[bytes, TreeEntry]
    theirs: dict[bytes, TreeEntry]

    def know(self, path: bytes) -> bool:
        """Whether one of the trees has the path; git moves a file out of another's way to a name of its own."""
        return path in self.base or path in self.ours or path in self.theirs


class _Resolution(NamedTuple):
    path: bytes
    conflict: Conflict
    edits: Mapping[bytes, TreeEntry | None]


def _parse(output: bytes) -> _MergeReport:
    parts = iter(output.split(b"\0"))
    tree = next(parts).decode()
    stages: dict[bytes, dict[int, TreeEntry]] = {}
    for part in parts:
        if not part:
            break
        described, _, path = part.partition(b"\t")
        mode, blob, stage = described.decode().split(" ")
        stages.setdefault(path, {})[int(stage)] = TreeEntry(mode, blob)
    messages = []
    for count in parts:
        if not count.isdigit():  # the end, or advice on submodules that git prints after it
            break
        paths = tuple(next(parts) for _ in range(int(count)))
        messages.append(_Message(next(parts).decode("utf-8", "replace"), paths))
        next(parts)  # the same for people
    return _MergeReport(tree, stages, [message for message in messages if message.kind != "Auto-merging"])


def _refuse(report: _MergeReport) -> None:
    for path, stages in report.stages.items():
        if any(entry.mode == SUBMODULE for entry in stages.values()):
            raise MergeUnsupported(f"submodule {path_text(path)} was changed on both sides")
    for message in report.messages:
        if "submodule" in message.kind:
            raise MergeUnsupported(f"submodule {path_text(message.paths[0])} was changed on both sides")
        if "file/directory" in message.kind:
            raise MergeUnsupported(f"{path_text(message.paths[-1])} is a file on one side and a folder on the other")


_OUR_SIDE_CONFLICTS = {
    "CONFLICT (distinct modes)": ConflictKind.TYPE,
    "CONFLICT (rename/delete)": ConflictKind.RENAME,
    "CONFLICT (rename involved in collision)": ConflictKind.RENAME,
}
"""Conflicts in which every path involved becomes what it is on our side."""


def _resolved(store: TreeStore, report: _MergeReport, sides: _Sides) -> Iterator[_Resolution]:
    done: set[bytes] = set()
    for message in report.messages:
        paths = [path for path in message.paths if sides.know(path)]
        if message.kind == "CONFLICT (rename/rename)" and len(paths) == 3:
            yield _double_rename(store, sides, *paths)
        elif message.kind in _OUR_SIDE_CONFLICTS:
            yield _our_side(store, sides, _OUR_SIDE_CONFLICTS[message.kind], paths)
        else:
            continue
        done.update(message.paths)
    for path, stages in report.stages.items():
        if path not in done:
            yield _path_resolution(store, path, stages.get(1), stages.get(2), stages.get(3))


def _double_rename(store: TreeStore, sides: _Sides, old: bytes, mine: bytes, other: bytes) -> _Resolution:
    """Renamed to one name here and to another there: ours, with their changes as far as these do not conflict."""
    merged = _path_resolution(store, mine, sides.base.get(old), sides.ours.get(mine), sides.theirs.get(other))
    conflict = Conflict(mine, ConflictKind.RENAME, merged.conflict.hunks, merged.conflict.lost_lines)
    return _Resolution(mine, conflict, {old: sides.ours.get(old), other: sides.ours.get(other), **merged.edits})


def _our_side(store: TreeStore, sides: _Sides, kind: ConflictKind, paths: list[bytes]) -> _Resolution:
    def text(side: dict[bytes, TreeEntry]) -> bytes:
        return b"\n".join(store.blobs(side[path].blob for path in paths if path in side))

    lost = _lost_lines(text(sides.base), text(sides.theirs), text(sides.ours))
    return _Resolution(paths[0], Conflict(paths[0], kind, 0, lost), {path: sides.ours.get(path) for path in paths})


def _path_resolution(
    store: TreeStore, path: bytes, old: TreeEntry | None, mine: TreeEntry | None, other: TreeEntry | None
) -> _Resolution:
    if mine is None or other is None:
        texts = store.blobs(entry.blob for entry in (other, old) if entry)
        lost = _lost_lines(texts[1] if old else b"", texts[0], b"") if other else ()
        return _Resolution(path, Conflict(path, ConflictKind.DELETE_MODIFY, 0, lost), {path: mine})
    mode = other.mode if old and mine.mode == old.mode else mine.mode
    if LINK in (mine.mode, other.mode):
        their_target, base_target, our_target = store.blobs([other.blob, (old or mine).blob, mine.blob])
        conflict = Conflict(path, ConflictKind.SYMLINK, 0, _lost_lines(base_target, their_target, our_target))
        return _Resolution(path, conflict, {path: mine})
    if mine.blob == other.blob:
        return _Resolution(path, Conflict(path, ConflictKind.MODE), {path: TreeEntry(mode, mine.blob)})
    texts = store.blobs([mine.blob, other.blob, *([old.blob] if old else [])])
    ours, theirs, base = texts[0], texts[1], texts[2] if old else b""
    if any(b"\0" in text[:_SNIFFED] for text in (ours, theirs, base)):
        return _Resolution(path, Conflict(path, ConflictKind.BINARY), {path: TreeEntry(mode, mine.blob)})
    merged, hunks = _merge_texts(store, ours, base, theirs)
    conflict = Conflict(path, ConflictKind.CONTENT, hunks, _lost_lines(base, theirs, merged))
    return _Resolution(path, conflict, {path: TreeEntry(mode, store.write_blob(merged))})


def _merge_texts(store: TreeStore, ours: bytes, base: bytes, theirs: bytes) -> tuple[bytes, int]:
    """The merged text with our side of every hunk in conflict, and how many of these there are."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        places = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for place, text in zip(places, (ours, base, theirs), strict=True):
            place.write_bytes(text)
        names = [str(place) for place in places]
        label = secrets.token_hex(16)  # what no line of the texts can hold on purpose
        with store.stream("merge-file", "-p", "--ours", *names) as output:
            merged = output.read()
        with store.stream("merge-file", "-p", "-L", label, *names, fine=range(128)) as output:
            hunks = output.read().count(f"<<<<<<< {label}".encode())
    return merged, hunks


def _lost_lines(base: bytes, theirs: bytes, merged: bytes) -> tuple[str, ...]:
    """The lines of `theirs` that are not blank, in order, as far as `base` and `merged` together have fewer of them."""
    if b"\0" in theirs[:_SNIFFED]:
        return ()
    unmatched = Counter(theirs.split(b"\n")) - Counter(base.split(b"\n")) - Counter(merged.split(b"\n"))
    lost = []
    for line in theirs.split(b"\n"):
        if line.strip() and unmatched[line] > 0:
            unmatched[line] -= 1
            lost.append(line.decode("utf-8", "backslashreplace"))
    return tuple(lost)
