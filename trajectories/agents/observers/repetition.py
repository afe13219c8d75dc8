"""The observer ``repetition``: tells an agent that it repeats itself.

It speaks when the same call gave the same result a number of times within an attempt, and asks no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from trajectories.agents.scaffolds.scaffold import Advice, ObservedAttempt, Observer
from trajectories.model import Entry, EntryKind

_LONGEST_CALL = 200
"""Characters of a call in the guidance."""

_Outcome = tuple[str, str, str]
"""A tool's name, a call's arguments, and its result."""


class Repetition(BaseModel):
    """The kind; satisfies `trajectories.agents.scaffolds.scaffold.ObserverKind`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str] = "repetition"
    version: ClassVar[str] = "1"
    prompts: ClassVar[Mapping[str, str]] = {}
    purposes: ClassVar[tuple[str, ...]] = ()

    times: int = Field(default=3, ge=2)
    """After so many equal results it speaks, and again after as many more."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `ObserverKind`."""
        return {"times": self.times}

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        """See `ObserverKind`: none."""
        return {}

    def observe(self, attempt: ObservedAttempt) -> Observer:
        """See `ObserverKind`."""
        place = (attempt.position, attempt.attempt)

        def advise(entries: Sequence[Entry]) -> Advice | None:
            own = [entry for entry in entries if (entry.position, entry.attempt) == place]
            return self._advice(own)

        return advise

    def _advice(self, entries: Sequence[Entry]) -> Advice | None:
        steps: dict[_Outcome, list[int]] = {}
        for step, outcome in _outcomes(entries):
            steps.setdefault(outcome, []).append(step)
        last = entries[-1].step if entries else 0
        for (tool, arguments, _), at_steps in steps.items():
            if at_steps[-1] == last and len(at_steps) % self.times == 0:
                call = f"{tool} {arguments}"[:_LONGEST_CALL]
                words = (
                    f"You have made this call {len(at_steps)} times, and each time it gave the same result: {call}\n"
                    "Making it once more will not change that. Go by what it has shown, or try something else."
                )
                return Advice(words, details={"call": call, "times": len(at_steps), "steps": at_steps})
        return None


def _outcomes(entries: Sequence[Entry]) -> list[tuple[int, _Outcome]]:
    """The calls of a conversation with their results, each with its step."""
    arguments: dict[tuple[int, str], str] = {}
    outcomes = []
    for entry in entries:
        if entry.kind is EntryKind.TURN:
            arguments |= {(entry.step, call.id): call.arguments for call in entry.tool_calls}
        elif entry.kind is EntryKind.OBSERVATION and entry.tool_call_id is not None:
            call_arguments = arguments.get((entry.step, entry.tool_call_id), "")
            outcomes.append((entry.step, (entry.tool_name or "", call_arguments, entry.content)))
    return outcomes
