"""The papers' tables: a place for each figure, which stays empty, with its reason, where nothing was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prchain.comparisons.rows import ABLATIONS, ELSEWHERE, EXPERT_PRM, OPEN_PRM, SETS, Origin, SetRow
from prchain.comparisons.run import samples_of
from prchain.core.console.terminal import say, say_prose, say_table
from prchain.core.llm.scripted import NAME as SCRIPTED
from trajectories.studies.evaluation.evaluation import groups_of
from trajectories.studies.evaluation.figures import Figures, figures
from trajectories.studies.evaluation.stored import EvaluatedRun

_WIDTH = 80

NO_RUNS = "no run of a model of this name on these tasks: train on the file, and roll out or give predictions"
UNTRAINED = "no run of the model before training, under the name davinci-base"
SEVERAL = "runs with several options under this name; --like of `rollouts run` keeps to one"
NO_COST = "predictions tell no cost; roll out here, with prices in prchain.toml"
NO_PRICE = "a price or tokens are not known"
NO_FILE = "no such file in the folder: nothing was exported to it"
THEIRS = "others publish this set"
NOT_TRAINED = "not trained"
NOT_OURS = "measured by that benchmark's own harness"
INCOMPLETE = "a mean over benchmarks that are not all measured here"
NOT_ROLLED_OUT = "not rolled out: `prchain prm sweep --variants` names it"
NOT_ALONE = "not rolled out alone: `prchain prm sweep --policies` names it"
NOT_SHARED = "no stage that all settings have reached, with hidden tests in each"
A_SCRIPT = "a script answered; a real model is needed"


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, or why there is none."""

    value: float | None = None
    why: str | None = None
    text: str = ""
    """The figure as people read it."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of a paper: rows with their cells by column."""

    title: str
    first: str
    """Of the column of names."""
    columns: Sequence[str]
    rows: Sequence[tuple[str, Mapping[str, Cell]]]
    notes: Sequence[str] = field(default=())


def empty(why: str) -> Cell:
    """A place without a figure."""
    return Cell(None, why)


def tables_of_sets(paper: str, folder: Path, runs: Mapping[str, Sequence[EvaluatedRun]]) -> list[PaperTable]:
    """Table 1 of `paper` for each data set that models were measured on (its name to their runs), and for each student
    that a model's name tells behind an ``@``. Of P2T also its ablations, where there is a file or a model of one."""
    titles = {"davinci": "daVinci-Agency, table 1", "p2t": "P2T, table 1"}
    more = ABLATIONS if paper == "p2t" else ()
    tables = []
    for source, of in runs.items():
        for student in _students([*SETS[paper], *more], of):
            tables.append(_of_sets(titles[paper], SETS[paper], folder, source, student, of))
            if any(_is_known(row, folder, student, of) for row in more[1:]):
                tables.append(_of_sets("P2T, table 5 and section 5.4", more, folder, source, student, of))
    return tables


def _is_known(row: SetRow, folder: Path, student: str, runs: Sequence[EvaluatedRun]) -> bool:
    """Whether there is a file of a row, or a model that was trained on it."""
    return row.file(folder).exists() or any(it.model == _model_of(row, student) for it in runs)


def _model_of(row: SetRow, student: str) -> str:
    return f"{row.name}@{student}" if student else row.name


def _students(rows: Sequence[SetRow], runs: Sequence[EvaluatedRun]) -> list[str]:
    names = {row.name for row in rows}
    told = {it.model.partition("@") for it in runs}
    return sorted({student for name, _, student in told if name in names}) or [""]


