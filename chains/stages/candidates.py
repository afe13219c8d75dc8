"""Which landed pull requests may be stages. Their patches are read once, and what later steps need of them is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chains.edges.footprints import PatchFootprint, footprint_of
from chains.edges.patches import read_patches
from chains.edges.reversals import Reversals
from chains.history import LandedPullRequest, MinedRepository
from chains.stages.benchmarks import Benchmarks
from chains.stages.filters import Filters, PullFacts, drop
from chains.stages.licence import is_licence_name, licence_of
from chains.stages.normalized import may_be_annotation_only, same_normalized
from chains.stages.worth import StageWorth, judge_worth
from prchain.core.code.inline_tests import changes_inline_tests_only, may_be_inline_tests
from prchain.core.code.reference import Reference, split
from prchain.core.errors import GitError
from prchain.core.git import GitRepository


@dataclass(frozen=True, slots=True)
class PatchSize:
    """The size of a reference patch; lines are added and removed lines that are not blank."""

    source_files: int
    source_lines: int
    test_files: int
    test_lines: int
    language: str | None

    @classmethod
    def of(cls, reference: Reference) -> PatchSize:
        """The size of a reference patch."""
        return cls(
            len(reference.code), reference.source_lines, len(reference.test), reference.test_lines, reference.language
        )


@dataclass(slots=True)
class Examination:
    """The results of examining pull requests, by number."""

    sizes: dict[int, PatchSize] = field(default_factory=dict)
    """Of the pull requests that may be stages."""
    worths: dict[int, StageWorth] = field(default_factory=dict)
    """Of the same."""
    footprints: dict[int, PatchFootprint] = field(default_factory=dict)
    """Of all pull requests whose patch can be read; empty unless footprints were requested."""
    dropped: dict[int, tuple[str, str]] = field(default_factory=dict)
    """(outcome, reason) of the pull requests that may not be stages."""
    licences: Mapping[int, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Examiner:
    """Examines the pull requests of one repository with one set of filters."""

    mined: MinedRepository
    repository: GitRepository
    filters: Filters
    benchmarks: Benchmarks
    text_lengths: Mapping[int, int]
    """Characters of each pull request's texts besides its subject."""
    advance: Callable[[], None]
    """Called for each patch that was read."""

    def examine(
        self,
        pulls: Sequence[LandedPullRequest],
        *,
        reversals: Reversals,
        backports: Mapping[int, int],
        with_footprints: bool,
    ) -> Examination:
        """Apply the filters to each of `pulls`; `with_footprints` keeps the footprints of their patches.

        `backports` maps each backport to the landed pull request that it repeats. Patches in a benchmark, or under a
        licence that is not allowed, are not read.
        """
        examination = Examination(licences=licences_of(self.repository, pulls))
        known = {facts.number: facts for facts in map(self._before_reading(examination, reversals, backports), pulls)}
        readable = []
        for landed in pulls:
            verdict = drop(known[landed.number], self.filters)
            if verdict and verdict[0] in _WITHOUT_PATCH:
                examination.dropped[landed.number] = verdict
            else:
                readable.append(landed)
        for landed, patch in read_patches(self.repository, readable):
            self.advance()
            reference = split(patch) if patch is not None else None
            same = reference is not None and self._same_normalized(landed, reference)
            worth = judge_worth(reference, landed.headline) if reference is not None and reference.code else None
            facts = replace(
                known[landed.number],
                reference=reference,
                same_normalized=same,
                worth=worth,
                only_inline_tests=reference is not None and self._only_inline_tests(landed, reference),
            )
            verdict = drop(facts, self.filters)
            if verdict:
                examination.dropped[landed.number] = verdict
            elif reference is not None:
                examination.sizes[landed.number] = PatchSize.of(reference)
                if worth is not None:
                    examination.worths[landed.number] = worth
            if with_footprints and patch is not None:
                examination.footprints[landed.number] = footprint_of(patch)
        return examination

    def _same_normalized(self, landed: LandedPullRequest, reference: Reference) -> bool:
        if not reference.code or not may_be_annotation_only(reference.code):
            return False
        try:
            return all(
                same_normalized(
                    self._text(landed.base_sha, file.old_path or file.path), self._text(landed.landed_sha, file.path)
                )
                for file in reference.code
            )
        except GitError:  # added or deleted: one side is not there
            return False

    def _only_inline_tests(self, landed: LandedPullRequest, reference: Reference) -> bool:
        return may_be_inline_tests(reference.code) and all(
            changes_inline_tests_only(
                file,
                "" if file.status == "A" else self._text(landed.base_sha, file.old_path or file.path),
                "" if file.status == "D" else self._text(landed.landed_sha, file.path),
            )
            for file in reference.code
        )

    def _text(self, commit: str, path: str) -> str:
        return self.repository.blob(f"{commit}:{path}").decode("utf-8", "replace")

    def _before_reading(
        self, examination: Examination, reversals: Reversals, backports: Mapping[int, int]
    ) -> Callable[[LandedPullRequest], PullFacts]:
        benchmark = self.benchmarks.repository(self.mined.full_name)

        def facts(landed: LandedPullRequest) -> PullFacts:
            number = landed.number
            return PullFacts(
                number=number,
                subject=landed.headline,
                reference=None,
                by_bot=landed.by_bot,
                text_length=self.text_lengths.get(number, 0),
                reverts=reversals.reverts.get(number),
                reverted_by=reversals.reverted.get(number),
                backport_of=backports.get(number),
                licence=examination.licences.get(number),
                benchmark=benchmark,
                missing_files=landed.missing_files,
                benchmark_instance=self.benchmarks.contains(self.mined.full_name, number),
            )

        return facts


_WITHOUT_PATCH = frozenset({"benchmark_repository", "benchmark_instance", "licence_unknown", "licence"})


def footprints_of(repository: GitRepository, pulls: Sequence[LandedPullRequest]) -> dict[int, PatchFootprint]:
    """The footprints of the pull requests whose patches can be read."""
    return {
        landed.number: footprint_of(patch) for landed, patch in read_patches(repository, pulls) if patch is not None
    }


def licences_of(repository: GitRepository, pulls: Collection[LandedPullRequest]) -> dict[int, str | None]:
    """The licence of each pull request's base; bases with the same licence files are read once."""
    known: dict[tuple[tuple[str, str], ...], str | None] = {}
    found: dict[int, str | None] = {}
    ordered = sorted(pulls, key=lambda landed: landed.number)
    for landed, entries in zip(ordered, repository.root_entries(landed.base_sha for landed in ordered), strict=True):
        files = tuple(entry for entry in entries if is_licence_name(entry[0]))
        if files not in known:
            known[files] = licence_of(repository, landed.base_sha) if files else None
        found[landed.number] = known[files]
    return found
