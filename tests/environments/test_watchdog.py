"""The watchdog of a sandbox's disk: when it looks, and that nobody waits for it."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext

import pytest

from environments.sandboxes.watchdog import Watchdog

_BEGUN = 0.05
"""Seconds in which its thread has begun to wait; where it has not, a test passes without need, and never fails."""


def test_it_ends_what_writes_too_much_while_a_command_runs() -> None:
    used, ended = [0], threading.Event()
    watchdog = Watchdog(lambda: used[0], 10, ended.set, busy=0.01, idle=60)
    watchdog.start()
    time.sleep(_BEGUN)
    used[0] = 11
    assert not ended.wait(0.1), "nothing runs"
    with watchdog.watching():
        assert ended.wait(5) and watchdog.tripped == 11
    watchdog.stop()


@pytest.mark.parametrize("running", [False, True])
def test_nobody_waits_for_its_next_look(running: bool) -> None:
    watchdog = Watchdog(lambda: 0, 10, lambda: None, busy=60, idle=60)
    watchdog.start()
    with watchdog.watching() if running else nullcontext():
        time.sleep(_BEGUN)
        began = time.monotonic()
        watchdog.stop()
        taken = time.monotonic() - began
    assert taken < 0.1 and not watchdog.is_alive()
