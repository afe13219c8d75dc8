"""A disk limit where the engine has none: overlay2 on ext4 cannot bound a container's layer, so it is polled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from prchain.core.errors import SandboxError

BUSY = 1.0
"""Seconds between two looks while a command runs. The file-size limit bounds what one file can grow meanwhile."""
IDLE = 15.0
_SHARE = 10
"""A look that takes long (many files) is repeated after this many times its duration at the earliest."""


class Watchdog(threading.Thread):
    """Asks `used` now and then, and calls `end` once when it is more than `most` bytes."""

    def __init__(
        self,
        used: Callable[[], int],
        most: int,
        end: Callable[[], None],
        *,
        busy: float = BUSY,
        idle: float = IDLE,
    ) -> None:
        super().__init__(name="prchain-watchdog", daemon=True)
        self._used = used
        self._most = most
        self._end = end
        self._busy, self._idle = busy, idle
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._stopped = False
        self._running = 0
        self.tripped = 0
        """Bytes found when it was more than allowed; 0 while it was not."""

    def run(self) -> None:
        while not self._stopped:
            seconds = self._look()
            self._wait(seconds)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While a command runs: look more often."""
        self._running += 1
        self._wake.set()
        try:
            yield
        finally:
            self._running -= 1

    def stop(self) -> None:
        """End the thread; waits for a look that is under way, a few seconds at most."""
        self._stopped = True
        self._ended.set()
        self._wake.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout=5)

    def _wait(self, seconds: float) -> None:
        """Until the next look is due: after `busy` seconds of running commands, or `idle` seconds."""
        least = time.monotonic() + max(self._busy, _SHARE * seconds)
        most = time.monotonic() + max(self._idle, _SHARE * seconds)
        while not self._stopped:
            now = time.monotonic()
            if now >= most or (self._running and now >= least):
                return
            if self._running:
                self._ended.wait(min(0.2, least - now))
            else:
                self._wake.wait(most - now)
                self._wake.clear()

    def _look(self) -> float:
        start = time.monotonic()
        try:
            used = self._used()
        except SandboxError:
            used = 0
        if used > self._most:
            self.tripped = used
            self._stopped = True
            self._end()
        return time.monotonic() - start
