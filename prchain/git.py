"""Git plumbing: repositories read through a few streaming git processes, and mirrors kept up to date.

GitPython starts the processes. Repositories are hostile input: no hook, pager, filter, external diff or lazy fetch of
theirs runs, replace refs are ignored, and a repository that the user names by path is only read, never written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from prchain.errors import (
    CloneFailed,
    DiskFull,
    GitError,
    GitMissing,
    IncompleteRepository,
    NotARepository,
    ShallowRepository,
)
from prchain.scrub import redact

OLDEST_GIT = (2, 38)
"""`git merge-tree --write-tree`, which later stages stand on, came with 2.38."""

NULL_MODE = "000000"

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

# A repository's own configuration can name programs to run; these settings outrank it.
_SAFE_CONFIG = (
    "-c", "safe.directory=*",
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.commitGraph=true",
    "-c", "core.quotePath=false",
    "-c", "diff.external=",
    "-c", "diff.renameLimit=1000",
    "-c", "diff.suppressBlankEmpty=false",
    "-c", "gc.auto=0",
    "-c", "log.showSignature=false",
    "-c", "log.mailmap=false",
    "-c", "protocol.ext.allow=never",
)  # fmt: skip

# Git before 2.39.4 does not know GIT_NO_LAZY_FETCH; it must not reach the remote that a partial clone names either.
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}

_BLOCK = 1 << 20

_ARGUMENTS = 1000
"""How many paths are handed to one git process as arguments; the system bounds their total length."""


class RawCommit(NamedTuple):
    """One commit as git stores it. `message` is UTF-8 as far as git could convert it; times are Unix seconds."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    author: str
    author_email: str
    author_time: int
    committer: str
    commit_time: int
    message: bytes


class RawChange(NamedTuple):
    """One changed path between two trees, as `git diff-tree --raw` says it."""

    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str
    status: str
    path: str
    old_path: str | None = None


class LineCount(NamedTuple):
    """Lines added and removed in one path; both None for a binary file."""

    path: str
    additions: int | None
    deletions: int | None


@cache
def _git_module() -> Any:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git  # noqa: PLC0415  GitPython looks for the git program when it is imported

    try:
        version = tuple(int(part) for part in re.findall(r"\d+", git.Git().execute(["git", "version"]))[:2])
    except (git.exc.GitCommandNotFound, git.exc.GitCommandError) as error:
        raise GitMissing("git is not installed, or cannot be run; install git 2.38 or newer") from error
    if version < OLDEST_GIT:
        found = ".".join(map(str, version))
        raise GitMissing(f"git {found} is too old; install git {'.'.join(map(str, OLDEST_GIT))} or newer")
    return git


