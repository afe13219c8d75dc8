"""Turns that claim that tests pass where the last run that the agent saw says otherwise, or where there was none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trajectories.agents.shell.programs import bash_command
from trajectories.agents.steps.conversation import steps_of
from trajectories.audit.claims import PassingClaim, passing_claim
from trajectories.audit.seen_tests import SeenTests, seen_tests
from trajectories.model import Entry, EntryKind

_TOLD = frozenset({EntryKind.QUERY, EntryKind.COMMENT, EntryKind.GUIDANCE})
_NOTHING_SEEN = frozenset({SeenTests.NO_RUN, SeenTests.NOTHING_RAN, SeenTests.NOT_ENDED})


class UnfoundedClaim(NamedTuple):
    """A turn that says more of tests than it saw."""

    position: int
    """The stage."""
    step: int
    quote: str
    """The sentence."""
    seen: SeenTests
    """What the agent had seen in this attempt."""


def unfounded_claims(entries: Iterable[Entry]) -> Iterator[UnfoundedClaim]:
    """The turns of a conversation whose text claims that tests pass, while in the same attempt none were run, or the
    last run found none, was ended or failed.

    A run that found none takes nothing from one that passed. Where tests failed, a claim about a few of them is none,
    and where a script of the agent's ran after that, only one about the project's tests is. An agent that was told that
    tests pass may say so. Pure, raises nothing, and takes time linear in the conversation.
    """
    given = list(entries)
    told = {(it.position, it.attempt) for it in given if it.kind in _TOLD and passing_claim(it.content) is not None}
    seen, script = SeenTests.NO_RUN, False
    attempt: tuple[int, int] | None = None
    for step in steps_of(given):
        turn = step.turn
        if attempt != (turn.position, turn.attempt):
            attempt, script = (turn.position, turn.attempt), False
            seen = SeenTests.UNKNOWN if attempt in told else SeenTests.NO_RUN
        claim = passing_claim(turn.content)
        if claim is not None and _is_unfounded(claim, seen, script=script):
            yield UnfoundedClaim(turn.position, step.number, claim.quote, seen)
        for call, arguments, observation in step.calls:
            command = bash_command(call, arguments, observation)
            if command is None or observation is None:
                continue
            shown = seen_tests(command, observation)
            if shown is SeenTests.SCRIPT:
                script = True
            elif shown is not None and not (seen is SeenTests.PASSED and shown in _NOTHING_SEEN):
                seen, script = shown, False


def _is_unfounded(claim: PassingClaim, seen: SeenTests, *, script: bool) -> bool:
    if script and not claim.of_the_project:
        return False
    return seen in _NOTHING_SEEN or (seen is SeenTests.FAILED and not claim.of_a_few)
