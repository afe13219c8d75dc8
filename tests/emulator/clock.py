"""The emulator's time; tests move it instead of sleeping."""

from __future__ import annotations

import threading
import time


class VirtualClock:
    """Seconds since the epoch, which pass only on demand. Starts at the real time by default."""

    def __init__(self, start: float | None = None) -> None:
        self._now = float(int(time.time())) if start is None else start
        self._lock = threading.Lock()
        self.slept: list[float] = []
        """The arguments of all calls of `sleep`, in order."""

    def __call__(self) -> float:
        return self._now

    now = time = __call__

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Replace time.sleep: return at once, with the clock moved."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))
