"""Which turns are under loss: pure, from a trajectory's entries and its accepted attempts.

Only the model's turns can be under loss. Masked are the turns of rejected rounds (masked and not cut, because later
turns build on their edits), faulty turns, and on request turns whose tool or command failed, as SWE-Lego does
(arXiv:2601.01426, step-level error masking), turns that claim more of tests than was seen, and turns that an observer
prompted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from prchain.core.llm.model import ToolCall
from trajectories.agents.shell.failures import call_failed
from trajectories.audit.unfounded import unfounded_claims
from trajectories.model import Entry, EntryKind, Reason

Refinements = Literal["mask", "keep", "drop"]
"""Rejected rounds: masked, under loss like others, or their sample is left out (`refined`)."""


class Mask(StrEnum):
    """A kind of turn that an option masks; rejected rounds have an option of their own."""

    FAULTY = "faulty"
    """Malformed, empty, refused or cut off (`trajectories.model.TurnFault`)."""
    TOOL_ERRORS = "tool_errors"
    """An observation of the turn carries an error: the tool did not do what was asked. A command that ran and exited
    with another code than 0 is no such error."""
    COMMAND_ERRORS = "command_errors"
    """A bash command of the turn failed, or one that its pipeline hid (`trajectories.agents.shell.failures`). Tests
    that ran and failed are no such error, and neither are codes that are answers, as 1 of ``grep``. With `TOOL_ERRORS`
    these are SWE-Lego's turns whose observation is an error."""
    UNFOUNDED_CLAIMS = "unfounded_claims"
    """The turn says that tests pass, and what the agent saw in this attempt says otherwise, or it saw nothing: the
    audit's sign of the same name (`trajectories.audit.unfounded`)."""
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


def loss_decisions(
    entries: Sequence[Entry],
    accepted: Mapping[int, int],
    masks: frozenset[Mask] = DEFAULT_MASKS,
    refinements: Refinements = "mask",
    ungrounded: Collection[int] = frozenset(),
) -> list[LossDecision]:
    """The decision on every entry. `accepted` maps a stage's position to its accepted attempt; `ungrounded` are steps
    that rest on an observer's words alone (`trajectories.export.grounded`).

    A turn has one reason, the first that applies: rejected round, fault, tool error, command error, unfounded claim,
    guidance. If no attempt of a stage was accepted, all its turns are of rejected rounds. What the document of an
    import says of a turn stands in place of the first two.
    """
    command_failed = _steps_of_failed_commands(entries) if Mask.COMMAND_ERRORS in masks else frozenset()
    unfounded: Collection[int] = ()
    if Mask.UNFOUNDED_CLAIMS in masks:
        unfounded = {claim.step for claim in unfounded_claims(entries)}
    failed = {entry.step for entry in entries if entry.kind is EntryKind.OBSERVATION and entry.error}
    decisions: list[LossDecision] = []
    previous: EntryKind | None = None
    for entry in entries:
        told = entry.details.get("loss")
        if entry.kind is not EntryKind.TURN:
            decisions.append(LossDecision(False, _OTHERS[entry.kind]))
        elif told is not None and not told["train"]:
            decisions.append(LossDecision(False, Reason(told["reason"])))
        elif told is None and refinements != "keep" and entry.attempt != accepted.get(entry.position):
            decisions.append(LossDecision(False, Reason.REFINEMENT))
        elif told is None and Mask.FAULTY in masks and entry.error:
            decisions.append(LossDecision(False, Reason.FAULTY))
        elif Mask.TOOL_ERRORS in masks and entry.step in failed:
            decisions.append(LossDecision(False, Reason.TOOL_ERROR))
        elif entry.step in command_failed:
            decisions.append(LossDecision(False, Reason.COMMAND_ERROR))
        elif entry.step in unfounded:
            decisions.append(LossDecision(False, Reason.UNFOUNDED_CLAIM))
        elif entry.step in ungrounded or (Mask.GUIDANCE in masks and previous is EntryKind.GUIDANCE):
            decisions.append(LossDecision(False, Reason.GUIDED))
        else:
            decisions.append(LossDecision(True, Reason.TURN))
        previous = entry.kind
    return decisions


def _steps_of_failed_commands(entries: Sequence[Entry]) -> frozenset[int]:
    steps: set[int] = set()
    calls: dict[str | None, ToolCall] = {}
    for entry in entries:
        if entry.kind is EntryKind.TURN:
            calls = {call.id: call for call in entry.tool_calls}
        elif entry.kind is EntryKind.OBSERVATION:
            call = calls.get(entry.tool_call_id)
            if call is not None and call_failed(call, entry):
                steps.add(entry.step)
    return frozenset(steps)


def has_rejected_rounds(entries: Sequence[Entry], accepted: Mapping[int, int]) -> bool:
    """Whether the entries hold a round that was not accepted; ``--rejected drop`` leaves such samples out.
    `accepted` as in `loss_decisions`."""
    return any(entry.attempt != accepted.get(entry.position) for entry in entries if entry.kind is not EntryKind.SYSTEM)
