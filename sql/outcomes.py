"""Outcomes in the database that one package writes and others read."""

from __future__ import annotations

MINED = "mined"
"""Of a run over a repository: it ended, and something was new."""

UNCHANGED = "unchanged"
"""Of a run over a repository: it ended, and nothing was new."""

ENDED_WELL = frozenset({MINED, UNCHANGED})
"""Of the runs over a repository: all was read."""

SELECTED = "selected"
"""Of a selection: a strategy chose the chain, and it stands."""

READY = "ready"
"""Of a task, and of a stage of one: its texts passed the leak check."""

PROVED = "proved"
"""Of a validation, and of a stage's tests: they fail without the stage's work and pass with it."""
