"""The growth of time with size: unlike a limit in seconds, a ratio of processor times holds on a busy machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")

MOST = 9.0
"""Four times the size takes about four times the time; quadratic work takes sixteen times."""

FLOOR = 0.01
"""Below this many seconds a time is noise."""

TRIES = 4


def assert_linear(make: Callable[[int], Given], work: Callable[[Given], object], size: int) -> None:
    """Fail where the work on `make(4 * size)` takes far more than four times as long as on `make(size)`.

    The fastest try of each side counts. Every try gets a new argument, because results may be cached.
    """
    small, large = float("inf"), float("inf")
    for extra in range(0, TRIES * 61, 61):
        large = min(large, seconds(work, make(4 * (size + extra))))
        small = min(small, seconds(work, make(size + extra)))
        if large < MOST * max(small, FLOOR):
            return
    raise AssertionError(f"four times the size took {large:.3f} s after {small:.3f} s")


def seconds(work: Callable[[Given], object], argument: Given) -> float:
    """Processor time of the work, without garbage collection, which would also count the objects of other tests."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        started = time.process_time()
        work(argument)
        return time.process_time() - started
    finally:
        if was_on:
            gc.enable()
