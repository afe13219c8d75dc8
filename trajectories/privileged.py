"""The scaffolds whose agents work with more than a task tells, by name: exports, figures and forecasts, which know
nothing of curation, tell their trajectories from plain rollouts."""

from __future__ import annotations

CURATED = "curated"
"""Grown along process graphs: steps are written anew and chosen, but nothing of a graph is told (P2T, section 4.2)."""

DISCLOSED = "disclosed"
"""Told a part of the process graph, for a study (P2T, appendix C): never training data."""

PRIVILEGED = frozenset({CURATED, DISCLOSED})
"""All others are plain rollouts."""
