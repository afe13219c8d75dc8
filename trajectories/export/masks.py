"""Which turns are under loss: pure, from a trajectory's entries and what became of its attempts.

Only what the model said can be. Of that is left out what one would not want to teach: rounds that were rejected
(masked and not cut, because later turns stand on their edits), faulty turns, and on request turns whose tool failed, as
SWE-Lego does (arXiv:2601.01426, step-level error masking), and turns that an observer prompted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from trajectories.export.samples import Reason
from trajectories.model import Entry, EntryKind

Refinements = Literal["mask", "keep", "drop"]
"""What becomes of rejected rounds: left out of the loss, under loss as any, or the sample is left out (`refined`)."""


class Mask(StrEnum):
    """A kind of turn that is left out of the loss on request; rejected rounds have an option of their own."""

    FAULTY = "faulty"
    """Malformed, empty, refused or cut off (`trajectories.model.TurnFault`)."""
    TOOL_ERRORS = "tool_errors"
    """An observation of the turn carries an error: the tool did not do what was asked. A command that ran and exits
    with another code than 0 is none."""
    GUIDANCE = "guidance"
    """The turn right after an observer's words."""


DEFAULT_MASKS = frozenset({Mask.FAULTY})


class LossDecision(NamedTuple):
    """Whether an entry is under loss, and why, or why not."""

    train: bool
    reason: Reason


_OTHERS = {
    EntryKind.SYSTEM: Reason.SYSTEM,
    EntryKind.QUERY: Reason.USER,
    EntryKind.COMMENT: Reason.USER,
    EntryKind.OBSERVATION: Reason.OBSERVATION,
    EntryKind.GUIDANCE: Reason.GUIDANCE,
}


def marks(
    entries: Sequence[Entry],
    accepted: Mapping[int, int],
    masks: frozenset[Mask] = DEFAULT_MASKS,
    refinements: Refinements = "mask",
) -> list[LossDecision]:
    """The mark of every entry. `accepted` is the stage's position to the attempt that was accepted.

    A turn has one reason, the first that applies: rejected round, fault, tool error, guidance. The turns of a stage
    that no attempt of was accepted are all of rejected rounds.
    """
    failed = {entry.step for entry in entries if entry.kind is EntryKind.OBSERVATION and entry.error}
    out: list[LossDecision] = []
    before: EntryKind | None = None
    for entry in entries:
        if entry.kind is not EntryKind.TURN:
            out.append(LossDecision(False, _OTHERS[entry.kind]))
        elif refinements != "keep" and entry.attempt != accepted.get(entry.position):
            out.append(LossDecision(False, Reason.REFINEMENT))
        elif Mask.FAULTY in masks and entry.error:
            out.append(LossDecision(False, Reason.FAULTY))
        elif Mask.TOOL_ERRORS in masks and entry.step in failed:
            out.append(LossDecision(False, Reason.TOOL_ERROR))
        elif Mask.GUIDANCE in masks and before is EntryKind.GUIDANCE:
            out.append(LossDecision(False, Reason.GUIDED))
        else:
            out.append(LossDecision(True, Reason.TURN))
        before = entry.kind
    return out


def refined(entries: Sequence[Entry], accepted: Mapping[int, int]) -> bool:
    """Whether anything is told of a round that was not the accepted one of its stage; ``--refinements drop`` looks for
    that. `accepted` as in `marks`."""
    return any(entry.attempt != accepted.get(entry.position) for entry in entries if entry.kind is not EntryKind.SYSTEM)
