"""The lineage of one repository for the command line: traced, read, and with the lines of its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chains.history import MinedRepository, repositories
from chains.lineage.lineage_rows import read_ranges
from chains.lineage.report import lineage_page
from chains.lineage.shown_lines import ShownPair, changed_lines
from chains.lineage.trace import TraceReport, trace
from chains.lineage.tracer import Tracer
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import UsageError
from prchain.core.git import open_mined
from sql.link_changes import read_link_changes
from sql.store import Store
from sql.tables import LineageLanding, PullRequest


def traced_page(
    store: Store, full_name: str, mirrors: Path, progress: Progress, *, number: int | None, fewest: int, uncited: bool
) -> tuple[TraceReport, dict[str, Any]]:
    """Find a repository's lineage, and read it; `number` leaves the pairs of one pull request.

    Raises `UsageError` for what was not mined, and as `chains.lineage.trace.trace`.
    """
    mined = _mined(store, full_name)
    if number is not None:
        with store.reading() as tx:
            if not tx.count(PullRequest, repository_id=mined.id, number=number):
                raise UsageError(f"{mined.full_name} has no pull request #{number}; it may be an issue")
    task = progress.task(f"{mined.full_name}: lineage")
    report = trace(store, mined, mirrors, task)
    task.done(f"{report.walked_commits:,} commits")
    with store.reading() as tx:
        return report, lineage_page(tx, mined, number=number, fewest=fewest, uncited=uncited)


def pairs_with_lines(store: Store, page: Mapping[str, Any], limit: int, mirrors: Path) -> list[ShownPair]:
    """The strongest pairs of a page with their lines. Raises `GitError` where the repository cannot be read."""
    mined = _mined(store, page["repository"])
    pairs = [(pair["source"], pair["target"]) for pair in page["pairs"][:limit]]
    with store.reading() as tx:
        ranges = read_ranges(tx, mined.id)
        changes = {pair: read_link_changes(tx, mined.id, *pair) for pair in pairs}
        same = dict(map(tuple, tx.rows(LineageLanding, "number", "same_as", repository_id=mined.id)))
    repository = open_mined(mined.location, mirrors, mined.host, mined.full_name)
    tracer = Tracer(repository, mirrors, ranges, SILENT.task(""))
    owners = {
        sha: same.get(number) or number
        for sha, number in tracer.landings.owners.items()
        if sha not in tracer.landings.carriers
    }
    landings = {landed.number: landed for landed in ranges if landed.counts}
    found = []
    for later, earlier in pairs:
        landed = landings[later]
        hunks = changed_lines(repository, landed.base_sha, landed.landed_sha, owners, earlier)
        found.append(ShownPair(later, earlier, changes[later, earlier], tuple(hunks)))
    return found


def _mined(store: Store, full_name: str) -> MinedRepository:
    with store.reading() as tx:
        for mined in repositories(tx, full_name):
            return mined
    raise UsageError(f"{full_name} has not been mined into this database; `prchain status` lists what has")
