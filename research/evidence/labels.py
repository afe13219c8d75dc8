"""The committed labels: what was drawn, the values of its signs, and what two readers said."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LABELS = Path(__file__).with_name("labels.csv")

STEPS = ("not", "borderline", "real")
TASKS = ("no", "borderline", "yes")

_READERS = ("first", "second")


@dataclass(frozen=True, slots=True)
class Read:
    """One pair or chain that two readers read."""

    round: str
    kind: str
    repository: str
    numbers: tuple[int, ...]
    chance: float
    confidences: tuple[float, ...]
    worths: tuple[float, ...]
    sources: tuple[str, ...]
    step_signs: tuple[Mapping[str, float], ...]
    stage_signs: tuple[Mapping[str, float], ...]
    steps: tuple[tuple[str, ...], tuple[str, ...]]
    """By reader."""
    stages: tuple[tuple[str, ...], tuple[str, ...]]
    wholes: tuple[str, str]

    @property
    def settled_steps(self) -> tuple[str, ...]:
        """The stricter label of each step."""
        return tuple(min(pair, key=STEPS.index) for pair in zip(*self.steps, strict=True))

    @property
    def settled_stages(self) -> tuple[str, ...]:
        """The stricter label of each stage."""
        return tuple(min(pair, key=TASKS.index) for pair in zip(*self.stages, strict=True))

    @property
    def settled_whole(self) -> str:
        """The stricter label of the whole."""
        return min(self.wholes, key=TASKS.index)


def read_labels(path: Path = LABELS) -> list[Read]:
    """Every line of the table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_read(row) for row in csv.DictReader(file)]


def _read(row: Mapping[str, str]) -> Read:
    first, second = ({name: row[f"{reader}_{name}"] for name in ("steps", "stages", "whole")} for reader in _READERS)
    return Read(
        row["round"],
        row["kind"],
        row["repository"],
        tuple(map(int, row["numbers"].split())),
        float(row["chance"]),
        tuple(map(float, row["confidences"].split())),
        tuple(map(float, row["worths"].split())),
        tuple(row["sources"].split()),
        tuple(json.loads(row["step_signs"])),
        tuple(json.loads(row["stage_signs"])),
        (tuple(first["steps"].split()), tuple(second["steps"].split())),
        (tuple(first["stages"].split()), tuple(second["stages"].split())),
        (first["whole"], second["whole"]),
    )


def joined(
    round_name: str, drawn: Iterable[Mapping[str, str]], answers: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Lines of the table from what was drawn and each reader's answers by sheet (see the sheets' instructions)."""
    rows = []
    for line in drawn:
        row = {"round": round_name, **line}
        sheet = row.pop("sheet")
        for reader, labels in zip(_READERS, answers, strict=True):
            found = labels[sheet]
            row[f"{reader}_steps"] = " ".join(found["step"])
            row[f"{reader}_stages"] = " ".join(found["stage"])
            row[f"{reader}_whole"] = found["whole"]
            row[f"{reader}_why"] = found["why"]
        count = len(row["numbers"].split())
        if any(
            len(found["step"]) != count - 1
            or len(found["stage"]) != count
            or not set(found["step"]) <= set(STEPS)
            or not {*found["stage"], found["whole"]} <= set(TASKS)
            for found in (labels[sheet] for labels in answers)
        ):
            raise ValueError(f"sheet {sheet}: a reader's labels are not of its {count} stages")
        rows.append(row)
    return rows


def write_labels(rows: Sequence[Mapping[str, str]], path: Path = LABELS) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
