"""Predictions in SWE-bench's form, as others write them: JSON Lines, a JSON list, or an object by instance (SWE-agent).

A row is hostile: it gives a `Prediction`, or one line that says what is wrong with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chains.imports.reader import Row, instance_name, text
from chains.imports.rows import rows_of
from prchain.core.errors import BadInstance, UsageError

_LARGEST_OBJECT = 1 << 30
_MODEL = 200
"""Characters of a model's name."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's patch for an instance."""

    instance: str
    model: str
    patch: str
    """Against the instance's base commit; empty where the model changed nothing."""
    sample: int
    """0 for the model's first prediction of the instance in the file, 1 for the second."""
    row: int
    """Of the file, 1 first; of JSON Lines, the line."""


def read_predictions(file: Path, tell: Callable[[str], None]) -> Iterator[Prediction]:
    """The predictions of a file. What is wrong with a row goes to `tell`, in one line that names file and row.

    Raises `UsageError` where there is no such file, or one of another kind.
    """
    samples: Counter[tuple[str, str]] = Counter()
    for number, row in _rows(file):
        try:
            if isinstance(row, BadInstance):
                raise row
            name, model = instance_name(row), text(row, "model_name_or_path").strip()[:_MODEL]
            patch = _patch(row)
        except BadInstance as error:
            tell(f"{file}, row {number:,}: {error}")
            continue
        sample = samples[name, model]
        samples[name, model] += 1
        yield Prediction(name, model, patch, sample, number)


def _rows(file: Path) -> Iterator[tuple[int, Row | BadInstance]]:
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    if file.suffix.lower() == ".parquet":
        raise UsageError(f"{file}: predictions are JSON lines, or a JSON list or object")
    by_instance = _object(file) if file.suffix.lower() == ".json" else None
    if by_instance is None:
        yield from rows_of(file)
        return
    if "instance_id" in by_instance:
        yield 1, by_instance
        return
    for number, (name, row) in enumerate(by_instance.items(), 1):
        if isinstance(row, dict):
            yield number, {"instance_id": name, **row}
        else:
            yield number, BadInstance("it is no object with columns")


def _object(file: Path) -> dict[str, Any] | None:
    """A file that is one object, by instance or a single prediction; None where it is something else."""
    try:
        with file.open("rb") as stream:
            if not stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                return None
            stream.seek(0)
            content = stream.read(_LARGEST_OBJECT + 1)
        if len(content) > _LARGEST_OBJECT:
            raise UsageError(f"{file} is larger than an object of predictions can be; write them as JSON lines")
        found = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _patch(row: Row) -> str:
    """As a text, which may be empty; null is one, too: the harness counts both as no patch."""
    value = row.get("model_patch")
    if value is None and "model_patch" in row:
        return ""
    if isinstance(value, str) and not value.strip():
        return ""
    patch = text(row, "model_patch")
    return patch if patch.endswith("\n") else f"{patch}\n"