class GitRepository:
    """A git repository, bare or not, that is only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git = _git_module().Git(str(path))
        self._environment = {**_ENVIRONMENT, **_NO_TRANSPORT, **_only(path)}

    @classmethod
    def open(cls, path: Path) -> GitRepository:
        """Open the repository at `path`.

        Raises `NotARepository`, `ShallowRepository`, or `GitMissing`.
        """
        if not path.is_dir():
            raise NotARepository(f"{path} is not a folder; give the path of a git repository")
        repository = cls(path)
        try:
            shallow = repository.run("rev-parse", "--is-shallow-repository").strip()
        except GitError as error:
            raise NotARepository(f"{path} is not a git repository") from error
        if shallow == "true":
            raise ShallowRepository(f"{path} is a shallow clone; run `git fetch --unshallow` there first")
        return repository

    def run(self, *arguments: str) -> str:
        """Run one short git command and return its standard output, decoded; raises `GitError`."""
        with self.stream(*arguments) as output:
            return output.read().decode("utf-8", "replace")

    def stream(self, *arguments: str, lines: Iterable[str] = ()) -> _Stream:
        """Start git with `arguments`, feed it `lines` on standard input, and give its output to read."""
        return _Stream(self._git, self._environment, arguments, lines)

    def refs(self, *patterns: str) -> dict[str, str]:
        """Full ref name to commit sha, for refs below the patterns; annotated tags are peeled."""
        fields = "%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)"
        found = {}
        # Names may hold what str.splitlines takes for the end of a line.
        for line in self.run("for-each-ref", f"--format={fields}", *patterns).rstrip("\n").split("\n"):
            name, *described = line.split(" ")
            for kind, sha in zip(described[::2], described[1::2], strict=True):
                if kind == "commit":
                    found[name] = sha
        return found

    def default_branch(self) -> str | None:
        """The branch that HEAD names, without ``refs/heads/``; None where it is detached or there is no such branch."""
        try:
            name = self.run("symbolic-ref", "--quiet", "HEAD").strip()
        except GitError:
            return None
        return name.removeprefix("refs/heads/") if name in self.refs(name) else None

    def is_partial(self) -> bool:
        """Whether this is a partial clone, whose missing blobs were left out on purpose."""
        try:
            return bool(self.run("config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$"))
        except GitError:
            return False

    def commits(self, starts: Iterable[str]) -> Iterator[RawCommit]:
        """Every commit reachable from `starts`, children before parents.

        Raises `IncompleteRepository` where a commit is missing.
        """
        fields = "%H%x00%P%x00%T%x00%an%x00%ae%x00%at%x00%cn%x00%ct%x00%B%x00"
        arguments = ("log", "--stdin", "--topo-order", "--encoding=UTF-8", f"--format=tformat:{fields}")
        with self.stream(*arguments, lines=starts) as output:
            parts = _split_nul(output)
            for commit in zip(*[parts] * 9, strict=False):  # nine parts each
                yield _raw_commit(*commit)

    def changes(self, pairs: Iterable[tuple[str, str]], *, renames: bool = False) -> Iterator[list[RawChange]]:
        """For each (old, new) pair of commits, in order, the paths that differ; one git process for all of them.

        With `renames`, deleted and added paths of similar content are paired, which reads blobs. Raises
        `IncompleteRepository` where a tree (or, with `renames`, a blob) is missing.
        """
        yield from self._diff(pairs, ("--raw", "--no-abbrev", "-M" if renames else "--no-renames"), _parse_raw)

    def line_counts(self, pairs: Iterable[tuple[str, str]]) -> Iterator[list[LineCount]]:
        """For each (old, new) pair, the lines added and removed per path, renames followed; reads every blob."""
        yield from self._diff(pairs, ("--numstat", "-M"), _parse_numstat)

    def line_counts_of(self, pair: tuple[str, str], changes: Sequence[RawChange]) -> list[LineCount]:
        """Line counts of some changes of one (old, new) pair; for pairs that lack blobs elsewhere."""
        renames = "-M" if any(change.old_path for change in changes) else "--no-renames"
        arguments = ("diff-tree", "-r", "-z", "--numstat", renames, *_PLAIN_DIFF, *pair, "--")
        found: list[LineCount] = []
        for start in range(0, len(changes), _ARGUMENTS):
            some = changes[start : start + _ARGUMENTS]
            paths = [path for change in some for path in (change.old_path, change.path) if path]
            with self.stream(*arguments, *paths) as output:
                found.extend(_line_counts(_split_nul(output)))
        return found

    def missing(self, objects: Iterable[str]) -> set[str]:
        """Those of the given objects that the repository does not have."""
        with self.stream("cat-file", "--batch-check=%(objectname)", lines=objects) as output:
            return {line.split(b" ")[0].decode() for line in output.read().splitlines() if line.endswith(b" missing")}

    def _diff(self, pairs: Iterable[tuple[str, str]], options: tuple[str, ...], parse: Any) -> Iterator[Any]:
        # diff-tree takes "<commit> <parent>" lines and compares the commit with the parent named on the line. It
        # repeats the commit before each diff; a commit that changes nothing is answered with nothing, so the answers
        # are matched to the questions by that line.
        asked = [(old, new) for old, new in pairs]
        arguments = ("diff-tree", "--stdin", "-r", "-z", "-m", "--always", *_PLAIN_DIFF, *options)
        with self.stream(*arguments, lines=(f"{new} {old}" for old, new in asked)) as output:
            yield from parse(_split_nul(output), [new for _, new in asked])


_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def _only(path: Path) -> dict[str, str]:
    """The environment in which git takes the repository at `path` and no other.

    Without it git looks in the folders above where there is none, and a git hook that calls prchain names its own.
    """
    inside = path.absolute() / ".git"
    return {"GIT_DIR": str(inside if inside.exists() else inside.parent)}


class _Stream:
    """A running git process as a context manager; leaving it checks how the process ended, or ends it."""

    def __init__(self, git: Any, environment: dict[str, str], arguments: tuple[str, ...], lines: Iterable[str]) -> None:
        self._environment = environment
        self._command = ["git", *_SAFE_CONFIG, *arguments]
        self._verb = arguments[0]
        self._git = git
        self._input: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed on exit
        for line in lines:
            self._input.write(line.encode() + b"\n")
        self._input.seek(0)
        self._errors: list[bytes] = []

    def __enter__(self) -> BufferedReader:
        # GitPython ends the process when its wrapper is collected, so the wrapper is kept.
        self._wrapper = self._git.execute(self._command, istream=self._input, as_process=True, env=self._environment)
        self._process = self._wrapper.proc
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        output: BufferedReader = self._process.stdout
        _widen(output)
        return output

    def __exit__(self, kind: Any, _error: Any, _trace: Any) -> None:
        if kind is not None:
            self._process.kill()
        self._process.stdout.close()
        status = self._process.wait()
        self._drain.join()
        self._process.stderr.close()
        self._input.close()
        if kind is None and status != 0:
            raise _named(self._verb, b"".join(self._errors).decode("utf-8", "replace"), status)

    def _read_errors(self) -> None:
        kept = 0
        for line in self._process.stderr:
            if kept < 64_000:
                self._errors.append(line)
                kept += len(line)


def _named(verb: str, errors: str, status: int) -> GitError:
    lines = [line for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    last = redact(telling[0].strip()) if telling else f"exit status {status}"
    if re.search(r"No space left on device", errors):
        return DiskFullGit(f"git {verb}: no space left on the disk")
    if re.search(r"unable to read|bad object|missing|could not read|Could not read|not found|corrupt|bad tree", errors):
        return IncompleteRepository(f"git {verb}: {last}; objects are missing or damaged, fetch the repository anew")
    return GitError(f"git {verb}: {last}")


class DiskFullGit(GitError, DiskFull):
    """No room is left where a mirror lies."""


def _widen(output: BufferedReader) -> None:
    """Let git run ahead of us by a block instead of the usual 64 kB, where the system can do that."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # the system's allowance for wide pipes is used up
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _BLOCK)


