"""Labels of windows that people wrote: a CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prchain.core.console.terminal import shortened
from prchain.core.errors import UsageError
from trajectories.agents.guidance.taxonomy import Taxonomy
from trajectories.studies.guidance.agreement import ReadWindow

COLUMNS = ("trajectory", "position", "attempt", "last_step", "category", "label")
"""``reader`` may stand beside them; others are not read."""

_READER = "reader"

_NUMBER = re.compile("[0-9]{1,9}")

_ANSWERS = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class WindowLabel:
    """Whether a category is there in a window, as a reader says."""

    window: ReadWindow
    category: str
    label: bool
    reader: str
    """Empty where the file does not say."""
    line: int
    """Of the file, from 1."""


@dataclass(frozen=True, slots=True)
class SettledLabels:
    """One answer for each window and category. `disputed`: on so many readers differ, and there is none."""

    labels: Mapping[tuple[ReadWindow, str], bool]
    disputed: int


def read_labels(path: Path, taxonomy: Taxonomy) -> list[WindowLabel]:
    """The labels of a CSV file with the columns `COLUMNS`, in its order.

    Raises `UsageError` for a file that cannot be read, with the first line that is wrong: a missing or surplus cell, a
    number that is none, a category that the taxonomy does not have, a label that is neither yes nor no, or a second
    label of the same reader.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _labels(file, path, taxonomy)
    except OSError as error:
        raise UsageError(f"the labels {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the labels {path} are no UTF-8") from None
    except csv.Error as error:
        raise UsageError(f"the labels {path} are no CSV: {error}") from None


def settled(labels: Iterable[WindowLabel]) -> SettledLabels:
    """The labels on which all readers agree who give one."""
    answers: dict[tuple[ReadWindow, str], set[bool]] = {}
    for label in labels:
        answers.setdefault((label.window, label.category), set()).add(label.label)
    agreed = {place: next(iter(found)) for place, found in answers.items() if len(found) == 1}
    return SettledLabels(agreed, len(answers) - len(agreed))


def check_windows(labels: Iterable[WindowLabel], known: Collection[ReadWindow]) -> None:
    """Raise `UsageError` for labels of windows that are not among the known ones."""
    unknown: dict[ReadWindow, WindowLabel] = {}
    for label in labels:
        if label.window not in known:
            unknown.setdefault(label.window, label)
    if not unknown:
        return
    window, first = next(iter(unknown.items()))
    words = f"trajectory {_quoted(window.trajectory)}, stage {window.position}, attempt {window.attempt}"
    more = f"; so it is with {len(unknown):,} windows in all" if len(unknown) > 1 else ""
    raise UsageError(
        f"the labels, line {first.line}: no process reward model has read the window of {words} that ends with step "
        f"{window.last_step}{more}"
    )


def _labels(file: Iterable[str], path: Path, taxonomy: Taxonomy) -> list[WindowLabel]:
    places: dict[str, int] = {}
    width = 0
    labels: list[WindowLabel] = []
    given: dict[tuple[ReadWindow, str, str], int] = {}
    rows = csv.reader(file, strict=True)
    for row in rows:
        line = rows.line_num
        if not any(cell.strip() for cell in row):
            continue
        if not places:
            places, width = _places(row, path), len(row)
            continue
        where = f"the labels {path}, line {line}"
        if len(row) != width:
            raise UsageError(f"{where}: {len(row)} cells stand under {width} columns")
        label = _label({name: row[place].strip() for name, place in places.items()}, where, line, taxonomy)
        before = given.setdefault((label.window, label.category, label.reader), line)
        if before != line:
            raise UsageError(f"{where}: line {before} has a label for the same window, category and reader")
        labels.append(label)
    if not places:
        raise UsageError(f"the labels {path} are empty; their first line has the columns {', '.join(COLUMNS)}")
    return labels


def _places(head: list[str], path: Path) -> dict[str, int]:
    names = [name.strip() for name in head]
    if missing := [name for name in COLUMNS if name not in names]:
        raise UsageError(f"the labels {path} have no column {missing[0]}; needed are {', '.join(COLUMNS)}")
    wanted = [*COLUMNS, _READER]
    if twice := [name for name in wanted if names.count(name) > 1]:
        raise UsageError(f"the labels {path} have the column {twice[0]} twice")
    return {name: names.index(name) for name in wanted if name in names}


def _label(cells: Mapping[str, str], where: str, line: int, taxonomy: Taxonomy) -> WindowLabel:
    if not cells["trajectory"]:
        raise UsageError(f"{where}: it names no trajectory")
    numbers = []
    for name in ("position", "attempt", "last_step"):
        if not _NUMBER.fullmatch(cells[name]):
            raise UsageError(f"{where}: {name} is no number: {_quoted(cells[name])}")
        numbers.append(int(cells[name]))
    category = cells["category"]
    if not taxonomy.has(category):
        known = ", ".join(it.name for it in taxonomy.categories)
        raise UsageError(f"{where}: there is no category {_quoted(category)}; the taxonomy has {known}")
    answer = _ANSWERS.get(cells["label"].casefold())
    if answer is None:
        raise UsageError(f"{where}: label is neither yes nor no: {_quoted(cells['label'])}")
    return WindowLabel(ReadWindow(cells["trajectory"], *numbers), category, answer, cells.get(_READER, ""), line)


def _quoted(text: str) -> str:
    return repr(shortened(text, 40))
