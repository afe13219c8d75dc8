"""The rounds of a graph as values: what comes of one, and when they end (P2T, appendix D)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from trajectories.curation.graphs.candidates import NodeCandidate, hashes, kept_nodes
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.outcomes import CAPPED, CONVERGED, DRY


@dataclass(frozen=True)
class GraphState:
    """A graph between two rounds."""

    candidates: tuple[NodeCandidate, ...] = ()
    """In the order in which they were made."""
    feedback: tuple[str, ...] = field(default=())
    """What the next proposer is told."""
    rounds: int = 0
    """Rounds that are over."""
    empty_rounds: int = 0
    """Of these, the last ones in a row in which nothing was proposed."""
    dropped_rounds: int = 0
    notes: tuple[str, ...] = ()
    """Why rounds were dropped."""
    ending: str | None = None
    """How the rounds ended; None while they go on."""

    @property
    def names(self) -> set[str]:
        """The names of all candidates."""
        return {candidate.node.name for candidate in self.candidates}


def after_round(
    before: GraphState,
    candidates: Sequence[NodeCandidate],
    feedback: Sequence[str],
    *,
    proposed: int,
    dropped: bool,
    options: GraphOptions,
) -> GraphState:
    """The state after a round that ended with these candidates; `proposed` nodes were proposed in it.

    The loop ends where a round leaves the node set as it was, by the hashes of the statements; after so many rounds in
    a row without a proposal; and after the last round that is allowed. Beyond the paper: an empty set is no fixed
    point, since code may have refused all of a first proposal and said why; and a round that was dropped says nothing
    of the set.
    """
    rounds = before.rounds + 1
    empty = before.empty_rounds if dropped else 0 if proposed else before.empty_rounds + 1
    after = replace(
        before,
        candidates=tuple(candidates),
        feedback=tuple(feedback),
        rounds=rounds,
        empty_rounds=empty,
        dropped_rounds=before.dropped_rounds + dropped,
    )
    same = hashes(before.candidates) == hashes(candidates)
    if same and not dropped and kept_nodes(candidates):
        return replace(after, ending=CONVERGED)
    if empty >= options.empty_rounds:
        return replace(after, ending=DRY)
    return replace(after, ending=CAPPED if rounds >= options.rounds else None)


def with_notes(state: GraphState, notes: Sequence[str], clean: Callable[[str], str]) -> GraphState:
    """The state after a round, with notes on it.

    Words that may quote the output of commands are cleaned: they are stored, and the next round's proposer is told the
    stored ones, whether there was a kill in between or not.
    """
    candidates = tuple(
        replace(candidate, reasons=tuple(fault._replace(words=clean(fault.words)) for fault in candidate.reasons))
        for candidate in state.candidates
    )
    return replace(
        state,
        candidates=candidates,
        feedback=tuple(map(clean, state.feedback)),
        notes=(*state.notes, *map(clean, notes)),
    )
