"""Git's objects, named as git names them: a world's shas are real without a git process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

Changes = dict[str, bytes | None]
"""Path (at most one directory deep) to its new content; None deletes it."""


def _sha(kind: bytes, body: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\x00%s" % (kind, len(body), body), usedforsecurity=False).digest()


def iso(epoch: int) -> str:
    """Return GitHub's form of a time in seconds, e.g. ``2019-01-01T00:00:00Z``."""
    return f"{datetime.fromtimestamp(epoch, UTC).isoformat()[:19]}Z"


class File(NamedTuple):
    """A file in a tree: its row there, and its content."""

    row: bytes
    content: bytes


def file_at(name: str, content: bytes) -> File:
    return File(b"100644 %s\x00%s" % (name.encode(), _sha(b"blob", content)), content)


class Directory:
    """A flat directory of blobs; never changed once made."""

    __slots__ = ("files", "row")

    def __init__(self, name: str, files: dict[str, File]) -> None:
        self.files = files
        body = b"".join([files[inside].row for inside in sorted(files)])
        self.row = b"40000 %s\x00%s" % (name.encode(), _sha(b"tree", body))


class Tree:
    """A root tree: files and one level of directories. `change` gives a new tree that shares what stayed the same."""

    __slots__ = ("_directories", "_files", "sha")

    def __init__(self, files: dict[str, File], directories: dict[str, Directory]) -> None:
        self._files = files
        self._directories = directories
        # git sorts a directory as if its name ended in a slash
        rows = {name: entry.row for name, entry in files.items()}
        rows |= {f"{name}/": entry.row for name, entry in directories.items()}
        self.sha = _sha(b"tree", b"".join([rows[name] for name in sorted(rows)])).hex()

    def get(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is none."""
        directory, _, name = path.rpartition("/")
        if not directory:
            found = self._files.get(name)
        else:
            inside = self._directories.get(directory)
            found = inside.files.get(name) if inside else None
        return found.content if found else None

    def changes_to(self, other: Tree) -> Changes:
        """Return the changes that turn this tree into the other."""
        found: Changes = {}
        places = [("", self._files, other._files)]
        for name in {*self._directories, *other._directories}:
            here, there = self._directories.get(name), other._directories.get(name)
            if here is not there:
                places.append((f"{name}/", here.files if here else {}, there.files if there else {}))
        for prefix, before, after in places:
            if before is after:
                continue
            for name in {*before, *after}:
                new = after.get(name)
                if before.get(name) != new:
                    found[prefix + name] = new.content if new else None
        return dict(sorted(found.items()))

    def change(self, changes: Changes) -> Tree:
        files, directories = self._files, self._directories
        touched: dict[str, dict[str, File]] = {}
        for path, content in changes.items():
            directory, _, name = path.rpartition("/")
            if directory not in touched:
                old = directories[directory].files if directory in directories else {}
                touched[directory] = dict(old if directory else files)
            if content is None:
                touched[directory].pop(name, None)
            else:
                touched[directory][name] = file_at(name, content)
        if touched:
            directories = dict(directories)
        for directory, entries in touched.items():
            if not directory:
                files = entries
            elif entries:
                directories[directory] = Directory(directory, entries)
            else:
                directories.pop(directory, None)
        return Tree(files, directories)


EMPTY = Tree({}, {})


class Signature(NamedTuple):
    """Who and when; `epoch` in seconds, always UTC."""

    name: str
    email: str
    epoch: int

    def line(self) -> bytes:
        return f"{self.name} <{self.email}> {self.epoch} +0000".encode()


@dataclass(slots=True, eq=False)
class Commit:
    """One commit. `changes` are those against the first parent, as fast-import wants them; in git the message ends in
    one newline more, which the API does not show."""

    message: str
    author_line: Signature
    committer_line: Signature
    parents: tuple[Commit, ...]
    changes: Changes
    tree: Tree
    oid: str = ""
    id: str = ""
    user: object = None
    """The account behind the author, or None where GitHub knows none."""
    repository: object = None
    kind: str = field(default="Commit")

    def __post_init__(self) -> None:
        lines = [b"tree " + self.tree.sha.encode()]
        lines += [b"parent " + parent.oid.encode() for parent in self.parents]
        lines += [b"author " + self.author_line.line(), b"committer " + self.committer_line.line()]
        self.oid = _sha(b"commit", b"\n".join(lines) + b"\n\n" + self.message.encode() + b"\n").hex()
        self.id = f"C_{self.oid}"

    @property
    def message_headline(self) -> str:
        return self.message.split("\n", 1)[0]

    @property
    def authored_date(self) -> str:
        return iso(self.author_line.epoch)

    @property
    def committed_date(self) -> str:
        return iso(self.committer_line.epoch)

    @property
    def order(self) -> tuple[str, int]:
        return (self.oid, 0)


def commit_on(
    parents: tuple[Commit, ...], changes: Changes, message: str, author: Signature, committer: Signature
) -> Commit:
    """Make a commit whose tree is the first parent's with `changes`."""
    tree = (parents[0].tree if parents else EMPTY).change(changes)
    return Commit(message, author, committer, parents, changes, tree)
