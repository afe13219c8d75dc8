"""An untrusted tar as a stream of its members. Nothing is ever unpacked here.

Guards against what misleads tarfile: a damaged header ends its stream silently, sizes may be negative or absurd, and
extension headers are read whole.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any, cast

from prchain.core.errors import ExtractionFailed

_EXTENSIONS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_MOST_EXTENSION = 1 << 20
"""Bytes of a header that carries a name or the like; Linux's longest path has 4,096."""


class MemberKind(StrEnum):
    """What a member of a tar is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symlink"
    HARD_LINK = "hard_link"
    SPECIAL = "special"
    """A device, fifo, sparse file or anything else."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member. `path` and `target` are the bytes of the tar, unchecked.

    Read `content` before the next member, or not at all.
    """

    path: bytes
    kind: MemberKind
    executable: bool = False
    size: int = 0
    target: bytes = b""
    content: IO[bytes] | None = None


def members(chunks: Iterable[bytes], *, most_bytes: int, most_members: int) -> Iterator[Member]:
    """What a tar holds, in its order.

    Raises `ExtractionFailed` for one that is damaged or cut off, or holds more than the given bytes or members.
    """
    source = _Source(chunks, most_bytes)
    count = 0
    try:
        with tarfile.open(fileobj=cast(Any, source), mode="r|", tarinfo=_Header, errors="surrogateescape") as archive:
            while (header := archive.next()) is not None:
                count += 1
                if count > most_members:
                    raise ExtractionFailed(f"the sandbox holds more than {most_members:,} files and folders")
                yield _member(archive, header)
                archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
        source.drain()
    # tarfile calls itself for each header of a long name, and a sparse file's map may lack what its length promises.
    except (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError, RecursionError) as error:
        raise ExtractionFailed(f"the sandbox's files came as a broken archive: {error}") from error


def _member(archive: tarfile.TarFile, header: tarfile.TarInfo) -> Member:
    path, target = (name.encode("utf-8", "surrogateescape") for name in (header.name, header.linkname))
    if header.sparse is not None:
        return Member(path, MemberKind.SPECIAL)
    if header.isreg():
        content = cast("IO[bytes]", _Content(archive.extractfile(header)))
        return Member(path, MemberKind.FILE, bool(header.mode & 0o100), header.size, b"", content)
    if header.isdir():
        return Member(path, MemberKind.FOLDER)
    if header.issym():
        return Member(path, MemberKind.SYMLINK, target=target)
    if header.islnk():
        return Member(path, MemberKind.HARD_LINK, bool(header.mode & 0o100), target=target)
    return Member(path, MemberKind.SPECIAL)


def copy_owned(source: IO[bytes], out: IO[bytes], owner: tuple[int, int]) -> None:
    """Copy a sound tar, as git writes it, with every member given to a user and group (ids below 2,097,152)."""
    ids = b"%07o\0%07o\0" % owner
    while header := source.read(tarfile.BLOCKSIZE):
        if header.count(0) == tarfile.BLOCKSIZE:
            out.write(header)
            continue
        fields = bytearray(header)
        fields[108:124] = ids
        fields[148:156] = b" " * 8
        fields[148:156] = b"%06o\0 " % sum(fields)
        out.write(fields)
        remaining = -int(header[124:136].rstrip(b"\0 "), 8) % tarfile.BLOCKSIZE + int(header[124:136].rstrip(b"\0 "), 8)
        while remaining:
            block = source.read(min(remaining, 1 << 20))
            out.write(block)
            remaining -= len(block)


class _Header(tarfile.TarInfo):
    """A header that is not trusted."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:  # tarfile takes it for the end
            raise ValueError(error) from error

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """The entry point for subclasses, by tarfile's source."""
        if self.size < 0 or (self.type in _EXTENSIONS and self.size > _MOST_EXTENSION):
            raise ValueError(f"a header of {self.size:,} bytes")
        start = self.offset
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        # A size in an extended header can lead back, to read the same headers for ever.
        if member.size < 0 or archive.offset <= start:
            raise ValueError(f"a file of {member.size:,} bytes")
        return member


class _Content:
    """The content of a member, whose end can be missing like any other part of the archive."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size) if self._file else b""
        except tarfile.ReadError as error:
            raise ExtractionFailed("the sandbox's files came as an archive that is cut off") from error


class _Source:
    """Chunks as a file to read, up to a number of bytes."""

    def __init__(self, chunks: Iterable[bytes], most: int) -> None:
        self._chunks = iter(chunks)
        self._most = most
        self._bytes_read = 0
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._bytes_read += len(chunk)
            if self._bytes_read > self._most:
                raise ExtractionFailed(f"the sandbox holds more than {self._most:,} bytes")
            self._rest = chunk
        content, self._rest = self._rest[:size], self._rest[size:]
        return content

    def drain(self) -> None:
        """Read what follows the archive's end, up to the bytes that are left; the sandbox waits for that."""
        while self.read(1 << 20):
            pass