def _of_sets(
    title: str, of: Sequence[SetRow], folder: Path, source: str, student: str, runs: Sequence[EvaluatedRun]
) -> PaperTable:
    rows: list[tuple[str, Mapping[str, Cell]]] = []
    first: Mapping[str, Cell] = {}
    digits = {"Pass@1 (%)": 1, "Cost ($)": 2}
    for row in of:
        found = _figures(_model_of(row, student), row.origin, runs)
        cells = {"size": _samples(row, folder)}
        if of is SETS["davinci"]:
            cells["SWE-bench"] = _resolved(found, percent=False)
            cells |= {name: empty(NOT_OURS) for name in ELSEWHERE}
            cells["Avg"] = empty(INCOMPLETE)
        else:
            cells |= {"Pass@1 (%)": _resolved(found, percent=True), "Cost ($)": _cost(found)}
            if rows:
                cells = {name: _beside(cell, first.get(name), digits.get(name)) for name, cell in cells.items()}
            else:
                first = cells
        rows.append((row.title, cells))
    names = [f"{row.title}: {row.name}" for row in of if row.origin is Origin.OURS]
    notes = [f"files in {folder}, and names of the models trained on them: {', '.join(names)}"]
    title = f"{title}: {source}{f', student {student}' if student else ''}"
    return PaperTable(title, "trained on", list(rows[0][1]), rows, notes)


def _figures(name: str, origin: Origin, runs: Sequence[EvaluatedRun]) -> Figures | str:
    """The figures of the model of a row; a text says why there are none."""
    groups = groups_of([it for it in runs if it.model == name], "model")
    if not groups:
        return UNTRAINED if origin is Origin.NONE else NO_RUNS
    if len(groups) > 1:
        return SEVERAL
    ((_, of),) = groups.items()
    return figures(it.run for it in of)


def _samples(row: SetRow, folder: Path) -> Cell:
    if row.origin is not Origin.OURS:
        return empty(NOT_TRAINED if row.origin is Origin.NONE else THEIRS)
    count = samples_of(row.file(folder))
    return empty(NO_FILE) if count is None else Cell(count, text=f"{count:,}")


def _beside(cell: Cell, first: Cell | None, digits: int | None) -> Cell:
    """The cell, with what it has more than the one of the first row; as it is where `digits` is None."""
    if digits is None or cell.value is None or first is None or first.value is None:
        return cell
    return replace(cell, text=f"{cell.text} ({cell.value - first.value:+.{digits}f})")


def _resolved(found: Figures | str, *, percent: bool) -> Cell:
    if isinstance(found, str):
        return empty(found)
    if 1 not in found.pass_at:
        return empty(NO_RUNS)
    value = found.pass_at[1].value
    return Cell(100 * value, text=f"{100 * value:.1f}") if percent else Cell(value, text=f"{value:.3f}")


def _cost(found: Figures | str) -> Cell:
    if isinstance(found, str):
        return empty(found)
    if found.steps is None:
        return empty(NO_COST)
    return empty(NO_PRICE) if found.usd is None else Cell(found.usd, text=f"{found.usd:.2f}")


def tables_of_guidance(report: Mapping[str, Any]) -> list[PaperTable]:
    """Tables of SWE-PRM for each policy of `prm_report`'s figures: table 2 of what guides itself, table 3 for each
    other model that guides it; without any figures an empty table 2."""
    groups: Sequence[Mapping[str, Any]] = report["groups"] or [{"model": "none", "settings": ()}]
    guides = {(row["model"], *_setup(group)) for group in groups for row in group["settings"]}
    return [
        table
        for group in groups
        # A guide alone has its place in the table of what it guides.
        if any(row["model"] is not None for row in group["settings"]) or (group["model"], *_setup(group)) not in guides
        for table in _of_policy(group, groups)
    ]


