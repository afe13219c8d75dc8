"""What is another where a stage of ours comes back: its tests, and the verdicts on the same work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from environments.proofs.proof import file_of
from environments.proofs.proof_rows import StageProof
from environments.suites.outcomes import Grade

Verdicts = Mapping[str, Grade | str]
"""Name of a work to its grade, or to why there is none."""


@dataclass(frozen=True, slots=True)
class ReturnedStage:
    """A stage of ours in one publisher's columns."""

    repository: str
    number: int
    columns: str
    chain: str
    graded: bool
    """Whether it was proved and graded itself: one of several with the same trees, image and command is for all."""
    tests: tuple[str, ...] = ()
    """How its tests differ from ours; why there are none, where it was not imported or not proved."""
    verdicts: tuple[str, ...] = ()
    listed: str = ""
    """How the proof differs from the lists of its row; empty where it does not."""


def differing_tests(ours: StageProof, theirs: StageProof) -> list[str]:
    """Tests in another class than before: F2P and P2P, of files that both proofs ran."""
    if theirs.outcome != ours.outcome:
        return [f"{ours.outcome}, then {theirs.outcome}: {theirs.reason}"]
    shared = {*ours.files} & {*theirs.files}
    first, second = (dict(_classes(proof, shared)) for proof in (ours, theirs))
    found = []
    for test in sorted(first.keys() | second.keys()):
        if first.get(test) != second.get(test):
            found.append(f"{test}: {first.get(test, 'none')}, then {second.get(test, 'none')}")
    return found


def files_apart(ours: StageProof, theirs: StageProof) -> str:
    """The test files that one proof alone ran, in words; a later stage of a chain runs those of earlier ones, too."""
    parts = [
        f"{name} alone: {', '.join(sorted(files))}"
        for name, files in (("ours", {*ours.files} - {*theirs.files}), ("theirs", {*theirs.files} - {*ours.files}))
        if files
    ]
    return "; ".join(parts)


def differing_verdicts(ours: Verdicts, theirs: Verdicts, proofs: tuple[StageProof, StageProof]) -> list[str]:
    """Works with another verdict: by its outcome, and by the tests that it names, of files that both proofs ran."""
    shared = {*proofs[0].files} & {*proofs[1].files}
    found = []
    for work in ours:
        first, second = (
            _plain(verdicts.get(work, "not graded"), proof, shared)
            for verdicts, proof in zip((ours, theirs), proofs, strict=True)
        )
        if first != second:
            found.append(f"{work}: {_words(first)}, then {_words(second)}")
    return found


def table(returned: Iterable[ReturnedStage], graded_columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows by repository and columns: stages, those graded themselves, with the same tests, and the same verdicts."""
    cells: dict[tuple[str, str], list[ReturnedStage]] = {}
    for stage in returned:
        for repository in (stage.repository, "all"):
            cells.setdefault((repository, stage.columns), []).append(stage)
    order = {name: place for place, name in enumerate(graded_columns)}
    for (repository, columns), stages in sorted(
        cells.items(), key=lambda it: (it[0][0] == "all", it[0][0], order.get(it[0][1], len(order)))
    ):
        yield (
            repository,
            columns,
            len(stages),
            sum(stage.graded for stage in stages),
            sum(not stage.tests for stage in stages),
            sum(not stage.verdicts for stage in stages),
            sum(not stage.listed for stage in stages),
        )


def _classes(proof: StageProof, files: Collection[str]) -> Iterator[tuple[str, str]]:
    for kind in ("f2p", "p2p"):
        for test in _of_files(getattr(proof.classes, kind), proof, files):
            yield test, kind


def _of_files(tests: Iterable[str], proof: StageProof, files: Collection[str]) -> tuple[str, ...]:
    """Those tests that are of these files, or of none."""
    return tuple(
        test for test in tests if (file := file_of(proof.runner or "", test, proof.files)) is None or file in files
    )


def _plain(grade: Grade | str, proof: StageProof, files: Collection[str]) -> tuple[Any, ...]:
    if isinstance(grade, str):
        return (grade,)
    named = (grade.f2p_failed, (*grade.p2p_broken, *grade.carried_failure))
    return grade.outcome, *(_of_files(tests, proof, files) for tests in named), grade.cheats


def _words(plain: tuple[Any, ...]) -> str:
    outcome, *lists = plain
    return f"{outcome} ({', '.join(str(len(tests)) for tests in lists)})" if lists else str(outcome)
