"""The command that makes curated trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from environments.backends import BACKENDS, DEFAULT
from prchain.core.cli_options import (
    WHICH,
    Command,
    backend_options,
    db_option,
    given,
    json_option,
    limit_option,
    option,
    proof_option,
    repository_option,
    samples_option,
    spending_options,
    strategy_option,
    told_options,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next, tally
from prchain.core.endings import end_command
from prchain.core.loading import load_settings
from trajectories.agents.observers.flags import observer_options, observer_specs
from trajectories.curation.windows.options import WindowOptions
from trajectories.options import RolloutOptions

if TYPE_CHECKING:
    from prchain.core.keyed import Given
    from prchain.core.llm.ledger import Spending
    from trajectories.curation.windows.forecast import CurationForecast
    from trajectories.curation.windows.run import PendingCuration
    from trajectories.rollouts.run import RolloutReport

_OF_AGENT = ("tools", "interface", "context_tokens", "overflow", "observation_chars")
_OF_STAGES = ("on_fail", "min_length", "stage_limits.steps")


@click.command(cls=Command)
@click.argument("chain", metavar="[CHAIN]", required=False)
@strategy_option
@repository_option
@limit_option()
@samples_option("Trajectories of each chain.")
@option(
    "--graph",
    metavar="GRAPH",
    heading=WHICH,
    help="The graph of the chain's first stage.  [default: found by its tree]",
)
@spending_options("Trajectories")
@told_options(WindowOptions)
@told_options(RolloutOptions, *_OF_AGENT)
@told_options(RolloutOptions, *_OF_STAGES)
@backend_options(BACKENDS, unsafe=False)
@told_options(RolloutOptions, "command_timeout", "test_timeout")
@observer_options
@proof_option
@db_option
@json_option
def run(
    chain: str | None,
    strategy: str,
    repository: str | None,
    limit: int | None,
    samples: int,
    graph: str | None,
    windows: Given,
    backend: str | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    proof: str,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Grow trajectories along process graphs, window by window.

    In each window a blinded agent goes on in copies of the sandbox; in a variant of each seed one step is written anew
    by a curator, and has to be grounded in what the agent has seen. Of the candidates that make enough progress in the
    graph the shortest is taken, and its first steps are committed. A trajectory is admitted by the stage's tests alone.
    A run can be killed at any moment and started again.

    \b
    Example:
      prchain curate run --dry-run
      prchain curate run 5f0c --budget 20
    """
    from sql.proof_filter import ProofFilter
    from sql.taken_proofs import say_proofs
    from trajectories.curation.windows.run import CurationChoice, open_run

    settings = load_settings(db=db, workers=workers)
    where = BACKENDS.named(backend or settings.environments_backend or DEFAULT)
    observers = observer_specs(flags)
    options = WindowOptions(**windows)
    choice = CurationChoice(strategy, repository, limit, chain, samples, graph=graph, proof=ProofFilter(proof))
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(
            settings,
            options,
            choice,
            backend=where.name,
            budget_usd=budget,
            progress=progress,
            observers=observers,
            **given(flags),
        ) as runner,
    ):
        pending = runner.curation()
        say_proofs(pending.rollouts.doubts, pending.rollouts.weak)
        if dry_run:
            chosen = {**runner.context.options.chosen, "windows": options.chosen}
            _print_forecast(runner.curation_forecast(pending.rollouts.units), pending, chosen, as_json)
            return
        runner.context.backend.clear_away()
        report = runner.run(settings.workers, pending.rollouts)
        spending = runner.context.gateway.spending()
    present(as_json, _report_row(report, pending, spending), _print_report, report, pending, spending)
    if not as_json and report.good:
        say_next("export --out sft.jsonl")
    nothing = "no trajectory was accepted" if report.results or report.standing else "there was nothing to curate"
    end_command(done=report.done, good=report.good, nothing=nothing)


def _print_forecast(
    forecast: CurationForecast, pending: PendingCuration, chosen: Mapping[str, Any], as_json: bool
) -> None:
    row = {
        "trajectories": forecast.trajectories,
        "purposes": {purpose: asdict(estimate) for purpose, estimate in forecast.purposes.items()},
        "usd": forecast.total.usd,
        "verifier_share": forecast.verifier_share,
        "basis": forecast.basis,
        "stood_before": pending.rollouts.standing,
        "without_task": pending.rollouts.without_task,
        "without_graph": pending.without_graph,
        "options": chosen,
    }

    def print_text() -> None:
        standing = f"; {pending.rollouts.standing:,} done before" if pending.rollouts.standing else ""
        say(f"{counted(forecast.trajectories, 'curated trajectory')} to make{standing}")
        for purpose, estimate in forecast.purposes.items() if forecast.trajectories else ():
            tokens = f"{estimate.tokens_in:,} tokens in (cached ones too), {estimate.tokens_out:,} out"
            say(f"  {purpose}: about {counted(estimate.calls, 'call')}, {tokens}, {estimate.price}")
        if forecast.trajectories:
            share = forecast.verifier_share
            verifier = "" if share is None else f"; the verifier has {share:.0%} of the calls"
            say(f"  in all {forecast.total.price}{verifier}")
            say(f"  {forecast.basis}; nothing has been asked or spent")
        _print_without(pending)

    present(as_json, row, print_text)


def _print_without(pending: PendingCuration) -> None:
    if pending.without_graph:
        words = f"{counted(pending.without_graph, 'chain')} without a process graph of the first stage"
        say(f"{words}; `prchain curate graphs` makes them")
    if pending.rollouts.without_task:
        words = f"{counted(pending.rollouts.without_task, 'chain')} without a task that is ready"
        say(f"{words}; `prchain tasks build` writes them")


def _report_row(report: RolloutReport, pending: PendingCuration, spending: Spending) -> dict[str, Any]:
    return {
        "worked_on": len(report.results),
        "outcomes": report.outcomes,
        "infrastructure": report.infrastructure,
        "trajectories": [result.detail for result in report.results if result.detail is not None],
        "stood_before": report.standing,
        "left": report.left,
        "without_task": report.without_task,
        "without_graph": pending.without_graph,
        "stopped": report.stopped,
        "calls": spending.calls,
        "refused": spending.refused,
        "usd": spending.cost,
    }


def _print_report(report: RolloutReport, pending: PendingCuration, spending: Spending) -> None:
    from prchain.core.endings import say_causes, say_end
    from trajectories.outcomes import KEPT

    others = [result for result in report.results if result.outcome not in KEPT]
    say_causes(others)
    counts = tally(report.outcomes) or ("nothing ended" if report.results or report.left else "nothing new to do")
    say(f"{counts}; {report.standing:,} done before; {spending.words()}")
    if report.infrastructure:
        say(f"failures of machines, not of the agent: {tally(report.infrastructure)}", err=True)
    _print_without(pending)
    say_end("curated trajectory", report.failed, report.left, report.stopped, told=others)
