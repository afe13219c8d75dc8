"""Write many chains as Harbor's folders: memory, time and size, without an engine.

    python -m research.harbor.size --db FILE --chains 1000

A copy of the database gets its proved chains again and again under other ids, until there are so many. All of the
export is its own but for images: a stage's image is taken to be there, with the facts of a made-up one. An eighth of
the chains is written by a process of its own, then all by another: memory must not grow. SQLite keeps up to 32 MB of
pages for each of an export's two connections, which a small database never fills; here it may keep 1 MB (`--pages`).
"""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import click
from sqlalchemy import event

from chains.tasks.export import TaskExportOptions, records
from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.workplace import Workplace
from prchain.core.console.terminal import say
from prchain.core.errors import TestsUnproved
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.export.tasks.harbor import export
from trajectories.export.tasks.harbor.image import ImageFacts, TaskImage
from trajectories.export.tasks.harbor.material import ChainMaterial
from trajectories.export.tasks.harbor.places import TaskFolders
from trajectories.task import ProvedTests, StageTask

REDUCTION = 8
_FACTS = ImageFacts(
    inputs="0" * 64,
    user="agent",
    environment={"PATH": "/opt/venv/bin:/usr/bin:/bin"},
    outputs=(),
    watched=(),
    fingerprint={"files": "", "compiled": ""},
    git=(2, 39),
)


class Unbuilt(ChainMaterial):
    """A chain whose images are taken to be there."""

    def proved(self, stage: StageTask) -> ProvedTests:
        """See `ChainMaterial.proved`."""
        if stage.tests is None:
            raise TestsUnproved("its tests are not proved")
        return stage.tests

    def workplace(self, stage: StageTask) -> Workplace:
        """See `ChainMaterial.workplace`."""
        provided = self.provider.provide(self.task.chain.repository, self.trees, self.git, stage.stage)
        return Workplace(provided, self.trees, backend=self.backend)

    def image(self, stage: StageTask) -> TaskImage:
        """See `ChainMaterial.image`."""
        return TaskImage(f"prchain/size:harbor-{self.task.chain.id}-{stage.position}", _FACTS)


class UnbuiltExport(export.HarborExport):
    """An export of such chains."""

    material_type = Unbuilt


def multiply(database: Path, chains: int) -> None:
    """Copy the proved chains of a SQLite database under other ids until it has so many."""
    with closing(sqlite3.connect(database)) as connection:
        proved = [row[0] for row in connection.execute("SELECT chain_id FROM validations WHERE outcome = 'proved'")]
        named = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {str(name): _columns(connection, str(name)) for (name,) in list(connection.execute(named))}
        keyed = [name for name, columns in tables.items() if "chain_id" in columns and name != "imports"]
        for column, table in [("id", "chains"), *(("chain_id", name) for name in keyed)]:
            connection.execute(f"DELETE FROM {table} WHERE {column} NOT IN ({','.join('?' * len(proved))})", proved)
            kept = ", ".join(name if name != column else "?" for name in tables[table])
            copy = f"INSERT OR IGNORE INTO {table} SELECT {kept} FROM {table} WHERE {column} = ?"
            for number in range(len(proved), chains):
                chain = proved[number % len(proved)]
                connection.execute(copy, (f"{number:06x}{chain[6:]}", chain))
        connection.commit()


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]


def written(db: str, out: Path, pages: int) -> dict[str, float]:
    """Write all chains of a database: how many folders, the peak of memory, and the time."""
    settings = Settings.load(db=db)
    start = time.process_time()
    with closing(Store.open(settings.db, create=False)) as store:
        store.engine.dispose()  # what is connected from now on keeps so many pages
        event.listen(store.engine, "connect", lambda it, _: it.execute(f"PRAGMA cache_size=-{pages * 1024}"))
        provider = Provider(settings, images=False, store=store)
        options = export.HarborOptions(network="compose")
        backend = cast(Any, BACKENDS["docker"].of(settings))
        made = UnbuiltExport(store, settings, provider, backend, TaskFolders(out), options)
        report = export.write_tasks(made, records(store, settings.mirrors_dir, TaskExportOptions()), lambda _: None)
        made.finish()
    for left_out in report.omitted[:3]:
        say(f"{left_out.chain_id}.{left_out.position} left out: {left_out.reason}", err=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"folders": sum(report.counts.values()), "peak": peak, "seconds": time.process_time() - start}


def sizes(out: Path) -> Iterator[int]:
    """The bytes of each folder."""
    for task in out.glob("*/*/task.toml"):
        yield sum(path.stat().st_size for path in task.parent.rglob("*") if path.is_file())


@click.command(help=__doc__)
@click.option("--db", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option("--chains", type=click.IntRange(min=REDUCTION), default=1000, show_default=True)
@click.option("--pages", type=click.IntRange(min=1), default=1, show_default=True, help="MB of a connection's pages.")
@click.option("--out", type=click.Path(path_type=Path), hidden=True, help="Of the process that writes.")
def main(db: Path, chains: int, pages: int, out: Path | None) -> None:
    """See the module."""
    if out is not None:
        click.echo(json.dumps(written(str(db), out, pages)))
        return
    found = []
    for count in (chains // REDUCTION, chains):
        with tempfile.TemporaryDirectory(prefix="prchain-", dir=db.parent) as folder:
            copy = Path(folder) / "many.db"
            shutil.copy(db, copy)
            multiply(copy, count)
            command = [
                sys.executable,
                "-m",
                __spec__.name,
                "--db",
                str(copy),
                "--out",
                f"{folder}/out",
                "--pages",
                str(pages),
            ]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            said = json.loads(ran.stdout)
            all_sizes = sorted(sizes(Path(folder) / "out"))
        found.append(said)
        middle, most = all_sizes[len(all_sizes) // 2], all_sizes[-1]
        say(
            f"{count:,} chains: {said['folders']:,} folders, {said['peak']:.0f} MB of memory, "
            f"{said['seconds'] / said['folders']:.2f} s of processor time each; "
            f"{middle / 1e6:.2f} MB a folder in the middle, {most / 1e6:.2f} MB at most"
        )
    grown = found[1]["peak"] / found[0]["peak"]
    say(f"memory grew {grown:.2f} times")
    sys.exit(0 if grown < 1.25 else 1)


if __name__ == "__main__":
    main()
