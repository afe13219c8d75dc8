"""The commands of tasks: build, list, show, export."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
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
    limit_option,
    option,
    proof_option,
    repository_option,
    spending_options,
    strategy_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.settings import Settings
from sql.outcomes import READY
from sql.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chains.tasks.query import SaidNames
    from chains.tasks.run import TaskRun
    from prchain.core.code.needs import Interface


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

    settings = Settings.load(db=db, workers=workers)
    if least_worth is not None and not screen:
        raise UsageError("--least-worth is what --screen goes by; give both")
    least = (least_worth or LEAST_WORTH) if screen else None
    options = TaskRunOptions(strategy, repository, limit, chain, retry, renew, review, names, least)
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
    tried = report.standing or report.results
    nothing = "no task is ready" if tried else "no chain is chosen; `prchain chains build` chooses them"
    end_command(done=report.done, good=report.ready, nothing=nothing)


def _print_estimate(run: TaskRun, as_json: bool, *, review: bool, screen: bool) -> None:
    count, estimate, unread = run.estimate()
    for task in unread:
        say(f"{task.unit.key}: not counted, {task.outcome}: {task.reason}", err=True)

    def print_text() -> None:
        say(f"{counted(count, 'task')} to write: {counted(estimate.calls, 'call')} if every text is clean at once")
        say(f"  {estimate.words()}")
        more = "three more calls, a query six" if review else "three more calls"
        say(f"  each text that leaks takes up to {more}; nothing has been asked or spent")
        if screen:
            say("  and every chain is worth a task: one that is not costs its first call alone")

    present(as_json, {"tasks": count, **asdict(estimate), "unread": len(unread)}, print_text)


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

    with closing(Store.open(Settings.load(db=db).db, create=False)) as store:
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

    settings = Settings.load(db=db)
    with closing(Store.open(settings.db, create=False)) as store:
        report = task_report(store, task)
        mirrors = settings.mirrors_dir
        references = reference_patches(store, report.chain_id, report.stages, mirrors) if reference else []
    if reference:
        stages = (with_reference(PatchedTaskStage, *it) for it in zip(report.stages, references, strict=True))
        report = replace(report, stages=tuple(stages))
    present(as_json, report, print_task, report, references)


@tasks.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write; - is standard output.",
)
@strategy_option
@choice_option(
    "--interface",
    ["appended", "paper"],
    "appended: with the names and texts that hidden tests need; paper: without, and such tests cannot gate.",
)
@click.option("--solvable", is_flag=True, help="Only tasks that tell all names and texts that their tests need.")
@click.option("--outcome", default="ready", show_default=True, metavar="NAME", help="Tasks of this outcome.")
@choice_option(
    "--format",
    ["tasks", "swebench"],
    "tasks: a line a task; swebench: a SWE-bench instance a validated stage, graded by `swebench eval`.",
    "form",
)
@click.option("--retired", is_flag=True, help="Also those of chains that were chosen once and are not any more.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@proof_option
@db_option
@json_option
def export(
    out: Path,
    strategy: str,
    interface: Interface,
    solvable: bool,
    outcome: str,
    form: str,
    retired: bool,
    force: bool,
    proof: str,
    db: str | None,
    as_json: bool,
) -> None:
    """Write tasks as JSON lines, each with everything that a rollout needs; docs/tasks.schema.json describes a line.

    A task whose commits are not in the repository any more is named and left out; so is, with --format swebench, a
    stage that SWE-bench's harness cannot grade. Where there is nothing to write, no file is written.

    \b
    Example:
      prchain tasks export --out tasks.jsonl
      prchain tasks export --format swebench --out instances.jsonl
      prchain tasks export --solvable --out - | head -1
    """
    from chains.tasks.export import (
        TaskExportOptions,
        UnreadableTask,
        outcomes_of_chains,
        print_lines,
        proofs_of_tasks,
        records,
        task_lines,
        write_lines,
    )
    from chains.tasks.harness import OmittedStage, harness_lines
    from chains.tasks.record import TaskRecord
    from sql.strength import ProofFilter, say_proofs

    settings = Settings.load(db=db)
    to_stdout = str(out) == "-"
    if to_stdout and as_json:
        raise UsageError("--json reports on standard output, where --out - writes; give a file's name")
    left_out: list[UnreadableTask] = []
    ungraded: list[OmittedStage] = []
    unsolvable: list[TaskRecord] = []
    with closing(Store.open(settings.db, create=False)) as store:
        options = TaskExportOptions(strategy, outcome, interface, retired, solvable, ProofFilter(proof))
        say_proofs(*proofs_of_tasks(store, options), noun="task")
        tasks = records(store, settings.mirrors_dir, options, left_out.append, unsolvable.append)
        lines = harness_lines(store, tasks, ungraded.append) if form == "swebench" else task_lines(tasks)
        count = print_lines(lines, sys.stdout.buffer) if to_stdout else write_lines(lines, out, force=force)
        found = outcomes_of_chains(store, options)
    for task in left_out:
        say(f"{task.chain_id} ({task.repository}): left out, {task.outcome}: {task.reason}", err=True)
    for record in unsolvable:
        for unsolved in record.stages:
            for need in unsolved.unmet:
                words = "not known: " if need.kind == "unseen" else f"{need.kind} "
                say(
                    f"{record.chain_id}, stage {unsolved.position}: left out: what tests need is "
                    f"{words}{need.text[:80]!r} ({need.withheld or 'not told'})",
                    err=True,
                )
    for stage in ungraded:
        say(f"{stage.chain_id}, stage {stage.position}: left out: {stage.reason}", err=True)
    noun = "instance" if form == "swebench" else "task"
    row = {f"{noun}s": count, "file": str(out) if count else None, "left_out": len(left_out), "stand_as": found}
    if solvable:
        verdicts = [record.verdict for record in unsolvable]
        row |= {verdict: verdicts.count(verdict) for verdict in ("not_solvable", "unseen")}
    if form == "swebench":
        row["stages_left_out"] = len(ungraded)
    if as_json or (count and not to_stdout):
        present(as_json, row, say, f"{counted(count, noun)} written to {out}")
    _print_others(found, outcome)
    if left_out:
        say(f"{counted(len(left_out), 'task')} left out; mine their repositories again", err=True)
    lacks = f"no {noun} to write" if found else "no chain is chosen; `prchain chains build` chooses them"
    nothing = lacks + ("" if to_stdout else f", so {out} was not written")
    if left_out and not count:
        say(nothing, err=True)
    end_command(done=not left_out, good=count, nothing=nothing)


def _print_others(found: Mapping[str, int], outcome: str) -> None:
    """What became of the chains whose tasks are not of the outcome that is exported."""
    from chains.tasks.model import FINAL
    from chains.tasks.run_report import outcome_words

    others = {name: count for name, count in found.items() if name != outcome}
    if not others:
        return
    say(f"not {outcome}: {counted(sum(others.values()), 'chain')}, {outcome_words(others)}", err=True)
    if others.keys() - FINAL:
        say("  `prchain tasks build` writes what is missing", err=True)
    if others.keys() & (FINAL - {READY}):
        say("  `prchain tasks show ID` says why, `prchain tasks build --retry` begins another round", err=True)
