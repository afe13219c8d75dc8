"""Shares with their intervals."""

from __future__ import annotations

from math import sqrt


def wilson(hits: float, total: float, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share (E. B. Wilson, 1927). Of weighted rows both are effective numbers, which
    need not be whole."""
    middle = hits / total + z * z / (2 * total)
    half = z * sqrt(hits / total * (1 - hits / total) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # Exact at the ends, where the formula leaves what rounding does.
    low = 0.0 if hits <= 0 else max(0.0, (middle - half) / scale)
    return low, 1.0 if hits >= total else min(1.0, (middle + half) / scale)
