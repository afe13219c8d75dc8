"""The pages of chains and trajectories, written by several processes: each is a page's worth of computing."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from prchain.core.errors import WorkerLost
from prchain.view.options import ViewOptions
from prchain.view.site import PageGroup, Site
from sql.store import Store

_FEWEST = 64
"""Groups of pages from which on other processes are worth their start, which takes each of them a second."""
_AT_ONCE = 8
"""Groups that a process takes at a time."""


@dataclass(frozen=True, slots=True)
class SiteSource:
    """What another process makes the same site of."""

    url: str
    options: ViewOptions
    mirrors: Path
    data_dir: Path
    secrets: tuple[str, ...]

    def site(self, store: Store) -> Site:
        """The site over a store that was opened by `url`."""
        return Site(store, self.options, self.mirrors, self.data_dir, self.secrets, once=True)


def written_files(
    site: Site, source: SiteSource | None, folder: Path, groups: Sequence[PageGroup], processes: int
) -> Iterator[list[tuple[str, int]]]:
    """Write the pages of each group into the folder; yields the path and size of each file, group by group.

    Raises `WorkerLost`, `StoreError`, `OSError`.
    """
    if source is None or processes < 2 or len(groups) < _FEWEST:
        yield from (write_files(site, folder, site.pages_of(group)) for group in groups)
        return
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin, initargs=(source, str(folder))
    )
    try:
        yield from pool.map(_write, groups, chunksize=_AT_ONCE)
    except BrokenProcessPool:
        raise WorkerLost("a process that writes pages was ended, maybe for want of memory; run it again") from None
    finally:
        pool.shutdown(cancel_futures=True)


def write_files(site: Site, folder: Path, paths: Iterator[str]) -> list[tuple[str, int]]:
    """Write some pages into the folder, and return the path and size of each."""
    found = []
    for path in paths:
        body = site.render(path)
        if body is None:  # gone while the pages were written
            continue
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)
        found.append((path, len(body)))
    return found


_own: list[tuple[Site, Path]] = []
"""Of a process of the pool: its site, and where the pages go."""


def _begin(source: SiteSource, folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    _own.append((source.site(Store.open_for_reading(source.url)), Path(folder)))


def _write(group: PageGroup) -> list[tuple[str, int]]:
    [(site, folder)] = _own
    return write_files(site, folder, site.pages_of(group))
