"""The tree of a sandbox's folder after each step of an agent, without reading every file each time.

What this cannot see: a page that a process in the background goes on writing through a shared mapping (the kernel
notes the first write alone, until the page has reached the disk), and what root in the sandbox, or a process that
meddles with ours, makes `find` and `tar` say; where an upper layer is read, that is of the first listing and of new
contents alone. So take the tree that a stage ends with from `Tracker.extract`.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from environments.checkouts.extraction import Extraction, TreeCollector, extract_tree, folders_above
from environments.checkouts.junk import CACHE_TAG, IgnoreRules
from environments.checkouts.listing import FileListing, FolderLister, ListedFile, SeenUnder
from environments.checkouts.tarball import Member, MemberKind
from prchain.core.errors import ExtractionFailed
from prchain.core.git.spool import BlobSpool
from prchain.core.git.trees import EXECUTABLE, FILE, SUBMODULE, TreeEntry, TreeStore

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

_MOST_BYTES = 64 << 20
_MOST_FILES = 5_000
"""Where more bytes or files than that are new, everything is extracted."""

_MOST_APART = 50
"""Where more files come and go, all files are gone through."""

_UNLISTED_FROM = 50
_MOST_UNLISTED = 200
"""A folder of junk with so many files is not listed any more; and how many such folders there are at most."""

_TOP = b"top"

_SECOND = 1.0
"""As fine as the times are that a copy of a sandbox has: an engine's layers keep whole seconds."""


@dataclass(frozen=True, slots=True)
class TrackedTree:
    """A tree, and what its tracker knows of the files that it was taken from."""

    tree: str
    entries: Mapping[bytes, TreeEntry]
    listing: FileListing
    blobs: Mapping[bytes, str]
    tags: Mapping[bytes, bytes]
    """Both by a file's facts."""
    caches: frozenset[bytes]
    unlisted: tuple[bytes, ...]
    under: SeenUnder | None
    """What is known of the layers that the sandbox stands on."""


