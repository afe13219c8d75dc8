"""The commands of papers' comparisons: run, table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from environments.backends import BACKENDS, DEFAULT, chosen_backend
from prchain.core.cli_options import (
    COST,
    WHICH,
    Group,
    backend_options,
    budget_option,
    db_option,
    json_option,
    limit_option,
    option,
    workers_option,
)
from prchain.core.console.terminal import counted, present, say, say_whole
from prchain.core.endings import NOT_DONE, end_as
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from prchain.papers import PAPERS
from prchain.shown import command_line
from sql.opening import opened_store

if TYPE_CHECKING:
    from prchain.comparisons.run import ComparisonResult
    from prchain.core.settings import Settings
    from sql.store import Transaction
    from trajectories.studies.evaluation.graded_runs import GradedReport
    from trajectories.studies.evaluation.stored import EvaluatedRun

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(cls=Group)
def papers() -> None:
    """Run the main comparison of a paper: davinci, p2t or swe-prm.

    \b
    Example:
      prchain papers run davinci --pool repos.txt --dry-run
      prchain papers table p2t
    """


@papers.command()
@click.argument("paper", type=click.Choice(PAPERS))
@option(
    "--pool",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    heading=WHICH,
    help="davinci: a list of repositories to mine; else a published data set to import.  [default: what is there]",
)
@option(
    "--policies",
    metavar="LIST",
    heading=WHICH,
    help="swe-prm: tables [purposes.NAME] whose models are the agents.  [default: agent]",
)
@option(
    "--allow-benchmarks",
    is_flag=True,
    heading=WHICH,
    help="davinci: keep repositories that evaluation benchmarks are made from.",
)
@limit_option("Only the N best chains of each step, to try it out.")
@workers_option("Units of work")
@budget_option("No step spends more than this.")
@option("--dry-run", is_flag=True, heading=COST, help="Print the commands, and run none.")
@backend_options(BACKENDS)
@option("--folder", type=_FOLDER, help="Where files go.  [default: data/papers/NAME]")
@db_option
@json_option
def run(
    paper: str,
    pool: Path | None,
    policies: str | None,
    allow_benchmarks: bool,
    limit: int | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    backend: str | None,
    unsafe: bool,
    folder: Path | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Run a paper's main comparison up to the files that trainers take, and print its table.

    Each step is an ordinary command with the paper's settings, and is shown before it is run. davinci trains on
    chains, on chains by time and on single pull requests; p2t on rejection sampling, the same with errors masked, and
    curated trajectories; swe-prm trains nothing and rolls out under each variant. What a step leaves undone does not
    end the run; all of it can be killed and started again. In the table stands what was measured and nothing else:
    each place that needs training or a real model says so.

    \b
    Example:
      prchain papers run davinci --pool repos.txt --budget 50
      prchain papers run p2t --pool swe-gym.jsonl --limit 20 --budget 20
      prchain papers run swe-prm --policies agent --dry-run
    """
    from prchain.cli import cli
    from prchain.cli import run as run_line
    from prchain.comparisons.run import planned, run_steps
    from prchain.comparisons.steps import ComparisonChoice, steps_of

    settings = load_settings(db=db, workers=workers)
    where = BACKENDS.named(backend or settings.environments_backend or DEFAULT)
    place = folder or Path("data", "papers", paper)
    guide = settings.purposes.get("prm")
    expert = guide is not None and guide.model is not None
    scaffold = settings.defaults.get("rollouts", {}).get("run", {}).get("scaffold", "react")
    for flag, of, given in (("--policies", "swe-prm", policies), ("--allow-benchmarks", "davinci", allow_benchmarks)):
        if given and paper != of:
            raise UsageError(f"{flag} is of {of}: leave it out")
    choice = ComparisonChoice(
        place, pool, scaffold, images=where.needs_image, expert=expert, policies=policies or "agent"
    )
    steps = steps_of(paper, choice)
    shared = {
        "--limit": None if limit is None else str(limit),
        "--workers": None if workers is None else str(workers),
        "--budget": None if budget is None else f"{budget:g}",
        "--backend": backend,
        "--unsafe-local": unsafe,
        "--allow-benchmarks": allow_benchmarks,
        "--db": db,
    }
    if dry_run:
        lines = [command_line(words) for words in planned(steps, cli, shared)]
        present(as_json, {"commands": lines}, _print_lines, lines)
        return
    chosen_backend(where.name, unsafe=unsafe)
    if pool is None:
        _require_tasks(settings, paper)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{place} cannot be made: {error.strerror or error}") from error
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        result = run_steps(steps, cli, shared, run_line)
    present(as_json, asdict(result), _print_result, result)
    if result.left:
        end_as(result.stopped or NOT_DONE)


