"""The command `prchain evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    backend_options,
    db_option,
    json_option,
    repository_option,
    strategy_option,
    workers_option,
)
from prchain.core.console.terminal import counted, present, say
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.studies.drawing import write_drawing

if TYPE_CHECKING:
    from sql.store import Transaction
    from trajectories.studies.evaluation.evaluation import By
    from trajectories.studies.evaluation.graded_runs import GradedReport
    from trajectories.studies.evaluation.stored import EvaluatedRun


@click.command()
@strategy_option
@repository_option
@click.option("--source", metavar="NAME", help="Only tasks that were imported from this data set.")
@click.option("--model", metavar="NAME", help="Only rollouts of this agent's model.")
@click.option(
    "--by",
    type=click.Choice(["model", "option", "carry", "repository", "difficulty", "position", "source"]),
    default="model",
    show_default=True,
    help="What parts the runs of each model. carry: whose work stages began with, on the same stages side by side.",
)
@click.option("--k", "ks", metavar="LIST", default="1", show_default=True, help="Which Pass@k, as in 1,2,5.")
@click.option(
    "--compare",
    nargs=2,
    metavar="ONE OTHER",
    help="Two groups beside each other, on the instances that both have; by name, or its number in the tables.",
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Write Pass@1 as a drawing, too.")
@click.option(
    "--predictions-out",
    "predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write SWE-bench's predictions, too.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option(
    "--predictions-from",
    "others",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Grade predictions of others, in SWE-bench's form, by our tests; tell their figures, too.",
)
@workers_option("With --predictions-from, patches")
@backend_options(BACKENDS)
@db_option
@json_option
def evaluate(
    strategy: str,
    repository: str | None,
    source: str | None,
    model: str | None,
    by: By,
    ks: str,
    compare: tuple[str, str] | None,
    svg: Path | None,
    predictions: Path | None,
    force: bool,
    others: Path | None,
    workers: int | None,
    backend: str | None,
    unsafe: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Print the figures of models on a set of tasks, from stored rollouts: Pass@k, patches, steps, calls, cost.

    An instance is a stage. Rollouts that a machine, a network or an endpoint ended are told apart and scored as
    nothing. Intervals are of 95 %: Wilson's where every instance has one run, else a bootstrap over instances.

    \b
    Example:
      prchain evaluate --strategy imported
      prchain evaluate --by difficulty --k 1,2,4 --json
      prchain evaluate --strategy imported --predictions-from theirs.jsonl
    """
    from chains.tasks.export import write_lines
    from trajectories.export.tasks.predictions import MissingPrediction
    from trajectories.export.tasks.predictions import predictions as predicted
    from trajectories.outcomes import FINAL
    from trajectories.studies.evaluation.evaluation import beside, chosen_groups, drawing, evaluation
    from trajectories.studies.evaluation.graded import grade_file, print_graded
    from trajectories.studies.evaluation.stored import TaskSet, chains_of, evaluated_runs, with_views
    from trajectories.studies.evaluation.tables import print_evaluation, print_sides

    settings = load_settings(db=db, workers=workers)
    numbers = _numbers(ks)
    for out in (svg, predictions):
        _require_place(out, force=force)
    left_out: list[MissingPrediction] = []
    tasks = TaskSet(strategy, repository, source)
    graded: list[EvaluatedRun] = []
    report: GradedReport | None = None
    if others is not None:
        where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)

        def require_groups(tx: Transaction, planned: Sequence[EvaluatedRun]) -> None:
            if compare:
                stored = evaluated_runs(tx, chains_of(tx, tasks), model)
                chosen_groups([*stored, *(it for it in planned if model in (None, it.model))], by, *compare)

        graded, report = grade_file(settings, where.name, tasks, others, require_groups)
    with opened_store(settings.db) as store, store.reading() as tx:
        chains = chains_of(tx, tasks)
        runs = [*evaluated_runs(tx, chains, model), *(it for it in graded if model in (None, it.model))]
        row = evaluation(runs, by=by, ks=numbers)
        found = beside(with_views(tx, runs), by, *compare) if compare else None
        if svg is not None:
            write_drawing(svg, drawing(row))
        if found is not None and compare is not None:
            row["compared"] = {"one": compare[0], "other": compare[1], **asdict(found)}
        if report is not None:
            row["from"] = {"file": str(others), **asdict(report)}
            if not as_json:
                print_graded(report)
        present(as_json, row, print_evaluation, row)
        if found is not None and compare is not None and not as_json:
            say()
            print_sides(found, *compare)
        # Last: of two models, or two setups, there are figures, but no predictions.
        if predictions is not None:
            lines = predicted(
                tx,
                settings.mirrors_dir,
                settings.data_dir,
                outcomes=FINAL,
                only={it.trajectory for it in runs if it.trajectory},
                left_out=left_out.append,
            )
            written = write_lines(lines, predictions, force=force)
            if not as_json:
                say(f"{counted(written, 'prediction')} written to {predictions}; {len(left_out):,} left out")
    nothing = "no rollout over these tasks has ended" if report is None else "no prediction was graded"
    end_command(done=report is None or report.done, good=len(row["groups"]), nothing=nothing)


def _require_place(out: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, before patches are graded for hours. Raises `UsageError`."""
    if out is None:
        return
    if not out.parent.is_dir():
        raise UsageError(f"{out} cannot be written: there is no folder {out.parent}")
    if out.exists() and not force:
        raise UsageError(f"{out} is there already; give another name, or --force to replace it")


def _numbers(words: str) -> tuple[int, ...]:
    parts = [part.strip() for part in words.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 0 < int(part) <= 1000 for part in parts):
        raise UsageError(f"--k takes numbers of runs, as in 1,2,5, not {words!r}")
    return tuple(sorted({int(part) for part in parts}))
