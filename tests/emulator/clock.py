"""Time as the emulator sees it; tests move it instead of sleeping."""

from __future__ import annotations

import threading
import time


class VirtualClock:
    """Seconds since the epoch that pass only when somebody says so. Starts at the real time unless told otherwise."""

    def __init__(self, start: float | None = None) -> None:
        self._now = float(int(time.time())) if start is None else start
        self._lock = threading.Lock()
        self.slept: list[float] = []
        """Every wait asked of `sleep`, in order."""

    def __call__(self) -> float:
        return self._now

    now = time = __call__

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Stand in for time.sleep: return at once, that much later."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))
