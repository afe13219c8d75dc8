"""Grading a file of predictions of others, and telling what cannot be graded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from environments.backends import BACKENDS
from environments.images.provide import Provider
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, say, say_prose, say_some, tally
from prchain.core.runs import RunResult
from prchain.core.settings import Settings
from sql.store import Store, Transaction
from trajectories.studies.evaluation.graded_runs import GradedReport, graded_runs, placed
from trajectories.studies.evaluation.grading import PatchGrading
from trajectories.studies.evaluation.predictions_of_others import read_predictions
from trajectories.studies.evaluation.stored import EvaluatedRun, TaskSet, chains_of, instances_of

_MOST_TOLD = 100
"""Lines of rows that cannot be graded."""


def grade_file(
    settings: Settings,
    backend: str,
    tasks: TaskSet,
    file: Path,
    require: Callable[[Transaction, Sequence[EvaluatedRun]], None] | None = None,
) -> tuple[list[EvaluatedRun], GradedReport]:
    """Grade the predictions of a file; what cannot be graded is told in one line each. `require` is called before with
    the runs that they will be, and may raise. Raises `UsageError`, and as `PatchGrading.run`."""
    lines: list[str] = []
    predictions = list(read_predictions(file, lines.append))
    bad = len(lines)
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        with store.reading() as tx:
            instances = instances_of(tx, chains_of(tx, tasks))
            found = placed(predictions, instances)
            if require is not None:
                require(tx, graded_runs(found, instances, RunResult(), file, bad)[0])
        lines += [f"{file}, row {it.row:,}: no task of these is called {it.instance}" for it in found.unknown]
        say_some(lines, _MOST_TOLD, indent=0, err=True)
        where = BACKENDS.named(backend).of(settings)
        with closing(Provider(settings, images=where.needs_image, store=store)) as provider:
            where.clear_away()
            result = PatchGrading(store, settings, where, provider).run(found.units, settings.workers, progress)
    reasons = [f"{it.unit.key}: {it.outcome}: {it.reason}" for it in result.results if it.reason]
    say_some(reasons, _MOST_TOLD, indent=0, err=True)
    runs, report = graded_runs(found, instances, result, file, bad)
    if report.stopped:
        say(report.stopped, err=True)
    return runs, report


def print_graded(report: GradedReport) -> None:
    """Print what became of the rows of a file."""
    words = tally(report.outcomes) or "nothing graded"
    rows = f"{counted(report.predictions, 'prediction')}: {words}"
    others = tally({"of no task": report.unknown, "no predictions": report.bad, "not graded": report.left})
    say_prose(f"{rows}{f'; rows {others}' if others else ''}", width=80)
    for model, count in report.missing.items():
        say_prose(f"{model}: {counted(count, 'instance')} of these tasks without a prediction, not counted", width=80)
    say()
