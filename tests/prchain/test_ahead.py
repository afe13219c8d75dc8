"""Running ahead: order, errors, and an end to producers that nobody wants any more."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from prchain.core.ahead import ahead


def test_items_come_in_their_order_and_the_producer_starts_at_once() -> None:
    started = threading.Event()

    def numbers() -> Generator[int, None, None]:
        started.set()
        yield from range(5000)

    with ahead(numbers(), most=10) as items:
        assert started.wait(5)
        assert list(items) == list(range(5000))


def test_an_error_is_raised_where_the_items_are_consumed() -> None:
    def broken() -> Generator[int, None, None]:
        yield 1
        raise ValueError("no more")

    with ahead(broken()) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="no more"):
            next(items)


@pytest.mark.parametrize("consumed", [0, 3])
def test_leaving_early_closes_the_producer(consumed: int) -> None:
    closed = threading.Event()

    def endless() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    with ahead(endless(), most=2) as items:
        for _ in range(consumed):
            next(items)
    assert closed.is_set()
