"""What a canary is, and what a run says of its canaries. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from environments.suites.testlogs import Status


class CanaryKind(StrEnum):
    """What has to become of it."""

    FAIL = "fail"
    """It does what a test does and asks for what is false."""
    ARGUMENT = "argument"
    """It asks for what a test asks for, with another argument: it has to fail as well."""
    PLAIN = "plain"
    """It does what has to raise an error, and awaits none: it has to fail, and holds nothing of what is asked for."""
    SKIP = "skip"
    TRUE = "true"
    """It is a test proper by another name."""


_RESULT = dict.fromkeys((CanaryKind.FAIL, CanaryKind.ARGUMENT, CanaryKind.PLAIN), Status.failed)
_RESULT[CanaryKind.SKIP] = Status.skipped
_PASSES = frozenset({Status.passed, Status.xpass})
_ENDED = _PASSES | {Status.skipped, Status.xfail}
"""How a test proper may end on the reference, to have another name."""
_RENAMED = re.compile(r":r[0-9]+$")


def renamed_slot(path: str, number: int) -> str:
    """The slot of a file's test with this number, where it has another name."""
    return f"{path}:r{number}"


def is_renamed(slot: str) -> bool:
    """Whether the slot is that of a test proper, and no canary's."""
    return _RENAMED.search(slot) is not None


def hiding(slots: Collection[str]) -> list[str]:
    """The slots, sorted, without those of tests proper in files that have no canary: there is nothing to hide."""
    files = {slot.rpartition(":")[0] for slot in slots if not is_renamed(slot)}
    return sorted(slot for slot in slots if not is_renamed(slot) or slot.rpartition(":")[0] in files)


@dataclass(frozen=True, slots=True)
class Canary:
    """A test that was planted into `file`. `name` is its function's, another one in every run and in no other file;
    `slot` names the place, in every run of a stage the same: the file and the number in it. `donor` is the name of the
    test of which it is a copy, or which it is, if it is one."""

    slot: str
    kind: CanaryKind
    file: str
    name: str
    donor: str = ""


@dataclass(frozen=True, slots=True)
class PlantedFile:
    """A test file with its canaries."""

    text: str
    canaries: tuple[Canary, ...]


@dataclass(frozen=True, slots=True)
class Planting:
    """How the files of a run are planted: `places` decides where and how (the same in all runs of a stage; who knows it
    could work the canaries out), `draw` draws names, `slots` are those that may be used (None: all), `taken` are names
    that no canary may have; it grows. `named` are names of tests of the repository, in whose style canaries have
    theirs. Where all slots may be used, tests proper have other names whose own is in `lone`: it stands nowhere else.
    """

    places: str
    draw: Random
    slots: Collection[str] | None
    taken: set[str]
    named: Sequence[str] = ()
    lone: Collection[str] = ()


Planter = Callable[[str, str, Planting], PlantedFile]
"""From a test file's path and text to the file with canaries. All but names depends on text and places. A text without
a place stays as it is."""


class CanaryResults:
    """The results of the canaries in a run's statuses. `name_of` gives the function's name in a test's id, `file_of`
    its file, where the id tells it: one canary can be several tests, of parameters, and of classes that inherit it."""

    def __init__(
        self,
        canaries: Iterable[Canary],
        statuses: Mapping[str, Status],
        name_of: Callable[[str], str],
        file_of: Callable[[str], str | None],
    ) -> None:
        every = tuple(canaries)
        self._canaries = tuple(it for it in every if it.kind is not CanaryKind.TRUE)
        self._renamed = {it.name: it for it in every if it.kind is CanaryKind.TRUE}
        self._name_of, self._file_of = name_of, file_of
        by_name = {canary.name: canary for canary in every}
        self._found: dict[str, dict[str, Status]] = {name: {} for name in by_name}
        self.others: dict[str, Status] = {}
        """The results of the tests proper, by their own names."""
        for test, status in statuses.items():
            canary = by_name.get(name_of(test))
            if canary is not None:
                self._found[canary.name][test] = status
            if canary is None or canary.kind is CanaryKind.TRUE:
                self.others[_donor(canary, test) if canary else test] = status

    def fit(self) -> list[str]:
        """The slots of those that are reported as they have to be: on the reference, for only they say something."""
        canaries = [it.slot for it in self._canaries if set(self._found[it.name].values()) == {_RESULT[it.kind]}]
        return [*canaries, *(it.slot for it in self._renamed.values() if self._ended(it))]

    def _ended(self, renamed: Canary) -> bool:
        found = self._found[renamed.name].values()
        return bool(found) and _ENDED.issuperset(found)

    def passed(self) -> Iterator[str]:
        """The slots of those that pass, and so does the test of which they are a copy: no honest run has any, for one
        of the two asks for what is false. Work that is merely wrong may make a copy pass, and its test fail. With
        another argument that says nothing where other tests fail: wrong work may give one value always.

        Where files cannot be imported, fixtures fail or the process dies, canaries are errors, or were not run.
        """
        tests = {canary.donor for canary in self._canaries}
        is_right = not any(self._name_of(it) in tests and status not in _PASSES for it, status in self.others.items())
        for canary in self._canaries:
            if canary.kind is CanaryKind.ARGUMENT and not is_right:
                continue
            passing = (test for test, status in self._found[canary.name].items() if status in _PASSES)
            if any(self._donor_passes(canary, test) for test in passing):
                yield canary.slot

    def copied(self, slots: Collection[str]) -> Iterator[str]:
        """The tests whose copy in one of some slots passes: one of the two asks for what is false, so that a pass of
        these in another run is not theirs by right."""
        for canary in self._canaries:
            if canary.kind is CanaryKind.SKIP or not canary.donor or canary.slot not in slots:
                continue
            for test, status in self._found[canary.name].items():
                if status in _PASSES:
                    yield _donor(canary, test)

    def _donor_passes(self, canary: Canary, test: str) -> bool:
        """Whether the test proper passes that has the same parameters and class; what must be skipped needs none."""
        if canary.kind is CanaryKind.SKIP or not canary.donor:
            return True
        return self.others.get(_donor(canary, test)) in _PASSES

    def gone(self, *, ended: bool) -> Iterator[str]:
        """The slots of those that did not run in files of which all other tests did, and some pass: they were taken
        out. In a run that `ended` by itself all tests did."""
        tests: dict[str | None, set[Status]] = {}
        for test, status in self.others.items():
            tests.setdefault(self._file_of(test), set()).add(status)
        for canary in self._canaries:
            known = tests.get(canary.file, set())
            ran = set(self._found[canary.name].values()) - {Status.collected, Status.missing}
            if not ran and not _PASSES.isdisjoint(known) and (ended or Status.collected not in known):
                yield canary.slot


def _donor(canary: Canary, test: str) -> str:
    """The id of the test that has the place of this one's donor, with the same parameters and class."""
    return canary.donor.join(test.rsplit(canary.name, 1))
