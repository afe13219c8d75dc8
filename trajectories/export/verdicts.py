"""What judge and tests said of the stages of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from environments.suites.outcomes import PASSED
from sql.store import Transaction
from sql.strength import read_strengths, worst
from trajectories.export.samples import SampleStage, SampleVerdict
from trajectories.outcomes import DONE_EARLY
from trajectories.provenance import TrajectoryOrigin
from trajectories.rows import VerdictRow, read_stages, read_verdicts


@dataclass(frozen=True, slots=True)
class StagesOfSample:
    """The exported stages of a trajectory."""

    stages: tuple[SampleStage, ...]
    verdicts: tuple[SampleVerdict, ...]
    accepted: Mapping[int, int] = field(default_factory=dict)
    """The accepted attempt by position."""


def stages_of(
    tx: Transaction, trajectory_id: str, chain_id: str, last: int, origin: TrajectoryOrigin | None = None
) -> StagesOfSample:
    """The stages of a trajectory up to position `last`, with their verdicts; without those that were done early, which
    nobody worked on. `origin` is where an import is from: where its document tells no verdict, nobody rejected a
    round."""
    verdicts: dict[int, list[VerdictRow]] = {}
    for verdict in read_verdicts(tx, trajectory_id):
        if verdict.position <= last:
            verdicts.setdefault(verdict.position, []).append(verdict)
    stages: list[SampleStage] = []
    accepted: dict[int, int] = {}
    strengths = read_strengths(tx, chain_id).get(chain_id, {}) if origin is None else {}
    safeguards: dict[int, str] = {}
    proofs = {position: str(worst([strength])) for position, strength in strengths.items()}
    if origin is not None:
        proofs, safeguards = (
            {int(position): str(text) for position, text in origin.told.get(name, {}).items()}
            for name in ("proofs", "safeguards")
        )
    for stage in read_stages(tx, trajectory_id):
        if stage.position > last or stage.outcome == DONE_EARLY:
            continue
        found = verdicts.get(stage.position, [])
        final = next((verdict for verdict in reversed(found) if verdict.accepted), found[-1] if found else None)
        if final is not None and final.accepted:
            accepted[stage.position] = final.attempt
        score, tests, tree = (final.score, _tests(final), final.tree) if final else (None, None, None)
        if origin is not None and not verdicts:
            accepted[stage.position] = stage.attempts
        proof = proofs.get(stage.position)
        safeguard = (final.grade.get("safeguard") if final else None) or safeguards.get(stage.position)
        stages.append(
            SampleStage(stage.position, stage.attempts, score, tests, tree or stage.end_tree, proof, safeguard)
        )
    told = tuple(_verdict(verdict) for found in verdicts.values() for verdict in found)
    return StagesOfSample(tuple(stages), told, accepted)


def _tests(row: VerdictRow) -> str | None:
    """What the hidden tests said; `DONE_EARLY` where all F2P passed before the attempt, so that a pass says nothing."""
    early, f2p = set(row.grade.get("done_early", ())), set(row.grade.get("f2p_passed", ()))
    return DONE_EARLY if row.tests == PASSED and f2p and f2p <= early else row.tests


def _verdict(row: VerdictRow) -> SampleVerdict:
    return SampleVerdict(row.position, row.attempt, row.accepted, row.gate, row.score, row.tests, row.tree)