class Tracker:
    """Follows the tree of a sandbox's `workdir` (default: the sandbox's), which began as `start_tree` (S_t).

    `ignore_rules_from` is as in `environments.checkouts.extraction.extract_tree`. Not for several threads.
    """

    def __init__(
        self, sandbox: Sandbox, store: TreeStore, *, start_tree: str, ignore_rules_from: str, workdir: str | None = None
    ) -> None:
        self._sandbox = sandbox
        self._store = store
        self._start_tree, self._rules_tree = start_tree, ignore_rules_from
        self._workdir = (workdir or sandbox.config.workdir).rstrip("/")
        self._lister = FolderLister(sandbox, self._workdir)
        self._start = store.entries(start_tree)
        self._start_folders = {above for path in self._start for above in folders_above(path)}
        self._rules = _Rules(store, ignore_rules_from)
        self._unlisted: tuple[bytes, ...] = ()
        self._known = _blobs_of(self._start)
        self._blobs: dict[bytes, str] = {}
        self._tags: dict[bytes, bytes] = {}
        self._caches: frozenset[bytes] = frozenset()
        self._listing: FileListing | None = None
        self._unsettled: set[bytes] = set()
        """Files of the tree that may have changed without a trace since they were read."""
        self._tree = ""
        self._entries: dict[bytes, TreeEntry] = {}

    def take(self) -> str:
        """The tree as it is now, the one that `extract_tree` would give; raises as that does.

        The first tree is a full extraction, and so is one where much has changed or files have several names.
        """
        listing = self._lister.list(self._unlisted, self._listing)
        if listing is None or not self._tree:
            return self._extract(listing).tree
        if listing is not self._listing or self._unsettled:
            try:
                if not self._follow_some(listing):
                    self._follow(listing)
            except (_TooMuchError, ExtractionFailed):
                return self._extract(listing).tree
        return self._tree

    def known(self) -> TrackedTree | None:
        """The last tree, and what is known of its files; None where they could not be listed."""
        if self._listing is None:
            return None
        blobs, tags = dict(self._blobs), dict(self._tags)
        return TrackedTree(
            self._tree, self._entries, self._listing, blobs, tags, self._caches, self._unlisted, self._lister.seen
        )

    def begin_as(self, copied: TrackedTree) -> None:
        """Begin with what is known of the sandbox that this one is a copy of; nobody has used this one yet.

        A file has that one's content where size and second of the last modification are the same, and that second was
        over when the tree was taken. Other files are read. So what is not seen is a file that is changed between the
        tree and the copy, to the same size, and whose time is set back. Raises as `take`.
        """
        self._unlisted = copied.unlisted
        self._lister = FolderLister(self._sandbox, self._workdir, copied.under)
        listing = self._lister.list(self._unlisted)
        if listing is None:
            return
        before, until = copied.listing.files, copied.listing.since - _SECOND
        self._blobs, self._tags = dict(copied.blobs), dict(copied.tags)
        are_like = len(listing.files) == len(before)
        for path, listed in listing.files.items():
            was = before.get(path)
            if was is listed:
                continue  # both stand on the same layer, which nobody can change
            if was is None:
                are_like = False
                continue
            copy = listed.compared(was)
            if copy.is_same and was.modified < until:
                if was.facts in copied.blobs:
                    self._blobs[listed.facts] = copied.blobs[was.facts]
                if was.facts in copied.tags:
                    self._tags[listed.facts] = copied.tags[was.facts]
            are_like &= copy.is_like and (listed.facts in self._tags or was.facts not in copied.tags)
        if are_like:
            with self._rules:
                self._settle(copied.tree, dict(copied.entries), self._blobs, listing, copied.caches)
            return
        self._tree, self._entries = copied.tree, dict(copied.entries)
        try:
            self._follow(listing)
        except (_TooMuchError, ExtractionFailed):
            self._extract(listing)

    def begin_placed(self, tree: str) -> None:
        """Begin with a tree that was placed in the sandbox and made ready just now, so that nobody has used it since.

        Files of its paths and sizes are its files; others are read. Raises `SandboxError`, `GitError`.
        """
        listing = self._lister.list(self._unlisted)
        if listing is None:
            return
        entries = self._store.entries(tree)
        sizes = self._store.sizes(entry.blob for entry in entries.values() if entry.mode in (FILE, EXECUTABLE))
        placed = ((listing.files[path], entry.blob) for path, entry in entries.items() if path in listing.files)
        self._blobs = {
            listed.facts: blob
            for listed, blob in placed
            if listed.kind == b"f" and listed.links == 1 and listed.size == sizes.get(blob)
        }
        self._tree, self._entries = self._store.tree_of(tree), entries
        try:
            self._follow(listing)
        except (_TooMuchError, ExtractionFailed):
            self._tree = ""

    def extract(self) -> Extraction:
        """A full extraction, from which later trees are followed."""
        return self._extract(self._lister.list(self._unlisted))

    def _extract(self, listing: FileListing | None) -> Extraction:
        extraction = extract_tree(
            self._sandbox,
            self._store,
            start_tree=self._start_tree,
            ignore_rules_from=self._rules_tree,
            workdir=self._workdir,
        )
        entries = self._store.entries(extraction.tree)
        if listing and any(entry.mode != SUBMODULE and path not in listing.files for path, entry in entries.items()):
            listing = None  # what came meanwhile may go before the next one
        # What changed between the listing and the extraction has other facts in the next listing.
        blobs = {
            listed.facts: entry.blob
            for path, listed in (listing.files.items() if listing else ())
            if listed.kind == b"f" and (entry := entries.get(path)) and entry.mode in (FILE, EXECUTABLE)
        }
        with self._rules:
            self._settle(extraction.tree, entries, blobs, listing)
        return extraction

    def _follow(self, listing: FileListing) -> None:
        """Make the tree of a listing. Raises `_TooMuchError` or `ExtractionFailed` where only an extraction can."""
        with self._rules, _Spool(self._store, self._known, self._blobs) as spool:
            self._learn_tags(listing)
            collector = TreeCollector(self._start, self._rules, spool, _TOP)
            collector.take(Member(_TOP, MemberKind.FOLDER))
            for listed in listing.files.values():
                collector.take(self._member(listed))
            entries = collector.finish()
            caches = frozenset(collector.caches)
            new = {listed.path: listed for listed in spool.new if listed.path in entries}
            blobs = dict(self._blobs)
            for path, content, size in self._read(new.values()):
                blob = blobs[new[path].facts] = spool.add(content, size)
                entries[path] = TreeEntry(entries[path].mode, blob)
            spool.save()
            changes: dict[bytes, TreeEntry | None] = dict.fromkeys(self._entries.keys() - entries.keys())
            changes |= {path: entry for path, entry in entries.items() if self._entries.get(path) != entry}
            self._settle(self._store.edit(self._tree, changes), entries, blobs, listing, caches)

    def _follow_some(self, listing: FileListing) -> bool:
        """Make the tree of a listing by the files that are new, changed or gone; False where others may count
        otherwise than before, too. Nearly all steps are such, and most files need no look. Raises as `_follow`."""
        before = self._listing
        if before is None:
            return False
        changed = [listed for path, listed in listing.files.items() if before.files.get(path) is not listed]
        gone = before.files.keys() - listing.files.keys()
        unread = {path: listing.files[path] for path in self._unsettled - gone} | {it.path: it for it in changed}
        if any(map(_is_tag, (*gone, *unread))):
            return False
        with self._rules, _Spool(self._store, self._known, self._blobs) as spool:
            collector = TreeCollector(self._start, self._rules, spool, _TOP)
            for listed in unread.values():
                collector.take(self._member(listed))
            entries = {
                path: entry
                for path, entry in collector.taken.items()
                if path in self._start or not any(above in self._caches for above in folders_above(path))
            }
            lost = self._entries.keys() & gone
            if not self._is_apart(listing, unread, entries, lost):
                return False
            for path, content, size in self._read([it for it in spool.new if it.path in entries]):
                entries[path] = TreeEntry(entries[path].mode, spool.add(content, size))
            spool.save()
        changes: dict[bytes, TreeEntry | None] = dict.fromkeys(lost)
        changes |= {path: entry for path, entry in entries.items() if self._entries.get(path) != entry}
        if changes:
            self._tree = self._store.edit(self._tree, changes)
        left = self._entries if not lost else {path: it for path, it in self._entries.items() if path not in lost}
        self._entries = {**left, **entries}
        self._known |= _blobs_of(entries)
        for path in (*entries, *lost):
            if path in before.files:
                self._blobs.pop(before.files[path].facts, None)
        for path, entry in entries.items():
            if (facts := listing.files[path].facts) not in listing.fresh:
                self._blobs[facts] = entry.blob
        self._unsettled = {path for path in entries if listing.files[path].facts in listing.fresh}
        self._listing = listing
        if any(listed.path not in before.files for listed in changed):
            self._unlist(listing)
        return True

    def _is_apart(
        self,
        listing: FileListing,
        unread: Mapping[bytes, ListedFile],
        entries: Mapping[bytes, TreeEntry],
        lost: Collection[bytes],
    ) -> bool:
        """Whether plain files alone come, change or go, each where no other path of the tree depends on it."""
        new = entries.keys() - self._entries.keys()
        if len(new) + len(lost) > _MOST_APART or not (self._entries.keys() & unread.keys()) <= entries.keys():
            return False
        if any(entry.mode not in (FILE, EXECUTABLE) for entry in entries.values()):
            return False
        if not all(self._is_plain(path) for path in (*lost, *(entries.keys() - new))):
            return False
        if any(path in self._start and self._start[path].mode == SUBMODULE for path in lost):
            return False
        # A listing that is made while folders and files take each other's place may hold both.
        folders = tuple(path + b"/" for path in (*new, *lost))
        beside = listing.files.keys() | self._entries.keys() if folders else ()
        return not any(path.startswith(folders) for path in beside) and not any(
            above in self._entries for path in new for above in folders_above(path)
        )

    def _is_plain(self, path: bytes) -> bool:
        """Whether a path of the tree was a file, in the last listing, too."""
        listed = self._listing.files.get(path) if self._listing is not None else None
        return listed is not None and listed.kind == b"f" and self._entries[path].mode in (FILE, EXECUTABLE)

    def _settle(
        self,
        tree: str,
        entries: dict[bytes, TreeEntry],
        blobs: Mapping[bytes, str],
        listing: FileListing | None,
        caches: frozenset[bytes] = frozenset(),
    ) -> None:
        """Keep what the next tree is compared with, except files that may change without a trace."""
        self._tree, self._entries, self._listing, self._caches = tree, entries, listing, caches
        self._known |= _blobs_of(entries)
        if listing is None:
            self._blobs, self._tags, self._unsettled = {}, {}, set()
            return
        settled_facts = {listed.facts for listed in listing.files.values()} - listing.fresh
        self._blobs = {facts: blob for facts, blob in blobs.items() if facts in settled_facts}
        self._tags = {facts: tag for facts, tag in self._tags.items() if facts in settled_facts}
        self._unsettled = {
            path
            for path, listed in listing.files.items()
            if listed.facts not in self._blobs and (entry := entries.get(path)) and entry.mode in (FILE, EXECUTABLE)
        }
        self._unlist(listing)

    def _unlist(self, listing: FileListing) -> None:
        """Leave large folders of junk out of the next listings: nothing that appears there can count."""
        room = _MOST_UNLISTED - len(self._unlisted)
        hidden = Counter(
            folder
            for path in listing.files
            if path not in self._start
            and (folder := self._rules.hidden_folder(path)) is not None
            and folder not in self._start_folders
        )
        many = [folder for folder, count in hidden.most_common(room) if count >= _UNLISTED_FROM]
        if many:
            self._unlisted += tuple(many)

    def _member(self, listed: ListedFile) -> Member:
        path = b"%s/%s" % (_TOP, listed.path)
        if listed.kind == b"l":
            if listed.links != 1:
                raise _TooMuchError
            return Member(path, MemberKind.SYMLINK, target=listed.target)
        if listed.kind != b"f":
            return Member(path, MemberKind.SPECIAL)
        tag = self._tags.get(listed.facts)
        if tag is not None:
            return Member(path, MemberKind.FILE, listed.is_executable, len(tag), content=io.BytesIO(tag))
        return Member(
            path, MemberKind.FILE, listed.is_executable, listed.size, content=cast("IO[bytes]", _Unread(listed))
        )

    def _learn_tags(self, listing: FileListing) -> None:
        """Read the tags of new caches, because what lies in such a folder need not be read."""
        new = {
            path: listed
            for path, listed in listing.files.items()
            if _is_tag(path)
            and listed.kind == b"f"
            and path not in self._start
            and listed.facts not in self._tags
            and not self._rules.hide(path)
        }
        for path, content, size in self._read(new.values()):
            self._tags[new[path].facts] = content.read(size)

    def _read(self, files: Collection[ListedFile]) -> Iterator[tuple[bytes, IO[bytes], int]]:
        if len(files) > _MOST_FILES or sum(listed.size for listed in files) > _MOST_BYTES:
            raise _TooMuchError
        return self._lister.read(files)


