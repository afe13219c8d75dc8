"""Documents in files: one JSON a file, JSON Lines, or a folder of both; one document in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from prchain.core.errors import UsageError
from trajectories.json_text import parsed

LINES = frozenset({".jsonl", ".ndjson"})
WHOLE = frozenset({".json"})

_LARGEST = 256 << 20
"""Bytes of a document. One with the token ids of every prompt is some 50 MB."""


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A JSON value of a file, or why there is none."""

    file: Path
    line: int | None = None
    """None: the file is one document."""
    value: Any = None
    reason: str = ""

    @property
    def place(self) -> str:
        """File and line, for people."""
        return str(self.file) if self.line is None else f"{self.file}, line {self.line}"


def document_files(path: Path) -> list[Path]:
    """The files of documents: the one that is named, whatever its name, or those of a folder, in order.

    Raises `UsageError` where there is none.
    """
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix.lower() in LINES | WHOLE and file.is_file())
    if not found:
        raise UsageError(f"{path} holds no file *.json, *.jsonl or *.ndjson")
    return found


def read_documents(file: Path) -> Iterator[ReadDocument]:
    """The documents of a file; empty lines are passed over."""
    try:
        with file.open("rb") as stream:
            if file.suffix.lower() in LINES:
                for number, line in enumerate(_lines(stream), 1):
                    if line is None or line.strip():
                        yield _document(file, number, line)
            else:
                text = stream.read(_LARGEST + 1)
                yield _document(file, None, text if len(text) <= _LARGEST else None)
    except OSError as error:
        yield ReadDocument(file, reason=f"cannot be read: {error.strerror or error}")


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines; None for one that is too long."""
    while line := stream.readline(_LARGEST + 1):
        long = len(line) > _LARGEST
        while long and not line.endswith(b"\n") and (line := stream.readline(_LARGEST)):
            pass
        yield None if long else line


def _document(file: Path, line: int | None, text: bytes | None) -> ReadDocument:
    if text is None:
        return ReadDocument(file, line, reason=f"is larger than a document can be ({_LARGEST >> 20} MiB)")
    try:
        return ReadDocument(file, line, parsed(text.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return ReadDocument(file, line, reason="is no text in UTF-8")
    except ValueError as error:
        return ReadDocument(file, line, reason=f"is no JSON: {error}")
