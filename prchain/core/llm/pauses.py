"""How long to wait before asking again."""

from __future__ import annotations

from collections.abc import Callable

FIRST = 1.0
LONGEST = 60.0


def full_jitter(tries: int, random: Callable[[], float]) -> float:
    """Seconds to wait after the given number of tries: uniform between zero and a bound that doubles, 60 at most.

    "Full jitter" of M. Brooker, "Exponential Backoff and Jitter": callers that failed together do not come back
    together. `random` gives numbers from 0 to 1.
    """
    return random() * min(LONGEST, FIRST * 2.0 ** min(tries - 1, 16))
