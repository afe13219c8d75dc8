"""The time and the memory of walks, beside `git log -p` of the same lines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from sqlalchemy import delete, select

from chains.history import MinedRepository, repositories
from chains.lineage.lineage_rows import read_ranges
from chains.lineage.tracer import Tracer
from prchain.core.console.progress import SILENT
from prchain.core.console.terminal import say_table
from prchain.core.git import GitRepository, open_mined
from prchain.core.git.standins import StandInRepository
from sql.store import Store
from sql.tables import Landing, Lineage, LineageLanding, LineageWalk

_TRACE = """
import json, sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from chains.history import repositories
from chains.lineage.trace import trace
from prchain.core.console.progress import SILENT
from sql.store import Store
with closing(Store.open(sys.argv[1], create=False)) as store:
    with store.reading() as tx:
        mined = repositories(tx, sys.argv[3])[0]
    print(json.dumps(asdict(trace(store, mined, Path(sys.argv[2]), SILENT.task("")))))
"""
"""Runs in a process of its own, so that its memory is its own."""


@click.command()
@click.argument("names", nargs=-1, metavar="[OWNER/NAME]...")
@click.option(
    "--db", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True, help="An SQLite file."
)
@click.option("--mirrors", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--new", default=100, show_default=True, help="Landings that are hidden from the first walk.")
def speed(names: tuple[str, ...], db: Path, mirrors: Path, new: int) -> None:
    """Time the walk against git log."""
    table = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "prchain.db"
        shutil.copyfile(db, copy)
        with closing(Store.open(f"sqlite:///{copy}", create=False)) as store:
            with store.reading() as tx:
                every = [mined for mined in repositories(tx) if not names or mined.full_name in names]
            for mined in every:
                table.append(_row(store, mined, copy, (mirrors, Path(folder)), new))
    say_table(
        (
            "repository",
            "landed",
            "commits",
            "missing",
            "git log s",
            "whole s",
            "ratio",
            "MB",
            f"{new} new s",
            "again s",
        ),
        table,
    )


def _row(store: Store, mined: MinedRepository, db: Path, folders: tuple[Path, Path], new: int) -> tuple[Any, ...]:
    mirrors, folder = folders
    with store.transaction() as tx:
        for rows in (Lineage, LineageLanding, LineageWalk):
            tx.delete(rows, repository_id=mined.id)
        repository = open_mined(mined.location, mirrors, mined.host, mined.full_name)
        hidden = _hide(tx.connection, repository, mined.id, new)
    own = folder / mined.full_name.replace("/", "+")
    if mined.location.startswith("/"):
        mirrors = own
    whole = _trace(db, mirrors, mined)
    with store.transaction() as tx:
        tx.bulk(Landing, [column.name for column in Landing.__table__.columns], hidden)
    grown = _trace(db, mirrors, mined)
    again = _trace(db, mirrors, mined)
    with store.reading() as tx:
        ranges = read_ranges(tx, mined.id)
    tracer = Tracer(repository, own, ranges, SILENT.task(""))
    reader: GitRepository = repository
    if whole["missing_blobs"]:
        reader = StandInRepository.over(repository, own / "whole.git", repository.missing_blobs(tracer.tips))
    log = _git_log(reader, tracer.tips)
    return (
        mined.full_name,
        whole["landed"],
        whole["walked_commits"],
        whole["missing_blobs"],
        f"{log:.1f}",
        f"{whole['seconds']:.1f}",
        f"{whole['seconds'] / log:.1f}",
        whole["memory"] >> 20,
        f"{grown['seconds']:.1f}" + (" (whole)" if grown["is_whole"] else ""),
        f"{again['seconds']:.2f}",
    )


def _hide(connection: Any, repository: GitRepository, repository_id: int, new: int) -> list[tuple[Any, ...]]:
    """Take the newest landings of the default branch out of the database, and all that stand on them; their rows."""
    table = Landing.__table__
    columns = [column.name for column in table.columns]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in connection.execute(select(*table.columns).where(table.c.repository_id == repository_id))
    ]
    newest = sorted((row for row in rows if row["is_default"]), key=lambda row: (-row["position"], row["number"]))[:new]
    hidden = {row["landed_sha"] for row in newest}
    for sha, *parents in reversed(list(repository.parents(sorted({row["landed_sha"] for row in rows})))):
        if not hidden.isdisjoint(parents):
            hidden.add(sha)
    gone = [row for row in rows if row["landed_sha"] in hidden]
    for row in gone:
        key = {name: row[name] for name in ("repository_id", "number", "branch")}
        connection.execute(delete(Landing).filter_by(**key))
    return [tuple(row.values()) for row in gone]


def _trace(db: Path, mirrors: Path, mined: MinedRepository) -> dict[str, Any]:
    arguments = [sys.executable, "-c", _TRACE, f"sqlite:///{db}", str(mirrors), mined.full_name]
    answer = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return dict(json.loads(answer.stdout))


def _git_log(reader: GitRepository, tips: list[str]) -> float:
    """Seconds that `git log` takes to print the patches of the same lines."""
    started = time.monotonic()
    with reader.stream(
        "log", "--first-parent", "--diff-merges=first-parent", "-p", "-U0", "-M", "--stdin", lines=tips
    ) as output:
        while output.read(1 << 20):
            pass
    return time.monotonic() - started
