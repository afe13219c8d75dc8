"""The command that rolls out the same chains under several variants."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import click

from environments.backends import BACKENDS, DEFAULT, chosen_backend
from prchain.core.cli_options import (
    WHICH,
    Command,
    backend_options,
    chain_option,
    db_option,
    given,
    json_option,
    limit_option,
    option,
    repository_option,
    samples_option,
    spending_options,
    strategy_option,
    told_options,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import present, say, say_next, tally
from prchain.core.loading import load_settings
from trajectories.agents.observers.flags import sweep_option
from trajectories.model import AgentLimits
from trajectories.options import RolloutOptions
from trajectories.studies.guidance.endings import end_run, print_estimates

_PAPER = {
    "gate": "tests",
    "on_fail": "continue",
    "refinements": 0,
    "temperature": 0.0,
    "stage_limits": AgentLimits(steps=75),
}
"""What the paper's runs have (SWE-PRM, section 4.2), where a rollout has another default."""


@click.command(cls=Command)
@option(
    "--variants", default="base,S,D,DR", show_default=True, metavar="LIST", heading=WHICH, help="base: without a model."
)
@option(
    "--policies",
    default="agent",
    show_default=True,
    metavar="LIST",
    heading=WHICH,
    help="Tables [purposes.NAME] whose models are the agents.",
)
@option(
    "--guides",
    default="prm",
    show_default=True,
    metavar="LIST",
    heading=WHICH,
    help="Tables [purposes.NAME] whose models guide; self: each agent guides itself.",
)
@strategy_option
@repository_option
@chain_option
@limit_option()
@samples_option()
@spending_options("Rollouts")
@told_options(
    RolloutOptions,
    "tools",
    "temperature",
    "top_p",
    "max_tokens",
    "context_tokens",
    "observation_chars",
    "calls",
    "shell",
    defaults=_PAPER,
)
@told_options(
    RolloutOptions,
    "gate",
    "threshold",
    "judge_sees",
    "tests",
    "on_fail",
    "refinements",
    "stage_limits.steps",
    defaults=_PAPER,
)
@backend_options(BACKENDS, DEFAULT)
@sweep_option
@db_option
@json_option
def sweep(
    variants: str,
    policies: str,
    guides: str,
    strategy: str,
    repository: str | None,
    chain: str | None,
    limit: int | None,
    samples: int,
    backend: str | None,
    unsafe: bool,
    prm: Mapping[str, str] | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Roll out the same chains under several variants, and under none; with several policies or guides, under each.

    The other options are the paper's (SWE-PRM, section 4.2): temperature 0, 75 steps, one attempt, tests. What stands
    is not made again; all settings share one budget, chain by chain. Then: `prchain prm report`.

    \b
    Example:
      prchain prm sweep --variants base,S,D,DR --strategy single --dry-run
      prchain prm sweep --variants base,D --guides self --limit 20 --budget 30
    """
    from trajectories.rollouts.run import RolloutChoice
    from trajectories.studies.guidance.sweeps.grid import sweep_grid
    from trajectories.studies.guidance.sweeps.sweep import open_sweep

    settings = load_settings(db=db, workers=workers)
    grid = sweep_grid(settings, variants, policies, guides)
    where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
    options = RolloutOptions(backend=where.name, min_length=1, **given(flags))
    choice = RolloutChoice(strategy, repository, limit, chain, samples)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_sweep(
            settings,
            grid,
            options,
            prm or {},
            choice,
            budget_usd=budget,
            progress=progress,
            ledger_run=uuid.uuid4().hex,
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
