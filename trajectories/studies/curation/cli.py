"""The commands of studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    WHICH,
    Group,
    backend_options,
    db_option,
    given,
    json_option,
    limit_option,
    option,
    repository_option,
    spending_options,
    strategy_option,
    told_options,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, tally
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.curation.windows.options import Asked
from trajectories.options import RolloutOptions

if TYPE_CHECKING:
    from prchain.core.llm.gateway import CostEstimate
    from trajectories.rollouts.forecast import Forecast
    from trajectories.studies.curation.coverage import ChosenTrajectories
    from trajectories.studies.curation.disclosure_run import PendingDisclosure
    from trajectories.studies.curation.study_files import Study

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _out_option(command: _Command) -> _Command:
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=folder, metavar="FOLDER", help="Also write JSON, CSV and SVG.")(command)


def _show(name: str, found: Study, out: Path | None, *, as_json: bool) -> None:
    """Print a study, and write its files. Raises `UsageError` where they cannot be written."""
    from trajectories.studies.curation.study_files import write_study

    if out is not None:
        try:
            write_study(out, name, found)
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    present(as_json, found.row, found.print_row, found.row)


@click.group(cls=Group)
def study() -> None:
    """Say what graphs and curated trajectories come to.

    \b
    Example:
      prchain curate study nodes --out study
      prchain curate study quality --out study
      prchain curate study coverage --dry-run
    """


@study.command()
@repository_option
@_out_option
@db_option
@json_option
def nodes(repository: str | None, out: Path | None, db: str | None, as_json: bool) -> None:
    """Count nodes, rounds and gates of the graphs that are over.

    Share, mean and coverage of each kind of node, sizes, rounds, and how often each rule took a node out.

    \b
    Example:
      prchain curate study nodes --out study
    """
    from trajectories.studies.curation.node_study import study_nodes

    with opened_store(load_settings(db=db).db) as store:
        found = study_nodes(store, repository)
    _show("nodes", found, out, as_json=as_json)


@study.command()
@repository_option
@_out_option
@db_option
@json_option
def quality(repository: str | None, out: Path | None, db: str | None, as_json: bool) -> None:
    """Compare curated trajectories with plain rollouts.

    Of each chain that both resolved, the first accepted curated trajectory beside the first accepted plain rollout:
    steps, views of files that show nothing new, response tokens. p values need scipy: install prchain with its extra
    [studies].

    \b
    Example:
      prchain curate study quality --out study
    """
    from trajectories.studies.curation.quality import study_quality

    with opened_store(load_settings(db=db).db) as store:
        found = study_quality(store, repository)
    _show("quality", found, out, as_json=as_json)


@study.command()
@repository_option
@_out_option
@db_option
@json_option
def windows(repository: str | None, out: Path | None, db: str | None, as_json: bool) -> None:
    """Compare the settings of windows, and count what their gates take out.

    One line for each choice of settings (`curate run --windows`), so that an ablation stands beside the full run: its
    trajectories with their steps, tokens and Eff, why candidates were committed, and how often code and judge took a
    rewritten step out.

    \b
    Example:
      prchain curate study windows --out study
    """
    from trajectories.studies.curation.window_study import study_windows

    with opened_store(load_settings(db=db).db) as store:
        found = study_windows(store, repository)
    _show("windows", found, out, as_json=as_json)


@study.command()
@repository_option
@click.option("--model", metavar="NAME", help="Of one model's agents only.")
@click.option(
    "--est",
    type=click.Choice([str(it) for it in Asked]),
    default=str(Asked.STEP),
    show_default=True,
    help="Ask once a step, of the nodes that fit it; once for each node; or so, of all steps up to it (the paper).",
)
@_out_option
@spending_options("Trajectories")
@db_option
@json_option
def coverage(
    repository: str | None,
    model: str | None,
    est: str,
    out: Path | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Whether plain rollouts that cover more of the graph resolve more.

    A model reads each step of the first stage of stored plain rollouts, and says which nodes of that stage's process
    graph it establishes. Then: how many rollouts resolved the stage by its tests in each fifth by coverage, and
    Pearson's and Spearman's coefficients. A run can be killed at any moment and started again.

    \b
    Example:
      prchain curate study coverage --dry-run
      prchain curate study coverage --est each --budget 5 --out study
    """
    from prchain.core.endings import end_command, say_causes, say_end
    from trajectories.studies.curation.coverage import study_coverage
    from trajectories.studies.curation.coverage_run import open_coverage

    settings = load_settings(db=db, workers=workers)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_coverage(
            settings, repository=repository, model=model, asked=Asked(est), budget_usd=budget, progress=progress
        ) as runner,
    ):
        if dry_run:
            _print_coverage_forecast(runner.forecast(), runner.chosen, as_json)
            return
        report = runner.run(settings.workers)
        spending = runner.gateway.spending()
    found = study_coverage(report.stages, runner.chosen)
    found.row.update(est=est, left=report.left + len(report.failed), stopped=report.stopped)
    _show("coverage", found, out, as_json=as_json)
    if not as_json:
        say(spending.words())
    say_causes(report.failed)
    say_end("trajectory", report.failed, report.left, report.stopped)
    why = tally(Counter(name for stage in report.stages for name in stage.unanswered))
    nothing = f"the model gave no answer: {why}" if report.stages else "there was no trajectory to read"
    end_command(done=report.done, good=sum(stage.read for stage in report.stages), nothing=nothing)


def _print_coverage_forecast(estimate: CostEstimate, chosen: ChosenTrajectories, as_json: bool) -> None:
    from trajectories.studies.curation.coverage import say_left_out

    row = {"trajectories": len(chosen.units), "left_out": dict(chosen.left_out), **asdict(estimate)}

    def print_text() -> None:
        say(f"{counted(len(chosen.units), 'plain rollout')} to read")
        say_left_out(chosen.left_out)
        say(f"  at most {counted(estimate.calls, 'call')}, {estimate.words()}; nothing has been asked or spent")

    present(as_json, row, print_text)