class _TooMuchError(Exception):
    """Extracting everything is faster or safer."""


class _Unread:
    """Stands for the content of a file that was listed."""

    def __init__(self, listed: ListedFile) -> None:
        self.listed = listed


class _Spool(BlobSpool):
    """Knows the blobs of files by their facts, and notes the files that it does not know."""

    def __init__(self, store: TreeStore, known: Collection[str], blobs: Mapping[bytes, str]) -> None:
        super().__init__(store, known)
        self._blobs = blobs
        self.new: list[ListedFile] = []

    def add(self, source: IO[bytes], size: int) -> str:
        """As in `BlobSpool`; an empty name for a file that is yet to be read."""
        if not isinstance(source, _Unread):
            return super().add(source, size)
        if source.listed.links != 1:
            raise _TooMuchError  # only an extraction knows how it stores a file of several names
        blob = self._blobs.get(source.listed.facts)
        if blob is None:
            self.new.append(source.listed)
        return blob or ""


class _Rules:
    """The ignore rules of a tree, asked once for each path; a context manager that can be entered many times."""

    def __init__(self, store: TreeStore, tree: str) -> None:
        self._source = (store, tree)
        self._files: dict[bytes, bool] = {}
        self._folders: dict[bytes, bytes | None] = {b"": None}
        self._git = ExitStack()
        self._rules: IgnoreRules | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._rules = None
        self._git.close()

    def hide(self, path: bytes) -> bool:
        """See `environments.checkouts.junk.IgnoreRules`."""
        if path not in self._files:
            self._files[path] = self.hidden_folder(path) is not None or self._open_rules().hide(path)
        return self._files[path]

    def hidden_folder(self, path: bytes) -> bytes | None:
        """The topmost folder above a path that is junk."""
        below = [folder for folder in folders_above(path) if folder not in self._folders]
        for folder in reversed(below):
            above = self._folders[folder.rpartition(b"/")[0]]
            self._folders[folder] = folder if above is None and self._open_rules().hide_folder(folder) else above
        return self._folders[path.rpartition(b"/")[0]]

    def _open_rules(self) -> IgnoreRules:
        if self._rules is None:
            self._rules = self._git.enter_context(IgnoreRules(*self._source))
        return self._rules


def _is_tag(path: bytes) -> bool:
    return path.endswith(b"/" + CACHE_TAG)


def _blobs_of(entries: Mapping[bytes, TreeEntry]) -> set[str]:
    return {entry.blob for entry in entries.values() if entry.mode != SUBMODULE}
