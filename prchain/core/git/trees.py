"""Trees: reading and writing them in a bare store of our own, which borrows every other object from mirrors.

A mirror is never written to: the store names the mirrors' object folders as alternates (gitrepository-layout(5)) and
keeps what is new. Nothing but bytes counts: attributes that change content (end of line, ident, filters, export-ignore)
are switched off, and no configuration of the user or the system is read.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

from prchain.core.errors import GitError, IncompleteRepository, OtherObjectFormat, PrchainError, no_room
from prchain.core.git.output import path_text, split_nul
from prchain.core.git.patches import parse_patch
from prchain.core.git.process import GitStream
from prchain.core.git.repository import GitRepository
from prchain.core.git.tree_edits import FolderEdits

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"

RAW_ATTRIBUTES = "* -text -eol -crlf -ident -filter -working-tree-encoding -export-ignore -export-subst\n"
"""For ``info/attributes``, which outranks every file of the tree (gitattributes(5)): content is what the blob holds."""

IDENTITY = b"prchain <prchain@localhost>"
EPOCH = 946_684_800
"""2000-01-01 UTC: the date of commits of our own, so that the same tree always gives the same commit."""

_CONFIG = {
    "core.compression": "1",
    # What these refuse are names that only other systems take for .git; on Linux they are names like any other.
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "tar.umask": "0022",
    "merge.renames": "true",
    "merge.directoryRenames": "false",
    "merge.renameLimit": "7000",
    "merge.conflictStyle": "merge",
}


class TreeEntry(NamedTuple):
    """What a path of a tree is: mode in octal as git prints it, and blob id (of a submodule, the commit's)."""

    mode: str
    blob: str


class TreeChange(NamedTuple):
    """One path that differs between two trees; None where the tree does not have it."""

    path: bytes
    old: TreeEntry | None
    new: TreeEntry | None


_LISTINGS_KEPT = 6
"""Trees whose paths a store remembers: a rollout asks for the same few after each step."""

_LONGEST_KEPT = 10_000
"""Paths of the largest tree that is remembered; of larger ones it is the reading that takes time, not the process."""

_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


class TreeStore(GitRepository):
    """A bare repository that trees, blobs and commits are written to. No ref ever points to any of them.

    What an object holds never changes, so a store remembers the trees of the ids that it was asked for, and the paths
    of the last trees: each of these would be a git process.
    """

    stream_type: ClassVar[type[GitStream]] = GitStream
    """How its git processes are started."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._trees: dict[str, str] = {}
        self._listings: dict[str, dict[bytes, TreeEntry]] = {}
        self._lock = threading.Lock()
        self._folder_edits = FolderEdits(self)

    @classmethod
    def open(cls, path: Path, alternates: Sequence[Path] = ()) -> TreeStore:
        """Open the store at `path`, made when missing, with the repositories `alternates` behind it.

        Those of last time are kept behind them, as far as they are there: what was written here may need their objects.
        Raises `NotARepository` or `ShallowRepository` for an alternate, `OtherObjectFormat` where formats differ,
        `GitError` where the folder cannot be made or written, `GitMissing`, `DiskFull`.
        """
        behind = [GitRepository.open(place) for place in alternates]
        formats = {git_repository.object_format for git_repository in behind}
        if len(formats) > 1:
            raise OtherObjectFormat(f"{path} cannot borrow from repositories of different object formats")
        store = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with (path / "prchain.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                store._make(next(iter(formats), "sha1"), [git_repository.objects for git_repository in behind])
        except PrchainError:
            raise
        except OSError as error:
            raise no_room(error, path) or GitError(f"{path} cannot be made: {error.strerror}") from None
        if formats and formats != {store.object_format}:
            raise OtherObjectFormat(f"{path} has another object format than the repository it is to borrow from")
        return store

    def _make(self, new_format: str, behind: Sequence[Path]) -> None:
        """Make what is missing of the folder, and borrow from the folders of objects `behind`."""
        if not (self.path / "HEAD").exists():
            self.run("init", "--quiet", "--bare", "--template=", f"--object-format={new_format}")
        _write(self.path / "info" / "attributes", RAW_ATTRIBUTES)
        if behind:
            place = self.path / "objects" / "info" / "alternates"
            lines = dict.fromkeys(map(alternate_line, behind))
            before = os.fsdecode(place.read_bytes()).split("\n") if place.exists() else []
            lines |= dict.fromkeys(line for line in before if line and _folder_of(line).is_dir())
            _write(place, "".join(f"{line}\n" for line in lines))

    def stream(
        self,
        *arguments: str,
        lines: Iterable[str] | None = (),
        fine: Collection[int] = (0,),
        config: Mapping[str, str] | None = None,
        named: bool = True,
        feed: IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> GitStream:
        """As in `GitRepository`, always in its own folder; `feed` and no `lines` as in `GitStream`; `environment` adds
        to git's."""
        own = {"GIT_DIR": str(self.path.absolute()), **(environment or {})}
        settings = {**_CONFIG, **(config or {})}
        return self.stream_type(arguments, lines, own=own, config=settings, fine=fine, feed=feed)

    # ---- reading

    def tree_of(self, name: str) -> str:
        """The id of a tree, or of a commit's tree. Raises `IncompleteRepository` where it is not there."""
        return self.trees_of([name])[0]

    def trees_of(self, names: Sequence[str]) -> list[str]:
        """`tree_of` for each name; one git process for all of them that are new."""
        found = {name: self._trees[name] for name in names if name in self._trees}
        unknown = [name for name in names if name not in found]
        if unknown:
            with self.stream(
                "cat-file", "--batch-check=%(objectname) %(objecttype)", lines=(f"{name}^{{tree}}" for name in unknown)
            ) as output:
                answers = [line.split() for line in output.read().splitlines()]
            for name, answer in zip(unknown, answers, strict=True):
                if answer[1:] != [b"tree"]:
                    raise IncompleteRepository(f"there is no tree {name}; fetch the repository anew")
                found[name] = answer[0].decode()
                if _ID.fullmatch(name):
                    self._trees[name] = found[name]
        return [found[name] for name in names]

    def entries(self, tree: str) -> dict[bytes, TreeEntry]:
        """Every path of a tree (or commit) but folders, in git's order."""
        found = self._listings.get(tree)
        if found is None:
            found = self._listing(tree)
            if _ID.fullmatch(tree) and len(found) <= _LONGEST_KEPT:
                with self._lock:
                    self._listings[tree] = found
                    if len(self._listings) > _LISTINGS_KEPT:
                        del self._listings[next(iter(self._listings))]
        return dict(found)

    def _listing(self, tree: str) -> dict[bytes, TreeEntry]:
        found = {}
        with self.stream("ls-tree", "-r", "-z", "--full-tree", tree) as output:
            for line in split_nul(output):
                described, _, path = line.partition(b"\t")
                mode, _, blob = described.decode().split(" ")
                found[path] = TreeEntry(mode, blob)
        return found

    def blobs(self, names: Iterable[str]) -> list[bytes]:
        """The contents of blobs. Raises `IncompleteRepository` where one is missing."""
        blob_names = list(names)
        if not blob_names:
            return []
        with self.stream("cat-file", "--batch", lines=blob_names) as output:
            return [_content(output, name) for name in blob_names]

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """The sizes of blobs; one that is missing has none."""
        with self.stream("cat-file", "--batch-check=%(objectname) %(objectsize)", lines=names) as output:
            words = [line.split() for line in output]
        return {name.decode(): int(size) for name, size in words if size.isdigit()}

    def diff(self, old: str, new: str) -> list[TreeChange]:
        """The paths that differ between two trees or commits; a rename is a deletion and an addition."""
        arguments = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
        found = []
        with self.stream(*arguments, old, new, "--") as output:
            parts = split_nul(output)
            for part in parts:
                old_mode, new_mode, old_blob, new_blob, status = part[1:].decode().split(" ")
                before = None if status == "A" else TreeEntry(old_mode, old_blob)
                found.append(TreeChange(next(parts), before, None if status == "D" else TreeEntry(new_mode, new_blob)))
        return found

    def to_tar(self, tree: str) -> GitStream:
        """A tree as a tar, to be read in a ``with``: every blob as it is, submodules as empty folders."""
        return self.stream("archive", "--format=tar", self.tree_of(tree))

    # ---- writing

    def name_of(self, kind: str, content: bytes) -> str:
        """The id that git gives an object of this kind and content."""
        return str(self.hasher(kind, len(content), content).hexdigest())

    def hasher(self, kind: str, size: int, content: bytes = b"") -> Any:
        """What computes the id of an object whose content of `size` bytes is yet to come."""
        return hashlib.new(self.object_format, b"%s %d\0" % (kind.encode(), size) + content, usedforsecurity=False)

    def write_blob(self, content: bytes) -> str:
        """Write one blob; returns its id."""
        return self.write("blob", [content])[0]

    def write(self, kind: str, contents: Iterable[bytes]) -> list[str]:
        """Write a few objects of one kind; returns their ids. `prchain.core.git.spool` is for many."""
        with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
            names = []
            for place, content in enumerate(contents):
                (Path(folder) / str(place)).write_bytes(content)
                names.append(str(Path(folder, str(place))))
            with self.stream("hash-object", "-t", kind, "-w", "--no-filters", "--stdin-paths", lines=names) as output:
                return output.read().decode().split()

    def commit(self, tree: str, parents: Sequence[str] = (), message: str = "State", *, seconds: int = EPOCH) -> str:
        """Write a commit by `IDENTITY`, whose id depends on nothing but the arguments; `seconds` is Unix time, UTC."""
        return self.write("commit", [commit_body(tree, parents, message.encode(), seconds=seconds)])[0]

    def write_tree(self, entries: Mapping[bytes, TreeEntry]) -> str:
        """The tree of these paths, whose blobs must be there. Raises `GitError` for a name that git refuses."""
        return self._through_index(None, entries, ())

    def edit(self, tree: str, changes: Mapping[bytes, TreeEntry | None]) -> str:
        """The tree with these paths set, or taken away where None.

        A path that is set replaces a folder of its name, and a file where it needs a folder.
        """
        if not changes:
            return self.tree_of(tree)
        _check_names(changes)
        is_plain = all(map(is_storable, changes))
        edited = self._folder_edits.edited(self.tree_of(tree), changes) if is_plain else None
        if edited is not None:
            self._trees[edited] = edited
            return edited
        # A mirror may lack a blob (too large to be kept) that no one needs as long as the path is left alone.
        return self._through_index(self.tree_of(tree), changes, ("--missing-ok",))

    def apply(self, tree: str, patch: bytes) -> str:
        """The tree with a patch applied, as git's own format has it; an empty patch changes nothing.

        Raises `GitError` where it does not apply, `IncompleteRepository` where what it changes is not there: a clone
        without blobs or trees. A failure of the machine has a kind (`PrchainError.infrastructure`).
        """
        if not patch.strip():
            return self.tree_of(tree)
        with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tempfile.TemporaryFile() as feed:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            feed.write(patch)
            self._call("read-tree", self.tree_of(tree), environment=index)
            try:
                self._call("apply", "--cached", "--whitespace=nowarn", feed=feed, environment=index)
            except GitError as error:
                if error.infrastructure is None:
                    self._require_files(tree, patch)
                raise
            return self._call("write-tree", "--missing-ok", environment=index).decode().strip()

    def _require_files(self, tree: str, patch: bytes) -> None:
        """Raise `IncompleteRepository` where what a patch changes is missing; nothing for one that cannot be read."""
        try:
            files = parse_patch(patch.decode("utf-8", "surrogateescape"))
        except GitError:
            return
        paths = {path for file in files for path in (file.path, file.old_path)}
        if self.missing(entry.blob for path, entry in self.entries(tree).items() if path_text(path) in paths):
            raise IncompleteRepository(f"the repository does not hold all files of {tree} that are to be patched")

    def pack(self, commit: str, folder: Path, *, without: Sequence[str] = (), parts: int = 1) -> list[str]:
        """Write the commit and all that it reaches, but for what is in the trees `without` or those of such commits,
        into `folder` as a pack and its index, or as several: of some `parts`, `2 * parts + 1` at most, as git takes
        none of less than a megabyte. Returns their hashes."""
        lines = [commit, *(f"^{other}^{{tree}}" for other in without)]
        arguments = ("pack-objects", "--quiet", "--revs", "--window=0", "--delta-base-offset")
        size = int(self.run("rev-list", "--objects", "--disk-usage", *lines)) if parts > 1 else 0
        while True:
            most = (f"--max-pack-size={max(size // parts, 1 << 20)}",) if parts > 1 else ()
            # git writes among its objects and renames, which `folder` may be on the wrong file system for.
            with tempfile.TemporaryDirectory(prefix="pack-", dir=self.path.absolute()) as own:
                # It goes into a sandbox: nothing is lost with it.
                with self.stream(
                    *arguments, *most, f"{own}/pack", lines=lines, config={"core.fsync": "none"}
                ) as output:
                    names = output.read().decode().split()
                if len(names) <= 2 * parts + 1:
                    for name in names:
                        for ending in ("pack", "idx"):
                            shutil.move(f"{own}/pack-{name}.{ending}", folder)
                    return names
                # The mirror has many as the difference to what is left out. Two neighbours hold more than the limit.
                size = sum(path.stat().st_size for path in Path(own).iterdir())

    def reached(self, commit: str, *, without: str) -> list[str]:
        """The ids of the commit and of all that it reaches, but for what is in the tree `without` or that of such a
        commit."""
        lines = [commit, f"^{without}^{{tree}}"]
        with self.stream("rev-list", "--objects", "--no-object-names", "--stdin", lines=lines) as output:
            return output.read().decode().split()

    def write_index(self, tree: str, place: Path) -> None:
        """Write an index that holds the tree (or commit's tree), without times of files."""
        self._call("read-tree", tree, environment={"GIT_INDEX_FILE": str(place)})

    def _through_index(
        self, base: str | None, changes: Mapping[bytes, TreeEntry | None], options: tuple[str, ...]
    ) -> str:
        _check_names(changes)
        zeros = "0" * (64 if self.object_format == "sha256" else 40)
        with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tempfile.TemporaryFile() as feed:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            if base is not None:
                self._call("read-tree", base, environment=index)
            removed, kept = (
                [path for path, entry in changes.items() if (entry is None) == is_removed] for is_removed in (1, 0)
            )
            for path in removed:
                feed.write(b"0 %s\t%s\0" % (zeros.encode(), path))
            for path in kept:
                entry = changes[path]
                assert entry is not None
                feed.write(b"%s %s\t%s\0" % (entry.mode.encode(), entry.blob.encode(), path))
            self._call("update-index", "-z", "--replace", "--index-info", feed=feed, environment=index)
            return self._call("write-tree", *options, environment=index).decode().strip()

    def _call(self, *arguments: str, feed: IO[bytes] | None = None, environment: Mapping[str, str]) -> bytes:
        with self.stream(*arguments, feed=feed, environment=environment) as output:
            return output.read()


def _check_names(changes: Mapping[bytes, TreeEntry | None]) -> None:
    """Raise `GitError` for a name that no tree can hold."""
    refused = [path for path, entry in changes.items() if entry and not is_storable(path, entry.mode)]
    if refused:
        raise GitError(f"{path_text(refused[0])!r} is no name that a tree can hold")


def is_storable(path: bytes, mode: str = FILE) -> bool:
    """Whether git takes such a path into a tree: no NUL, no empty word, ``.``, ``..`` or ``.git`` in any case.

    Nor a symbolic link called .gitmodules, whose content git would look for elsewhere (git's verify_path).
    git itself leaves out what it does not take, and says nothing.
    """
    words = path.lower().split(b"/")
    if b"\0" in path or (mode == LINK and b".gitmodules" in words):
        return False
    return not any(word in (b"", b".", b"..", b".git") for word in words)


def commit_body(
    tree: str,
    parents: Sequence[str],
    message: bytes,
    *,
    seconds: int = EPOCH,
    heads: Sequence[bytes] = (),
) -> bytes:
    """A commit as git stores it; `heads` are its author, committer and encoding lines instead of our own."""
    own = (b"author %s %d +0000" % (IDENTITY, seconds), b"committer %s %d +0000" % (IDENTITY, seconds))
    first = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents)]
    return b"\n".join([*first, *(heads or own), b"", message])


def _content(output: IO[bytes], name: str) -> bytes:
    header = output.readline().split()
    if len(header) != 3:
        raise IncompleteRepository(f"blob {name} is missing; fetch the repository anew")
    content = output.read(int(header[2]))
    output.read(1)
    return content


def alternate_line(path: Path) -> str:
    """A folder of objects as ``objects/info/alternates`` names it; quoted, since it may hold any character."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _folder_of(line: str) -> Path:
    """The other way round."""
    return Path(re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], line[1:-1]))


def _write(path: Path, text: str) -> None:
    content = os.fsencode(text)
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
