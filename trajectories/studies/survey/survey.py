"""What is stored of a sample's proofs, as one value: how far each landing came, and the shares with their intervals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from chains.draw import PERIODS, Draw, DrawnLanding, period_of
from environments.proofs.proof import EARLIER_BROKEN, NO_F2P, REFERENCE_FAILS
from environments.proofs.reference_runs import AFTER, BEFORE
from prchain.core.endings import cause_of
from prchain.core.errors import BuildFailed
from prchain.core.runs import UnitResult
from prchain.core.shares import wilson
from sql.outcomes import PROVED
from sql.store import Transaction
from sql.tables import BuiltImage, ReferenceRun, StageTests, Validation

RAN = frozenset({PROVED, NO_F2P, REFERENCE_FAILS, EARLIER_BROKEN})
"""Outcomes of stages whose tests gave results on both sides."""

BUILD_FAILED = BuildFailed("").name

_STEP = re.compile(r"the step ([\w .-]{1,40}?) failed\b")
"""How `BuildFailed` names the step of a recipe."""


@dataclass(frozen=True, slots=True)
class SurveyedLanding:
    """How far one landing came. `outcome` is that of its proof; None where it has not ended."""

    repository: str
    number: int
    landed_at: str
    period: str
    language: str
    subject: str
    chain_id: str
    outcome: str | None = None
    built: bool = False
    """Whether there was an environment: an image, or a recipe where no image is needed."""
    ran: bool = False
    """Whether its tests gave results before and after."""
    cause: str | None = None
    """Why it was not proved: the first cause alone. Of one that has not ended, what ended the work on it."""
    image: str | None = None
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        return self.outcome == PROVED

    @property
    def failed_at(self) -> str:
        """Its outcome; of a build the step, too."""
        step = _STEP.match(self.cause or "") if self.outcome == BUILD_FAILED else None
        return f"{self.outcome}: {step[1]}" if step else str(self.outcome)


@dataclass(frozen=True, slots=True)
class SurveyedShare:
    """A part of the landings that ended, with its 95 % Wilson interval; nulls where none ended."""

    count: int
    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, count: int, total: int) -> SurveyedShare:
        """The share of `count` in `total`."""
        if not total:
            return cls(count, None, None, None)
        low, high = wilson(count, total)
        return cls(count, count / total, max(0.0, low), min(1.0, high))  # rounding may pass both ends


@dataclass(frozen=True, slots=True)
class SurveyedGroup:
    """The shares of some of the landings."""

    name: str
    drawn: int
    ended: int
    built: SurveyedShare
    ran: SurveyedShare
    proved: SurveyedShare

    @classmethod
    def of(cls, name: str, landings: Sequence[SurveyedLanding]) -> SurveyedGroup:
        """The group of these landings."""
        ended = [it for it in landings if it.outcome is not None]
        counts = (sum(it.built for it in ended), sum(it.ran for it in ended), sum(it.proved for it in ended))
        return cls(name, len(landings), len(ended), *(SurveyedShare.of(count, len(ended)) for count in counts))


@dataclass(frozen=True, slots=True)
class FirstCause:
    """How many landings were not proved for one kind of reason."""

    name: str
    share: SurveyedShare


@dataclass(frozen=True, slots=True)
class Took:
    """What the sample took."""

    seconds: float
    """Of wall time, all landings one after the other: builds, test runs, and what is between."""
    images: int
    image_seconds: float
    """Of the builds of these images."""
    failed_build_seconds: float
    """Of the landings whose build failed."""
    shared: int
    """Landings that found the image of another one."""
    runs: int
    run_seconds: float
    images_there: int | None = None
    """Of the images, those that the engine has; None where it was not asked, or does not answer."""
    own_bytes: int | None = None
    """What these take beyond other images."""
    all_bytes: int | None = None
    """What they would take if they shared nothing."""


@dataclass(frozen=True, slots=True)
class SurveyReport:
    """What `prchain environments survey` prints."""

    repositories: tuple[str, ...]
    seed: int
    wanted: int
    """The size of the sample that was asked for."""
    backend: str
    landed: int
    left_out: Mapping[str, int]
    """Of the landings that were looked at, why some are not in the sample: outcome to number."""
    all: SurveyedGroup
    by_period: tuple[SurveyedGroup, ...]
    by_language: tuple[SurveyedGroup, ...]
    by_repository: tuple[SurveyedGroup, ...]
    causes: tuple[FirstCause, ...]
    took: Took
    landings: tuple[SurveyedLanding, ...]


def survey_report(
    tx: Transaction,
    draw: Draw,
    *,
    seed: int,
    wanted: int,
    backend: str,
    stopped: Iterable[UnitResult[Any]] = (),
    image_bytes: Mapping[str, tuple[int, int]] | None = None,
) -> SurveyReport:
    """The report of a sample, from the rows of its chains. `stopped` are those that a run could not end; `image_bytes`
    is image to what it takes alone and as a whole, None where no engine says so."""
    landings = _landings(tx, draw.landings, backend, stopped)
    ended = [it for it in landings if it.outcome is not None]
    kinds = Counter(it.failed_at for it in ended if not it.proved)
    periods = _groups(landings, lambda it: it.period)
    return SurveyReport(
        draw.repositories,
        seed,
        wanted,
        backend,
        draw.landed,
        draw.left_out,
        SurveyedGroup.of("all", landings),
        tuple(sorted(periods, key=lambda group: PERIODS.index(group.name))),
        _groups(landings, lambda it: it.language),
        _groups(landings, lambda it: it.repository),
        tuple(
            FirstCause(name, SurveyedShare.of(kinds[name], len(ended)))
            for name in sorted(kinds, key=lambda it: (-kinds[it], it))
        ),
        _took(tx, ended, image_bytes),
        landings,
    )


def _groups(landings: Sequence[SurveyedLanding], key: Callable[[SurveyedLanding], str]) -> tuple[SurveyedGroup, ...]:
    names = sorted({key(it) for it in landings})
    return tuple(SurveyedGroup.of(name, [it for it in landings if key(it) == name]) for name in names)


def _landings(
    tx: Transaction, drawn: Sequence[DrawnLanding], backend: str, stopped: Iterable[UnitResult[Any]]
) -> tuple[SurveyedLanding, ...]:
    ids = [it.chain_id for it in drawn]
    proofs = {
        chain: (outcome, reason)
        for chain, outcome, reason in tx.connection.execute(
            select(Validation.chain_id, Validation.outcome, Validation.reason).where(
                Validation.chain_id.in_(ids), Validation.backend == backend
            )
        )
    }
    columns = (StageTests.chain_id, StageTests.outcome, StageTests.recipe, StageTests.image, StageTests.seconds)
    stages = {
        chain: row
        for chain, *row in tx.connection.execute(select(*columns).where(StageTests.chain_id.in_(proofs.keys())))
    }
    unended = {result.unit.key: f"{result.outcome}: {result.reason}" for result in stopped}
    return tuple(_landing(it, proofs.get(it.chain_id), stages.get(it.chain_id), unended) for it in drawn)


def _landing(
    it: DrawnLanding,
    proof: tuple[str, str | None] | None,
    stage: Sequence[Any] | None,
    unended: Mapping[str, str],
) -> SurveyedLanding:
    outcome, reason = proof if proof else (None, unended.get(it.chain_id))
    stage_outcome, recipe, image, seconds = stage if stage else (None, None, None, 0.0)
    return SurveyedLanding(
        it.repository,
        it.number,
        it.landed_at,
        period_of(it.landed_at),
        it.language or "unknown",
        it.subject,
        it.chain_id,
        outcome,
        recipe is not None,
        stage_outcome in RAN,
        None if outcome == PROVED else first_cause(reason),
        image,
        seconds,
    )


def first_cause(reason: str | None) -> str | None:
    """Of a stored reason the first of its lines, without the place."""
    cause = cause_of(reason)
    return None if cause is None else cause.partition(" | ")[0]


def _took(tx: Transaction, ended: Sequence[SurveyedLanding], image_bytes: Mapping[str, tuple[int, int]] | None) -> Took:
    with_image = [it.image for it in ended if it.image is not None]
    images = set(with_image)
    known = tx.connection.execute(select(BuiltImage.seconds).where(BuiltImage.name.in_(images))).scalars()
    of_chains = (ReferenceRun.chain_id.in_([it.chain_id for it in ended]), ReferenceRun.side.in_((BEFORE, AFTER)))
    runs, run_seconds = tx.connection.execute(
        select(func.count(), func.coalesce(func.sum(ReferenceRun.seconds), 0.0)).where(*of_chains)
    ).one()
    there = None if image_bytes is None else [image_bytes[name] for name in images if name in image_bytes]
    return Took(
        sum(it.seconds for it in ended),
        len(images),
        sum(known),
        sum(it.seconds for it in ended if it.outcome == BUILD_FAILED),
        len(with_image) - len(images),
        runs,
        float(run_seconds),
        None if there is None else len(there),
        None if there is None else sum(own for own, _ in there),
        None if there is None else sum(whole for _, whole in there),
    )
