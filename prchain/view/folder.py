"""The pages as a folder of files, which any browser opens from where it lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from prchain.core.errors import UsageError, no_room
from prchain.view.processes import SiteSource, write_files, written_files
from prchain.view.site import Site

LIST = "files.txt"
"""Names the files of a view, one a line: what a later one does not write anew, it deletes."""


@dataclass(frozen=True, slots=True)
class WrittenView:
    """What was written."""

    folder: Path
    files: int
    bytes: int


def write_site(
    site: Site,
    folder: Path,
    tick: Callable[[], None] = lambda: None,
    *,
    source: SiteSource | None = None,
    processes: int = 1,
) -> WrittenView:
    """Write every page of a site into a folder: a new or empty one, or that of an earlier view, whose pages are
    replaced. `tick` is called for each file. With the `source` of the site so many processes share the work, where
    there is enough of it.

    The same database gives the same bytes. Raises `UsageError` for another folder and one that cannot be written,
    `DiskFull`, `StoreError`, `WorkerLost`.
    """
    try:
        earlier = _earlier(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LIST).write_text("".join(f"{name}\n" for name in sorted(earlier)), encoding="utf-8")
        written: set[str] = set()
        size = 0
        shared = (write_files(site, folder, iter([path])) for path in site.shared_pages())
        for files in chain(shared, written_files(site, source, folder, site.groups(), processes)):
            for path, length in files:
                written.add(path)
                size += length
                tick()
        for name in earlier - written:
            if _is_inside(folder, name):
                (folder / name).unlink(missing_ok=True)
        (folder / LIST).write_text("".join(f"{name}\n" for name in sorted(written)), encoding="utf-8")
    except OSError as error:
        raise no_room(error, folder) or UsageError(f"{folder} cannot be written: {error.strerror}") from None
    return WrittenView(folder, len(written), size)


def _earlier(folder: Path) -> set[str]:
    """The files of the view that the folder holds; none where it is new or empty."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return set()
    if not folder.is_dir() or not (folder / LIST).is_file():
        raise UsageError(f"{folder} holds something else than a view; --out takes a new or an empty folder")
    return set((folder / LIST).read_text(encoding="utf-8").split("\n")) - {""}


def _is_inside(folder: Path, name: str) -> bool:
    """Whether a name of the list, which anybody may have edited, is that of a file below the folder."""
    return (folder / name).resolve().is_relative_to(folder.resolve())
