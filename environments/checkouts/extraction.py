"""The tree that an agent left in a sandbox, made of nothing but its files.

The agent may have committed, rewritten history, deleted .git or put other repositories into the tree; none of that is
looked at. What no tree can hold (devices, fifos, sockets, empty folders, files below .git) stays behind.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Protocol

from environments.checkouts.junk import CACHE_SIGNATURE, CACHE_TAG, IgnoreRules
from environments.checkouts.tarball import Member, MemberKind, members
from prchain.core.errors import ExtractionFailed, SandboxFileError
from prchain.core.git.spool import BlobSpool
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, SUBMODULE, TreeEntry, TreeStore, is_storable

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

MOST_BYTES = 8 << 30
MOST_MEMBERS = 1_000_000
_LONGEST = 4096
"""Bytes of a path; Linux's own bound."""
_SHOWN = 50
_SNIFFED = 4096


class Omission(StrEnum):
    """Why something in the sandbox is left out of the tree, or changed in it."""

    JUNK = "junk"
    """New, and ignored by the rules of the base or in a cache folder."""
    NESTED_REPOSITORY = "nested_repository"
    """The folder has a .git of its own: its files are taken, its .git is not."""
    SPECIAL = "special_file"
    """A device, fifo, socket or sparse file."""
    BAD_NAME = "bad_name"
    """A name that no git tree can hold, or one that leads out of the folder."""
    IN_SUBMODULE = "in_submodule"
    """A file in the folder of a submodule; the submodule stays at its commit."""
    LOST_LINK = "lost_hard_link"
    """A hard link whose content could not be read."""


@dataclass(frozen=True, slots=True)
class ExtractionNote:
    """A path below the folder, and what happened to it."""

    kind: Omission
    path: bytes


@dataclass(frozen=True, slots=True)
class Extraction:
    """A_t. `counts` says how much was left out and why; `notes` name some paths of each kind."""

    tree: str
    counts: Mapping[Omission, int]
    notes: tuple[ExtractionNote, ...]


def extract_tree(
    sandbox: Sandbox,
    store: TreeStore,
    *,
    start_tree: str,
    ignore_rules_from: str,
    workdir: str | None = None,
    most_bytes: int = MOST_BYTES,
    most_members: int = MOST_MEMBERS,
) -> Extraction:
    """The tree of what lies in the sandbox's `workdir`, which began as `start_tree` (S_t).

    New files that the rules of `ignore_rules_from` (B_t; commit or tree) ignore are junk; what the agent wrote into
    .gitignore hides nothing, and what S_t holds is never junk. Raises `ExtractionFailed`, `SandboxError`, `GitError`.
    """
    workdir = (workdir or sandbox.config.workdir).rstrip("/")
    start = store.entries(start_tree)
    known = {entry.blob for entry in start.values() if entry.mode != SUBMODULE}
    with IgnoreRules(store, ignore_rules_from) as rules, BlobSpool(store, known) as spool:
        collector = TreeCollector(start, rules, spool, os.fsencode(workdir.rpartition("/")[2]))
        chunks = sandbox.get(workdir)
        try:
            for member in members(chunks, most_bytes=most_bytes, most_members=most_members):
                collector.take(member)
        finally:
            if isinstance(chunks, Generator):
                chunks.close()  # the sandbox takes no other call before that
        collector.link(sandbox, workdir)
        entries = collector.finish()
        spool.save()
    return Extraction(store.write_tree(entries), dict(collector.counts), tuple(collector.notes))


class Rules(Protocol):
    """Which new files are junk: `environments.checkouts.junk.IgnoreRules`, or its stored answers."""

    def hide(self, path: bytes) -> bool:
        """Whether the rules hide a file of this path."""


