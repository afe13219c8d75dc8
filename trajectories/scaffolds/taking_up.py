"""How an attempt is taken up after a kill: what its tools, and its sandbox's end, were, from what its entries tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.errors import DiskLimit, ExtractionFailed, OutOfMemory, PrchainError, SandboxLimit
from prchain.scrub import clean_text
from trajectories.model import Entry, EntryKind
from trajectories.scaffolds.scaffold import AttemptSpec
from trajectories.scaffolds.tools.edits import Edits
from trajectories.scaffolds.tools.tool import Workspace

ENDS = (SandboxLimit, ExtractionFailed)
"""What an agent does to its sandbox so that nothing can be run in it any more, or nothing taken out of it. The step
that did it is kept; then the error ends the attempt."""


def workspace(sandbox: Sandbox, spec: AttemptSpec, *, timeout: float, most: int) -> Workspace:
    """Where the tools of the order's attempt work, as its entries so far left it.

    Folder and exported variables are those of the stage, whose attempts share a session; edits are the attempt's own.
    """
    stage = [entry for entry in spec.entries if entry.position == spec.position]
    told = next((entry for entry in reversed(stage) if "variables" in entry.details), None)
    return Workspace(
        sandbox,
        spec.environment,
        timeout,
        most,
        cwd=next((entry.cwd for entry in reversed(stage) if entry.cwd), None),
        variables=None if told is None else told.details["variables"],
        whole=told is not None and told.attempt == spec.attempt,
        edits=Edits.of(entry for entry in stage if entry.attempt == spec.attempt),
    )


def ended_by(error: PrchainError) -> Mapping[str, Any]:
    """What the details of a step's last observation keep of the error that ended it."""
    return {"ended": error.name, "reason": str(error)}


def ended_words(error: PrchainError) -> str:
    """What is told of the end."""
    return f"The sandbox was ended here, and nothing can be run in it any more: {error}"


def with_end(observation: Entry, error: PrchainError) -> Entry:
    """The observation of a call after which the sandbox was found to be ended."""
    return replace(
        observation,
        content=clean_text(f"{observation.content}\n{ended_words(error)}"),
        error=observation.error or error.name,
        details={**observation.details, **ended_by(error)},
    )


def end_of(observations: Iterable[Entry]) -> PrchainError | None:
    """The error with which a step of these observations ended the attempt, if it did."""
    for entry in observations:
        if "ended" in entry.details:
            reason = str(entry.details["reason"])
            ends = (kind(reason) for kind in (DiskLimit, OutOfMemory, *ENDS))
            return next((error for error in ends if error.name == entry.details["ended"]), None)
    return None


def last_step(entries: Sequence[Entry]) -> list[Entry]:
    """The observations that the entries end with."""
    last = entries[-1]
    return list(
        takewhile(lambda entry: entry.kind is EntryKind.OBSERVATION and entry.step == last.step, reversed(entries))
    )[::-1]


def is_in_vain(turn: Entry) -> bool:
    """Whether a turn was faulty and nothing of it was run."""
    return turn.error is not None and not turn.details.get("ran")


def turns_in_vain(spec: AttemptSpec) -> int:
    """How many turns in vain the attempt ends with so far."""
    own = takewhile(
        lambda entry: (entry.position, entry.attempt) == (spec.position, spec.attempt), reversed(spec.entries)
    )
    return sum(1 for _ in takewhile(is_in_vain, (entry for entry in own if entry.kind is EntryKind.TURN)))
