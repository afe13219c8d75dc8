"""Files that appear together and complete, or not at all; and JSON lines."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from prchain.core.errors import DiskFull, PrchainError, UsageError
from prchain.core.parts import new_part, remove_stale_parts, remove_stale_parts_in

_ENDED = io.BytesIO()
_ENDED.close()


class RowWriter(Protocol):
    """Takes rows one after the other."""

    count: int

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row."""

    def close(self) -> None:
        """Write the buffered rows; the stream stays open."""


class Sink(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Append bytes."""

    def flush(self) -> None:
        """Flush the bytes."""


class StandardOutput:
    """Standard output. Raises `DiskFull` and `UsageError` for its errors, and `BrokenPipeError` unchanged."""

    def __init__(self) -> None:
        self._stream = sys.stdout.buffer

    def write(self, data: bytes, /) -> int:
        """Append bytes."""
        with self._named_errors():
            return self._stream.write(data)

    def flush(self) -> None:
        """Flush the bytes to the system."""
        with self._named_errors():
            self._stream.flush()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            with _named_errors("standard output"):
                yield
        except PrchainError:
            # The buffered bytes cannot be written either, and Python would try again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise


class HashedFile:
    """A file that is being written: counts and hashes its bytes. One that has ended is a few short texts: there may be
    as many as there are samples."""

    __slots__ = ("_digest", "_file", "_part_name", "_path", "_sha256", "bytes")

    def __init__(self, path: Path) -> None:
        part, opened = new_part(path)
        self._file: IO[bytes] = opened
        self._path, self._part_name = str(path), part.name
        self.bytes = 0
        self._digest: Any = sha256()
        self._sha256 = ""

    @property
    def path(self) -> Path:
        """Where it will be."""
        return Path(self._path)

    @property
    def part(self) -> Path:
        """Where it is until then."""
        return self.path.with_name(self._part_name)

    def write(self, data: Any) -> int:
        """Append bytes, or one of pyarrow's buffers."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._digest.update(view)
        self.bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """How many bytes were written."""
        return self.bytes

    def flush(self) -> None:
        """Flush the bytes to the system."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._file.closed

    @property
    def sha256(self) -> str:
        """The hash of the written bytes, in hexadecimal digits."""
        return self._sha256 or str(self._digest.hexdigest())

    def close(self) -> None:
        """Do nothing: only `Files` closes the file, whatever its users do."""

    def end(self, *, sync: bool) -> None:
        """Close the file; with `sync`, after it is on the disk."""
        if not self._file.closed:
            if sync:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            self._sha256, self._digest, self._file = self.sha256, None, _ENDED


class Files:
    """Several files that are written under hidden names beside their paths and renamed at the end, in the order of
    opening.

    After an exception in the block the old files are unchanged; so they are after Ctrl-C and, in a command, SIGTERM.
    What a process that was killed left is removed by the next one that writes there. Raises `UsageError` if a file
    exists and `force` is not set, or if it cannot be written, and `DiskFull`.
    """

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        self._streams: list[HashedFile] = []
        self._removed: list[Path] = []
        self._folders: list[Path] = []
        self._swept = set[Path]()
        """Folders in which no dead process's file of ours lies any more."""
        self._discarded = False

    def __enter__(self) -> Self:
        return self

    def open(self, path: Path) -> HashedFile:
        """A new file that will be at `path`."""
        check_output_path(path, force=self._force)
        with _named_errors(path):
            if path.parent not in self._swept:
                remove_stale_parts(path)
            stream = HashedFile(path)
        self._streams.append(stream)
        return stream

    def folder(self, path: Path, pattern: str) -> None:
        """Make a folder for new files of such names, if there is none; it goes again if it stays empty."""
        check_output_folder(path, pattern, force=self._force)
        with _named_errors(path):
            if not path.exists():
                path.mkdir()
                self._folders.append(path)
            remove_stale_parts_in(path, pattern)
            self._swept.add(path)

    def remove(self, path: Path) -> None:
        """Remove a file that may exist, once the new ones are complete."""
        check_output_path(path, force=self._force)
        self._removed.append(path)

    def discard(self) -> None:
        """Write and remove nothing at the end: every file stays as it was."""
        self._discarded = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None and not self._discarded:
                for stream in self._streams:
                    with _named_errors(stream.path):
                        stream.end(sync=True)
                # First, so that a process that is killed here leaves no old validation file beside new training data.
                for path in self._removed:
                    with _named_errors(path):
                        path.unlink(missing_ok=True)
                for stream in self._streams:
                    with _named_errors(stream.path):
                        stream.part.replace(stream.path)
            elif isinstance(error, OSError) and not isinstance(error, PrchainError) and self._streams:
                with _named_errors(self._streams[-1].path):
                    raise error
        finally:
            for stream in self._streams:
                with contextlib.suppress(OSError):
                    stream.end(sync=False)
                with contextlib.suppress(OSError):
                    stream.part.unlink(missing_ok=True)
            for folder in self._folders:
                with contextlib.suppress(OSError):  # it holds the new files
                    folder.rmdir()


def check_output_path(path: Path, *, force: bool) -> None:
    """Raise `UsageError` if a file cannot or must not be written."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no ordinary file; give another name")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already; give another name, or --force to replace it")


def check_output_folder(path: Path, pattern: str, *, force: bool) -> None:
    """Raise `UsageError` if no files of such names can or must be written into a folder."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is no folder, and this format writes one; give another name")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be made: there is no folder {path.parent}")
    if not force and path.is_dir() and any(path.glob(pattern)):
        raise UsageError(f"{path} holds {pattern} already; give another name, or --force to replace them")


