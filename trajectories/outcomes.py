"""How trajectories and their stages end: exactly one name each."""

from __future__ import annotations

from collections.abc import Sequence

from prchain.core.errors import (
    EndpointUnreachable,
    EngineUnavailable,
    ImageMissing,
    PrchainError,
    RateLimited,
    SandboxError,
    infrastructure_failures,
)

RUNNING = "running"
"""Of a trajectory or a stage: under way, or its process was killed."""

ACCEPTED = "accepted"
"""Every stage (of a trajectory); the gate let it pass (of a stage)."""
ACCEPTED_PREFIX = "accepted_prefix"
"""The first stages were accepted, enough of them for a chain."""
TOO_SHORT = "too_short"
"""The first stages were accepted, too few for a chain."""
REJECTED = "rejected"
"""The gate refused the last attempt; of a trajectory: at its first stage, of a branch: at the first one of its own."""
UNSCORED = "unscored"
"""There is no verdict: neither accepted nor rejected."""
SUSPECTED = "suspected"
"""The gate would let it pass, and the audit points at its patch: no sample, and no failure of the agent."""
STATE_BROKEN = "state_broken"
"""None of the stage's tests runs on S_t: earlier stages broke it."""
DONE_EARLY = "done_early"
"""Of a stage: all its F2P tests pass on S_t, and tests alone were to decide. It was not worked on; the next one goes on
from S_t."""
SUPERSEDED = "superseded"
"""Of a trajectory: prompts or texts changed before it ended; one under the current ones takes its place."""
STOPPED = "stopped"
"""An observer ended it."""
UNFINISHED = "unfinished"
"""Of a curated stage: a limit ended it before the agent had handed its work in; nothing was graded."""
NO_GRAPH = "no_graph"
"""Of a curated stage: its process graph cannot be made, or has nothing in it."""
NOT_REACHED = "not_reached"
"""Of a stage: nothing was tried."""

IMPORTED = "imported"
"""Of a trajectory, and its stages: others made it; nothing was judged here. The scaffold of whatever has no chain is
called so, too."""
RECORDED = "recorded"
"""Of a trajectory, and its stage: it is what a program asked its model through `prchain record`; nothing was judged."""
WITHOUT_CHAIN = (IMPORTED, RECORDED)
"""Outcomes of trajectories without a chain."""

NO_TASK = "no_task"
"""The chain has no task that is ready."""
NOT_VALIDATED = "not_validated"
"""The gate needs tests, and the chain was not validated yet."""
TESTS_UNPROVED = "tests_unproved"
"""The gate needs tests, and a stage has none that were proved."""
KEPT = frozenset({ACCEPTED, ACCEPTED_PREFIX})
"""Trajectories that exports take by default."""

SANDBOX_KILLED = "sandbox_killed"
"""The agent's step, or the tests of its work, ended the sandbox, and new ones too: ``pkill python`` ends the process
that runs commands."""

AGENT_FAILED = "agent_failed"
"""An agent program crashed, said that it had failed, or asked its model nothing more."""

OF_THE_AGENT = frozenset(
    {"disk_limit", "out_of_memory", "sandbox_limit", "extraction_failed", SANDBOX_KILLED, AGENT_FAILED}
)
"""Names of errors that the agent itself caused: they end its stage."""
OF_THE_STATE = frozenset({"merge_unsupported", "none_unavailable"})
"""Names of errors that end a stage before it begins."""

FINAL = (
    KEPT
    | OF_THE_AGENT
    | OF_THE_STATE
    | {TOO_SHORT, REJECTED, UNSCORED, SUSPECTED, STATE_BROKEN, DONE_EARLY, STOPPED, UNFINISHED, NO_GRAPH}
)
"""Outcomes of a trajectory that another run would only repeat. Any other is tried again by the next run; a
`SUPERSEDED` one by the next run under its own prompts and texts."""

MEASURED = FINAL - OF_THE_STATE - {UNSCORED, SUSPECTED, NO_GRAPH, DONE_EARLY}
"""Outcomes of a trajectory that say how its agent did, whatever it did: what a study can count."""

INFRASTRUCTURE = frozenset(infrastructure_failures())
"""Names of errors of machines, networks and services, not of the agent or the task: such a trajectory is counted
apart, and the next run goes on with it."""

_RETRIED = (EndpointUnreachable, RateLimited, EngineUnavailable)


def is_passing(error: PrchainError) -> bool:
    """Whether a machine failed (not the agent, not the task), so that trying again soon may help."""
    if error.infrastructure is None:
        return False
    return isinstance(error, _RETRIED) or (isinstance(error, SandboxError) and not isinstance(error, ImageMissing))


def outcome_of(stages: Sequence[str], *, length: int, min_length: int, shared: int = 0) -> tuple[str, int]:
    """The outcome of an ended trajectory, and its last stage of `accepted_prefix`.

    `stages` are the outcomes of its stages in order, `length` is the chain's; the first `shared` ones were over when it
    branched off another trajectory. Where the first stage of its own was tried and not accepted, the outcome is that
    stage's: a branch that adds nothing to the prefix it shares is no second one of it. A stage that was done early is
    none of the `min_length`. Too few that end at a `SUSPECTED` stage are suspected, for nothing was measured there.
    """
    accepted = accepted_prefix(stages)
    worked_on = stages[:accepted].count(ACCEPTED)
    if accepted >= length and worked_on >= min(length, min_length):
        return ACCEPTED, accepted
    ended = next((outcome for outcome in stages[accepted:] if outcome != DONE_EARLY), DONE_EARLY)
    if 0 < accepted <= shared and ended != NOT_REACHED:
        return ended, accepted
    if worked_on >= min_length:
        return ACCEPTED_PREFIX, accepted
    if accepted:
        return (SUSPECTED if ended == SUSPECTED else TOO_SHORT), accepted
    return (ended if stages else NOT_REACHED), 0


def accepted_prefix(stages: Sequence[str]) -> int:
    """How many stages, from the first, are accepted, or were done early before one that is."""
    accepted = 0
    for position, outcome in enumerate(stages, start=1):
        if outcome == ACCEPTED:
            accepted = position
        elif outcome != DONE_EARLY:
            break
    return accepted
