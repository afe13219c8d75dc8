"""Made histories in a database: each is mined once in a process, and its rows are copied from then on."""

from __future__ import annotations

import io
from pathlib import Path

from sqlalchemy import update

from miner.mine import MineOptions, Miner
from miner.repositories import parse_entry
from prchain.core.console.progress import open_progress
from sql.store import Store
from sql.tables import MineRun, Repository
from tests.databases import new_database
from tests.miner.gitworld import World

_mined: dict[tuple[object, ...], bytes] = {}


def mined_store(folder: Path, world: World, name: str) -> Store:
    """A store in a new database below `folder`, in which the world was mined by git under a name."""
    key = (name, world.default, *sorted((ref, world.sha(mark)) for ref, mark in world.refs.items()))
    file = folder / "prchain.db"
    if key not in _mined:
        store = Store.open(new_database(file))
        mine_by_git(store, folder, world, name)
        store.close()
        _mined[key] = file.read_bytes()
        return Store.open(str(file))
    file.write_bytes(_mined[key])
    store = Store.open(str(file))
    with store.transaction() as tx:
        tx.connection.execute(update(Repository).values(location=str(world.path)))
        tx.connection.execute(update(MineRun).values(spec=f"{name} = {world.path}"))
    return store


def mine_by_git(store: Store, folder: Path, world: World, name: str) -> None:
    """Mine a world, which lies on this machine."""
    spec = parse_entry(f"{name} = {world.path}", "github.com", folder)
    with open_progress(stream=io.StringIO()) as progress:
        report = Miner(store, MineOptions(source="git"), mirrors=folder / "mirrors", progress=progress).mine(spec)
    assert report.error is None, report.error
