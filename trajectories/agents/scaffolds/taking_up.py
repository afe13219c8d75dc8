"""Resuming an attempt after a kill: the state of its tools, and the end of its sandbox, from its entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import DiskLimit, ExtractionFailed, OutOfMemory, PrchainError, SandboxLimit
from prchain.core.storable import clean_text
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.agents.tools.edits import Edits
from trajectories.agents.tools.tool import Workspace
from trajectories.model import Entry, EntryKind

ENDS = (SandboxLimit, ExtractionFailed)
"""Errors of an agent's sandbox in which nothing can be run any more, or from which nothing can be taken. The step that
caused one is stored; then the error ends the attempt."""


def workspace(sandbox: Sandbox, spec: AttemptSpec, *, timeout: float, most: int) -> Workspace:
    """The workspace of an attempt's tools, in the state after its entries so far.

    Folder and exported variables are the stage's, whose attempts share a session; edits are the attempt's own.
    """
    stage_entries = [entry for entry in spec.entries if entry.position == spec.position]
    exported = next((entry for entry in reversed(stage_entries) if "variables" in entry.details), None)
    return Workspace(
        sandbox,
        spec.environment,
        timeout,
        most,
        cwd=next((entry.cwd for entry in reversed(stage_entries) if entry.cwd), None),
        variables=None if exported is None else exported.details["variables"],
        whole=exported is not None and exported.attempt == spec.attempt,
        edits=Edits.of(entry for entry in stage_entries if entry.attempt == spec.attempt),
    )


def ended_by(error: PrchainError) -> Mapping[str, Any]:
    """Details of a step's last observation for the error that ended the sandbox."""
    return {"ended": error.name, "reason": str(error)}


def ended_words(error: PrchainError) -> str:
    """The words for the agent on the end of its sandbox."""
    return f"The sandbox was ended here, and nothing can be run in it any more: {error}"


def with_end(observation: Entry, error: PrchainError) -> Entry:
    """The observation of the last call before the sandbox was found ended, with the error."""
    return replace(
        observation,
        content=clean_text(f"{observation.content}\n{ended_words(error)}"),
        error=observation.error or error.name,
        details={**observation.details, **ended_by(error)},
    )


def end_of(observations: Iterable[Entry]) -> PrchainError | None:
    """The error with which the step of these observations ended the attempt; None where it did not."""
    for entry in observations:
        if "ended" in entry.details:
            reason = str(entry.details["reason"])
            ends = (kind(reason) for kind in (DiskLimit, OutOfMemory, *ENDS))
            return next((error for error in ends if error.name == entry.details["ended"]), None)
    return None


def last_step(entries: Sequence[Entry]) -> list[Entry]:
    """The observations at the end of the entries."""
    last = entries[-1]
    return list(
        takewhile(lambda entry: entry.kind is EntryKind.OBSERVATION and entry.step == last.step, reversed(entries))
    )[::-1]


def is_fruitless(turn: Entry) -> bool:
    """Whether a turn was faulty and nothing of it was run."""
    return turn.error is not None and not turn.details.get("ran")


def fruitless_turns(spec: AttemptSpec) -> int:
    """The number of fruitless turns in a row at the end of the attempt so far."""
    own = takewhile(
        lambda entry: (entry.position, entry.attempt) == (spec.position, spec.attempt), reversed(spec.entries)
    )
    return sum(1 for _ in takewhile(is_fruitless, (entry for entry in own if entry.kind is EntryKind.TURN)))