def _of_policy(group: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Iterator[PaperTable]:
    policy, settings = group["model"], group["settings"]
    base = [row for row in settings if row["model"] is None]
    itself = [row for row in settings if row["model"] == policy]
    guides = sorted({str(row["model"]) for row in settings if row["model"] is not None} - {policy})
    options = [f"{name}={json.dumps(value)}" for name, value in group.get("choices", {}).items()]
    notes = [
        *([f"rolled out with {', '.join(options)}"] if options else []),
        "in brackets: more than base; `prchain prm report` has intervals, difficulty, tokens and windows",
    ]
    if itself or not guides:
        rows = _guidance_rows([*base, *itself], policy, OPEN_PRM)
        yield PaperTable(f"SWE-PRM, table 2: policy {policy}", "setting", _GUIDED, rows, notes)
    for guide in guides:
        rows = _guidance_rows([*base, *(row for row in settings if row["model"] == guide)], policy, EXPERT_PRM)
        rows.insert(min(1, len(base)), (f"base: {guide}", _alone(guide, group, groups)))
        yield PaperTable(f"SWE-PRM, table 3: policy {policy}, PRM {guide}", "setting", _GUIDED, rows, notes)


def _guidance_rows(
    settings: Sequence[Mapping[str, Any]], policy: str, variants: Sequence[str]
) -> list[tuple[str, Mapping[str, Cell]]]:
    names = [str(row["variant"]) for row in settings]
    rows: list[tuple[str, Mapping[str, Cell]]] = [
        (name if names.count(name) == 1 else str(row["setting"]), _guided_cells(row, policy))
        for name, row in zip(names, settings, strict=True)
    ]
    missing = [name for name in ("base", *variants) if name not in names]
    return [*rows, *((name, dict.fromkeys(_GUIDED, empty(NOT_ROLLED_OUT))) for name in missing)]


def _alone(guide: str, group: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Cell]:
    """The guide's own figures without guidance, under the same options."""
    for other in groups:
        if (other["model"], *_setup(other)) == (guide, *_setup(group)):
            for row in other["settings"]:
                if row["model"] is None:
                    return _guided_cells(row, guide)
    return dict.fromkeys(_GUIDED, empty(NOT_ALONE))


def _setup(group: Mapping[str, Any]) -> tuple[str, str]:
    return str(group.get("scaffold")), json.dumps(group.get("choices"), sort_keys=True)


_GUIDED = ("resolved (%)", "patches (%)", "steps", "USD per 100")


def _guided_cells(row: Mapping[str, Any], policy: str) -> dict[str, Cell]:
    found, against = row["figures"], row["against_base"] or {}
    if SCRIPTED in (policy, row["model"]):
        return dict.fromkeys(_GUIDED, empty(A_SCRIPT))
    if found is None:
        return dict.fromkeys(_GUIDED, empty(NOT_SHARED))
    values = (
        (found["resolved"]["percent"], against.get("resolved"), 1),
        (found["patches"]["percent"], None, 1),
        (found["steps"], against.get("steps"), 2),
        (found["usd_per_100"]["both"], None, 2),
    )
    return {name: _number(*value) for name, value in zip(_GUIDED, values, strict=True)}


def _number(value: float | None, more: Mapping[str, Any] | None, digits: int) -> Cell:
    if value is None:
        return empty(NO_PRICE)
    beside = "" if more is None else f" ({more['value']:+.{digits}f})"
    return Cell(value, text=f"{value:,.{digits}f}{beside}")


def table_row(table: PaperTable) -> dict[str, Any]:
    """The table as JSON values: of each place the figure, or why it is empty."""
    return {
        "table": table.title,
        "columns": list(table.columns),
        "rows": [
            {
                table.first: name,
                "figures": {column: cells[column].value for column in table.columns},
                "empty": {column: cell.why for column in table.columns if (cell := cells[column]).why is not None},
            }
            for name, cells in table.rows
        ],
        "notes": list(table.notes),
    }


def print_table(table: PaperTable) -> None:
    """Print the table in 80 columns; a letter stands in each empty place, and below it why."""
    whys = list(dict.fromkeys(cell.why for _, cells in table.rows for cell in cells.values() if cell.why is not None))
    marks = {why: chr(ord("a") + number) for number, why in enumerate(whys)}
    say(table.title)
    say_table(
        (table.first, *table.columns),
        [
            (name, *(f"({marks[cell.why]})" if cell.why is not None else cell.text for cell in _in_order(table, cells)))
            for name, cells in table.rows
        ],
        most=_WIDTH,
    )
    for why, mark in marks.items():
        say_prose(f"({mark}) {why}", width=_WIDTH, further=4)
    for note in table.notes:
        say_prose(note, width=_WIDTH)


def _in_order(table: PaperTable, cells: Mapping[str, Cell]) -> list[Cell]:
    return [cells[column] for column in table.columns]
