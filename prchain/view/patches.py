"""The page of a trajectory's patch: the reference beside what the agent did, stage by stage and file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from prchain.view.diffs import DiffFile, diff_files
from prchain.view.options import ViewOptions
from prchain.view.rollouts import hidden_lines
from prchain.view.trees import ChainTrees, Patch
from sql.store import Store
from sql.tables import ChainStage
from trajectories.rollouts.report import TrajectoryReport


@dataclass(frozen=True, slots=True)
class FilePair:
    """One path in the reference and in the agent's work; None where one of them leaves it alone."""

    path: str
    reference: DiffFile | None
    agent: DiffFile | None


@dataclass(frozen=True, slots=True)
class AttemptDiff:
    """What the agent changed from one attempt to the next."""

    attempt: int
    files: tuple[DiffFile, ...]


@dataclass(frozen=True, slots=True)
class PatchStageView:
    """A stage of the page."""

    position: int
    number: int
    outcome: str
    pairs: tuple[FilePair, ...]
    both: int
    """Paths that both change."""
    conflicts: tuple[Mapping[str, Any], ...]
    reset_tests: tuple[str, ...]
    attempts: tuple[AttemptDiff, ...]
    known: bool
    """Whether the agent's trees are there."""


@dataclass(frozen=True, slots=True)
class PatchView:
    """The page."""

    trajectory: Mapping[str, Any]
    """Its id, chain, outcome and model."""
    stages: tuple[PatchStageView, ...]
    problem: str | None
    hides: bool = False
    """Whether the references are not shown."""


def patch_view(
    store: Store, report: TrajectoryReport, options: ViewOptions, mirrors: Path, data_dir: Path
) -> PatchView:
    """Everything that the page shows; `report` has its messages."""
    if report.chain_id is None:
        return PatchView(_slim(report), (), "others made this trajectory: nothing is known of its trees")
    trees = ChainTrees(store, report.chain_id, mirrors, data_dir)
    references = trees.references() if options.reference else None
    hidden = hidden_lines(trees, report.messages or (), options)
    with store.reading() as tx:
        numbers = dict(map(tuple, tx.rows(ChainStage, "position", "number", chain_id=report.chain_id)))
    attempts = _attempt_trees(report)
    ends = {
        stage.position: (stage.start_tree, stage.end_tree)
        for stage in report.stages
        if stage.start_tree and stage.end_tree
    }
    wanted = [pair for pair in ends.values() if pair[0] and pair[1]]
    wanted += [(a, b) for found in attempts.values() for (_, a), (_, b) in pairwise(found)]
    patches = {} if hidden is None else trees.states(wanted)
    stages = []
    for stage in report.stages:
        pair = ends.get(stage.position)
        agent: Patch = patches.get(pair, ()) if pair else ()
        whole = references[stage.position - 1] if references and stage.position <= len(references) else ()
        pairs = _pairs(diff_files(whole), diff_files(agent, hidden=hidden or ()))
        found = attempts.get(stage.position, [])
        between = tuple(
            AttemptDiff(number, diff_files(patches.get((before, after), ()), hidden=hidden or ()))
            for (_, before), (number, after) in pairwise(found)
        )
        conflicts = stage.conflicts if options.reference else tuple(map(_paths_alone, stage.conflicts))
        known = pair is not None and (pair in patches or pair[0] == pair[1])
        both = sum(it.reference is not None and it.agent is not None for it in pairs)
        place = (stage.position, numbers.get(stage.position, 0), stage.outcome)
        stages.append(PatchStageView(*place, pairs, both, conflicts, stage.reset_tests, between, known))
    return PatchView(_slim(report), tuple(stages), trees.problem, not options.reference)


def _slim(report: TrajectoryReport) -> Mapping[str, Any]:
    """What the page's head tells of a trajectory."""
    return {"id": report.id, "chain_id": report.chain_id, "outcome": report.outcome, "model": report.model}


def _paths_alone(conflict: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"path": conflict.get("path", ""), "kind": conflict.get("kind", "")}


def _attempt_trees(report: TrajectoryReport) -> dict[int, list[tuple[int, str]]]:
    """Stage to its attempts and the trees that they ended with."""
    found: dict[int, list[tuple[int, str]]] = {}
    for verdict in report.verdicts:
        found.setdefault(verdict.position, []).append((verdict.attempt, verdict.tree))
    return found


def _pairs(reference: Sequence[DiffFile], agent: Sequence[DiffFile]) -> tuple[FilePair, ...]:
    """The files side by side: those that both change first, then the reference's alone, then the agent's."""
    left, right = ({file.path: file for file in files} for files in (reference, agent))
    paths = dict.fromkeys([*(path for path in left if path in right), *left, *right])
    return tuple(FilePair(path, left.get(path), right.get(path)) for path in paths)
