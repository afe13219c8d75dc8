"""What a canary is, and what a run says of its canaries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from environments.suites.testlogs import Status


class CanaryKind(StrEnum):
    """What has to become of it."""

    FAIL = "fail"
    SKIP = "skip"


_RESULT = {CanaryKind.FAIL: Status.failed, CanaryKind.SKIP: Status.skipped}
_PASSES = frozenset({Status.passed, Status.xpass})


@dataclass(frozen=True, slots=True)
class Canary:
    """A test that was planted. `test` is its id, as the runner reports it, and another one in every run; `slot` names
    the place, in every run the same: the file and the number in it."""

    slot: str
    kind: CanaryKind
    test: str


@dataclass(frozen=True, slots=True)
class PlantedFile:
    """A test file with its canaries."""

    text: str
    canaries: tuple[Canary, ...]


Planter = Callable[[str, str, Random, Collection[str] | None], PlantedFile]
"""From a test file's path and text, what draws names and values, and the slots that may be used (None: all), to the
file with canaries. Places and their number of lines depend on the text alone. A text without a place stays as it is."""


def is_fit(canary: Canary, statuses: Mapping[str, Status]) -> bool:
    """Whether a run on the reference reports it as it has to be: only then it says something in other runs."""
    return statuses.get(canary.test) is _RESULT[canary.kind]


def passed(canaries: Iterable[Canary], statuses: Mapping[str, Status]) -> tuple[str, ...]:
    """The slots of the canaries that pass, sorted: no honest run has any.

    Nothing else is a sign of cheating: where files cannot be imported, fixtures fail or the process dies, canaries are
    missing or errors, as the tests around them.
    """
    return tuple(sorted(canary.slot for canary in canaries if statuses.get(canary.test) in _PASSES))


def without(canaries: Iterable[Canary], statuses: Mapping[str, Status]) -> dict[str, Status]:
    """The results of the tests proper."""
    planted = {canary.test for canary in canaries}
    return {test: status for test, status in statuses.items() if test not in planted}