def _split_nul(output: BufferedReader) -> Iterator[bytes]:
    """The NUL-terminated parts of a stream, of which no more than a block is held."""
    return chain.from_iterable(_split_blocks(output))


def _split_blocks(output: BufferedReader) -> Iterator[list[bytes]]:
    rest = b""
    while block := output.read1(_BLOCK):  # what is there: `read` would wait for a whole block
        *parts, rest = (rest + block).split(b"\0")
        yield parts
    if rest.strip(b"\n"):
        yield [rest]


def _raw_commit(
    sha: bytes,
    parents: bytes,
    tree: bytes,
    author: bytes,
    email: bytes,
    author_time: bytes,
    committer: bytes,
    commit_time: bytes,
    message: bytes,
) -> RawCommit:
    return RawCommit(
        sha=sha.lstrip(b"\n").decode(),
        parents=tuple(parents.decode().split()),
        tree=tree.decode(),
        author=author.decode("utf-8", "replace"),
        author_email=email.decode("utf-8", "replace"),
        author_time=_time(author_time),
        committer=committer.decode("utf-8", "replace"),
        commit_time=_time(commit_time),
        message=message,
    )


def _time(field: bytes) -> int:
    # Damaged commits have an empty or an absurd time; 0 keeps them in the history.
    try:
        value = int(field)
    except ValueError:
        return 0
    return value if 0 <= value < 253_402_300_800 else 0


def path_text(path: bytes) -> str:
    """A path as text: UTF-8, with every other byte as ``\\xNN``.

    A backslash that would read like one of these is written as ``\\x5c``, so that no two paths share a text.
    """
    if b"\\" in path:
        path = _LIKE_AN_ESCAPE.sub(rb"\\x5c", path)
    return path.decode("utf-8", "backslashreplace")


_LIKE_AN_ESCAPE = re.compile(rb"\\(?=x(?:[89a-f][0-9a-f]|5c))")


def _parse_raw(parts: Iterator[bytes], asked: list[str]) -> Iterator[list[RawChange]]:
    answers = _Answers(asked)
    for part in parts:
        if not part.startswith(b":"):
            yield from answers.next(part)
            continue
        old_mode, new_mode, old_blob, new_blob, status = part[1:].decode().split(" ")
        path = path_text(next(parts))
        old_path = None
        if status[0] in "RC":
            old_path, path = path, path_text(next(parts))
        answers.add(RawChange(old_mode, new_mode, old_blob, new_blob, status[0], path, old_path))
    yield from answers.rest()


