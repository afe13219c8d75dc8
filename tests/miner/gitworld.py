"""Small real git repositories for tests: commits, pull heads and the ways in which pull requests land.

A world is built in memory and written by one `git fast-import`; authors and dates are fixed, so shas are too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from miner.git_facts import ApiKnowledge, GitFacts, read, read_refs
from miner.landing import LandingCandidate
from miner.sources.github import forge_at
from prchain.core.git import GitRepository

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"

Entry = tuple[str, bytes]
"""Mode and content; a submodule's content is the sha it names."""
Content = str | bytes | Entry | None
"""What a path is to hold; None takes it away."""

GITHUB = forge_at("github.com")

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "LC_ALL": "C",
}
_START = 1_600_000_000


def git(path: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """Run plain git in a repository and return what it prints."""
    process = subprocess.run(
        ["git", *arguments], cwd=path, input=stdin, capture_output=True, check=False, env=_ENVIRONMENT
    )
    if process.returncode:
        raise AssertionError(f"git {arguments[0]} failed: {process.stderr.decode(errors='replace').strip()}")
    return process.stdout.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Made:
    """A commit of a world; `number` is its mark."""

    number: int
    parents: tuple[int, ...]
    files: Mapping[bytes, Entry]
    message: bytes
    author: str
    date: int
    committer: str
    committed: int
    encoding: str | None


class World:
    """A repository in the making. Refs can be moved, taken away and written again."""

    def __init__(self, path: Path, *, default: str = "main", objects: str = "sha1") -> None:
        self.path = path
        self.default = default
        self.refs: dict[str, int] = {}
        self._made: list[Made] = []
        self._written = 0
        self._shas: list[str] = []
        self._old_refs: set[str] = set()
        self._zeros = b"0" * (64 if objects == "sha256" else 40)
        for folder in ("refs/heads", "refs/tags", "objects/info", "objects/pack"):
            (path / folder).mkdir(parents=True)
        for name, content in _bare(objects).items():
            (path / name).write_text(content)

    # ---- building

    def made(self, commit: int | str) -> Made:
        """A commit by its mark, or the tip of a branch by name."""
        return self._made[(commit if isinstance(commit, int) else self.refs[f"refs/heads/{commit}"]) - 1]

    def commit(
        self,
        branch: str | None,
        files: Mapping[str | bytes, Content] | None = None,
        message: str | bytes = "work",
        *,
        author: str = "ada",
        committer: str | None = None,
        date: int | None = None,
        committed: int | None = None,
        parents: Sequence[int] | None = None,
        encoding: str | None = None,
    ) -> int:
        """Commit `files` on top of the first parent's and move the branch there; without parents, the branch's tip."""
        if parents is None:
            tip = self.refs.get(f"refs/heads/{branch}")
            parents = () if tip is None else (tip,)
        tree = dict(self.made(parents[0]).files) if parents else {}
        for name, content in (files or {}).items():
            path = name.encode() if isinstance(name, str) else name
            if content is None:
                del tree[path]
            else:
                tree[path] = _entry(content)
        text = message.encode() if isinstance(message, str) else message
        number = len(self._made) + 1
        now = _START + 60 * number
        authored = now if date is None else date
        made = Made(
            number, tuple(parents), tree, text, author, authored, committer or author, committed or now, encoding
        )
        self._made.append(made)
        if branch is not None:
            self.refs[f"refs/heads/{branch}"] = number
        return number

    def branch(self, name: str, at: int | str) -> int:
        """Make or move a branch; returns where it stands."""
        self.refs[f"refs/heads/{name}"] = number = self.made(at).number
        return number

    def drop(self, name: str) -> None:
        """Delete a branch."""
        del self.refs[f"refs/heads/{name}"]

    def pull(self, number: int, head: int | str, *, keep_branch: bool = False) -> int:
        """Give the repository a pull head, and take the branch away, as contributors' branches are elsewhere."""
        self.refs[f"refs/pull/{number}/head"] = mark = self.made(head).number
        if isinstance(head, str) and not keep_branch and head != self.default:
            self.drop(head)
        return mark

    def propose(
        self,
        number: int,
        files: Mapping[str | bytes, Content],
        *further: Mapping[str | bytes, Content],
        base: int | str | None = None,
        author: str = "bob",
        message: str | None = None,
    ) -> int:
        """A pull request with one commit for each mapping, made from `base` (the default branch); returns its head."""
        tip = self.made(base or self.default).number
        for place, changes in enumerate((files, *further)):
            tip = self.commit(None, changes, message or f"step {place} of {number}", author=author, parents=[tip])
        return self.pull(number, tip)

    def own_changes(self, head: int, base: int) -> dict[str | bytes, Content]:
        """What `head` changed since it left the history of `base`."""
        fork = self._fork(head, base)
        before = self.made(fork).files if fork else {}
        after = self.made(head).files
        return {p: after.get(p) for p in {*before, *after} if before.get(p) != after.get(p)}

    def merge(
        self,
        branch: str,
        head: int,
        message: str,
        *,
        extra: Mapping[str | bytes, Content] | None = None,
        author: str = "maintainer",
        committer: str | None = None,
    ) -> int:
        """Merge a head with a merge commit, with further changes of the maintainer's own."""
        tip = self.made(branch).number
        files = {**self.own_changes(head, tip), **(extra or {})}
        return self.commit(branch, files, message, parents=[tip, head], author=author, committer=committer)

    def squash(
        self,
        branch: str,
        head: int,
        message: str,
        *,
        extra: Mapping[str | bytes, Content] | None = None,
        author: str | None = None,
    ) -> int:
        """One commit with all that the head changed."""
        files = {**self.own_changes(head, self.made(branch).number), **(extra or {})}
        return self.commit(branch, files, message, author=author or self.made(head).author, committer="GitHub")

    def rebase(self, branch: str, head: int, *, suffix: str = "", committer: str = "GitHub") -> list[int]:
        """The head's own commits anew on top of the branch; returns them, oldest first."""
        fork, chain = self._fork(head, self.made(branch).number), []
        commit = head
        while commit != fork:
            chain.append(commit)
            commit = self.made(commit).parents[0]
        return [self.pick(branch, commit, suffix=suffix, committer=committer) for commit in reversed(chain)]

    def pick(self, branch: str, commit: int, *, suffix: str = "", committer: str = "GitHub") -> int:
        """Cherry-pick one commit; author, author date and message stay."""
        picked = self.made(commit)
        parent = self.made(picked.parents[0]).files
        changes: dict[str | bytes, Content] = {
            p: picked.files.get(p) for p in {*parent, *picked.files} if parent.get(p) != picked.files.get(p)
        }
        subject, newline, rest = picked.message.partition(b"\n")
        message = subject + suffix.encode() + newline + rest
        return self.commit(branch, changes, message, author=picked.author, committer=committer, date=picked.date)

    def _fork(self, head: int, base: int) -> int | None:
        return max(self._ancestors(head) & self._ancestors(base), default=None)

    def _ancestors(self, commit: int) -> set[int]:
        found, pending = set(), [commit]
        while pending:
            current = pending.pop()
            if current not in found:
                found.add(current)
                pending.extend(self.made(current).parents)
        return found

    # ---- writing

    def save(self, *, head: str | None = None) -> Path:
        """Write what is new and make the refs as they are now; returns the repository's path."""
        out = bytearray()
        for commit in self._made[self._written :]:
            out += self._commit_command(commit)
        names = {name: self._name(mark) for name, mark in self.refs.items()}
        for name in self._old_refs - names.keys():
            out += b"reset %s\nfrom %s\n\n" % (name.encode(), self._zeros)
        for name, target in names.items():
            out += b"reset %s\nfrom %s\n\n" % (name.encode(), target)
        out += b"reset refs/import/tip\nfrom %s\n\ndone\n" % (self._zeros)
        marks = self.path / "marks"
        git(
            self.path,
            "-c",
            "fastimport.unpackLimit=100000",
            "fast-import",
            "--quiet",
            "--force",
            "--done",
            f"--export-marks={marks}",
            stdin=bytes(out),
        )
        named = dict(line.split() for line in marks.read_text().splitlines())
        marks.unlink()
        self._shas += [named[f":{commit.number}"] for commit in self._made[self._written :]]
        self._written = len(self._made)
        self._old_refs = set(names)
        (self.path / "HEAD").write_text(f"ref: refs/heads/{head or self.default}\n")
        return self.path

    def sha(self, commit: int | str) -> str:
        """The sha of a commit that has been written."""
        return self._shas[self.made(commit).number - 1]

    def shas(self, commits: Iterable[int]) -> list[str]:
        """The shas of some commits, in order."""
        return [self.sha(commit) for commit in commits]

    def marks(self) -> dict[str, int]:
        """Sha to mark, of every commit that has been written."""
        return {sha: mark for mark, sha in enumerate(self._shas, 1)}

    def _name(self, mark: int) -> bytes:
        return b":%d" % mark if mark > self._written else self._shas[mark - 1].encode()

    def _commit_command(self, commit: Made) -> bytes:
        out = bytearray()
        if not commit.parents:
            out += b"reset refs/import/tip\n\n"
        out += b"commit refs/import/tip\nmark :%d\n" % commit.number
        out += b"author %s %d +0000\n" % (_person(commit.author), commit.date)
        out += b"committer %s %d +0000\n" % (_person(commit.committer), commit.committed)
        if commit.encoding:
            out += b"encoding %s\n" % commit.encoding.encode()
        out += b"data %d\n%s\n" % (len(commit.message), commit.message)
        for index, parent in enumerate(commit.parents):
            out += b"%s %s\n" % (b"merge" if index else b"from", self._name(parent))
        before = self.made(commit.parents[0]).files if commit.parents else {}
        for path in sorted(before.keys() - commit.files.keys()):
            out += b"D %s\n" % _quoted(path)
        for path, (mode, content) in sorted(commit.files.items()):
            if before.get(path) == (mode, content):
                continue
            if mode == SUBMODULE:
                out += b"M 160000 %s %s\n" % (content, _quoted(path))
            else:
                out += b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), _quoted(path), len(content), content)
        return bytes(out + b"\n")


