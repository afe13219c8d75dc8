"""Progress of a trajectory through a process graph (P2T, section 4.1): the nodes it has established, and what each step
counts.

A node is premature where it is established before one of its predecessors. The paper zeroes such a step in section 4.1
and lets only the node wait in appendix I; `Premature` chooses.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajectories.curation.graphs.graph import ProcessGraph


class Premature(StrEnum):
    """What becomes of a node that is established too early."""

    DEFER = "defer"
    """It waits: it counts nothing, and is established from a later window's start on, once its predecessors are."""
    ZERO = "zero"
    """The whole step counts nothing, and all of its nodes are established."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a trajectory stands in its graph: U_t, and the nodes that wait because they came too early."""

    established: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()

    @property
    def seen(self) -> frozenset[str]:
        """The nodes of which nothing new can be learnt."""
        return self.established | self.waiting


@dataclass(frozen=True, slots=True)
class StepProgress:
    """What one step came to: Prog_t, from 0 to 1, the nodes it counts, and those that came too early."""

    progress: float = 0.0
    counted: tuple[str, ...] = ()
    premature: tuple[str, ...] = ()


def advanced(
    graph: ProcessGraph, standing: Standing, found: Collection[str], premature: Premature = Premature.DEFER
) -> tuple[Standing, StepProgress]:
    """The standing after a step in which the nodes `found` were established, and the step's progress:
    |new| / max(|A_{t-1}|, 1), where A_{t-1} is the frontier before the step."""
    frontier = graph.frontier(standing.established)
    new = frozenset(found) - standing.seen
    ready, early = new & frontier, new - frontier
    if premature is Premature.ZERO:
        counted = frozenset[str]() if early else ready
        after = Standing(standing.established | new, standing.waiting)
    else:
        counted = ready
        after = Standing(standing.established | ready, standing.waiting | early)
    share = len(counted) / max(len(frontier), 1)
    return after, StepProgress(share, tuple(sorted(counted)), tuple(sorted(early)))


def window_start(graph: ProcessGraph, standing: Standing) -> Standing:
    """The standing at the start of a window: of the nodes that wait, those whose predecessors are established by now
    are, too (P2T, appendix I)."""
    established, waiting = set(standing.established), set(standing.waiting)
    while ready := {name for name in waiting if graph.predecessors(name) <= established}:
        established |= ready
        waiting -= ready
    return Standing(frozenset(established), frozenset(waiting))


def open_nodes(graph: ProcessGraph, standing: Standing) -> frozenset[str]:
    """The nodes of the frontier that can still be established: those that wait have their evidence already."""
    return frozenset(graph.frontier(standing.established) - standing.waiting)
