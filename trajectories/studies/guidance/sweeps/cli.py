"""The command that rolls out the same chains under several variants."""

from __future__ import annotations

import uuid
from typing import Any

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    CatalogueOption,
    choice_option,
    db_option,
    json_option,
    repository_option,
    spending_options,
    strategy_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import present, say, say_next, tally
from prchain.core.settings import Settings
from trajectories.agents.observers.flags import prm_settings
from trajectories.studies.guidance.endings import end_run, print_estimates


@click.command()
@click.option("--variants", default="base,S,D,DR", show_default=True, metavar="LIST", help="base: without a model.")
@strategy_option
@repository_option
@click.option("--chain", metavar="ID", help="Of one chain only, named by its id or the beginning of it.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the N best chains that have a task.")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Rollouts of each chain.")
@click.option("--stage-steps", type=click.IntRange(min=1), default=75, show_default=True, help="Steps of a stage.")
@choice_option("--gate", ["tests", "judge", "both", "either"], "What accepts a stage.")
@choice_option("--on-fail", ["continue", "stop", "reference"], "After a stage that failed.")
@click.option("--refinements", type=click.IntRange(min=0), default=0, show_default=True, help="Of a rejected attempt.")
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.0, show_default=True, help="Of the agent.")
@choice_option("--tools", ["full", "bash"], "The agent's tools.")
@click.option("--context-tokens", type=click.IntRange(min=1), metavar="N", help="What the agent's model takes.")
@click.option("--backend", cls=CatalogueOption, of=BACKENDS, help="Where commands run.  [default: docker]")
@click.option("--unsafe-local", "unsafe", is_flag=True, help="Needed for the backend of that name.")
@prm_settings
@spending_options("Rollouts")
@db_option
@json_option
def sweep(
    variants: str,
    strategy: str,
    repository: str | None,
    chain: str | None,
    limit: int | None,
    samples: int,
    stage_steps: int,
    backend: str | None,
    unsafe: bool,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Roll out the same chains under several variants, and under none.

    The other options are the paper's (SWE-PRM, section 4.2): temperature 0, 75 steps, one attempt, tests. What stands
    is not made again; all variants share one budget, chain by chain. Then: `prchain prm report`.

    \b
    Example:
      prchain prm sweep --variants base,S,D,DR --strategy single --dry-run
      prchain prm sweep --variants base,D --limit 20 --budget 30
    """
    from trajectories.model import AgentLimits
    from trajectories.options import RolloutOptions
    from trajectories.rollouts.run import RolloutChoice
    from trajectories.studies.guidance.sweeps.sweep import open_sweep, settings_of

    settings = Settings.load(db=db, workers=workers)
    names = settings_of(variants)
    where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
    own = _sweep_settings(flags)
    options = RolloutOptions(backend=where.name, min_length=1, stage_limits=AgentLimits(steps=stage_steps), **flags)
    choice = RolloutChoice(strategy, repository, limit, chain, samples)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_sweep(
            settings, names, options, own, choice, budget_usd=budget, progress=progress, ledger_run=uuid.uuid4().hex
        ) as runner,
    ):
        pending = runner.pending()
        if dry_run:
            print_estimates(runner.estimate(pending.units), as_json, pending.standing)
            return
        where.of(settings).clear_away()
        report = runner.run(settings.workers, pending)
        spent = runner.spent()
    row = {
        "outcomes": report.counts,
        "stood_before": report.standing,
        "left": report.left,
        "stopped": report.stopped,
        "usd": None if spent is None else spent.cost,
    }

    def print_text() -> None:
        say(f"{tally(report.counts) or 'nothing new to do'}; {report.standing:,} done before")

    present(as_json, row, print_text)
    if not as_json and report.done:
        say_next("prm report")
    tried = report.results or report.standing
    nothing = "no rollout came to a verdict" if tried else "there was nothing to roll out"
    end_run(report, report.failed, "rollout", good=report.good, nothing=nothing)


def _sweep_settings(flags: dict[str, Any]) -> dict[str, str]:
    """The settings of all variants, from their flags, which are taken out."""
    from prchain.core.errors import UsageError

    axes = ("prm", "prm_style", "prm_example", "prm_reads", "prm_action")
    if any(flags.pop(name) is not None for name in axes):
        raise UsageError("--variants says which variants are compared; --prm and its axes are not of a sweep")
    names = [name for name in flags if name.startswith("prm_")]
    chosen = {name.removeprefix("prm_"): flags.pop(name) for name in names}
    return {name: str(value) for name, value in chosen.items() if value is not None}