@cache
def _bare(objects: str) -> dict[str, str]:
    """The files of a new bare repository, which git makes once in a process for each object format."""
    with TemporaryDirectory() as folder:
        git(Path(folder), "init", "--quiet", "--bare", "--template=", f"--object-format={objects}")
        return {file.name: file.read_text() for file in Path(folder).iterdir() if file.is_file()}


def _entry(content: str | bytes | Entry) -> Entry:
    if isinstance(content, tuple):
        return content
    return FILE, content.encode() if isinstance(content, str) else content


def _person(name: str) -> bytes:
    return f"{name} <{name.lower().replace(' ', '.')}@example.org>".encode()


def _quoted(path: bytes) -> bytes:
    return b'"' + b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' else b"\\%03o" % c for c in path) + b'"'


def lines(*words: str | int, count: int = 12) -> str:
    """A text that resembles another one as far as their words do."""
    return "".join(f"line {i} {' '.join(map(str, words))}\n" for i in range(count))


def facts_of(world: World | Path, api: Mapping[int, str] | None = None) -> GitFacts:
    """What the git source reads off a world."""
    repository = GitRepository.open(world if isinstance(world, Path) else world.save())
    return read(repository, read_refs(repository, GITHUB.pull_heads), ApiKnowledge(api or {}))


