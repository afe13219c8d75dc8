"""The commands of curation: graphs, run, show, list."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from environments.backends import BACKENDS
from prchain.core.cli_options import (
    WHICH,
    Group,
    backend_options,
    chain_option,
    db_option,
    given,
    json_option,
    limit_option,
    option,
    proof_option,
    repository_option,
    spending_options,
    strategy_option,
    told_options,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next, tally
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.windows.cli import run

if TYPE_CHECKING:
    from prchain.core.llm.ledger import Spending
    from prchain.core.settings import Settings
    from trajectories.curation.graphs.forecast import GraphForecast
    from trajectories.curation.graphs.run import GraphReport, PendingGraphs


@click.group(cls=Group)
def curate() -> None:
    """Distil reference patches into process graphs, and grow trajectories along them.

    \b
    Example:
      prchain curate graphs --dry-run
      prchain curate run 5f0c --budget 20
      prchain curate show 3f9a
    """


@curate.command()
@click.argument("chain", metavar="[CHAIN]", required=False)
@option(
    "--from",
    "trajectory",
    metavar="TRAJECTORY",
    heading=WHICH,
    help="Of the stage after the last one that this trajectory had accepted, on its work.",
)
@strategy_option
@repository_option
@limit_option("Only the N best chains that have a task and proved tests.")
@told_options(GraphOptions, "carry")
@option("--stage", type=click.IntRange(min=1), heading=WHICH, help="Only this stage of each chain.")
@spending_options("Graphs")
@told_options(GraphOptions, "rounds", "empty_rounds", "tool_calls", "nodes")
@told_options(GraphOptions, "observation_chars")
@backend_options(BACKENDS)
@told_options(GraphOptions, "command_timeout")
@proof_option
@db_option
@json_option
def graphs(
    chain: str | None,
    trajectory: str | None,
    strategy: str,
    repository: str | None,
    limit: int | None,
    stage: int | None,
    backend: str | None,
    unsafe: bool,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    proof: str,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Make the process graphs of proved stages.

    Two models work in rounds: a proposer collects what has to be known and done before the reference patch follows, and
    a critic takes out what gives it away. What they claim is run again. Without a trajectory the first stage of each
    chain has a graph: the tree of a later one depends on the work before it. A run can be killed at any moment and
    started again.

    \b
    Example:
      prchain curate graphs --repository pallets/click --dry-run
      prchain curate graphs 5f0c --budget 5
      prchain curate graphs 5f0c --from 81c2
    """
    from environments.backends import chosen_backend
    from sql.proof_filter import ProofFilter
    from sql.taken_proofs import say_proofs
    from trajectories.curation.graphs.run import GraphChoice, open_run

    settings = load_settings(db=db, workers=workers)
    where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
    options = GraphOptions(backend=where.name, **given(flags))
    if trajectory is not None and (options.carry != "agent" or stage is not None):
        raise UsageError("--from goes on as the trajectory did; leave --carry and --stage out")
    begun_with = _trajectory(settings, trajectory)
    choice = GraphChoice(strategy, repository, limit, chain, begun_with, stage, ProofFilter(proof))
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(settings, options, choice, budget_usd=budget, progress=progress) as runner,
    ):
        pending = runner.pending()
        say_proofs(pending.doubts, pending.weak)
        if dry_run:
            _print_forecast(runner.forecast(pending), pending, options, as_json)
            return
        runner.context.backend.clear_away()
        report = runner.run(settings.workers, pending)
        spending = runner.context.gateway.spending()
    present(as_json, _report_row(report, spending), _print_report, report, spending)
    if not as_json and report.good:
        say_next("curate run")
    nothing = "no process graph can be used" if report.results or report.standing else "there is no stage to distil"
    end_command(done=report.done, good=report.good, nothing=nothing)


def _trajectory(settings: Settings, prefix: str | None) -> str | None:
    from trajectories.rows import find_trajectory

    if prefix is None:
        return None
    with opened_store(settings.db) as store, store.reading() as tx:
        return find_trajectory(tx, prefix)


