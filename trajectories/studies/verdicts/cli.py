"""The command of the judge: calibrate."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import (
    Group,
    choice_option,
    db_option,
    json_option,
    limit_option,
    option,
    repository_option,
    spending_options,
    strategy_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, tally
from prchain.core.endings import end_command, say_causes, say_end
from prchain.core.loading import load_settings

if TYPE_CHECKING:
    from trajectories.studies.verdicts.calibrate import Calibrator, Orders


@click.group(cls=Group)
def judge() -> None:
    """Measure the judge that accepts or sends back what agents did.

    \b
    Example:
      prchain judge calibrate --dry-run
    """


@judge.command()
@strategy_option
@repository_option
@limit_option("Only the first N stages, those of the best chains first.")
@option(
    "--repeats",
    heading="Judge",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="How often each patch is judged in each order.",
)
@choice_option(
    "--order", ["both", "reference", "candidate"], "Which patch stands first in the prompt.", "orders", heading="Judge"
)
@option(
    "--threshold",
    heading="Judge",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="The score from which on a patch is accepted, for everything but the curve.",
)
@spending_options("Stages worked on")
@db_option
@json_option
def calibrate(
    strategy: str,
    repository: str | None,
    limit: int | None,
    repeats: int,
    orders: Orders,
    threshold: float,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Measure the judge on patches whose worth is known, against itself and against tests.

    For every stage whose tests were proved: the reference in the agent's place has to be accepted; nothing, the way
    back, another stage's patch and half of the reference have to be rejected. Prints agreement, a threshold curve from
    0.5 to 0.95, and the cost. A run can be killed and started again: no stored verdict is paid for twice.

    \b
    Example:
      prchain judge calibrate --dry-run
      prchain judge calibrate --limit 20 --repeats 3 --budget 2.50
    """
    from trajectories.studies.verdicts.calibrate import CalibrationOptions, open_run
    from trajectories.studies.verdicts.report import print_summary, spent, summary

    settings = load_settings(db=db, workers=workers)
    options = CalibrationOptions(strategy, repository, limit, repeats, orders)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(settings, options, budget_usd=budget, progress=progress) as calibrator,
    ):
        if dry_run:
            _print_estimate(calibrator, as_json)
            return
        calibration = calibrator.run(settings.workers)
        page = summary(calibration, threshold=threshold, model=calibrator.judge.model, prompts=calibrator.judge.prompts)
        cost = spent(calibrator.judge.gateway.spending())
    present(as_json, {**page, "cost": cost}, print_summary, page, cost)
    say_causes(calibration.failed)
    say_end("stage", calibration.failed, calibration.unbegun, calibration.stopped)
    unscored = tally(page["unscored"])
    scored = page["known"]["verdicts"]
    if scored and unscored:
        say(f"unscored: {unscored}", err=True)
    nothing = f"the judge gave no verdict: {unscored}" if calibration.stages else "no stage has proved tests and a task"
    end_command(done=calibration.done, good=scored, nothing=nothing)


def _print_estimate(calibrator: Calibrator, as_json: bool) -> None:
    stages, estimate, unread = calibrator.estimate()
    for stage in unread:
        say(f"{stage.chain_id} stage {stage.position}: not counted, {stage.reason}", err=True)

    def print_text() -> None:
        say(f"{counted(stages, 'stage')} with proved tests: {counted(estimate.calls, 'call')} to the judge")
        say(f"  {estimate.words()}")
        say("  verdicts that are stored cost nothing; nothing has been asked or spent")

    present(as_json, {"stages": stages, **asdict(estimate), "unread": len(unread)}, print_text)
