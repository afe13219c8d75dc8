"""The purposes of the calls for a task, as settings and ledger name them."""

from __future__ import annotations

SCREEN, PLAN, QUERY, OVERVIEW, REVIEW = "screen", "plan", "query", "overview", "review"

TASK_PURPOSES = (SCREEN, PLAN, QUERY, OVERVIEW, REVIEW)
"""All of them: what a task costs is what their calls cost."""