@study.command()
@click.argument("chain", metavar="[CHAIN]", required=False)
@strategy_option
@repository_option
@limit_option("Only the N best chains that have a graph and proved tests.")
@option(
    "--bundle",
    "bundles",
    type=click.Choice(["B0", "B1", "B2", "B3", "B4"]),
    multiple=True,
    heading=WHICH,
    help="Only this bundle; may be given several times.  [default: all]",
)
@option("--b4-validation", "validation", is_flag=True, heading=WHICH, help="B4 tells what validates the work, too.")
@spending_options("Rollouts")
@told_options(RolloutOptions, "tools", "context_tokens", "overflow", "stage_limits.steps")
@backend_options(BACKENDS)
@_out_option
@db_option
@json_option
def disclosure(
    chain: str | None,
    strategy: str,
    repository: str | None,
    limit: int | None,
    bundles: tuple[str, ...],
    validation: bool,
    backend: str | None,
    unsafe: bool,
    out: Path | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Whether agents that are told more of the graph resolve more.

    One rollout of the first stage for each chain and bundle. B0 tells the query alone; B1 the facts of the process
    graph, too; B2 the reproduction, with what it printed; B3 the analysis; B4 the plan. No bundle holds an edit. Tests
    grade the work, once. These rollouts are of the scaffold disclosed, and exports leave them out. A run can be killed
    at any moment and started again.

    \b
    Example:
      prchain curate study disclosure --dry-run
      prchain curate study disclosure 5f0c --budget 10 --out study
    """
    from prchain.core.endings import end_command, say_causes, say_end
    from trajectories.studies.curation.bundles import Bundle
    from trajectories.studies.curation.disclosure import study_disclosure
    from trajectories.studies.curation.disclosure_run import DisclosureChoice, open_disclosure

    settings = load_settings(db=db, workers=workers)
    where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
    wanted = tuple(it for it in Bundle if not bundles or it in bundles)
    choice = DisclosureChoice(strategy, repository, limit, chain, wanted, validation)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_disclosure(
            settings, choice, backend=where.name, budget_usd=budget, progress=progress, **given(flags)
        ) as runner,
    ):
        pending = runner.pending()
        if dry_run:
            _print_disclosure_forecast(runner.forecast(pending), pending, as_json)
            return
        runner.context.backend.clear_away()
        report = runner.run(settings.workers, pending)
        spending = runner.context.gateway.spending()
        rollouts = runner.rollouts(pending)
        found = study_disclosure(rollouts)
    left = report.left + len(report.failed)
    found.row.update(left=left, stopped=report.stopped, without_graph=pending.without_graph, unproved=pending.unproved)
    _show("disclosure", found, out, as_json=as_json)
    if not as_json:
        say(f"{len(pending.standing):,} done before; {spending.words()}")
        _print_unstudied(pending)
    say_causes(report.failed)
    say_end("rollout", report.failed, report.left, report.stopped)
    good = sum(rollout.resolved is not None for rollout in rollouts)
    nothing = "no rollout was graded" if rollouts else "there was nothing to roll out"
    end_command(done=report.done, good=good, nothing=nothing)


def _print_disclosure_forecast(forecast: Forecast, pending: PendingDisclosure, as_json: bool) -> None:
    row = {
        "rollouts": forecast.trajectories,
        **asdict(forecast.estimate),
        "basis": forecast.basis,
        "stood_before": len(pending.standing),
        "without_graph": pending.without_graph,
        "unproved": pending.unproved,
    }

    def print_text() -> None:
        standing = f"; {len(pending.standing):,} done before" if pending.standing else ""
        say(f"{counted(forecast.trajectories, 'rollout')} to run{standing}")
        if forecast.trajectories:
            estimate = forecast.estimate
            tokens = f"{estimate.tokens_in:,} tokens in (cached ones too), {estimate.tokens_out:,} out"
            say(f"  about {counted(estimate.calls, 'call')}, {tokens}, {estimate.price}")
            say(f"  {forecast.basis}; nothing has been asked or spent")
        _print_unstudied(pending)

    present(as_json, row, print_text)


def _print_unstudied(pending: PendingDisclosure) -> None:
    if pending.without_graph:
        words = f"{counted(pending.without_graph, 'chain')} without a process graph of the first stage"
        say(f"{words}; `prchain curate graphs` makes them")
    if pending.unproved:
        words = f"{counted(pending.unproved, 'chain')} without a ready task or proved tests of all stages"
        say(f"{words}; `prchain environments validate` proves them")


@study.command()
@repository_option
@click.option("--model", metavar="NAME", help="Of one model's agents only.")
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Plain rollouts of each chain that rejection sampling uses where its compute is not matched.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the size-matched samples, as in an export.")
@_out_option
@db_option
@json_option
def baselines(
    repository: str | None,
    model: str | None,
    passes: int,
    seed: int,
    out: Path | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Say what each recipe for training data comes to.

    One line a recipe: plain rollouts that passed their tests; the same with tool errors masked; curated trajectories;
    as many of these as the first has; and of all plain rollouts the shortest of each chain. Each with its samples,
    their steps and tokens, and the USD and hours of all that was tried for it.

    \b
    Example:
      prchain curate study baselines --out study
    """
    from trajectories.studies.curation.baselines import study_baselines

    with opened_store(load_settings(db=db).db) as store:
        found = study_baselines(store, repository, model, passes=passes, seed=seed)
    _show("baselines", found, out, as_json=as_json)
