"""Rows for people and for machines. Cells may hold mined text: what would steer a terminal is shown, not sent."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any, TextIO

from prchain.core.console.columns import columns as terminal_columns
from prchain.core.console.terminal import escaped, json_text, table_lines

_PLACES = 6
"""Of a number that people read: a millionth of a dollar. JSON and CSV keep all digits."""

_SMALL = 1e-4


def write_json(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """A JSON array with one object a row, written row by row."""
    before = "[\n"
    for row in rows:
        out.write(before + indent(json_text(dict(zip(columns, map(_plain, row), strict=True))), "  "))
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """CSV with a line of column names; into a file or a pipe as it is stored, and on a terminal with escapes in the
    place of what would steer it."""
    show = _shown if out.isatty() else _plain
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(show, columns))
    writer.writerows(["" if cell is None else show(cell) for cell in row] for row in rows)


def write_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """Tab-separated columns under a line of their names; a tab or line break within a cell is written as escape."""
    out.write("\t".join(map(_visible, columns)) + "\n")
    out.writelines("\t".join(map(_visible, row)) + "\n" for row in rows)


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """A table as wide as the terminal; where its columns would be too narrow to read, each row by itself. Of no rows
    that is said."""
    cells = [list(map(_visible, row)) for row in rows]
    lines = table_lines(columns, cells, width=terminal_columns(out))
    out.writelines(f"{line}\n" for line in lines)
    if not cells:
        out.write("0 rows\n")


def _plain(cell: Any) -> Any:
    if isinstance(cell, bytes | memoryview):
        return f"{len(cell)} bytes"
    return cell if isinstance(cell, str | int | float | None) else str(cell)


def _shown(cell: Any) -> Any:
    plain = _plain(cell)
    return escaped(plain) if isinstance(plain, str) else plain


def _visible(cell: Any) -> str:
    text = "" if cell is None else _readable(cell) if isinstance(cell, float) else str(_plain(cell))
    return escaped(text)


def _readable(number: float) -> str:
    """A number without the digits that come from adding floats; of a very small one the first three."""
    return f"{number:.3g}" if 0 < abs(number) < _SMALL else str(round(number, _PLACES))
