"""The commands of the miner: mine, status, show."""

from __future__ import annotations

import gc
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from miner.sources import AUTO, GIT, SOURCES
from prchain.core.cli_options import choice_option, db_option, json_option, workers_option
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next
from prchain.core.endings import end_command, say_end
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from prchain.core.timestamps import FORMAT, stamp
from sql.opening import opened_store

if TYPE_CHECKING:
    from miner.mine import RepositoryReport
    from miner.missing import LackingMirror
    from miner.repositories import RepositorySpec
    from prchain.core.runs import RunResult


@click.command()
@click.argument("repositories", type=click.Path(path_type=Path), metavar="LIST")
@choice_option(
    "--source",
    [AUTO, *SOURCES, GIT],
    "github: API and git; git: git alone, no token; auto: github where a token is set.",
)
@click.option("--since", metavar="DATE", help="Only pull requests landed or changed since (YYYY-MM-DD, UTC).")
@click.option("--limit", type=click.IntRange(min=1), help="Only the N newest pull requests of each repository.")
@workers_option("Repositories")
@click.option("--rescan", is_flag=True, help="Read everything from the API again: finds silent edits and deletions.")
@click.option(
    "--recheck-days",
    type=click.IntRange(0, 36_500),
    metavar="N",
    help="Read again what changed in the last N days, a point for 20: finds what moves no date; 0: nothing.  "
    "[default: 30, once a day]",
)
@click.option("--from-archive", is_flag=True, help="Parse the archived API pages again, without the network.")
@click.option("--line-counts", is_flag=True, help="Count added and removed lines too (a slower second pass).")
@db_option
@json_option
def mine(
    repositories: Path,
    source: str,
    since: str | None,
    limit: int | None,
    workers: int | None,
    rescan: bool,
    recheck_days: int | None,
    from_archive: bool,
    line_counts: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Mine the pull requests of the repositories in LIST.

    LIST has one repository a line: owner/name, a clone URL, or owner/name = path or URL of a git repository. A run can
    be killed at any moment and started again.

    \b
    Example:
      prchain mine repos.txt --source git
      GITHUB_TOKEN=... prchain mine repos.txt --since 2024-01-01
    """
    from miner.git_rows import PullRequestSelection
    from miner.mine import MineOptions, open_run
    from miner.repositories import read_list

    since = _time(since) if since is not None else None
    if rescan and (source == GIT or from_archive):
        raise UsageError("--rescan reads the API anew; leave out --source git and --from-archive")
    if recheck_days is not None and (source == GIT or from_archive):
        raise UsageError("--recheck-days reads the API; leave out --source git and --from-archive")
    settings = load_settings(db=db, workers=workers)
    if source in SOURCES and not from_archive and (lacks := SOURCES[source].lacks(settings)):
        raise UsageError(f"--source {source} needs {lacks}, or use --source {GIT}")
    # A run makes rows by the hundred thousand and hardly a cycle; looking for cycles among them cost a seventh of it.
    gc.set_threshold(200_000, 20, 50)
    specs = read_list(repositories, SOURCES["github"].forge(settings).host)
    selection = PullRequestSelection(since, limit)
    options = MineOptions(source, selection, rescan, from_archive, line_counts, recheck_days)
    with open_progress(secrets=settings.secrets) as progress, open_run(settings, options, progress=progress) as run:
        run_result = run.run(specs, settings.workers)
    _print_reports(specs, run_result, as_json)
    failed = any(result.reason for result in run_result.results)
    end_command(done=not run_result.left and not failed, good=len(run_result.results), nothing="nothing was mined")


def _time(text: str) -> str:
    """The time that a user wrote, a day or a second in UTC, as the database writes it."""
    for form in ("%Y-%m-%d", FORMAT):
        try:
            return stamp(datetime.strptime(text, form))
        except ValueError:
            continue
    raise UsageError(f"--since {text!r} is not a date; write YYYY-MM-DD")


def _print_reports(specs: list[RepositorySpec], run_result: RunResult[RepositorySpec], as_json: bool) -> None:
    from miner.mine import RepositoryReport

    reports_by_spec = {
        result.unit: result.detail or RepositoryReport(result.unit, result.outcome, result.reason)
        for result in run_result.results
    }
    not_begun = "not begun: the run ended early"
    reports = [reports_by_spec.get(spec) or RepositoryReport(spec, "not_begun", not_begun) for spec in specs]
    rows = [_report_row(report) for report in reports]
    present(as_json, rows, _print_each, [report for report in reports if report.spec in reports_by_spec])
    failed = [result for result in run_result.results if reports_by_spec[result.unit].error]
    say_end("repository", failed, run_result.left, run_result.stopped)
    if not as_json and any(report.landed for report in reports):
        say_next("chains build")


def _print_each(reports: list[RepositoryReport]) -> None:
    from miner.funnel import replaced_words

    for report in reports:
        name = report.spec.full_name
        requests = report.graphql_requests + report.rest_requests
        cost = f", {counted(requests, 'request')}, {counted(report.points, 'point')}" if requests else ""
        if report.note:
            say(f"{name}: {report.note}", err=True)
        if report.error:
            say(f"{name}: {report.outcome}: {report.error}", err=True)
        if report.pull_requests or cost or not report.error:
            state = "not finished" if report.error else report.outcome
            say(f"{name}: {state}: {counted(report.pull_requests, 'pull request')}, {report.landed:,} landed{cost}")
        if report.incomplete:
            lacking = counted(report.incomplete, "pull request")
            say(f"{name}: {lacking} incomplete: their forge counts more than it gives; see `prchain sql incomplete`")
        if report.missing:
            _print_missing(name, report.missing, report.landed)
        if words := replaced_words(report.replaced):
            say(f"{name}: {words}")


def _print_missing(name: str, missing: LackingMirror, landed: int) -> None:
    say(
        f"{name}: its mirror lacks the contents of {counted(missing.contents, 'file')}, which {missing.landings:,} of "
        f"{landed:,} landings need; those cannot become stages, or fail later, at tasks, images or rollouts",
        err=True,
    )
    say(f"  fetch them, and mine again: {missing.fetch}", err=True)


def _report_row(report: RepositoryReport) -> dict[str, Any]:
    return {
        "repository": report.spec.full_name,
        "outcome": report.outcome,
        "error": report.error,
        "pull_requests": report.pull_requests,
        "landed": report.landed,
        "graphql_requests": report.graphql_requests,
        "rest_requests": report.rest_requests,
        "points": report.points,
        "incomplete": report.incomplete,
        "note": report.note,
        "missing": asdict(report.missing) if report.missing else None,
        "replaced": dict(report.replaced),
    }


@click.command()
@click.argument("repository", required=False, metavar="[OWNER/NAME]")
@db_option
@json_option
def status(repository: str | None, db: str | None, as_json: bool) -> None:
    """Print what became of every pull request, per repository.

    \b
    Example:
      prchain status
      prchain status pallets/click --json
    """
    from miner.funnel import funnel, not_mined, print_funnel, trajectories_of_others

    with opened_store(load_settings(db=db).db) as store:
        rows = funnel(store, repository)
        failed = not_mined(store) if repository is None else []
        imported = trajectories_of_others(store) if repository is None else 0
    present(as_json, rows, print_funnel, rows, failed, imported)


@click.command()
@click.argument("pull_request", metavar="OWNER/NAME#N")
@db_option
@json_option
def show(pull_request: str, db: str | None, as_json: bool) -> None:
    """Print one pull request: what it is, where it landed, what it cites and what cites it.

    \b
    Example:
      prchain show 'pallets/click#1000'
    """
    from miner.pull_request_page import find_pull_request, print_pull_request

    match = re.fullmatch(r"([^/\s#]+/[^/\s#]+)#(\d{1,9})", pull_request.strip())
    if match is None:
        raise UsageError(f"{pull_request!r} is not OWNER/NAME#N; quote it, a shell may take # for a comment")
    with opened_store(load_settings(db=db).db) as store:
        page = find_pull_request(store, match[1], int(match[2]))
    present(as_json, page, print_pull_request, page)