@dataclass(frozen=True, slots=True)
class Landed:
    """Where a number landed, in the world's own marks."""

    style: str
    base: int
    commit: int
    branch: str
    evidence: str | None


class Reading:
    """The facts of a world in the world's words."""

    def __init__(self, world: World, api: Mapping[int, int] | None = None) -> None:
        world.save()
        self.facts = facts_of(world.path, {n: world.sha(c) for n, c in (api or {}).items()})
        self._marks = world.marks()

    def mark(self, commit: int) -> int:
        return self._marks[self.facts.history.shas[commit]]

    @property
    def landed(self) -> dict[int, Landed]:
        return {number: self._landed(found) for number, found in sorted(self.facts.decisions.landed.items())}

    def own(self, number: int) -> list[int]:
        """The own commits of a pull request, oldest first."""
        return [self.mark(commit) for commit in self.facts.own[number]]

    @property
    def refused(self) -> set[tuple[int, int, str]]:
        """Number, commit and reason of every claim that was not borne out."""
        return {(r.number, self.mark(r.commit), r.reason) for r in self.facts.decisions.refused}

    @property
    def carried(self) -> dict[int, int]:
        return {number: self.mark(commit) for number, commit in self.facts.decisions.carried.items()}

    def _landed(self, found: LandingCandidate) -> Landed:
        return Landed(found.style, self.mark(found.base), self.mark(found.commit), found.line.branch, found.evidence)
