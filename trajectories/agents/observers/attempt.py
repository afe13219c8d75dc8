"""The observer of one attempt: what a kind makes, behind the boundary to anybody's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trajectories.agents.observers.failures import observer_errors
from trajectories.agents.scaffolds.scaffold import Advice, ObservedAttempt, Observer, ObserverKind
from trajectories.model import Entry


@dataclass(frozen=True)
class AttemptObserver:
    """An observer of the kind (`Observer`); its advice is stored with its name, and its errors name it."""

    kind: ObserverKind
    attempt: ObservedAttempt
    _observer: Observer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        with observer_errors(self.kind.name):
            object.__setattr__(self, "_observer", self.kind.observe(self.attempt))

    def __call__(self, entries: Sequence[Entry]) -> Advice | None:
        """See `Observer`."""
        with observer_errors(self.kind.name):
            advice = self._observer(entries)
            return advice and replace(advice, details={"observer": self.kind.name, **advice.details})


def observers_under(observers: Sequence[Observer], subject: str) -> list[Observer]:
    """The observers anew, with their questions under another subject of the ledger: two continuations of one
    conversation may ask the same, and each has an answer of its own. A plain callable stays as it is."""
    return [
        AttemptObserver(it.kind, replace(it.attempt, subject=subject)) if isinstance(it, AttemptObserver) else it
        for it in observers
    ]
