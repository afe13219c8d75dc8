"""How far each stream of a repository has been read; saved in the transaction of the rows it covers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from sql.store import Transaction
from sql.tables import Cursor


@dataclass
class StreamState:
    """One row of `Cursor`, with its detail as a mapping."""

    repository_id: int
    stream: str
    position: str | None = None
    watermark: str | None = None
    page_size: int | None = None
    complete: bool = False
    detail: dict[str, Any] = field(default_factory=dict)


def load(tx: Transaction, repository_id: int, stream: str) -> StreamState:
    """Return the stream's state; an empty one where it was never read."""
    columns = ("position", "watermark", "page_size", "complete", "detail")
    for row in tx.rows(Cursor, *columns, repository_id=repository_id, stream=stream):
        position, watermark, page_size, complete, detail = row
        return StreamState(repository_id, stream, position, watermark, page_size, complete, detail or {})
    return StreamState(repository_id, stream)


def save(tx: Transaction, state: StreamState) -> None:
    """Write the state."""
    tx.upsert(Cursor, [asdict(state)])
