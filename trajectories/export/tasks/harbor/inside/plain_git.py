"""A store of trees whose git is named by its path and gets no variable of whoever began us: the tree is another's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO, Any, Self

from prchain.core.git.process import GitStream
from prchain.core.git.trees import TreeStore
from prchain.core.processes.children import start_child

GIT = "/usr/bin/git"
"""Not what PATH names: an agent can have put a program of its own there."""

_KEPT = ("GIT_", "LC_ALL", "LANGUAGE")
_OWN = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


class PlainStream(GitStream):
    """`GitStream` without GitPython, which no image has, and without a folder of ours: a packed file has none."""

    def _spawn(self, environment: dict[str, str], stdin: Any) -> tuple[Any, Any]:
        kept = {name: value for name, value in environment.items() if name.startswith(_KEPT)}
        kept.pop("GIT_EXEC_PATH", None)
        pipe = subprocess.PIPE

        def spawn() -> subprocess.Popen[bytes]:
            command = [GIT, *self._command[1:]]
            return subprocess.Popen(command, cwd="/", env={**kept, **_OWN}, stdin=stdin, stdout=pipe, stderr=pipe)

        return None, start_child(spawn)


class PlainStore(TreeStore):
    """A `TreeStore` of its own: no repository stands behind it."""

    stream_type = PlainStream

    @classmethod
    def made(cls, path: Path) -> Self:
        """A new one, without anything in it."""
        store = cls.open(path)
        assert isinstance(store, cls)
        return store

    def take_pack(self, pack: IO[bytes]) -> None:
        """Take in the objects of a pack. Raises `GitError` for a damaged one."""
        with self.stream("index-pack", "--stdin", feed=pack) as output:
            output.read()
