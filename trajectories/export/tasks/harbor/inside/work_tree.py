"""The tree of a folder on this machine, and the archive of what an agent changed in one."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import IO

from environments.checkouts.extraction import MOST_BYTES, MOST_MEMBERS, TreeCollector
from environments.checkouts.junk import IgnoreRules
from environments.checkouts.tarball import Member, MemberKind, members
from prchain.core.errors import ExtractionFailed
from prchain.core.git.output import path_text
from prchain.core.git.spool import BlobSpool
from prchain.core.git.trees import TreeEntry, TreeStore

_TOP = b"top"
_CHANGED, _GONE, _DIGEST = b"changed/", b"gone", b"digest"
_LONGEST, _LONGEST_NAME = 2048, 255
"""Bytes of a path and of a part of it: with Linux's bounds of 4,096 and 255 it can be laid out anywhere."""
_LONGEST_LIST = 64 << 20
_BLOCK = 1 << 20


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
    """What `collect.py` wrote of an agent's folder: whole files that are new or other ones, and what is gone. The files
    stay in the archive: they may be more than memory holds."""

    archive: IO[bytes]
    most_bytes: int
    most_members: int
    paths: frozenset[bytes] = frozenset()
    gone: frozenset[bytes] = frozenset()

    def members(self) -> Iterator[Member]:
        """Its files and links, and its two lists. Raises `ExtractionFailed` for anything else."""
        self.archive.seek(0)
        chunks = iter(lambda: self.archive.read(_BLOCK), b"")
        total = 0
        for member in members(chunks, most_bytes=self.most_bytes, most_members=self.most_members):
            total += member.size
            if total > self.most_bytes:
                raise ExtractionFailed(f"the archive of the agent's work holds more than {self.most_bytes:,} bytes")
            is_list = member.path in (_GONE, _DIGEST) and member.kind is MemberKind.FILE
            is_file = member.path.startswith(_CHANGED) and member.kind in (MemberKind.FILE, MemberKind.SYMLINK)
            if not is_list and (not is_file or not 0 < len(member.path) - len(_CHANGED) <= _LONGEST):
                words = path_text(member.path[:100])
                raise ExtractionFailed(f"the archive of the agent's work holds a {member.kind} {words!r}")
            yield member

    def files(self) -> Iterator[Member]:
        """The files and links, by their paths in the folder; read each before the next one."""
        for member in self.members():
            if member.path.startswith(_CHANGED):
                yield replace(member, path=member.path.removeprefix(_CHANGED))


def tree_of_folder(store: TreeStore, folder: bytes, rules: FolderRules, changed: ChangedFiles | None = None) -> str:
    """The tree of a folder, or of the folder with these changes, by the rule of
    `environments.checkouts.extraction.extract_tree`. Raises `ExtractionFailed`, `GitError`."""
    with IgnoreRules(store, rules.ignored_by) as ignored, BlobSpool(store, ()) as spool:
        collector = TreeCollector(dict(rules.start), ignored, spool, _TOP)
        collector.take(Member(_TOP, MemberKind.FOLDER))
        skipped = changed.paths | changed.gone if changed else frozenset[bytes]()
        for path, full in files_below(folder):
            if path not in skipped and not rules.is_output(path):
                _take(collector, path, full)
        for member in changed.files() if changed else ():
            if not rules.is_output(member.path):
                collector.take(replace(member, path=_TOP + b"/" + member.path))
        entries = collector.finish()
        long = next((path for path in entries if path not in rules.start and _is_too_long(path)), None)
        if long is not None:
            raise ExtractionFailed(f"the path {path_text(long[:100])!r} is too long: {len(long):,} bytes")
        spool.save()
    return store.write_tree(entries)


def _is_too_long(path: bytes) -> bool:
    return len(path) > _LONGEST or max(map(len, path.split(b"/"))) > _LONGEST_NAME


def files_below(folder: bytes) -> Iterator[tuple[bytes, bytes]]:
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


def read_changes(archive: IO[bytes], *, most_bytes: int = MOST_BYTES, most_members: int = MOST_MEMBERS) -> ChangedFiles:
    """What an archive of `collect.py` holds; it is read again for its files. Raises `ExtractionFailed` where it is
    damaged, or is none that `collect.py` writes: its digest, which the machine computed that packed it, guards the
    transfer and nothing else."""
    changed = ChangedFiles(archive, most_bytes, most_members)
    paths, gone, said, whole = set[bytes](), b"", b"", hashlib.sha256()
    for member in changed.members():
        if member.kind is MemberKind.SYMLINK:
            size, blocks = len(member.target), iter([member.target])
        else:
            size, blocks = member.size, _blocks(member)
        if member.path in (_GONE, _DIGEST):
            if size > _LONGEST_LIST:
                raise ExtractionFailed(f"the archive of the agent's work has a list of {size:,} bytes")
            text = b"".join(blocks)
            blocks = iter([text])
            if member.path == _DIGEST:
                said = text
                continue
            gone = text
        else:
            paths.add(member.path.removeprefix(_CHANGED))
        whole.update(b"%d %d " % (len(member.path), size) + member.path)
        for block in blocks:
            whole.update(block)
    if said != whole.hexdigest().encode():
        raise ExtractionFailed("the archive of the agent's work is damaged: it is not what was packed")
    return replace(changed, paths=frozenset(paths), gone=frozenset(it for it in gone.split(b"\0") if it))


def _blocks(member: Member) -> Iterator[bytes]:
    """The content of a file, of which no more than a block is held."""
    left = member.size
    while left and member.content is not None:
        block = member.content.read(min(left, _BLOCK))
        if not block:
            raise ExtractionFailed("the archive of the agent's work is cut off")
        left -= len(block)
        yield block
