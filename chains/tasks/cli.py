"""The commands of tasks: build, list, show, export."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import (
    IMPORTED,
    STRATEGIES,
    WHICH,
    Group,
    chain_option,
    choice_option,
    db_option,
    json_option,
    labels_option,
    limit_option,
    option,
    repository_option,
    spending_options,
    strategy_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store

if TYPE_CHECKING:
    from chains.tasks.query import SaidNames
    from chains.tasks.run import TaskRun


@click.group(cls=Group)
def tasks() -> None:
    """Write tasks for chains: an overview, and one query a stage.

    \b
    Example:
      prchain tasks build --dry-run
      prchain tasks build --budget 5
      prchain tasks export --out tasks.jsonl
    """


@tasks.command()
@strategy_option
@repository_option
@chain_option
@limit_option("Only the N best chains; those that are done count.")
@labels_option
@spending_options("Chains")
@option("--retry", is_flag=True, heading=WHICH, help="Write those anew that were rejected.")
@option("--renew", is_flag=True, heading=WHICH, help="Write those anew that other prompts or another model wrote.")
@choice_option(
    "--names",
    ["none", "interface", "withheld"],
    "New names that a query may say: none, or those of the interface, which stands below it; withheld: none, and none "
    "stands below, as in the paper.",
    heading="Texts",
)
@option(
    "--screen",
    is_flag=True,
    heading="Checks",
    help="First let a model (purpose `screen`) say which chains are worth a task.",
)
@option(
    "--least-worth",
    heading="Checks",
    type=click.IntRange(1, 5),
    metavar="N",
    help="With --screen: the least worth, 1 to 5, of a chain that gets a task.  [default: 4]",
)
@option(
    "--review", is_flag=True, heading="Checks", help="Also let a model (purpose `review`) say what a query gives away."
)
@db_option
@json_option
def build(
    strategy: str,
    repository: str | None,
    chain: str | None,
    limit: int | None,
    labels: str,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    retry: bool,
    renew: bool,
    names: SaidNames,
    screen: bool,
    least_worth: int | None,
    review: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Write the tasks of the chains that were chosen and have none.

    Every text passes a leak check; one that does not is asked for again with the findings, up to three times. With
    --screen a model first reads each chain, and nothing is written where a stage has several aims or no behaviour, its
    tests want what cannot be told, or a stage does not follow from the work before. With --review a model reads each
    query that passed, beside the patch, for what code cannot see: the solution retold in plain words, a later stage
    announced. A run can be killed at any moment and started again: no stored reply is paid
    for twice.

    \b
    Example:
      prchain tasks build --dry-run
      prchain tasks build --repository pallets/click --budget 2.50 --workers 8
      prchain tasks build --chain 5f0c --retry
      prchain tasks build --screen --review --dry-run
      prchain tasks build --screen --least-worth 3
      prchain tasks build --names interface --renew
    """
    from chains.tasks.run import TaskRunOptions, open_run
    from chains.tasks.run_report import print_run, run_row
    from chains.tasks.screening import LEAST_WORTH
    from sql.label_filter import LabelFilter

    settings = load_settings(db=db, workers=workers)
    if least_worth is not None and not screen:
        raise UsageError("--least-worth is what --screen goes by; give both")
    least = (least_worth or LEAST_WORTH) if screen else None
    options = TaskRunOptions(
        strategy, repository, limit, chain, retry, renew, review, names, least, LabelFilter(labels)
    )
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(settings, options, budget_usd=budget, progress=progress) as run,
    ):
        if dry_run:
            _print_estimate(run, as_json, review=review, screen=screen)
            return
        report = run.run(settings.workers)
        spending = run.gateway.spending()
    present(as_json, run_row(report, spending), print_run, report, spending)
    if not as_json and report.ready:
        say_next("environments validate")
    if report.unlabelled and not as_json:
        say(f"{counted(report.unlabelled, 'chain')} left out by --labels {labels}")
    tried = report.standing or report.results
    nothing = "no task is ready" if tried else "no chain is chosen; `prchain chains build` chooses them"
    if report.unlabelled and not tried:
        nothing = f"--labels {labels} leaves out every chain"
    end_command(done=report.done, good=report.ready, nothing=nothing)


def _print_estimate(run: TaskRun, as_json: bool, *, review: bool, screen: bool) -> None:
    count, estimate, unread = run.estimate()
    unlabelled = run.pending().unlabelled
    for task in unread:
        say(f"{task.unit.key}: not counted, {task.outcome}: {task.reason}", err=True)

    def print_text() -> None:
        say(f"{counted(count, 'task')} to write: {counted(estimate.calls, 'call')} if every text is clean at once")
        say(f"  {estimate.words()}")
        more = "three more calls, a query six" if review else "three more calls"
        if unlabelled:
            say(f"  {counted(unlabelled, 'chain')} left out by --labels")
        say(f"  each text that leaks takes up to {more}; nothing has been asked or spent")
        if screen:
            say("  and every chain is worth a task: one that is not costs its first call alone")

    present(as_json, {"tasks": count, **asdict(estimate), "unread": len(unread), "unlabelled": unlabelled}, print_text)


@tasks.command("list")
@click.option(
    "--strategy",
    type=click.Choice([*STRATEGIES.choices, IMPORTED]),
    help="Only chains that this strategy chose.  [default: all]",
)
@repository_option
@click.option("--outcome", metavar="NAME", help="Of one outcome only: ready, query_rejected, ...")
@db_option
@json_option
def list_(strategy: str | None, repository: str | None, outcome: str | None, db: str | None, as_json: bool) -> None:
    """List the tasks with their outcomes.

    \b
    Example:
      prchain tasks list --outcome query_rejected
    """
    from chains.tasks.report import list_tasks, print_tasks

    with opened_store(load_settings(db=db).db) as store:
        rows = list_tasks(store, strategy, repository, outcome)
    present(as_json, rows, print_tasks, rows)


@tasks.command()
@click.argument("task", metavar="ID")
@click.option("--reference", is_flag=True, help="Print the reference patch of each stage after its query.")
@db_option
@json_option
def show(task: str, reference: bool, db: str | None, as_json: bool) -> None:
    """Print one task, named by its chain's id or the beginning of it.

    Where a reply could not be used, what the model said is printed in the place of the text.

    \b
    Example:
      prchain tasks show 5f0c
      prchain tasks show 5f0c --reference
    """
    from chains.reference_patches import reference_patches, with_reference
    from chains.tasks.report import PatchedTaskStage, print_task, task_report

    settings = load_settings(db=db)
    with opened_store(settings.db) as store:
        report = task_report(store, task)
        mirrors = settings.mirrors_dir
        references = reference_patches(store, report.chain_id, report.stages, mirrors) if reference else []
    if reference:
        stages = (with_reference(PatchedTaskStage, *it) for it in zip(report.stages, references, strict=True))
        report = replace(report, stages=tuple(stages))
    present(as_json, report, print_task, report, references)