def check_inputs(output_paths: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise `UsageError` if an output file would replace an input file."""
    input_paths = list(inputs)
    for output_path in output_paths:
        if found := next((path for path in input_paths if _same(output_path, path)), None):
            raise UsageError(f"{output_path} would replace {found}, which this command reads; give --out another name")


def _same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.samefile(other)
    return path.resolve() == other.resolve()


@contextlib.contextmanager
def _named_errors(path: Path | str) -> Iterator[None]:
    try:
        yield
    except PrchainError:  # some of them are also an OSError
        raise
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise DiskFull(f"no room is left on the disk of {path}; make room and run the command again") from error
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


class JsonLines:
    """One JSON object a line.

    ASCII only: some readers end a line at certain Unicode characters (U+0085, U+2028), JSON does not. A number that is
    not in JSON (NaN, Infinity) is an error of the caller: `ValueError`.
    """

    def __init__(self, stream: Sink) -> None:
        self.count = 0
        self._stream = stream

    def write(self, row: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(row, allow_nan=False).encode("ascii") + b"\n")
        self.count += 1

    def close(self) -> None:
        self._stream.flush()


class JsonFiles:
    """One JSON object a file, in a folder. ASCII, and no number that is not in JSON, as in `JsonLines`."""

    def __init__(self, files: Files, folder: Path, name: Callable[[Mapping[str, Any]], str]) -> None:
        self.count = 0
        self.streams: list[HashedFile] = []
        self._files, self._folder, self._name = files, folder, name

    def write(self, row: Mapping[str, Any]) -> None:
        stream = self._files.open(self._folder / self._name(row))
        stream.write(json.dumps(row, allow_nan=False, indent=1).encode("ascii") + b"\n")
        stream.end(sync=True)  # a file stays open no longer than it is written
        self.streams.append(stream)
        self.count += 1

    def close(self) -> None:
        """Nothing is open."""


def sibling_path(out: Path, word: str) -> Path:
    """The name of a file that belongs to `out`: ``sft.jsonl`` and ``validation`` make ``sft.validation.jsonl``."""
    return out.with_name(f"{out.stem}.{word}{out.suffix}")


def card_paths(out: Path) -> tuple[Path, Path]:
    """The names of the card's two files beside `out`: Markdown and JSON."""
    return out.with_name(f"{out.name}.card.md"), out.with_name(f"{out.name}.card.json")