def _print_forecast(forecast: GraphForecast, pending: PendingGraphs, options: GraphOptions, as_json: bool) -> None:
    row = {
        "graphs": forecast.graphs,
        "purposes": {purpose: asdict(estimate) for purpose, estimate in forecast.purposes.items()},
        "usd": forecast.total.usd,
        "basis": forecast.basis,
        "stood_before": pending.standing,
        "unproved": pending.unproved,
        "options": options.chosen,
    }

    def print_text() -> None:
        standing = f"; {pending.standing:,} done before" if pending.standing else ""
        say(f"{counted(forecast.graphs, 'graph')} to make{standing}")
        for purpose, estimate in forecast.purposes.items() if forecast.graphs else ():
            tokens = f"{estimate.tokens_in:,} tokens in (cached ones too), {estimate.tokens_out:,} out"
            say(f"  {purpose}: about {counted(estimate.calls, 'call')}, {tokens}, {estimate.price}")
        if forecast.graphs:
            say(f"  in all {forecast.total.price}; {forecast.basis}; nothing has been asked or spent")
        _print_unproved(pending.unproved)

    present(as_json, row, print_text)


def _print_unproved(chains: int) -> None:
    if chains:
        what = "without a ready task or proved tests"
        say(f"{counted(chains, 'chain')} {what}; `prchain environments validate` proves them")


def _report_row(report: GraphReport, spending: Spending) -> dict[str, Any]:
    return {
        "worked_on": len(report.results),
        "outcomes": report.counts,
        "graphs": [result.detail for result in report.results if result.detail is not None],
        "stood_before": report.standing,
        "left": report.left,
        "unproved": report.unproved,
        "stopped": report.stopped,
        "calls": spending.calls,
        "refused": spending.refused,
        "usd": spending.cost,
    }


def _print_report(report: GraphReport, spending: Spending) -> None:
    from prchain.core.endings import say_causes, say_end
    from trajectories.curation.graphs.outcomes import BUILT

    others = [result for result in report.results if result.outcome not in BUILT]
    say_causes(others)
    counts = tally(report.counts) or ("nothing ended" if report.left else "nothing new to do")
    say(f"{counts}; {report.standing:,} done before; {spending.words()}")
    _print_unproved(report.unproved)
    say_end("graph", report.failed, report.left, report.stopped, told=others)


curate.add_command(run)


@curate.command("list")
@click.option("--graphs", is_flag=True, help="The process graphs instead.")
@repository_option
@chain_option
@click.option("--outcome", metavar="NAME", help="Of one outcome only: accepted, unfinished, ...; converged, ...")
@db_option
@json_option
def list_(
    graphs: bool, repository: str | None, chain: str | None, outcome: str | None, db: str | None, as_json: bool
) -> None:
    """List curated trajectories, or process graphs, with their outcomes.

    \b
    Example:
      prchain curate list --outcome accepted
      prchain curate list --graphs
    """
    from trajectories.curation.graphs.report import list_graphs, print_graphs
    from trajectories.curation.windows.report import list_curated
    from trajectories.rollouts.report import print_trajectories

    with opened_store(load_settings(db=db).db) as store:
        if graphs:
            found = list_graphs(store, repository, chain, outcome)
            present(as_json, found, print_graphs, found)
        else:
            rows = list_curated(store, repository, chain, outcome)
            present(as_json, rows, print_trajectories, rows)


@curate.command()
@click.argument("name", metavar="ID")
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also draw a graph into a file."
)
@db_option
@json_option
def show(name: str, svg: Path | None, db: str | None, as_json: bool) -> None:
    """Print one process graph or one curated trajectory, named by its id or the beginning of it.

    Of a graph: the tree, and what was not kept and why. Of a trajectory: each window's candidates, what they came to,
    and which was committed.

    \b
    Example:
      prchain curate show 3f9a
      prchain curate show 3f9a --svg graph.svg
    """
    from trajectories.curation.graphs.report import graph_page, print_graph, stored_graph
    from trajectories.curation.graphs.svg import graph_svg
    from trajectories.curation.windows.report import curated_page, find_shown, print_windows

    with opened_store(load_settings(db=db).db) as store:
        graph, trajectory = find_shown(store, name)
        if graph is None:
            if svg is not None:
                raise UsageError("--svg draws graphs; a trajectory has none of its own")
            page = curated_page(store, str(trajectory))
            present(as_json, page, print_windows, page)
            return
        page = graph_page(store, graph)
        if svg is not None:
            name, stored = stored_graph(store, graph)
            _write(svg, graph_svg(stored, f"graph {name}: {page['outcome']}"))
    present(as_json, page, print_graph, page)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
