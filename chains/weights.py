"""The weights of the signs, as `research.evidence.fit` fits them to what readers said: see `weights.csv` beside this.

A model's confidence is the logistic function of the sum of its weights, each times the value of its sign.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from math import exp
from pathlib import Path

BASE = "base"
"""The sign that is always there, with the value 1."""

_FILE = Path(__file__).with_name("weights.csv")

MECHANICAL = re.compile(
    r"(?i)\b(?:renam(?:e[sd]?|ing)|mov(?:e[sd]?|ing)|revert(?:s|ed|ing)?|clean(?:s|ed|ing|ups?)?|tid(?:y|ies|ied)"
    r"|docs?|docstrings?|documentation|comments?|typos?|spelling|refactor(?:s|ed|ing)?|reorgani[sz]e[sd]?"
    r"|restructur(?:e[sd]?|ing)|bumps?|releases?|lint(?:s|er|ing)?|reformat(?:s|ted)?|formatting|style|isort|black|ruff"
    r"|mypy|pyupgrade|annotations?|annotat(?:e[sd]?|ing)|typings?|types?|moderni[sz]e[sd]?|simplif(?:y|ies|ied)"
    r"|perf|performance|optimi[sz]e[sd]?|chore|deps?|dependenc\w*|upgrade[sd]?|updat(?:e[sd]?|ing)|deprecat\w*|drop\w*"
    r"|remov\w*|delet\w*|tests?|coverage|ci|build|benchmarks?|internal\w*|tweak\w*|minor|small|use)\b"
)
"""Words of a title that tell of mechanical work, chores, or work on what users do not see."""


@cache
def weights(model: str) -> Mapping[str, float]:
    """Sign to weight of one model: ``lineage`` (that a pair without a citation is real) or ``worth`` (that a stage is a
    sensible task)."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["model"]][row["sign"]] = float(row["weight"])
    return found[model]


def probability(log_odds: float) -> float:
    """The logistic function, to four digits, and never 0."""
    return max(round(1 / (1 + exp(-log_odds)), 4), 0.0001)
