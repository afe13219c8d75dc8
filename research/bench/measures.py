"""The results of a bench: figures with their goals, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure. `goal` is its maximum, or with `at_least` its minimum; None where it has no goal."""

    bench: str
    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def row(self) -> tuple[str, str, str, str, str]:
        """Name, value, goal, verdict and note as text."""
        goal = "" if self.goal is None else f"{'>=' if self.at_least else '<='} {_number(self.goal)}"
        verdict = {True: "PASS", False: "FAIL", None: ""}[self.passed]
        return self.name, f"{_number(self.value)} {self.unit}".strip(), goal, verdict, self.note


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"


def as_table(measures: Sequence[Measure]) -> str:
    """The measures as aligned lines, each bench under its name."""
    rows = [measure.row() for measure in measures]
    name, value, goal = (max(len(row[column]) for row in rows) for column in range(3))
    lines = []
    for index, (measure, row) in enumerate(zip(measures, rows, strict=True)):
        if index == 0 or measures[index - 1].bench != measure.bench:
            lines += ["", measure.bench]
        lines.append(f"  {row[0]:<{name}}  {row[1]:>{value}}  {row[2]:<{goal}}  {row[3]:<4}  {row[4]}".rstrip())
    return "\n".join(lines[1:])


def as_json(measures: Sequence[Measure]) -> str:
    """The measures as a JSON list."""
    rows = [
        {
            "bench": measure.bench,
            "name": measure.name,
            "value": round(measure.value, 6),
            "unit": measure.unit,
            "goal": measure.goal,
            "at_least": measure.at_least,
            "passed": measure.passed,
            "note": measure.note,
        }
        for measure in measures
    ]
    return json.dumps(rows, indent=2)
