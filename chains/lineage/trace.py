"""Tracing the lineage of one mined repository: landings in, rows out, with as little walking as can be."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from chains.history import MinedRepository
from chains.lineage import cache
from chains.lineage.landings import LandedRange
from chains.lineage.lineage_rows import read_ranges, store_walk
from chains.lineage.tracer import Tracer
from prchain.core.console.progress import ProgressTask
from prchain.core.errors import IncompleteRepository
from prchain.core.git import mirror_path, open_mined
from sql.store import Store
from sql.tables import LineageWalk

RULES = 1
"""Of the evidence that is stored of a pair; another number has every repository walked anew."""


@dataclass(frozen=True, slots=True)
class TraceReport:
    """What one trace did."""

    repository: str
    landed: int
    walked_commits: int
    """Commits walked this time; 0 where nothing was new."""
    is_whole: bool
    """Whether the walk began at the roots."""
    why: str
    """Why it did; empty where it went on from the walk before."""
    missing_blobs: int
    seconds: float
    memory: int
    """The largest memory of this process, in bytes."""
    rewritten: tuple[str, ...] = ()
    """Branches on which the landings that were mined do not stand any more."""


def trace(store: Store, mined: MinedRepository, mirrors: Path, task: ProgressTask) -> TraceReport:
    """Find the lineage of a repository's landed pull requests, and store it.

    Raises `GitError` (`NotARepository`, `ShallowRepository`, `IncompleteRepository` for what is no file), `StoreError`.
    """
    started = time.monotonic()
    with store.reading() as tx:
        ranges = read_ranges(tx, mined.id)
        stored = next(tx.rows(LineageWalk, "key", "key_before", "missing_blobs", repository_id=mined.id), None)
    key = _key(ranges)
    if stored is not None and stored[0] == key:
        return TraceReport(mined.full_name, len(ranges), 0, False, "", stored[2], time.monotonic() - started, _memory())
    repository = open_mined(mined.location, mirrors, mined.host, mined.full_name)
    if repository.is_partial():
        raise IncompleteRepository(
            f"{repository.path} is a partial clone: it lacks the files that lineage reads; "
            "fetch them with `git fetch --refetch --no-filter`"
        )
    folder = mirror_path(mirrors, mined.host, mined.full_name).with_suffix(".lineage")
    tracer = Tracer(repository, folder, ranges, task)
    known = cache.load(folder / "owners")
    why = tracer.begin(known, stored[:2] if stored is not None else ())
    walked = tracer.walk()
    store_walk(store, mined, tracer, walked, key, is_whole=bool(why))
    tracer.save(key)
    return TraceReport(
        mined.full_name,
        len({landed.number for landed in ranges}),
        tracer.steps,
        bool(why),
        why,
        len(tracer.missing),
        time.monotonic() - started,
        _memory(),
        tracer.rewritten(),
    )


def _key(ranges: Iterable[LandedRange]) -> str:
    digest = sha256(f"{RULES} {cache.VERSION}\n".encode())
    for landing in ranges:
        digest.update(json.dumps(list(asdict(landing).values())).encode())
    return digest.hexdigest()


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