def _require_tasks(settings: Settings, paper: str) -> None:
    """Raise `UsageError` where there is nothing to work on."""
    from sql.tables import ImportedTask, Repository

    with opened_store(settings.db, create=True) as store, store.reading() as tx:
        if paper == "davinci" and next(tx.rows(Repository, "id"), None) is None:
            raise UsageError("no repository is mined: give --pool a list of them, as `prchain mine` takes it")
        if paper != "davinci" and next(tx.rows(ImportedTask, "chain_id"), None) is None:
            raise UsageError("no task is imported: give --pool a data set, as `prchain tasks import` takes it")


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        say_whole(line)


def _print_result(result: ComparisonResult) -> None:
    say()
    if not result.left:
        say(f"{counted(len(result.done), 'step')} done")
        return
    say(f"{counted(len(result.left), 'step')} with something left, of {len(result.left) + len(result.done):,}:")
    for line in result.left:
        say_whole(f"  {line}")
    say("mend what is said above, then run the same command again: what is done is not done again")


@papers.command()
@click.argument("paper", type=click.Choice(PAPERS))
@option("--folder", type=_FOLDER, help="Where the files are.  [default: data/papers/NAME]")
@option("--source", metavar="NAME", heading=WHICH, help="Only on tasks that were imported from this data set.")
@option(
    "--predictions-from",
    "predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    heading=WHICH,
    help="Grade predictions of trained models, in SWE-bench's form, too.",
)
@workers_option("With --predictions-from, patches")
@backend_options(BACKENDS)
@db_option
@json_option
def table(
    paper: str,
    folder: Path | None,
    source: str | None,
    predictions: Path | None,
    workers: int | None,
    backend: str | None,
    unsafe: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Print a paper's main table: what was measured, and of each empty place why it is.

    A trained model has the name of its file (davinci-agency, p2t-full ...), in its rollouts or as model_name_or_path
    of its predictions. Models are measured on what was imported to measure them, each data set by itself; keep it in
    a database of its own, since a pool is worked on whole. The table of swe-prm is what `prm sweep` rolled out.

    \b
    Example:
      prchain papers table davinci --predictions-from predictions.jsonl
      prchain papers table p2t --db verified.db --source SWE-bench_Verified
      prchain papers table swe-prm
    """
    from prchain.comparisons.table import print_table, table_row, tables_of_guidance, tables_of_sets
    from trajectories.studies.guidance.report import prm_report

    settings = load_settings(db=db, workers=workers)
    place = folder or Path("data", "papers", paper)
    report: GradedReport | None = None
    if paper == "swe-prm":
        if predictions is not None or source is not None:
            raise UsageError("the table of swe-prm is made of rollouts: --predictions-from and --source are of others")
        with opened_store(settings.db) as store:
            tables = tables_of_guidance(prm_report(store))
    else:
        runs, report = _runs(settings, source, predictions, backend, unsafe=unsafe)
        tables = tables_of_sets(paper, place, runs)

    def print_tables() -> None:
        for number, one in enumerate(tables):
            if number:
                say()
            print_table(one)

    present(as_json, [table_row(it) for it in tables], print_tables)
    if report is not None and not report.done:
        end_as(NOT_DONE)


def _runs(
    settings: Settings, source: str | None, predictions: Path | None, backend: str | None, *, unsafe: bool
) -> tuple[Mapping[str, Sequence[EvaluatedRun]], GradedReport | None]:
    """Data set to the runs on its tasks, without any tasks one of no name; and what became of the predictions."""
    from trajectories.studies.evaluation.graded import grade_file, print_graded
    from trajectories.studies.evaluation.stored import TaskSet, chains_of, evaluated_runs

    tasks = TaskSet("imported", None, source)
    graded: Sequence[EvaluatedRun] = ()
    report: GradedReport | None = None
    if predictions is not None:
        where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
        graded, report = grade_file(settings, where.name, tasks, predictions)
        with redirect_stdout(sys.stderr):
            print_graded(report)
    with opened_store(settings.db) as store, store.reading() as tx:
        sources = _sources(tx, source)
        found = {}
        for name in sources:
            runs = evaluated_runs(tx, chains_of(tx, TaskSet("imported", None, name)))
            found[name] = [*runs, *(it for it in graded if it.source == name)]
    return found or {"no benchmark is in this database": []}, report


def _sources(tx: Transaction, source: str | None) -> list[str]:
    from sql.tables import ImportedTask

    return [source] if source else sorted({str(name) for (name,) in tx.rows(ImportedTask, "source", benchmark=True)})
