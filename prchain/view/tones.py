"""How an outcome is coloured, by what the packages call good, bad, or neither; it is always written out, too."""

from __future__ import annotations

from chains.outcomes import CHAINED, FROZEN, NOT_CHOSEN, RETIRED, UNLINKED
from chains.outcomes import KEPT as USABLE
from environments.images.build_run import BUILT
from environments.suites.outcomes import EARLIER_BROKEN, F2P_FAILED, P2P_BROKEN, PASSED, TAMPERED
from environments.suites.testlogs import Status
from miner.outcomes import OUTCOMES as OF_PULL_REQUESTS
from prchain.view.facets import NONE_YET
from sql.label_filter import DROP, KEEP
from sql.outcomes import PROVED, READY, SELECTED
from trajectories.curation.graphs.outcomes import BUILT as GRAPHS
from trajectories.outcomes import (
    KEPT,
    NOT_REACHED,
    REJECTED,
    RUNNING,
    STATE_BROKEN,
    SUPERSEDED,
    UNSCORED,
    WITHOUT_CHAIN,
)

LANDED = OF_PULL_REQUESTS[0]
COUNTED = "counted"
"""Of citations that the miner's rules believe."""

GOING_ON = frozenset({LANDED, CHAINED, FROZEN, SELECTED, READY, PROVED, *GRAPHS, *KEPT})
"""What ended so goes on to the next step of the funnel."""

_GOOD = GOING_ON | {USABLE, BUILT, PASSED, COUNTED, KEEP}
_BAD = frozenset(
    {
        REJECTED,
        STATE_BROKEN,
        TAMPERED,
        F2P_FAILED,
        P2P_BROKEN,
        EARLIER_BROKEN,
        Status.failed,
        Status.error,
        DROP,
        "broken",
    }
)
_DULL = frozenset(
    {RUNNING, NOT_REACHED, SUPERSEDED, UNSCORED, *WITHOUT_CHAIN, RETIRED, UNLINKED, NOT_CHOSEN, NONE_YET, "none"}
)


def tone(outcome: object) -> str:
    """``good``, ``bad``, ``dull`` for what says nothing, or ``odd`` for whatever else it is."""
    name = str(outcome)
    if name in _GOOD:
        return "good"
    return "bad" if name in _BAD else "dull" if name in _DULL else "odd"
