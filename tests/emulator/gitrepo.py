"""Writes commits into a bare git repository: one fast-import process for each update."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.emulator.objects import Commit

_ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}


class GitRepository:
    """A bare repository with the commits of the world. Shas are those of `objects`; `update` checks it."""

    def __init__(self, path: Path, *, head: str = "refs/heads/main") -> None:
        self.path = path
        self._written: dict[str, int] = {}
        self._refs: dict[str, str] = {}
        self._git("init", "--quiet", "--bare", str(path))
        self._git("symbolic-ref", "HEAD", head, at=path)

    def update(self, refs: dict[str, Commit]) -> None:
        """Write the reachable commits that are not written yet, and set the refs to exactly these."""
        fresh = list(self._unwritten(refs.values()))
        if fresh:
            self._import(fresh)
        targets = {name: commit.oid for name, commit in refs.items()}
        lines = [f"update {name} {oid}" for name, oid in targets.items() if self._refs.get(name) != oid]
        lines += [f"delete {name}" for name in self._refs if name not in targets]
        if lines:
            self._git("update-ref", "--stdin", at=self.path, stdin="".join(f"{line}\n" for line in lines).encode())
        self._refs = targets

    def _unwritten(self, tips: Iterable[Commit]) -> Iterator[Commit]:
        """Yield commits parents first, without recursion: histories are deeper than Python's stack."""
        seen: set[str] = set()
        for tip in tips:
            stack: list[tuple[Commit, bool]] = [(tip, False)]
            while stack:
                commit, done = stack.pop()
                if done:
                    yield commit
                elif commit.oid not in seen and commit.oid not in self._written:
                    seen.add(commit.oid)
                    stack.append((commit, True))
                    stack.extend((parent, False) for parent in reversed(commit.parents))

    def _import(self, commits: list[Commit]) -> None:
        start = len(self._written)
        out = bytearray()
        for offset, commit in enumerate(commits, start + 1):
            self._written[commit.oid] = offset
            message = commit.message.encode() + b"\n"
            if not commit.parents:
                out += b"reset refs/import/tip\n"  # else a root would become the child of the commit before it
            out += b"commit refs/import/tip\nmark :%d\n" % offset
            out += b"author %s\ncommitter %s\n" % (commit.author_line.line(), commit.committer_line.line())
            out += b"data %d\n%s" % (len(message), message)
            for index, parent in enumerate(commit.parents):
                known = self._written[parent.oid]
                name = b":%d" % known if known > start else parent.oid.encode()
                out += b"%s %s\n" % (b"merge" if index else b"from", name)
            for path, content in commit.changes.items():
                if content is None:
                    out += b"D %s\n" % path.encode()
                else:
                    out += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)
            out += b"\n"
        marks = self.path / "import-marks"
        self._git("fast-import", "--quiet", "--force", f"--export-marks={marks}", at=self.path, stdin=bytes(out))
        named = dict(line.split() for line in marks.read_text().splitlines())
        marks.unlink()
        self._git("update-ref", "-d", "refs/import/tip", at=self.path)
        wrong = [c.oid for c in commits if named[f":{self._written[c.oid]}"] != c.oid]
        if wrong:
            raise AssertionError(f"git named {len(wrong)} commits otherwise, the first one is {wrong[0]}")

    @staticmethod
    def _git(*arguments: str, at: Path | None = None, stdin: bytes | None = None) -> bytes:
        location = ["--git-dir", str(at)] if at else []
        process = subprocess.run(
            ["git", *location, *arguments], input=stdin, capture_output=True, check=False, env=_ENVIRONMENT
        )
        if process.returncode:
            raise AssertionError(f"git {arguments[0]} failed: {process.stderr.decode(errors='replace').strip()}")
        return process.stdout
