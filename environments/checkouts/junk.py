"""Which new files of a tree are build junk, by the ignore rules of another tree: the base's, not the agent's."""

from __future__ import annotations

import os
import tempfile
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from prchain.core.errors import GitError
from prchain.core.git.process import GitStream
from prchain.core.git.trees import EXECUTABLE, FILE, TreeStore

ALWAYS = "__pycache__/\n"
"""Patterns that hold where the repository's own say nothing (as core.excludesFile, gitignore(5))."""

CACHE_TAG = b"CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""A folder with a file of this name and beginning is a cache (the Cache Directory Tagging Specification); pytest, mypy,
ruff and cargo make such folders, and hide them by a .gitignore of their own instead of the repository's."""


class IgnoreRules:
    """The ignore rules of a tree, answered path by path by one `git check-ignore`; a context manager."""

    def __init__(self, store: TreeStore, tree: str) -> None:
        self._store = store
        self._tree = tree
        self._folders: dict[bytes, bool] = {b"": False}

    def __enter__(self) -> Self:
        self._place = tempfile.TemporaryDirectory(prefix="prchain-")
        try:
            place = Path(self._place.name)
            self._lay_out(place)
            environment = {"GIT_WORK_TREE": str(place / "tree"), "GIT_LITERAL_PATHSPECS": "0"}
            config = {"core.excludesFile": str(place / "exclude")}
            arguments = ("check-ignore", "--no-index", "--stdin", "-z", "--verbose", "--non-matching")
            stream = self._store.stream(*arguments, lines=None, fine=(0, 1), environment=environment, config=config)
            self._git: GitStream = stream
            self._answers: BufferedReader = self._git.__enter__()
        except BaseException:
            self._place.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._git.__exit__(kind, error, trace)
        finally:
            self._place.cleanup()

    def hide(self, path: bytes) -> bool:
        """Whether the rules hide a file of this path, or a folder above it. `path` has no ``..`` or ``.git`` in it."""
        folder, _, _ = path.rpartition(b"/")
        return self.hide_folder(folder) or self._is_ignored(path)

    def hide_folder(self, folder: bytes) -> bool:
        """Whether the rules hide all that is new below a folder."""
        unknown = []
        while (known := self._folders.get(folder)) is None:
            unknown.append(folder)
            folder = folder.rpartition(b"/")[0]
        for below in reversed(unknown):
            known = self._folders[below] = known or self._is_ignored(below + b"/")
        return known

    def _is_ignored(self, path: bytes) -> bool:
        try:
            # "./" keeps a path that begins with a colon from being read as pathspec magic.
            self._git.input.write(b"./" + path + b"\0")
            self._git.input.flush()
        except BrokenPipeError as error:
            raise GitError("git check-ignore ended early") from error
        answer = b""
        while answer.count(b"\0") < 4:  # source, line, pattern, path
            part = self._answers.read1()
            if not part:
                raise GitError("git check-ignore ended early")
            answer += part
        pattern = answer.split(b"\0")[2]
        return bool(pattern) and not pattern.startswith(b"!")

    def _lay_out(self, place: Path) -> None:
        """Lay out a work tree of nothing but the tree's .gitignore files, and our own rules beside it."""
        root = place / "tree"
        root.mkdir()
        (place / "exclude").write_text(ALWAYS)
        found = {
            path: entry.blob
            for path, entry in self._store.entries(self._tree).items()
            if (words := path.split(b"/"))[-1] == b".gitignore"
            and entry.mode in (FILE, EXECUTABLE)
            and b".." not in words  # git would not write such a tree, but anybody can
        }
        for path, content in zip(found, self._store.blobs(found.values()), strict=True):
            file = root / os.fsdecode(path)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise GitError(f"tree {self._tree} has a file and a folder of one name") from error
