"""The rows of data sets on disk, one at a time: JSON Lines, a JSON list, Parquet, and folders of them and of tasks.

Of a file no more than some rows are held at once. A row that cannot be read is given as what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from chains.imports.reader import Row
from prchain.core.errors import BadInstance, UsageError

ENDINGS = (".jsonl", ".json", ".parquet")

TASK = "task.toml"
"""A folder that holds a file of this name is one task."""
TASK_FOLDER = "task folder"
"""The one column of its row: the `Path` of the folder. No column of a file has a value of that kind."""

_LONGEST = 32 << 20
"""Bytes of a row: three hundred times what a long one has."""

_CHUNK = 1 << 20
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_BATCH = 8
"""Rows of Parquet at once."""


class RestUnread(BadInstance):
    """Nothing of its file is read from a row on. It is never raised."""


def files_of(path: Path) -> list[Path]:
    """The files of a data set: the file itself, or all of a folder and its folders but hidden ones, sorted. A folder
    that is a task stands for what lies in it.

    Raises `UsageError` where there is none.
    """
    if path.is_dir():
        found = sorted(_below(path))
        if not found:
            raise UsageError(f"{path} holds no file that ends in {', '.join(ENDINGS)}, and no folder with a {TASK}")
        return found
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    return [path]


def _below(path: Path) -> Iterator[Path]:
    """Tasks' folders, and files of a kind that is read, which are in none of these."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        if (folder / TASK).is_file():
            yield folder
            continue
        try:
            found = sorted(folder.iterdir())
        except OSError:
            continue
        for place in found:
            if place.name.startswith("."):
                continue
            if place.is_dir() and not place.is_symlink():
                waiting.append(place)
            elif place.suffix.lower() in ENDINGS and place.is_file() and place.name != "dataset_infos.json":
                yield place


def rows_of(file: Path) -> Iterator[tuple[int, Row | BadInstance]]:
    """The rows of a file with their numbers, 1 first; of JSON Lines, the numbers of lines. A task's folder has one, 0.

    A file that cannot be read, or cannot be read further, ends with a `RestUnread`.

    Raises `UsageError` for a file of another kind.
    """
    if file.is_dir():
        yield 0, {TASK_FOLDER: file}
        return
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"{file} is of no kind that is read; its name should end in {', '.join(ENDINGS)}")
    number = 0
    try:
        for number, row in _rows(file):
            yield number, row
    except (OSError, BadInstance) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        yield (
            number + 1,
            RestUnread(f"the file cannot be read{' further' if number else ''}: {words.splitlines()[0][:200]}"),
        )


def _rows(file: Path) -> Iterator[tuple[int, Row | BadInstance]]:
    if file.suffix.lower() == ".parquet":
        yield from _parquet(file)
        return
    with file.open("rb") as stream:
        first = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        stream.seek(0)
        yield from _list(file) if first == b"[" else _lines(stream)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, Row | BadInstance]]:
    number = 0
    while line := stream.readline(_LONGEST + 1):
        number += 1
        if len(line) > _LONGEST:
            while not line.endswith(b"\n") and (line := stream.readline(_CHUNK)):
                pass
            yield number, BadInstance(f"the line is longer than {_LONGEST >> 20} MB")
        elif line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield number, _object(line)


def _object(line: bytes) -> Row | BadInstance:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return BadInstance(f"byte {error.start + 1} is no UTF-8")
    except json.JSONDecodeError as error:
        return BadInstance(f"character {error.pos + 1} ends what can be read as JSON: {error.msg}")
    except (ValueError, RecursionError):
        return BadInstance("it is no JSON that can be read: it is nested too deep, or holds a number that is too long")
    return _row(value)


def _row(value: Any) -> Row | BadInstance:
    return value if isinstance(value, dict) else BadInstance("it is no object with columns")


def _list(file: Path) -> Iterator[tuple[int, Row | BadInstance]]:
    """The items of a JSON list. What follows an item that cannot be read is not read: nobody knows where it begins."""
    decoder, number, ended = json.JSONDecoder(), 0, False
    try:
        with file.open(encoding="utf-8-sig") as stream:
            text = stream.read(_CHUNK)
            place = text.index("[") + 1
            while True:
                place = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]  # it matches nothing, too
                if text.startswith("]", place):
                    return
                try:
                    value, place = decoder.raw_decode(text, place)
                except (ValueError, RecursionError):
                    text, place = text[place:], 0
                    more = "" if ended else stream.read(max(_CHUNK, len(text)))
                    ended = ended or not more
                    text += more
                    if ended or len(text) > _LONGEST:
                        yield number + 1, RestUnread("the list ends here, or its next item is no JSON")
                        return
                    continue
                number += 1
                yield number, _row(value)
    except UnicodeDecodeError:
        raise BadInstance("it is no UTF-8 text") from None


def _parquet(file: Path) -> Iterator[tuple[int, Row | BadInstance]]:
    arrow, parquet = _pyarrow()
    try:
        number = 0
        with parquet.ParquetFile(file, buffer_size=_CHUNK, pre_buffer=False) as table:
            for batch in table.iter_batches(batch_size=_BATCH, use_threads=False):
                for place in range(batch.num_rows):
                    number += 1
                    try:
                        (row,) = batch.slice(place, 1).to_pylist()
                    except (ValueError, OverflowError) as error:  # a time of the year 150,000, say
                        row = BadInstance(f"it holds a value that cannot be read: {str(error)[:100]}")
                    yield number, row
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        raise BadInstance(f"as Parquet: {error}") from None


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow: install prchain with its extra [parquet]") from error
