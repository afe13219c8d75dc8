"""Shares with their intervals, and the agreement of two readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prchain.core.shares import wilson


def share(hits: int, total: int) -> str:
    """A share with its 95 % Wilson interval, as text."""
    low, high = wilson(hits, total)
    return f"{hits / total:.1%} [{low:.1%}, {high:.1%}]"


def agreement(first: Sequence[str], second: Sequence[str]) -> str:
    """How often two readers say the same, and Cohen's kappa, as text."""
    total = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / total
    counts = Counter(first), Counter(second)
    chance = sum(counts[0][label] * counts[1][label] for label in counts[0]) / total**2
    kappa = (observed - chance) / (1 - chance) if chance < 1 else 1.0
    return f"agree on {observed:.1%}, Cohen's kappa {kappa:.2f}"
