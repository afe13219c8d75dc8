"""Where the folders of tasks go: into folders of a disk, or as rows of one Parquet file."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from trajectories.export.parquet import ParquetRows
from trajectories.export.tasks.harbor.folder import Files, dataset
from trajectories.export.write import HashedFile

COLUMNS = {"path": "string", "task_binary": "binary"}
"""Of tasks as a table: a folder's name, and what lies in it as a tar that gzip packed, as OpenThoughts-Agent and SkyRL
read it."""


class TaskPlace(Protocol):
    """Takes folders of data sets."""

    def write(self, data_set: str, name: str, files: Files) -> None:
        """Add a folder, or replace it."""

    def finish(self, data_set: str, name: str, description: str, digests: Mapping[str, str]) -> None:
        """A data set is written; `digests` are its tasks'."""


class TaskFolders:
    """Folders below one folder a data set, with Harbor's list of them."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def write(self, data_set: str, name: str, files: Files) -> None:
        """Make the folder hold these files alone."""
        folder = self._out / data_set / name
        if folder.exists():
            shutil.rmtree(folder)
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            if path.endswith(".sh"):
                place.chmod(0o755)

    def finish(self, data_set: str, name: str, description: str, digests: Mapping[str, str]) -> None:
        """Write the list."""
        place = self._out / data_set / "dataset.toml"
        place.write_text(dataset(name, description, digests), encoding="utf-8")


class TaskRows:
    """Rows of one file; it is whole once `close` was called."""

    def __init__(self, file: HashedFile) -> None:
        """Raises `UsageError` where pyarrow is not installed."""
        self._rows = ParquetRows(file, COLUMNS)

    def write(self, data_set: str, name: str, files: Files) -> None:
        """Add the folder's row."""
        self._rows.write({"path": name, "task_binary": packed(files)})

    def finish(self, data_set: str, name: str, description: str, digests: Mapping[str, str]) -> None:
        """A file has no list beside it."""

    def close(self) -> None:
        """End the file."""
        self._rows.close()


def packed(files: Files) -> bytes:
    """The files as an archive, the same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in sorted(files.items()):
            header = tarfile.TarInfo(path)
            header.size, header.mode = len(content), 0o755 if path.endswith(".sh") else 0o644
            archive.addfile(header, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)
