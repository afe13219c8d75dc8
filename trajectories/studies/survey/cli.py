"""The command `prchain environments survey`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    COST,
    Command,
    backend_options,
    budget_option,
    db_option,
    given,
    json_option,
    option,
    told_options,
    workers_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import present
from prchain.core.endings import end_command, say_end
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.studies.drawing import require_drawing, write_drawing
from trajectories.studies.survey.options import SurveyOptions

NOTHING = "no landed pull request with tests can be drawn; `prchain mine` mines repositories"


@click.command(cls=Command)
@click.argument("repositories", nargs=-1, metavar="[OWNER/NAME]...")
@told_options(SurveyOptions)
@backend_options(BACKENDS)
@workers_option("Landings")
@option(
    "--repair", is_flag=True, heading=COST, help="Let a model mend a recipe that does not build, three times at most."
)
@budget_option("Spend no more than this on repairs.")
@option("--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also draw the shares.")
@db_option
@json_option
def survey(
    repositories: tuple[str, ...],
    backend: str | None,
    unsafe: bool,
    workers: int | None,
    repair: bool,
    budget: float | None,
    svg: Path | None,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Draw landed pull requests with tests, and tell the share that builds, runs and is proved, with the first cause of
    every failure; of the mined repositories that are named, or of all.

    Years (before 2020, 2020 to 2023, since 2024) take turns, and repositories in them, so that the sample is even over
    both. Each landing is a chain of one, proved as `validate` does; chains that were chosen stay as they are. Intervals
    are Wilson's, of 95 %. A run can be killed at any moment: the same command goes on, and prints what is stored once
    all have ended.

    \b
    Example:
      prchain environments survey pallets/click --sample 24 --seed 7
      prchain environments survey pallets/click pallets/flask --dry-run
      prchain environments survey --sample 96 --workers 4 --svg survey.svg
    """
    from trajectories.studies.survey.report import drawing, print_survey
    from trajectories.studies.survey.run import run_survey

    options = SurveyOptions(**given(flags))
    settings = load_settings(db=db, workers=workers)
    chosen = chosen_backend(backend or settings.environments_backend, unsafe=unsafe).of(settings)
    if budget is not None and not repair:
        raise UsageError("--budget is what repairs may cost; give --repair, too")
    if svg is not None:
        require_drawing(svg)
    with (
        opened_store(settings.db) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        report, proved = run_survey(
            settings,
            store,
            progress,
            options,
            names=repositories,
            backend=chosen,
            repair=repair,
            budget_usd=budget,
        )
    present(as_json, report, print_survey, report)
    if svg is not None and report.landings:
        write_drawing(svg, drawing(report))
    say_end("landing", proved.failed, proved.left, proved.stopped)
    good = report.all.drawn if options.dry_run else report.all.ended
    end_command(done=proved.done, good=good, nothing=NOTHING)
