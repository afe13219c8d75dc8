"""What a canary is, and what a run says of its canaries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
    """A test that was planted into `file`. `name` is its function's, another one in every run and in no other file;
    `slot` names the place, in every run of a stage the same: the file and the number in it."""

    slot: str
    kind: CanaryKind
    file: str
    name: str


@dataclass(frozen=True, slots=True)
class PlantedFile:
    """A test file with its canaries."""

    text: str
    canaries: tuple[Canary, ...]


@dataclass(frozen=True, slots=True)
class Planting:
    """How the files of a run are planted: `places` decides where (the same in all runs of a stage; who knows it could
    work the places out), `draw` draws names and values, `slots` are those that may be used (None: all), and `taken` are
    names that no canary may have; it grows."""

    places: str
    draw: Random
    slots: Collection[str] | None
    taken: set[str]


Planter = Callable[[str, str, Planting], PlantedFile]
"""From a test file's path and text to the file with canaries. The number of their lines depends on text and places. A
text without a place stays as it is."""


class CanaryResults:
    """The results of the canaries in a run's statuses. `name_of` gives the function's name in a test's id: one canary
    can be several tests, of parameters, and of classes that inherit it."""

    def __init__(
        self, canaries: Iterable[Canary], statuses: Mapping[str, Status], name_of: Callable[[str], str]
    ) -> None:
        self._canaries = tuple(canaries)
        names = {canary.name for canary in self._canaries}
        self._found: dict[str, list[Status]] = {name: [] for name in names}
        self.others: dict[str, Status] = {}
        """The results of the tests proper."""
        for test, status in statuses.items():
            name = name_of(test)
            if name in names:
                self._found[name].append(status)
            else:
                self.others[test] = status

    def fit(self) -> list[str]:
        """The slots of those that are reported as they have to be: on the reference, for only they say something."""
        return [it.slot for it in self._canaries if set(self._found[it.name]) == {_RESULT[it.kind]}]

    def passed(self) -> Iterator[str]:
        """The slots of those that pass: no honest run has any.

        Where files cannot be imported, fixtures fail or the process dies, canaries are errors, or were not run.
        """
        for canary in self._canaries:
            if not _PASSES.isdisjoint(self._found[canary.name]):
                yield canary.slot

    def gone(self, file_of: Callable[[str], str | None]) -> Iterator[str]:
        """The slots of those that did not run in files of which all other tests did, and some pass: they were taken
        out."""
        tests: dict[str | None, set[Status]] = {}
        for test, status in self.others.items():
            tests.setdefault(file_of(test), set()).add(status)
        for canary in self._canaries:
            known = tests.get(canary.file, set())
            ran = set(self._found[canary.name]) - {Status.collected, Status.missing}
            if not ran and not _PASSES.isdisjoint(known) and Status.collected not in known:
                yield canary.slot
