"""A git repository, read through a few streaming processes and never written to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from prchain.core.errors import GitError, GitMissing, IncompleteRepository, NotARepository, ShallowRepository
from prchain.core.git.blame import BLAMED, read_places
from prchain.core.git.environment import objects_only
from prchain.core.git.line_changes import FileLines, read_line_changes
from prchain.core.git.output import (
    LineCount,
    RawChange,
    RawCommit,
    line_counts,
    parse_numstat,
    parse_raw,
    path_text,
    raw_commit,
    split_nul,
)
from prchain.core.git.patches import FilePatch, read_patches
from prchain.core.git.process import GitStream, only
from prchain.core.git.words import standing

T = TypeVar("T")

_ARGUMENTS = 1000
"""How many paths are handed to one git process as arguments; the system bounds their total length."""


_SNIFFED = 8000
"""Bytes in which a NUL makes a file binary, as for git."""

_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=none")

_FUNCTIONS = {
    "core.attributesFile": str(Path(__file__).with_name("functions.gitattributes")),
    "diff.no-functions.xfuncname": "^",
}
"""Settings under which `--function-context` knows where functions begin."""

_INDENTED_FUNCTIONS = {
    "diff.python.xfuncname": r"^([ \t]*(class|(async[ \t]+)?def)[ \t].*)$",
    "diff.rust.xfuncname": (
        r"^([ \t]*(pub(\([^)]+\))?[ \t]+)?((async|const|unsafe|extern([ \t]+\"[^\"]+\")?)[ \t]+)*"
        r"(struct|enum|union|mod|trait|fn|impl|macro_rules!)[< \t]+[^;]*)$"
    ),
}
"""Settings under which hunks name the function around them with its indentation, which git's own patterns drop."""


class _Facts(NamedTuple):
    shallow: bool
    object_format: str
    objects: Path


