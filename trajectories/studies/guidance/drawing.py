"""What each setting resolved, by difficulty, as a drawing (SWE-PRM, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prchain.core.console.terminal import counted
from trajectories.curation.graphs.svg import panels_svg
from trajectories.studies.guidance.difficulty import Difficulty


def difficulty_drawing(report: Mapping[str, Any]) -> str:
    """A panel for each policy and tier of what `prm_report` returns, with the stages that each setting resolved, as
    SVG."""
    panels = {
        f"{group['model']}, {tier}: {counted(group['difficulty'][tier], 'stage')}": {
            row["setting"]: row["figures"][tier]["count"] for row in group["settings"] if row["figures"] is not None
        }
        for group in report["groups"]
        for tier in Difficulty
    }
    return panels_svg("Stages that were resolved, by difficulty", panels)
