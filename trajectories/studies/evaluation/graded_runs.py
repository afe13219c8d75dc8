"""The runs of an evaluation, from predictions of others that our suites graded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from environments.checkouts.carry import Carry
from environments.suites.outcomes import (
    CARRIED_FAILURE,
    EARLIER_BROKEN,
    F2P_FAILED,
    P2P_BROKEN,
    PASSED,
    STATE_BROKEN,
    TAMPERED,
)
from prchain.core.runs import RunResult
from trajectories.outcomes import OF_THE_AGENT
from trajectories.studies.evaluation.figures import InstanceRun
from trajectories.studies.evaluation.grading import PATCH_EMPTY, PATCH_FAILED, PatchUnit
from trajectories.studies.evaluation.predictions_of_others import Prediction
from trajectories.studies.evaluation.stored import EvaluatedRun, InstanceFacts

NOT_GRADED = "not_graded"
"""The run ended before it came to the patch."""

OF_THE_PATCH = OF_THE_AGENT | {
    CARRIED_FAILURE,
    EARLIER_BROKEN,
    F2P_FAILED,
    P2P_BROKEN,
    PASSED,
    PATCH_EMPTY,
    PATCH_FAILED,
    STATE_BROKEN,
    TAMPERED,
}
"""Outcomes that say what a patch is worth; of the others it is not the model's fault."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Predictions with the stages that they are for."""

    predictions: tuple[tuple[Prediction, InstanceFacts], ...]
    """An instance that two data sets publish is two."""
    unknown: tuple[Prediction, ...]
    """Those that no task of the set is called so."""

    @property
    def units(self) -> list[PatchUnit]:
        """What has to be graded."""
        return [_unit(*pair) for pair in self.predictions]


@dataclass(frozen=True, slots=True)
class GradedReport:
    """What became of the rows of a file."""

    predictions: int
    bad: int
    """Rows that hold no prediction."""
    unknown: int
    """Predictions of instances that are not among the tasks."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Of the graded ones, and why others were not."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Model to instances of the tasks that it has no prediction of; those alone with some."""
    left: int = 0
    stopped: str | None = None

    @property
    def done(self) -> bool:
        """Whether every row was graded."""
        return not (self.bad or self.unknown or self.left) and set(self.outcomes) <= OF_THE_PATCH


def placed(predictions: Sequence[Prediction], instances: Mapping[str, InstanceFacts]) -> Placed:
    """Predictions by the names of instances."""
    by_name: dict[str, list[InstanceFacts]] = {}
    for facts in instances.values():
        by_name.setdefault(facts.published, []).append(facts)
    pairs = [(it, facts) for it in predictions for facts in by_name.get(it.instance, ())]
    return Placed(tuple(pairs), tuple(it for it in predictions if it.instance not in by_name))


def graded_runs(
    found: Placed, instances: Mapping[str, InstanceFacts], result: RunResult[PatchUnit], file: Path, bad: int
) -> tuple[list[EvaluatedRun], GradedReport]:
    """The runs that predictions are, and what became of the file."""
    results = {it.unit: it for it in result.results}
    runs, counts, names = [], Counter[str](), dict[str, set[str]]()
    for prediction, facts in found.predictions:
        ended = results.get(_unit(prediction, facts))
        outcome = ended.outcome if ended else NOT_GRADED
        broke = ended.detail if ended and facts.position > 1 else None
        counts[outcome] += 1
        names.setdefault(prediction.model, set()).add(facts.key)
        run = InstanceRun(
            facts.key,
            prediction.sample,
            resolved=outcome == PASSED,
            patch=outcome != PATCH_EMPTY,
            steps=None,
            calls=None,
            tokens_in=None,
            tokens_out=None,
            usd=None,
            apart=None if outcome in OF_THE_PATCH else outcome,
            repository=facts.repository,
            difficulty=facts.difficulty,
            position=facts.position,
            broke_earlier=broke,
            began_broken=None if broke is None else False,
        )
        words = f"predictions of {file.name}"
        carry = str(Carry.REFERENCE)
        runs.append(EvaluatedRun(run, prediction.model, words, words, carry, facts.source, "", facts.name))
    missing = {model: len(instances) - len(keys) for model, keys in sorted(names.items())}
    rows = {prediction.row for prediction, _ in found.predictions} | {it.row for it in found.unknown}
    report = GradedReport(
        len(rows),
        bad,
        len(found.unknown),
        dict(sorted(counts.items())),
        {model: count for model, count in missing.items() if count},
        result.left,
        result.stopped,
    )
    return runs, report


def _unit(prediction: Prediction, facts: InstanceFacts) -> PatchUnit:
    return PatchUnit(facts.key.partition("/")[0], facts.position, prediction.patch)
