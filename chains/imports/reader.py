"""What a reader of a form is, and how readers take values from a row.

A row is hostile: whatever a column holds, a reader gives an `Instance` or raises `BadInstance` with what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from chains.imports.instance import DataSet, Instance
from prchain.core.errors import BadInstance, NoQuery
from prchain.core.git.named_paths import named_paths
from prchain.core.timestamps import stamp

Row = Mapping[str, Any]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_COMMIT = re.compile(r"[0-9a-f]{7,64}", re.I)
_REPOSITORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Of both a folder is made: none is hidden, an option or a way up."""
_INSTANCE = re.compile(r"\w[\w.@:+-]{0,254}", re.ASCII)
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]{0,254}(@sha256:[0-9a-f]{64})?")
_MARKS = (">>>>> Start Test Output", ">>>>> End Test Output")
"""Between which an eval script of SWE-bench runs its tests."""

_MOST_TESTS = 1_000_000
_LONG_WORD = 64


class Reader(Protocol):
    """A form of data set; each module of `chains.imports.forms` holds one, as `READER`."""

    @property
    def help(self) -> str:
        """What it reads, in a few words."""

    def fits(self, columns: Collection[str]) -> bool:
        """Whether rows with these columns are of this form; at most one reader says so."""

    def read(self, row: Row, where: DataSet) -> Instance:
        """The instance of a row. Raises `BadInstance`."""


def text(row: Row, column: str) -> str:
    """A text that is not blank. Raises `BadInstance`."""
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise BadInstance(f"{column} is {_kind(value)}, where a text is needed")
    return _storable(column, value)


def query_text(row: Row, column: str = "problem_statement") -> str:
    """What a model is asked. Raises `NoQuery` where the publisher wrote nothing, else `BadInstance`."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise NoQuery(f"{column} is {_kind(value)}: nothing is asked")
    return text(row, column)


def text_or_none(row: Row, column: str) -> str | None:
    """A text that is not blank; None where there is none. Raises `BadInstance` for another kind of value."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return text(row, column)


def texts(row: Row, column: str) -> tuple[str, ...]:
    """A list of texts, or the JSON text of one; empty for null or a blank text. Raises `BadInstance`."""
    value = row.get(column)
    if isinstance(value, str):
        value = _decoded(column, value) if value.strip() else None
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(type(item) is str for item in value):
        raise BadInstance(f"{column} is {_kind(value)}, where a list of texts is needed")
    if len(value) > _MOST_TESTS:
        raise BadInstance(f"{column} lists {len(value)} texts, which is more than tests can be")
    _storable(column, "\n".join(value))
    return tuple(value)


def mapping(row: Row, column: str) -> Row:
    """An object, or the JSON text of one; empty for null. Raises `BadInstance`."""
    value = row.get(column)
    if isinstance(value, str):
        value = _decoded(column, value) if value.strip() else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInstance(f"{column} is {_kind(value)}, where an object is needed")
    return value


def instance_name(row: Row, column: str = "instance_id") -> str:
    """The name of an instance: letters, digits and signs without a blank. Raises `BadInstance`."""
    return _matched(_INSTANCE, column, text(row, column), "a name of an instance")


def repository_name(row: Row, column: str = "repo") -> str:
    """``owner/name``. Raises `BadInstance`."""
    return _matched(_REPOSITORY, column, text(row, column), "owner/name")


def commit_name(row: Row, column: str = "base_commit") -> str:
    """The name of a commit, or the beginning of one, in lower case. Raises `BadInstance`."""
    return _matched(_COMMIT, column, text(row, column), "a commit").lower()


def patch_text(row: Row, column: str, *, needed: bool = True) -> str:
    """A patch as git prints it; empty where there is none and none is `needed`. Raises `BadInstance`."""
    patch = text(row, column) if needed else text_or_none(row, column)
    if patch is None:
        return ""
    if "diff --git " not in patch and not re.search(r"^--- ", patch, re.M):
        raise BadInstance(f"{column} is no patch: it has no line that begins with 'diff --git' or '---'")
    if not any(named_paths(patch)):
        raise BadInstance(f"{column} is no patch: none of its lines names a file")
    return patch if patch.endswith("\n") else f"{patch}\n"


def image_column(row: Row, *columns: str) -> str | None:
    """The image that the first of these columns names; None where none of them names one. Raises `BadInstance`."""
    for column in columns:
        if name := text_or_none(row, column):
            return image_name(column, name.strip().removeprefix("docker://"))
    return None


def image_name(column: str, name: str) -> str:
    """The name, which has to be one that Docker can take. Raises `BadInstance`."""
    return _matched(_IMAGE, column, name, "a name of an image")


def lists(row: Row, f2p: str = "FAIL_TO_PASS", p2p: str = "PASS_TO_PASS") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """F2P and P2P. Raises `BadInstance`, also where no test has to be mended."""
    mended, kept = (tuple(dict.fromkeys(texts(row, column))) for column in (f2p, p2p))
    if not mended:
        raise BadInstance(f"{f2p} names no test, so nothing can show that the instance is solved")
    return mended, kept


def commands(value: object, column: str) -> tuple[str, ...]:
    """Lines of shell from a text or a list of texts. Raises `BadInstance`."""
    if isinstance(value, str):
        value = [value]
    return tuple(line for line in texts({column: value}, column) if line.strip())


def marked_commands(script: str) -> tuple[str, ...]:
    """The lines that an eval script of SWE-bench runs between its marks; empty where it has none."""
    start, end = _MARKS
    lines = script.splitlines()
    at = [next((place for place, line in enumerate(lines) if mark in line), None) for mark in (start, end)]
    if at[0] is None or at[1] is None:
        return ()
    return tuple(line for line in lines[at[0] + 1 : at[1]] if line.strip())


def time_or_none(row: Row, column: str = "created_at") -> str | None:
    """A time as tables keep it, from ISO 8601, a time of Parquet, or milliseconds since 1970; None for anything else:
    no publisher promises that it is there."""
    value = row.get(column)
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{12,14}", value.strip()):
            value = datetime.fromtimestamp(int(value) / 1000, UTC)
        elif isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        return stamp(value) if isinstance(value, datetime) else None
    except (ValueError, OverflowError, OSError):
        return None


def word_or_none(row: Row, column: str) -> str | None:
    """A short text of no consequence, as of a licence; None where it is none, or long."""
    value = row.get(column)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONG_WORD or _UNSTORABLE.search(value):
        return None
    return value.strip()


def _matched(pattern: re.Pattern[str], column: str, value: str, wanted: str) -> str:
    if not pattern.fullmatch(value.strip()):
        raise BadInstance(f"{column} is {value[:60]!r}, which is no {wanted.removeprefix('a ')}")
    return value.strip()


def _decoded(column: str, value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise BadInstance(f"{column} is a text that is no JSON: {value[:40]!r}") from None


def _storable(column: str, value: str) -> str:
    if (not value.isascii() or "\0" in value) and (found := _UNSTORABLE.search(value)):
        raise BadInstance(f"{column} holds U+{ord(found[0]):04X}, which is no character of a text")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case str():
            return "blank"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return f"of the type {type(value).__name__}"
