"""Data sets of others as instances: each file's form, where its rows come from, and what became of each row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chains.imports.forms import FORMS
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Reader, Row
from chains.imports.rows import files_of, rows_of
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
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.file}, row {self.row}: {self.reason}"


def read_instances(path: Path, *, source: str | None = None, form: str | None = None) -> Iterator[ReadRow]:
    """The rows of a file, or of all files of a folder, in order; one at a time.

    `source` is the data set's name where the path does not tell it, `form` a name of `FORMS` where the columns of a
    file's first row do not tell it. Raises `UsageError` for a file that cannot be read as a whole, and where no form
    fits.
    """
    given = None if form is None else FORMS.named(form)
    for file in files_of(path):
        where = provenance(path, file, source)
        reader = given
        for number, row in rows_of(file):
            if isinstance(row, BadInstance):
                yield ReadRow(file, number, reason=str(row))
                continue
            reader = reader or _form_of(file, row)
            try:
                yield ReadRow(file, number, reader.read(row, where))
            except BadInstance as error:
                yield ReadRow(file, number, reason=str(error))


def provenance(path: Path, file: Path, source: str | None = None) -> DataSet:
    """What the name of a file below `path` tells: the data set, its revision and the split."""
    parts = file.absolute().parts
    cached = next(((place, found) for place, part in enumerate(parts) if (found := _CACHED.fullmatch(part))), None)
    revision = None
    if cached is not None and parts[cached[0] + 1 : cached[0] + 2] == ("snapshots",):
        revision = parts[cached[0] + 2]
    if source is None:
        own = path.absolute()
        source = f"{cached[1]['owner']}/{cached[1]['name']}" if cached else own.name if path.is_dir() else own.stem
    stem = file.name.removesuffix(file.suffix)
    shard = _SHARD.fullmatch(stem)
    split = shard["split"] if shard else stem if _SPLITS.fullmatch(stem) else None
    return DataSet(source, revision, split)


def _form_of(file: Path, row: Row) -> Reader:
    found = [form for form in FORMS.values() if form.fits(row.keys())]
    if len(found) != 1:
        columns = ", ".join(sorted(map(str, row))[:12])
        raise UsageError(f"{file} is of no form that is read (columns {columns}); say which with --form")
    return found[0]
