"""``swebench``: predictions for SWE-bench's harness, of which `chains.tasks.swebench` writes the instances."""

from __future__ import annotations

from trajectories.export.format import PredictionFormat
from trajectories.export.tasks.predictions import predictions

FORMAT = PredictionFormat("swebench", "SWE-bench's", predictions)
