"""The store of a command, opened when it runs: a page of help has no use for SQLAlchemy."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.store import Store


def opened_store(database: str, *, create: bool = False) -> AbstractContextManager[Store]:
    """The store of a database, closed at the end; `create`: where there is none, it is made.

    Raises as `sql.store.Store.open`.
    """
    from sql.store import Store

    return closing(Store.open(database, create=create))
