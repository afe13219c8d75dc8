"""The result of a rollout, stage by stage, and whether it is what the agent's work must lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from research.real_rollouts.work import StageWork
from sql.store import Store
from sql.tables import Trajectory
from trajectories.outcomes import ACCEPTED, NOT_REACHED, REJECTED, TOO_SHORT
from trajectories.rows import StageRow, VerdictRow, read_stages, read_verdicts

BLAMED = frozenset({"carried_failure", "f2p_failed"})
"""Test outcomes of a stage that mean an earlier stage left something out: tests that passed on B_t fail, or its own
tests, which rely on what is missing."""


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """The rows of a trajectory."""

    outcome: str
    reason: str | None
    seconds: float
    steps: int
    stages: tuple[StageRow, ...]
    verdicts: dict[int, VerdictRow] = field(default_factory=dict)
    """The last verdict on each stage."""


def read(store: Store, trajectory: str) -> RolloutResult:
    """Read the rows of a trajectory."""
    with store.reading() as tx:
        ((outcome, reason, seconds, steps),) = tx.rows(
            Trajectory, "outcome", "reason", "seconds", "steps", id=trajectory
        )
        verdicts = {verdict.position: verdict for verdict in read_verdicts(tx, trajectory)}
        return RolloutResult(outcome, reason, seconds, steps, tuple(read_stages(tx, trajectory)), verdicts)


def lines(result: RolloutResult, bases: Sequence[str]) -> Iterator[str]:
    """Lines for people; `bases` are the trees of B_t."""
    for row, base in zip(result.stages, bases, strict=False):  # fewer where a machine failed
        if row.outcome == NOT_REACHED:
            yield f"stage {row.position}: {row.outcome}"
            continue
        is_base = "is" if row.start_tree == base else "is not"
        yield (
            f"stage {row.position}: S_{row.position} {_short(row.start_tree)} ({is_base} B_{row.position}), "
            f"A_{row.position} {_short(row.end_tree)}, {row.steps} steps"
        )
        conflicts = ", ".join(f"{conflict['path']} ({conflict['kind']})" for conflict in row.conflicts) or "none"
        early, carried = (row.check.get(name, ()) for name in ("done_early", "carried_failure"))
        yield f"  conflicts: {conflicts}; done early: {len(early)}; carried failures: {len(carried)}"
        verdict = result.verdicts.get(row.position)
        if verdict is not None:
            grade = verdict.grade
            passed, failed, kept = (len(grade.get(name, ())) for name in ("f2p_passed", "f2p_failed", "p2p_kept"))
            gone = sum(len(grade.get(name, ())) for name in ("p2p_broken", "earlier_broken", "carried_failure"))
            yield f"  F2P {passed} of {passed + failed}, P2P {kept} of {kept + gone} passed: {verdict.tests}"
            failing = [test for name in ("f2p_failed", "carried_failure") for test in grade.get(name, ())]
            for test in failing[:5]:
                yield f"    {'carried' if test in grade.get('carried_failure', ()) else 'F2P'}: {test}"
        yield f"  {row.outcome}" + (f": {row.reason}" if row.reason else "")
    yield f"{result.outcome}: {result.steps} steps, {result.seconds:.0f} s" + (
        f"; {result.reason}" if result.reason else ""
    )


def faults(
    agent: str, result: RolloutResult, works: Sequence[StageWork], bases: Sequence[str], missed_by: Sequence[str] = ()
) -> list[str]:
    """What differs from what the agent's work must lead to; empty where the rollout is right.

    `missed_by` holds the tests of stage 2 that failed in the search without what the agent left out.
    """
    if len(result.stages) < len(works):
        return [f"the trajectory is {result.outcome}: {result.reason}"]
    found = []
    for row, work in zip(result.stages, works, strict=True):
        if row.outcome == NOT_REACHED and agent == "breaking" and row.position > 2:
            continue
        if row.start_tree != work.state.tree:
            found.append(f"S_{row.position} is {row.start_tree}, not {work.state.tree}")
        if row.end_tree != work.tree:
            found.append(f"A_{row.position} is {row.end_tree}, not {work.tree}")
        if agent == "reference" and row.start_tree != bases[row.position - 1]:
            found.append(f"S_{row.position} is not B_{row.position}, though the reference was carried")
        if agent == "different" and row.position > 1 and row.start_tree == bases[row.position - 1]:
            found.append(f"S_{row.position} is B_{row.position}: nothing of the agent's was carried")
        if agent == "breaking":
            continue
        if row.outcome != ACCEPTED or row.check.get("carried_failure") or row.check.get("state_broken"):
            found.append(f"stage {row.position} is {row.outcome}: {row.reason}")
        if row.conflicts:
            found.append(f"the merge of S_{row.position} has conflicts")
    if agent != "breaking":
        return found + ([] if result.outcome == ACCEPTED else [f"the trajectory is {result.outcome}"])
    first, second = result.stages[:2]
    if (first.outcome, second.outcome, result.outcome) != (ACCEPTED, REJECTED, TOO_SHORT):
        return [*found, f"stage 1 is {first.outcome}, stage 2 {second.outcome}, the trajectory {result.outcome}"]
    verdict = result.verdicts[2]
    if verdict.tests not in BLAMED:
        found.append(f"stage 2 is blamed for {verdict.tests}")
    failed = {test for name in BLAMED for test in verdict.grade.get(name, ())}
    if silent := set(missed_by) - failed:
        found.append(f"stage 2 does not fail {sorted(silent)[0]}, as it did in the search")
    return found


def _short(tree: str | None) -> str:
    return (tree or "none")[:12]
