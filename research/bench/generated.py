"""Generates a git history with the traits of real ones, by one fast-import process.

Nested folders, pull requests of about five files and three commits that fork a little behind the tip, landings by
merge, squash and rebase, some on a release branch, some pull requests that never land, messages that cite each other.
Three real repositories with 12,000 to 20,000 pull requests were the pattern for commits (2.8 to 6.7 files in each) and
paths (3.8 to 5.3 components, six files a folder).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from prchain.core.git.process import GitStream, only, run_git

MAIN, RELEASE = "refs/heads/main", "refs/heads/release/1.x"
FIRST_FILES = 2500
FORKED_BEHIND = 12
"""Most landings between the fork of a pull request and its landing."""

_STYLES = ("squash", "merge", "rebase", "unlanded", "release")
_SHARES = (42, 30, 12, 13, 3)
"""Percent of the pull requests; a mixture, because each repository mostly keeps to one style."""

_COMMITS = (1, 1, 1, 2, 2, 3, 3, 4, 5, 8)
_FILES = (1, 1, 2, 2, 3, 4, 5, 6, 9, 17)
"""Commits and files of a pull request; every entry is equally likely. Three and five on average."""

_AREAS = ("core", "engine", "frontend", "bindings", "tools", "docs", "plugins", "tests")
_WORDS = tuple(
    "cache parser stream index buffer schema column window token scope lookup writer reader planner batch cursor "  # noqa: SIM905
    "layout render resolve merge filter encode decode retry timeout config locale release worker queue".split()
)
_CITING = (
    "Follow-up to #{0}.",
    "Fixes #{0}",
    "This builds on #{0}, which added the first half.",
    "Reverts #{0} because it broke the nightly build.",
    "See #{0} for the discussion.",
    "Depends on #{0}",
)
_MAINTAINER = b"Maintainer <maintainer@example.org>"

Change = tuple[str, bytes | None]
"""A path and its content, or None where it is deleted."""


@dataclass(slots=True)
class _Commit:
    mark: int
    author: bytes
    """Name, address and time."""
    message: str
    changes: list[Change]


@dataclass(slots=True)
class _Writer:
    """Writes the input of git fast-import."""

    out: IO[bytes]
    marks: int = 0
    now: int = 1_500_000_000

    def commit(
        self, parents: list[int], committer: bytes, message: str, changes: list[Change], author: bytes | None = None
    ) -> _Commit:
        """Write a commit by its committer, or by another author; `author` is a line with the time."""
        self.marks += 1
        self.now += 37
        signature = b"%s %d +0000" % (committer, self.now)
        author = author or signature
        text = message.encode()
        parts = [
            b"reset refs/generated\n" if not parents else b"",
            b"commit refs/generated\nmark :%d\nauthor %s\n" % (self.marks, author),
            b"committer %s\ndata %d\n%s\n" % (signature, len(text), text),
        ]
        parts += [b"%s :%d\n" % (b"merge" if index else b"from", mark) for index, mark in enumerate(parents)]
        for path, content in changes:
            if content is None:
                parts.append(b"D %s\n" % path.encode())
            else:
                parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
        self.out.write(b"".join(parts))
        return _Commit(self.marks, author, message, changes)

    def ref(self, name: str, mark: int) -> None:
        self.out.write(b"reset %s\nfrom :%d\n\n" % (name.encode(), mark))


@dataclass(slots=True)
class _Generator:
    writer: _Writer
    rng: random.Random
    files: dict[str, int] = field(default_factory=dict)
    """Path to the number of its last edit."""
    paths: list[str] = field(default_factory=list)
    edits: int = 0
    landed: list[int] = field(default_factory=list)
    """Numbers of the pull requests that landed, oldest first."""

    def run(self, landed: int) -> None:
        first: list[Change] = [(path, self._content(path, 0)) for path in self._first_paths()]
        tips = deque([self.writer.commit([], _MAINTAINER, "Initial import", first).mark], maxlen=FORKED_BEHIND)
        release = tips[0]
        number = 0
        while len(self.landed) < landed:
            number += self.rng.choice((1, 1, 1, 2))
            [style] = self.rng.choices(_STYLES, _SHARES)
            own = self._own_commits(number, release if style == "release" else self.rng.choice(tips))
            self.writer.ref(f"refs/pull/{number}/head", own[-1].mark)
            if style == "unlanded":
                continue
            mark = self._land(style, number, own, release if style == "release" else tips[-1])
            self.landed.append(number)
            if style == "release":
                release = mark
            else:
                tips.append(mark)
        self.writer.ref(MAIN, tips[-1])
        self.writer.ref(RELEASE, release)

    def _own_commits(self, number: int, fork: int) -> list[_Commit]:
        """The commits of a pull request, on its fork."""
        rng = self.rng
        person = b"Dev %d <dev-%d@example.org>" % (number % 300, number % 300)
        changes = list(self._changes(rng.choice(_FILES)))
        commits = [self.writer.commit([fork], person, self._message(), changes)]
        for _ in range(rng.choice(_COMMITS) - 1):
            repeated = rng.sample(changes, rng.randrange(1, len(changes) + 1))
            edits: list[Change] = [self._edit(path) for path, content in repeated if content is not None] or [
                self._edit("NOTES.md")
            ]
            commits.append(self.writer.commit([commits[-1].mark], person, self._message(), edits))
        return commits

    def _land(self, style: str, number: int, own: list[_Commit], tip: int) -> int:
        net = list(dict(change for commit in own for change in commit.changes).items())
        title = own[0].message.split("\n", 1)[0]
        if style == "merge":
            text = f"Merge pull request #{number} from dev-{number % 60}/topic-{number}\n\n{title}"
            return self.writer.commit([tip, own[-1].mark], _MAINTAINER, text, net).mark
        if style == "rebase":
            for commit in own:
                tip = self.writer.commit([tip], _MAINTAINER, commit.message, commit.changes, commit.author).mark
            return tip
        messages = "\n\n".join(f"* {commit.message}" for commit in own)
        text = f"{title} (#{number})" + (f"\n\n{messages}" if len(own) > 1 else own[0].message.removeprefix(title))
        return self.writer.commit([tip], _MAINTAINER, text, net, own[0].author).mark

    def _changes(self, count: int) -> Iterator[Change]:
        """Edits around one folder, with new files, deleted and moved ones among them."""
        rng = self.rng
        centre = rng.randrange(len(self.paths))
        for _ in range(count):
            near = rng.random() < 0.7
            path = self.paths[(centre + rng.randrange(12)) % len(self.paths)] if near else rng.choice(self.paths)
            roll = rng.random()
            if roll < 0.88:
                yield self._edit(path)
            elif roll < 0.96:
                self.edits += 1
                new = f"{path.rpartition('/')[0]}/{rng.choice(_WORDS)}_{self.edits}.py"
                self.paths.append(new)
                yield self._edit(new)
            elif path in self.files:
                content = self._content(path, self.files.pop(path))
                yield path, None
                if roll < 0.98:
                    yield f"{path.rpartition('.')[0]}_moved.py", content

    def _edit(self, path: str) -> Change:
        self.edits += 1
        self.files[path] = self.edits
        return path, self._content(path, self.edits)

    def _content(self, path: str, edit: int) -> bytes:
        """Forty lines, of which an edit changes one and adds one."""
        self.files.setdefault(path, edit)
        name = path.rpartition("/")[2]
        lines = [f"{_WORDS[line % len(_WORDS)]}_{line} = lookup({name!r}, {line})" for line in range(40)]
        lines[edit % 40] = f"edited = {edit}"
        return "\n".join([*lines, f"last = {edit}", ""]).encode()

    def _message(self) -> str:
        rng = self.rng
        subject = f"{rng.choice(('Fix', 'Add', 'Speed up', 'Remove', 'Document'))} {' '.join(rng.sample(_WORDS, 4))}"
        paragraphs = [subject]
        if rng.random() < 0.3:
            paragraphs.append(" ".join(rng.choices(_WORDS, k=rng.randrange(12, 60))).capitalize() + ".")
        if self.landed and rng.random() < 0.12:
            cited = self.landed[-min(len(self.landed), rng.randrange(1, 400))]
            paragraphs.append(rng.choice(_CITING).format(cited))
        return "\n\n".join(paragraphs)

    def _first_paths(self) -> list[str]:
        for index in range(FIRST_FILES):
            folder = index // 6
            area, part, leaf = _AREAS[folder * 6 * len(_AREAS) // FIRST_FILES], folder // 12, _WORDS[folder % 12]
            deeper = "inner/" if folder % 3 == 0 else ""
            self.paths.append(f"{area}/{_WORDS[part % 7]}_{part}/src/{leaf}/{deeper}file_{index}.py")
        return self.paths


def generate(path: Path, landed: int, *, seed: int = 1) -> Path:
    """Make a bare repository at `path` with so many landed pull requests, packed as a server packs a clone."""
    run_git("init", "--quiet", "--bare", str(path), place=path.parent)
    fast_import = GitStream(("fast-import", "--quiet", "--force", "--date-format=raw"), None, own=only(path))
    with fast_import as output:
        with fast_import.input:
            _Generator(_Writer(fast_import.input), random.Random(seed)).run(landed)
        output.read()
    for arguments in (
        ("update-ref", "-d", "refs/generated"),
        ("symbolic-ref", "HEAD", MAIN),
        ("pack-refs", "--all"),
        ("repack", "-a", "-d", "--quiet"),
    ):
        run_git(*arguments, place=path)
    return path
