"""The tree of a folder on this machine, and the archive of what an agent changed in one."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import IO

from environments.checkouts.extraction import TreeCollector
from environments.checkouts.junk import IgnoreRules
from environments.checkouts.tarball import Member, MemberKind
from prchain.core.errors import ExtractionFailed
from prchain.core.git.spool import BlobSpool
from prchain.core.git.trees import TreeEntry, TreeStore

_TOP = b"top"


@dataclass(frozen=True, slots=True)
class FolderRules:
    """What of a folder belongs to its tree: it began as `start`, new files that the ignore rules of the tree
    `ignored_by` hide are junk, and so is what lies at or below the paths of `outputs`, which the refresh made."""

    start: Mapping[bytes, TreeEntry]
    ignored_by: str
    outputs: Collection[bytes] = ()

    def is_output(self, path: bytes) -> bool:
        """Whether the refresh made it."""
        parts = path.split(b"/")
        above = (b"/".join(parts[:depth]) + b"/" for depth in range(1, len(parts)))
        return path not in self.start and (path in self.outputs or any(folder in self.outputs for folder in above))


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """What `collect.py` wrote of an agent's folder: whole files that are new or other ones, and what is gone."""

    files: Mapping[bytes, tuple[MemberKind, bool, bytes]]
    """By path: a file with its content, and whether it can be run; or a link with its target."""
    gone: frozenset[bytes]


def tree_of_folder(store: TreeStore, folder: bytes, rules: FolderRules, changed: ChangedFiles | None = None) -> str:
    """The tree of a folder, or of the folder with these changes, by the rule of
    `environments.checkouts.extraction.extract_tree`. Raises `ExtractionFailed`, `GitError`."""
    with IgnoreRules(store, rules.ignored_by) as ignored, BlobSpool(store, ()) as spool:
        collector = TreeCollector(dict(rules.start), ignored, spool, _TOP)
        collector.take(Member(_TOP, MemberKind.FOLDER))
        skipped = {*changed.files, *changed.gone} if changed else set[bytes]()
        for path, full in _walk(folder):
            if path not in skipped and not rules.is_output(path):
                _take(collector, path, full)
        for path, (kind, executable, content) in changed.files.items() if changed else ():
            if not rules.is_output(path):
                target = content if kind is MemberKind.SYMLINK else b""
                file = None if kind is MemberKind.SYMLINK else io.BytesIO(content)
                collector.take(Member(_TOP + b"/" + path, kind, executable, len(content), target, file))
        entries = collector.finish()
        spool.save()
    return store.write_tree(entries)


def _walk(folder: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The paths below a folder of what is no folder, with their full paths; links are not followed."""
    waiting = [b""]
    while waiting:
        place = waiting.pop()
        try:
            with closing(os.scandir(os.path.join(folder, place))) as found:
                for entry in sorted(found, key=lambda it: it.name):
                    path = os.path.join(place, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        if path != b".git":
                            waiting.append(path)
                    else:
                        yield path, entry.path
        except OSError as error:
            raise ExtractionFailed(f"a folder cannot be read: {error.strerror}") from None


def _take(collector: TreeCollector, path: bytes, full: bytes) -> None:
    name = _TOP + b"/" + path
    try:
        facts = os.lstat(full)
        if stat.S_ISLNK(facts.st_mode):
            collector.take(Member(name, MemberKind.SYMLINK, target=os.readlink(full)))
        elif stat.S_ISREG(facts.st_mode):
            with open(full, "rb", opener=_unfollowed) as file:
                executable = bool(facts.st_mode & 0o100)
                collector.take(Member(name, MemberKind.FILE, executable, os.fstat(file.fileno()).st_size, content=file))
        else:
            collector.take(Member(name, MemberKind.SPECIAL))
    except OSError as error:
        raise ExtractionFailed(f"a file cannot be read: {error.strerror}") from None


def _unfollowed(path: str | bytes, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def read_changes(archive: IO[bytes]) -> ChangedFiles:
    """What an archive of `collect.py` holds. Raises `ExtractionFailed` where it is damaged: its digest, which the
    machine computed that packed it, guards the transfer and nothing else."""
    files: dict[bytes, tuple[MemberKind, bool, bytes]] = {}
    gone, said, whole = frozenset[bytes](), "", hashlib.sha256()
    try:
        with tarfile.open(fileobj=archive, mode="r:") as packed:
            for member in packed:
                path = os.fsencode(member.name)
                content = packed.extractfile(member) if member.isreg() else None
                text = content.read() if content else os.fsencode(member.linkname)
                if path == b"digest":
                    said = text.decode("ascii", "replace")
                    continue
                whole.update(b"%d %d " % (len(path), len(text)) + path + text)
                if path == b"gone":
                    gone = frozenset(it for it in text.split(b"\0") if it)
                elif path.startswith(b"changed/") and (member.isreg() or member.issym()):
                    kind = MemberKind.SYMLINK if member.issym() else MemberKind.FILE
                    files[path.removeprefix(b"changed/")] = (kind, bool(member.mode & 0o100), text)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ExtractionFailed(f"the archive of the agent's work is damaged: {error}") from None
    if said != whole.hexdigest():
        raise ExtractionFailed("the archive of the agent's work is damaged: it is not what was packed")
    return ChangedFiles(files, gone)