def _parse_numstat(parts: Iterator[bytes], asked: list[str]) -> Iterator[list[LineCount]]:
    answers = _Answers(asked)
    for part in parts:
        if b"\t" in part:
            answers.add(_line_count(part, parts))
        else:
            yield from answers.next(part)
    yield from answers.rest()


def _line_counts(parts: Iterator[bytes]) -> Iterator[LineCount]:
    for part in parts:
        yield _line_count(part, parts)


def _line_count(part: bytes, following: Iterator[bytes]) -> LineCount:
    added, removed, name = part.split(b"\t", 2)
    if not name:  # a rename: old and new path follow
        next(following)
        name = next(following)
    binary = added == b"-"
    return LineCount(path_text(name), None if binary else int(added), None if binary else int(removed))


class _Answers:
    """Matches diff-tree's answers to the commits asked for, in their order."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked
        self._given = 0
        self._current: list[Any] | None = None

    def next(self, sha: bytes) -> Iterator[list[Any]]:
        name = sha.decode()
        if self._given + (self._current is not None) >= len(self._asked) or (
            self._asked[self._given + (self._current is not None)] != name
        ):
            raise GitError(f"git diff-tree answered {name[:60]!r} out of turn")
        yield from self._flush()
        self._current = []

    def add(self, change: Any) -> None:
        assert self._current is not None
        self._current.append(change)

    def rest(self) -> Iterator[list[Any]]:
        yield from self._flush()

    def _flush(self) -> Iterator[list[Any]]:
        if self._current is not None:
            self._given += 1
            yield self._current


_ALLOWED_URL = re.compile(
    r"(?i)^(?:https?|ssh|git|file)://[^-\s][^\s]*$|^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^-\s]\S*$"
)


def is_clone_url(text: str) -> bool:
    """Whether `text` is a URL (http, https, ssh, git, file, or user@host:path) that may be handed to git."""
    return bool(_ALLOWED_URL.match(text))


def update_mirror(url: str, path: Path, *, token: str | None = None) -> GitRepository:
    """Clone `url` into the bare mirror at `path`, or fetch what is new there: heads, tags and pull heads.

    `token` is sent as a header to http(s) remotes and is never written to the mirror's configuration nor visible in
    the process list. Raises `CloneFailed`, `DiskFullGit`, `GitMissing`.
    """
    git = _git_module()
    environment = {**_ENVIRONMENT, "GIT_DIR": str(path.absolute()), **_token_environment(url, token)}
    try:
        path.mkdir(parents=True, exist_ok=True)
        # On a mirror that is there this changes nothing; it mends one whose making was cut off.
        init = ("init", "--bare", "--quiet", "--template=")
        git.Git(str(path)).execute(["git", *_SAFE_CONFIG, *init], env=environment)
        fetch = (
            "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", url,
            "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/pull/*/head:refs/pull/*/head",
        )  # fmt: skip
        runner = git.Git(str(path))
        runner.execute(["git", *_SAFE_CONFIG, *fetch], env=environment)
        head = runner.execute(["git", *_SAFE_CONFIG, "ls-remote", "--symref", url, "HEAD"], env=environment)
        if match := re.match(r"ref: (refs/heads/\S+)\tHEAD", str(head)):
            runner.execute(["git", *_SAFE_CONFIG, "symbolic-ref", "HEAD", match.group(1)], env=environment)
    except git.exc.GitCommandError as error:
        named = _named("fetch", str(error.stderr), error.status)
        if isinstance(named, DiskFull):
            raise named from None
        secrets = (token,) if token else ()
        text = redact(str(error.stderr).replace("\n", " ").strip(" '"), secrets)[-300:]
        raise CloneFailed(f"{redact(url, secrets)} could not be fetched: {text}") from None
    except OSError as error:
        raise CloneFailed(f"the mirror at {path} cannot be written: {error.strerror}") from error
    return GitRepository.open(path)


def _token_environment(url: str, token: str | None) -> dict[str, str]:
    if not token or not url.lower().startswith("https://"):
        return {}
    import base64  # noqa: PLC0415  only needed with a token

    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
    }
