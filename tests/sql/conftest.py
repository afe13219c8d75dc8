from __future__ import annotations

from collections.abc import Iterator

import pytest

from sql.store import Store


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store, once on SQLite and once on PostgreSQL."""
    opened = Store.open(database_url)
    yield opened
    opened.close()