class GitRepository:
    """A git repository, bare or not, that is only read.

    Of its folder only objects and refs are read: settings, attributes, grafts and replace refs there, which no other
    clone has, change nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> GitRepository:
        """Open the repository at `path`.

        Raises `NotARepository`, `ShallowRepository`, or `GitMissing`.
        """
        if not path.exists():
            raise NotARepository(f"there is no {path}; give the path of a git repository")
        if not path.is_dir():
            raise NotARepository(f"{path} is not a folder; give the path of a git repository")
        repository = cls(path)
        try:
            shallow = repository._facts.shallow
        except GitMissing:
            raise
        except GitError as error:
            # Settings in its folder that git cannot read, say.
            why = "" if "not a git repository" in str(error) else f" that git can read: {error}"
            raise NotARepository(f"{path} is not a git repository{why}") from error
        if shallow:
            raise ShallowRepository(f"{path} is a shallow clone; run `git fetch --unshallow` there first")
        return repository

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""
        return self._facts.object_format

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self._facts.objects

    def run(self, *arguments: str, named: bool = False) -> str:
        """What one short git command prints, decoded; `named` as in `stream`. Raises `GitError`."""
        with self.stream(*arguments, named=named) as output:
            return output.read().decode("utf-8", "replace")

    def stream(
        self,
        *arguments: str,
        lines: Iterable[str] = (),
        fine: Collection[int] = (0,),
        config: Mapping[str, str] | None = None,
        named: bool = False,
    ) -> GitStream:
        """Start git with `arguments`, feed it `lines` on standard input, and give its output to read.

        `fine` are the exit statuses that are no failure, and `config` settings. Git sees the objects alone, by their
        ids; with `named` the repository's folder: refs, HEAD and settings.
        """
        own = only(self.path) if named else objects_only(self.objects, self.object_format)
        return GitStream(arguments, lines, own=own, config=config, fine=fine)

    @cached_property
    def _facts(self) -> _Facts:
        asked = ("--is-shallow-repository", "--show-object-format", "--git-path", "objects")
        with self.stream("rev-parse", *asked, named=True) as output:
            answer = output.read()
        shallow, object_format, objects = answer.split(b"\n", 2)
        folder = Path(os.fsdecode(objects.removesuffix(b"\n")))
        return _Facts(shallow == b"true", object_format.decode(), folder.resolve())

    def refs(self, *patterns: str) -> dict[str, str]:
        """Full ref name to commit sha, for refs below the patterns; annotated tags are peeled."""
        fields = "%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)"
        found = {}
        # Names may hold what str.splitlines takes for the end of a line.
        for line in self.run("for-each-ref", f"--format={fields}", *patterns, named=True).rstrip("\n").split("\n"):
            name, *described = line.split(" ")
            for kind, sha in zip(described[::2], described[1::2], strict=True):
                if kind == "commit":
                    found[name] = sha
        return found

    def default_branch(self) -> str | None:
        """The branch that HEAD names, without ``refs/heads/``; None where it is detached or there is no such branch."""
        try:
            name = self.run("symbolic-ref", "--quiet", "HEAD", named=True).strip()
        except GitError:
            return None
        return name.removeprefix("refs/heads/") if name in self.refs(name) else None

    def is_partial(self) -> bool:
        """Whether this is a partial clone that lacks blobs; one that was fetched wholly since is none any more."""
        try:
            self.run("config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$", named=True)
        except GitError:
            return False
        return bool(self.missing_blobs(self.refs("refs/heads").values()))

    def commits(self, starts: Iterable[str]) -> Iterator[RawCommit]:
        """Every commit reachable from `starts`, children before parents.

        Raises `IncompleteRepository` where a commit is missing.
        """
        commits = list(starts)
        if not commits:  # git would take HEAD instead
            return
        fields = "%H%x00%P%x00%T%x00%an%x00%ae%x00%at%x00%cn%x00%ct%x00%B%x00"
        arguments = ("log", "--stdin", "--topo-order", "--encoding=UTF-8", f"--format=tformat:{fields}")
        with self.stream(*arguments, lines=commits) as output:
            parts = split_nul(output)
            for commit in zip(*[parts] * 9, strict=False):  # nine parts each
                yield raw_commit(*commit)

    def changes(self, pairs: Iterable[tuple[str, str]], *, renames: bool = False) -> Iterator[list[RawChange]]:
        """For each (old, new) pair of commits, in order, the paths that differ; one git process for all of them.

        With `renames`, deleted and added paths of similar content are paired, which reads blobs. Raises
        `IncompleteRepository` where a tree (or, with `renames`, a blob) is missing.
        """
        yield from self._diff(pairs, ("--raw", "--no-abbrev", "-M" if renames else "--no-renames"), parse_raw)

    def line_counts(self, pairs: Iterable[tuple[str, str]]) -> Iterator[list[LineCount]]:
        """For each (old, new) pair, the lines added and removed per path, renames followed; reads every blob."""
        yield from self._diff(pairs, ("--numstat", "-M"), parse_numstat)

    def line_counts_of(self, pair: tuple[str, str], changes: Sequence[RawChange]) -> list[LineCount]:
        """Line counts of some changes of one (old, new) pair; for pairs that lack blobs elsewhere."""
        renames = "-M" if any(change.old_path for change in changes) else "--no-renames"
        arguments = ("diff-tree", "-r", "-z", "--numstat", renames, *_PLAIN_DIFF, *pair, "--")
        found: list[LineCount] = []
        for start in range(0, len(changes), _ARGUMENTS):
            batch = changes[start : start + _ARGUMENTS]
            paths = [path for change in batch for path in (change.old_path, change.path) if path]
            with self.stream(*arguments, *paths) as output:
                found.extend(line_counts(split_nul(output)))
        return found

    def patches(
        self, pairs: Iterable[tuple[str, str]], *, context: int = 0, functions: bool = False
    ) -> Iterator[list[FilePatch]]:
        """For each (old, new) pair of commits, in order, its patch; renames followed; one git process for all of them.

        `context` is the number of unchanged lines around each change; with `functions` it is as in `patch_text`.
        Raises `IncompleteRepository` where a blob is missing.
        """
        pair_list = [(old, new) for old, new in pairs]
        arguments = (
            "diff-tree",
            "--stdin",
            "-r",
            "-m",
            "--always",
            "-p",
            *(("--function-context",) if functions else ()),
            "-M",
            f"-U{context}",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            *_PLAIN_DIFF,
        )
        lines = (f"{new} {old}" for old, new in pair_list)
        stream = self.stream(*arguments, lines=lines, config=_FUNCTIONS if functions else None)
        yield from _whole(stream, lambda output: read_patches(output, [new for _, new in pair_list]))

    def line_changes(self, steps: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, list[FileLines]]]:
        """For each (commit, parent), in order, the lines that it changes; without a parent it brings all its files.

        Renames are followed; one git process for all of them; hunks name the function around them, by explicit
        attributes, whatever the repository's own say. Raises `IncompleteRepository` where a blob is missing.
        """
        arguments = (
            "diff-tree",
            "--stdin",
            "--root",
            "-r",
            "-m",
            "--always",
            "-p",
            "-M",
            "-U0",
            "--full-index",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            *_PLAIN_DIFF,
        )
        lines = (f"{commit} {parent}" if parent else commit for commit, parent in steps)
        stream = self.stream(*arguments, lines=lines, config={**_FUNCTIONS, **_INDENTED_FUNCTIONS})
        yield from _whole(stream, read_line_changes)

    def blame(self, commit: str, path: bytes, ranges: Iterable[tuple[int, int]] = ()) -> list[str]:
        """The first-parent commit that each line of a file is from, of all lines or of ranges (first line, count).

        The ranges are in order and do not meet. Raises `IncompleteRepository` where a blob is missing.
        """
        limits = (f"-L{start},+{count}" for start, count in ranges)
        name = os.fsdecode(path)
        arguments = ("blame", "--first-parent", "--root", "-s", "-l", "--porcelain", *limits, commit, "--", name)
        with self.stream(*arguments) as output:
            return [match[1].decode() for line in output if (match := BLAMED.match(line))]

    def places_before(
        self, commit: str, path: bytes, ranges: Iterable[tuple[int, int]], earlier: str
    ) -> list[tuple[bytes, int] | None]:
        """Path and line number that each line of ranges of a file had in an earlier first-parent commit; None for what
        came later, or is not that commit's. The ranges are those of `blame`, whose errors it raises."""
        limits = (f"-L{start},+{count}" for start, count in ranges)
        name = os.fsdecode(path)
        arguments = ("blame", "--first-parent", "-s", "-l", "--line-porcelain", *limits, commit, f"^{earlier}")
        with self.stream(*arguments, "--", name) as output:
            return list(read_places(output, earlier))

    def branches_with(self, commit: str, branches: Iterable[str]) -> set[str]:
        """Those of some branches, without ``refs/heads/``, whose history has a commit."""
        refs = [f"refs/heads/{branch}" for branch in branches]
        if not refs:
            return set()
        names = self.run("for-each-ref", f"--contains={commit}", "--format=%(refname)", *refs, named=True)
        return {name.removeprefix("refs/heads/") for name in names.split("\n") if name}

    def missing_blobs(self, tips: Iterable[str]) -> set[str]:
        """The objects that the first-parent histories of some commits need and the repository lacks."""
        arguments = ("rev-list", "--objects", "--missing=print", "--first-parent", "--stdin")
        with self.stream(*arguments, lines=tips) as output:
            return {line[1:].split()[0].decode() for line in output if line.startswith(b"?")}

    def patch_text(
        self, old: str, new: str, paths: Sequence[str] = (), *, functions: bool = False, text: bool = False
    ) -> bytes:
        """The patch from `old` to `new` as git prints it, applicable and whole; of `paths` only, where some are given.

        With `functions`, unchanged lines are shown from the beginning of the function, class or section that a change
        stands in to its end, in files of languages that git knows; else three of them. With `text`, files that git
        takes for binary are shown by lines, whatever bytes these hold.

        A rename is a deletion and an addition: half of one, picked by `paths`, must still apply. A path is that path
        and nothing below it: where a folder takes the place of a file, git takes the file's name for both. Names that
        are not ASCII are quoted, as git does by itself.
        """
        arguments = (
            "diff-tree",
            "-r",
            "-p",
            *(("--function-context",) if functions else ()),
            *(("--text",) if text else ()),
            "--binary",
            "--full-index",
            "--no-renames",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            *_PLAIN_DIFF,
            old,
            new,
            "--",
        )
        config = {"core.quotePath": "true", **(_FUNCTIONS if functions else {})}
        with self.stream(*arguments, *(paths if len(paths) <= _ARGUMENTS else ()), config=config) as output:
            patch = output.read()
        return _patch_of_paths(patch, paths) if paths else patch

    def parents(self, starts: Iterable[str]) -> Iterator[tuple[str, ...]]:
        """Every commit reachable from `starts` with its parents after it, children before parents.

        Raises `IncompleteRepository` where a commit is missing.
        """
        with self.stream("rev-list", "--stdin", "--topo-order", "--parents", lines=starts) as output:
            for line in output:
                yield tuple(line.decode().split())

    def paths_at(self, commit: str) -> set[str]:
        """Every path of the commit's tree."""
        with self.stream("ls-tree", "-r", "-z", "--name-only", commit) as output:
            return {path_text(path) for path in split_nul(output)}

    def blobs_at(self, commit: str) -> dict[str, str]:
        """The id of every file of the commit's tree, by its path."""
        with self.stream("ls-tree", "-r", "-z", "--format=%(objectmode) %(objectname) %(path)", commit) as output:
            entries = [entry.split(b" ", 2) for entry in split_nul(output)]
        return {path_text(path): blob.decode() for mode, blob, path in entries if mode.startswith(b"100")}

    def root_entries(self, commits: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
        """For each commit, in order, the (name, object id) entries at the root of its tree; one git process for all.

        A commit that is not there has none.
        """
        tree_names = [f"{commit}^{{tree}}" for commit in commits]
        with self.stream("cat-file", "--batch", lines=tree_names) as output:
            for _ in tree_names:
                header = output.readline().split()
                if len(header) != 3:
                    yield []
                    continue
                content = output.read(int(header[2]))
                output.read(1)
                yield list(_tree_entries(content, len(header[0]) // 2))

    def words_at(self, commit: str, words: Iterable[str]) -> set[str]:
        """Those of `words` that stand, as whole words, in some text file of the commit's tree.

        Raises `IncompleteRepository` where a blob is missing.
        """
        return standing(self.texts(commit), words)

    def texts(self, commit: str) -> Iterator[bytes]:
        """The content of every text file of a commit's tree; each content once. Raises as `text_files`."""
        return (content for _, content in self.text_files(commit))

    def text_files(self, commit: str) -> Iterator[tuple[list[str], bytes]]:
        """The content of every text file of a commit's tree, with the paths that have it.

        Raises `IncompleteRepository` where a blob is missing.
        """
        paths: dict[str, list[str]] = {}
        for path, blob in self.blobs_at(commit).items():
            paths.setdefault(blob, []).append(path)
        blobs = sorted(paths)
        with self.stream("cat-file", "--batch", lines=blobs) as output:
            for name in blobs:
                header = output.readline().split()
                if header[1:] == [b"missing"]:
                    raise IncompleteRepository(f"blob {name} is missing; fetch the repository anew")
                if len(header) != 3:
                    raise GitError(f"git cat-file answered {b' '.join(header)[:60]!r} out of turn")
                content = output.read(int(header[2]))
                output.read(1)
                if b"\0" not in content[:_SNIFFED]:
                    yield paths[name], content

    def blob(self, name: str) -> bytes:
        """The content of a blob, by id or as ``COMMIT:PATH``."""
        with self.stream("cat-file", "blob", name) as output:
            return output.read()

    def missing(self, objects: Iterable[str]) -> set[str]:
        """Those of the given objects that the repository does not have."""
        with self.stream("cat-file", "--batch-check=%(objectname)", lines=objects) as output:
            return {line.split(b" ")[0].decode() for line in output.read().splitlines() if line.endswith(b" missing")}

    def _diff(self, pairs: Iterable[tuple[str, str]], options: tuple[str, ...], parse: Any) -> Iterator[Any]:
        # diff-tree takes "<commit> <parent>" lines and compares the commit with the parent named on the line. It
        # repeats the commit before each diff; a commit that changes nothing is answered with nothing, so the answers
        # are matched to the questions by that line.
        pair_list = [(old, new) for old, new in pairs]
        arguments = ("diff-tree", "--stdin", "-r", "-z", "-m", "--always", *_PLAIN_DIFF, *options)
        with self.stream(*arguments, lines=(f"{new} {old}" for old, new in pair_list)) as output:
            yield from parse(split_nul(output), [new for _, new in pair_list])


def _whole(stream: GitStream, read: Callable[[BufferedReader], Iterator[T]]) -> Iterator[T]:
    """The answers that `read` finds in git's output, each only once git has gone on to the next or ended well.

    A git that dies over a missing blob has printed a part of its answer, which looks like a whole one.
    """
    held: list[T] = []
    with stream as output:
        for answer in read(output):
            yield from held
            held = [answer]
    yield from held


def _tree_entries(content: bytes, digest: int) -> Iterator[tuple[str, str]]:
    """The names and object ids of a tree as git stores it: mode, name, NUL, and the id's bytes."""
    start = 0
    while start < len(content):
        end = content.index(b"\0", start)
        name = content[start:end].split(b" ", 1)[1]
        yield path_text(name), content[end + 1 : end + 1 + digest].hex()
        start = end + 1 + digest


_HEADER = re.compile(rb"(?m)^diff --git .*$")
"""The first line of a file's patch. No line of content begins so: those carry a mark, and binary ones hold no blank."""
_QUOTED = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_LETTERS = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


def _patch_of_paths(patch: bytes, paths: Collection[str]) -> bytes:
    """The parts of a patch that are those of exactly the given paths."""
    headers = {_header(path.encode("utf-8", "surrogateescape")) for path in paths}
    heads = list(_HEADER.finditer(patch))
    bounds = pairwise([*(head.start() for head in heads), len(patch)])
    return b"".join(patch[start:end] for head, (start, end) in zip(heads, bounds, strict=True) if head[0] in headers)


def _header(path: bytes) -> bytes:
    """The first line of the patch of a path, which git quotes like a C string where it has to."""
    if not _QUOTED.search(path):
        return b"diff --git a/%b b/%b" % (path, path)
    name = _QUOTED.sub(lambda match: b"\\" + _LETTERS.get(match[0][0], b"%03o" % match[0][0]), path)
    return b'diff --git "a/%b" "b/%b"' % (name, name)
