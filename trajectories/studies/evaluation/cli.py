"""The command `prchain evaluate`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import db_option, json_option, repository_option, strategy_option
from prchain.core.console.terminal import counted, present, say
from prchain.core.endings import end_command
from prchain.core.errors import UsageError, no_room
from prchain.core.settings import Settings
from sql.store import Store

if TYPE_CHECKING:
    from trajectories.studies.evaluation.evaluation import By


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
    "--compare", nargs=2, metavar="ONE OTHER", help="Two groups beside each other, on the instances that both have."
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
    """
    from chains.tasks.export import write_lines
    from trajectories.export.tasks.predictions import MissingPrediction
    from trajectories.export.tasks.predictions import predictions as predicted
    from trajectories.outcomes import FINAL
    from trajectories.studies.evaluation.evaluation import (
        beside,
        drawing,
        evaluation,
        print_evaluation,
        print_sides,
    )
    from trajectories.studies.evaluation.stored import TaskSet, chains_of, evaluated_runs, with_views

    settings = Settings.load(db=db)
    if svg and svg.exists() and not force:
        raise UsageError(f"{svg} is there already; give another name, or --force to replace it")
    left_out: list[MissingPrediction] = []
    with closing(Store.open(settings.db, create=False)) as store, store.reading() as tx:
        chains = chains_of(tx, TaskSet(strategy, repository, source))
        runs = evaluated_runs(tx, chains, model)
        row = evaluation(runs, by=by, ks=_numbers(ks))
        found = beside(with_views(tx, runs), by, *compare) if compare else None
        if svg is not None:
            try:
                svg.write_text(drawing(row), encoding="utf-8")
            except OSError as error:
                raise no_room(error, svg) or UsageError(f"{svg} cannot be written: {error.strerror}") from None
        if found is not None and compare is not None:
            row["compared"] = {"one": compare[0], "other": compare[1], **asdict(found)}
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
                only={it.trajectory for it in runs},
                left_out=left_out.append,
            )
            written = write_lines(lines, predictions, force=force)
            if not as_json:
                say(f"{counted(written, 'prediction')} written to {predictions}; {len(left_out):,} left out")
    end_command(done=True, good=len(row["groups"]), nothing="no rollout over these tasks has ended")


def _numbers(words: str) -> tuple[int, ...]:
    parts = [part.strip() for part in words.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 0 < int(part) <= 1000 for part in parts):
        raise UsageError(f"--k takes numbers of runs, as in 1,2,5, not {words!r}")
    return tuple(sorted({int(part) for part in parts}))
