"""How process graphs end: exactly one name each."""

from __future__ import annotations

RUNNING = "running"
"""Under way, or its process was killed."""

CONVERGED = "converged"
"""A round left the node set as it was."""
DRY = "dry"
"""Nothing was proposed in so many rounds in a row."""
CAPPED = "capped"
"""The last round that was allowed still changed the node set."""

INSUFFICIENT = "insufficient"
"""The edits of the graph are not the reference."""
CYCLIC = "cyclic"
"""Too many edges would close a cycle: no order of the nodes can be trusted."""

BUILT = frozenset({CONVERGED, DRY, CAPPED})
"""Graphs that can be used."""

OF_THE_REFERENCE = frozenset({"inexpressible", "reference_conflicts", "already_done"})
"""Names of errors of the stage itself: no agent is asked."""

OF_THE_STATE = frozenset({"merge_unsupported", "none_unavailable"})

FINAL = BUILT | OF_THE_REFERENCE | OF_THE_STATE | {INSUFFICIENT, CYCLIC}
"""Outcomes that another run would only repeat."""
