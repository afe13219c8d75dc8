"""Letting a producer run ahead of its consumer, so that git works on one core while Python writes on the other."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from queue import Full, Queue
from typing import TypeVar

_T = TypeVar("_T")

_POLL = 0.1
"""Seconds between two checks of a blocked producer whether its consumer is still there."""


class _End:
    """Marks the end of the items; `error` is what ended the producer early, if anything did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


@contextmanager
def ahead(items: Generator[_T, None, None], most: int = 1000) -> Iterator[Iterator[_T]]:
    """Draw from `items` in a thread that starts at once, at most `most` items ahead; give them in their order.

    What `items` raises is raised where it is consumed. Leaving the block closes `items`, consumed or not.
    """
    queue: Queue[_T | _End] = Queue(most)
    unwanted = threading.Event()

    def hand_over(item: _T | _End) -> None:
        while not unwanted.is_set():
            try:
                return queue.put(item, timeout=_POLL)
            except Full:
                continue

    def produce() -> None:
        end = _End()
        try:
            for item in items:
                hand_over(item)
                if unwanted.is_set():
                    break
        except BaseException as error:  # the boundary: handed to the consumer, who raises it
            end = _End(error)
        finally:
            items.close()
            hand_over(end)

    def consume() -> Iterator[_T]:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    try:
        yield consume()
    finally:
        unwanted.set()
        producer.join()
