"""Data sets of others as instances: each file's form, where its rows come from, and what became of each row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from chains.imports.forms import FORMS
from chains.imports.instance import DataSet, Instance
from chains.imports.marks import is_benchmark
from chains.imports.reader import Reader, Row
from chains.imports.rows import TASK, files_of, rows_of
from chains.stages.benchmarks import Benchmarks
from prchain.core.errors import BadInstance, UsageError

_CACHED = re.compile(r"datasets--(?P<owner>[\w.-]+?)--(?P<name>[\w.-]+)")
"""A folder of the hub's own cache; `snapshots/REVISION` lies below it."""

_SHARD = re.compile(r"(?P<split>\w+?)-[0-9]{5}-of-[0-9]{5}(?:-[0-9a-f]{16})?")
_SPLITS = re.compile(r"train|test|dev|val|valid|validation|filtered|lite|verified|leaderboard|20[0-9]{2}_[01][0-9]")


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row of a file, and its instance, or why it holds none."""

    file: Path
    row: int
    instance: Instance | None = None
    error: BadInstance | None = None

    @property
    def reason(self) -> str:
        """Why it holds none; empty where it holds one."""
        return "" if self.error is None else str(self.error)

    def __str__(self) -> str:
        place = f"{self.file}, row {self.row}" if self.row else str(self.file)
        return _line(f"{place}: {self.reason}")


def read_instances(path: Path, *, source: str | None = None, form: str | None = None) -> Iterator[ReadRow]:
    """The rows of a file, or of all files of a folder, in order; one at a time.

    `source` is the data set's name where the path does not tell it, `form` a name of `FORMS` where the columns of
    rows do not tell it. Raises `UsageError` for a path without a file of a kind that is read, and at the end where no
    row was of a form.
    """
    given = None if form is None else FORMS.named(form)
    benchmarks, fitting, odd = Benchmarks.load(), False, ""
    for file in files_of(path):
        where = provenance(path, file, source)
        for number, row in rows_of(file):
            if isinstance(row, BadInstance):
                yield ReadRow(file, number, error=row)
                continue
            reader = given or _form_of(row)
            if reader is None:
                columns = ", ".join(sorted(map(str, row))[:12])
                reason = f"of no form that is read (columns {columns[:200]})"
                odd = odd or f"{file} is {reason}"
                yield ReadRow(file, number, error=BadInstance(f"it is {reason}"))
                continue
            fitting = True
            try:
                found = reader.read(row, where)
            except BadInstance as error:
                yield ReadRow(file, number, error=error)
                continue
            yield ReadRow(file, number, replace(found, benchmark=is_benchmark(found, where, benchmarks)))
    if odd and not fitting:
        raise UsageError(_line(f"{odd}; say which with --form"))


def provenance(path: Path, file: Path, source: str | None = None) -> DataSet:
    """What the name of a file below `path` tells: the data set, its revision and the split."""
    parts = file.absolute().parts
    cached = next(((place, found) for place, part in enumerate(parts) if (found := _CACHED.fullmatch(part))), None)
    revision = None
    if cached is not None and parts[cached[0] + 1 : cached[0] + 2] == ("snapshots",):
        revision = parts[cached[0] + 2]
    if source is None:
        own = path.absolute()
        own = own.parent if (own / TASK).is_file() else own  # one task of a data set is of the same one as all
        source = f"{cached[1]['owner']}/{cached[1]['name']}" if cached else own.name if path.is_dir() else own.stem
    below = file.absolute().relative_to(path.absolute()).parts if path.is_dir() else ()
    stem = file.name.removesuffix(file.suffix)
    shard = _SHARD.fullmatch(stem)
    split = shard["split"] if shard else stem if _SPLITS.fullmatch(stem) else None
    names = (*([cached[1]["name"]] if cached else []), path.absolute().name, *below[:-1], stem)
    return DataSet(_storable(source), revision and _storable(revision), split, tuple(map(_storable, names)))


def _line(words: str) -> str:
    """Words of which a row may have written some, in one line."""
    return "".join(char if char.isprintable() else "?" for char in words)


def _storable(name: str) -> str:
    """A name of a file as a text: bytes that are no UTF-8 give way."""
    return os.fsencode(name).decode("utf-8", "replace").replace("\0", "")


def _form_of(row: Row) -> Reader | None:
    found = [form for form in FORMS.values() if form.fits(row.keys())]
    # A wrapping has the columns of what it wraps beside its own.
    wrapping = [form for form in found if form is FORMS["nemotron"]]
    chosen = wrapping or found
    return chosen[0] if len(chosen) == 1 else None
