"""A study's results, for machines, for people and as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prchain.core.console.terminal import json_text


class Study(NamedTuple):
    """What a study found."""

    row: dict[str, Any]
    """For machines: JSON."""
    table: str
    """CSV: what was counted, one a row."""
    drawings: Mapping[str, str]
    """Name of each figure to its SVG."""
    print_row: Callable[[Mapping[str, Any]], None]
    """Prints `row` for people."""


def write_study(folder: Path, name: str, study: Study) -> list[Path]:
    """Write a study as JSON, CSV and SVG into a folder, made when missing; returns the files. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.json": json_text(study.row) + "\n", f"{name}.csv": study.table}
    files |= {f"{name}-{figure}.svg": svg for figure, svg in study.drawings.items()}
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return [folder / file for file in files]
