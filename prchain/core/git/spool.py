"""Many blobs on their way into a store of trees."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from types import TracebackType
from typing import IO, Self

from prchain.core.git.trees import TreeStore

_BLOCK = 4 << 20
"""Bytes of a file that are held in memory."""


class BlobSpool:
    """Blobs on their way into a store: hashed one by one, and written by one git process when all are there.

    Contents that the store is known to have are hashed only. A context manager; what was not saved when it is left is
    gone.
    """

    def __init__(self, store: TreeStore, known: Collection[str]) -> None:
        self._store = store
        self._known = set(known)
        self._script: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed on exit
        self._any = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._script.close()

    def add(self, source: IO[bytes], size: int) -> str:
        """Take `size` bytes of a stream; returns the blob's id."""
        start = self._script.tell()
        hasher = self._store.hasher("blob", size)
        self._script.write(b"blob\ndata %d\n" % size)
        remaining = size
        while remaining:
            block = source.read(min(remaining, _BLOCK))
            if not block:
                raise EOFError("the stream ended within a file")
            hasher.update(block)
            self._script.write(block)
            remaining -= len(block)
        self._script.write(b"\n")
        name = str(hasher.hexdigest())
        if name in self._known:
            self._script.seek(start)
            self._script.truncate()
        else:
            self._known.add(name)
            self._any = True
        return name

    def save(self) -> None:
        """Write the blobs. The spool is of no use afterwards."""
        if self._any:
            self._script.write(b"done\n")
            with self._store.stream("fast-import", "--quiet", "--done", feed=self._script) as output:
                output.read()
