"""A commit's tree as a build reads it: its paths, some texts, and all of it as a tar."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Protocol

from prchain.core.errors import GitError
from prchain.core.git.output import path_text
from prchain.core.git.repository import GitRepository

_LARGEST_MANIFEST = 8 << 20


class BuildTree(Protocol):
    """What a build reads."""

    @property
    def paths(self) -> frozenset[str]:
        """Every file's path."""
        ...

    def read(self, path: str) -> bytes:
        """The content of one file, cut after some megabytes."""
        ...

    def write_tar(self, file: IO[bytes], owner: int) -> None:
        """Write everything as an uncompressed tar whose files belong to the user with the number `owner`."""
        ...


@dataclass(frozen=True)
class GitTree:
    """The tree of a commit, or a tree, of a repository. Submodules and blobs that the repository lacks are left out."""

    repository: GitRepository
    name: str

    @cached_property
    def _entries(self) -> Mapping[bytes, tuple[str, str]]:
        with self.repository.stream("ls-tree", "-r", "-z", "--full-tree", self.name) as listed:
            lines = [entry.split(b"\t", 1) for entry in listed.read().split(b"\0") if entry]
        found = {}
        for about, path in lines:
            mode, kind, blob = about.decode().split(" ")
            if kind == "blob" and not {b"..", b".", b".git", b""} & set(path.split(b"/")):
                found[path] = (mode, blob)
        return found

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every file's path; bytes that are no UTF-8 as `prchain.core.git.output.path_text` gives them."""
        return frozenset(path_text(path) for path, (mode, _) in self._entries.items() if mode != "120000")

    def read(self, path: str) -> bytes:
        """The content of one file; empty where the repository lacks it."""
        try:
            return self.repository.blob(f"{self.name}:{path}")[:_LARGEST_MANIFEST]
        except GitError:
            return b""

    def write_tar(self, file: IO[bytes], owner: int) -> None:
        """Write the tree as a tar, with modes and symbolic links; times are 1980's, which zip files can hold."""
        with tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            for folder in self._folders():
                entry = _entry(folder, owner)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            for path, mode, content in self._contents():
                entry = _entry(path, owner)
                entry.mode = 0o755 if mode == "100755" else 0o644
                if mode == "120000":
                    entry.type, entry.linkname = tarfile.SYMTYPE, content.decode("utf-8", "surrogateescape")
                    tar.addfile(entry)
                else:
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))

    def _folders(self) -> list[bytes]:
        parts = [path.split(b"/")[:-1] for path in self._entries]
        return sorted({b"/".join(names[: depth + 1]) for names in parts for depth in range(len(names))})

    def _contents(self) -> Iterator[tuple[bytes, str, bytes]]:
        entries = sorted(self._entries.items())
        with self.repository.stream("cat-file", "--batch", lines=[blob for _, (_, blob) in entries]) as output:
            for path, (mode, _) in entries:
                header = output.readline().split()
                if header[1:] == [b"missing"]:
                    continue
                content = output.read(int(header[2]))
                output.read(1)
                yield path, mode, content


def _entry(path: bytes, owner: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
    entry.uid = entry.gid = owner
    entry.mtime = 315_619_200
    return entry
