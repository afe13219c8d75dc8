"""Rows of a rig as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write_rows(out: Path | None, rows: Sequence[Any]) -> None:
    """Write dataclasses of one kind into a file, a line each below their names; nothing without a file or a row."""
    if out is None or not rows:
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