class TreeCollector:
    """The entries taken so far. A later member of the same path replaces an earlier one, as when a tar is unpacked."""

    def __init__(self, start: dict[bytes, TreeEntry], rules: Rules, spool: BlobSpool, top: bytes) -> None:
        self.counts: Counter[Omission] = Counter()
        self.notes: list[ExtractionNote] = []
        self._start = start
        self._rules = rules
        self._submodules = {path: entry for path, entry in start.items() if entry.mode == SUBMODULE}
        self._spool = spool
        self._entries: dict[bytes, TreeEntry] = {}
        self._links: list[tuple[bytes, bytes, bool]] = []
        self._caches: set[bytes] = set()
        self._top = top
        self._is_folder = False

    @property
    def taken(self) -> Mapping[bytes, TreeEntry]:
        """What was taken so far, that in caches among it."""
        return self._entries

    @property
    def caches(self) -> Collection[bytes]:
        """The folders that have shown the tag of a cache so far."""
        return self._caches

    def take(self, member: Member) -> None:
        path = self._below_top(member.path)
        if path == b"":
            self._is_folder = member.kind is MemberKind.FOLDER
        if not path or self._refused(path, member) or member.kind is MemberKind.FOLDER:
            return
        if member.kind is MemberKind.SPECIAL:
            self._note(Omission.SPECIAL, path)
        elif path not in self._start and self._rules.hide(path):
            self._note(Omission.JUNK, path)
        elif member.kind is MemberKind.HARD_LINK:
            self._links.append((path, self._below_top(member.target) or b"", member.executable))
        elif member.kind is MemberKind.SYMLINK:
            self._put(path, LINK, io.BytesIO(member.target), len(member.target))
        elif member.content is not None:
            content = self._sniffed(path, member.content)
            self._put(path, EXECUTABLE if member.executable else FILE, content, member.size)

    def link(self, sandbox: Sandbox, workdir: str) -> None:
        """Give hard links their content: that of the file they name, or, where that was left out, read one by one."""
        for path, target, executable in self._links:
            entry = self._entries.get(target)
            if entry is None or entry.mode == LINK:
                try:
                    content = sandbox.read(f"{workdir}/{path.decode()}")
                except (SandboxFileError, UnicodeDecodeError):
                    self._note(Omission.LOST_LINK, path)
                    continue
                self._put(path, EXECUTABLE if executable else FILE, io.BytesIO(content), len(content))
            else:
                self._entries[path] = entry

    def finish(self) -> dict[bytes, TreeEntry]:
        """The paths of the tree. Raises `ExtractionFailed` where the folder itself is gone."""
        if not self._is_folder:
            raise ExtractionFailed("there is no folder any more where the agent worked")
        self._drop_caches()
        self._drop_overlaps()
        for path, entry in self._submodules.items():
            self._entries.setdefault(path, entry)
        return self._entries

    def _below_top(self, path: bytes) -> bytes | None:
        """A member's path without the folder's own name; None for what lies elsewhere, b"" for the folder itself."""
        top, _, rest = path.removeprefix(b"./").partition(b"/")
        return rest.rstrip(b"/") if top == self._top else None

    def _refused(self, path: bytes, member: Member) -> bool:
        """Whether a tree may not hold the path; notes why, except for the repository itself."""
        words = path.split(b"/")
        if b".git" in words:
            above = b"/".join(words[: words.index(b".git")])
            if above and words[-1] == b".git":
                self._note(Omission.NESTED_REPOSITORY, above)
            return True
        mode = LINK if member.kind is MemberKind.SYMLINK else FILE
        if len(path) > _LONGEST or not is_storable(path, mode):
            reason = Omission.BAD_NAME
        elif any(above in self._submodules for above in folders_above(path)):
            reason = Omission.IN_SUBMODULE
        else:
            return False
        if member.kind is not MemberKind.FOLDER:
            self._note(reason, path)
        return True

    def _sniffed(self, path: bytes, content: IO[bytes]) -> IO[bytes]:
        """The content, after checking whether it is the tag of a cache folder."""
        folder, _, name = path.rpartition(b"/")
        if name != CACHE_TAG or path in self._start or not folder:
            return content
        head = content.read(_SNIFFED)
        if head.startswith(CACHE_SIGNATURE):
            self._caches.add(folder)
        return _PrefixedStream(head, content)  # type: ignore[return-value]

    def _put(self, path: bytes, mode: str, content: IO[bytes], size: int) -> None:
        try:
            self._entries[path] = TreeEntry(mode, self._spool.add(content, size))
        except EOFError as error:
            raise ExtractionFailed("the sandbox's files came as an archive that is cut off") from error

    def _drop_caches(self) -> None:
        for path in [path for path in self._entries if path not in self._start]:
            if any(above in self._caches for above in folders_above(path)):
                del self._entries[path]
                self._note(Omission.JUNK, path)

    def _drop_overlaps(self) -> None:
        """Drop what lies below a file: no file system holds that, but an archive can."""
        for path in [path for path in self._entries if any(above in self._entries for above in folders_above(path))]:
            del self._entries[path]
            self._note(Omission.BAD_NAME, path)

    def _note(self, kind: Omission, path: bytes) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= _SHOWN:
            self.notes.append(ExtractionNote(kind, path))


class _PrefixedStream:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def read(self, size: int) -> bytes:
        return self._head.read(size) or self._rest.read(size)


def folders_above(path: bytes) -> Iterator[bytes]:
    """The folders above a path, the nearest first."""
    while path := path.rpartition(b"/")[0]:
        yield path
