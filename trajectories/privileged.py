"""The scaffolds whose agents work with more than a task tells, by name: exports, figures and forecasts, which know
nothing of curation, tell their trajectories from plain rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CURATED = "curated"
"""Grown along process graphs: steps are written anew and chosen, but nothing of a graph is told (P2T, section 4.2)."""

DISCLOSED = "disclosed"
"""Told a part of the process graph, for a study (P2T, appendix C): never training data."""

PRIVILEGED = frozenset({CURATED, DISCLOSED})
"""All others are plain rollouts, or guided ones."""

PLAIN, GUIDED = "plain", "guided"
"""Kinds of trajectories beside the privileged ones."""


def is_guided(options: Mapping[str, Any]) -> bool:
    """Whether observers watched the agent of a trajectory with these stored options, which may have spoken to it."""
    return bool(options.get("observers"))


def kind_of(scaffold: str, options: Mapping[str, Any]) -> str:
    """What a trajectory counts as in studies: `CURATED`, `DISCLOSED`, `GUIDED` or `PLAIN`."""
    if scaffold in PRIVILEGED:
        return scaffold
    return GUIDED if is_guided(options) else PLAIN
