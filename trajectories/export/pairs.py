"""Two sets of samples of the same chains, for a comparison of one thing alone: which trajectories are a pair.

``short-long``: accepted prefixes and what they were extended to (daVinci-Agency, section 6.3 and figure 7).
``rejection-sampling``: a rollout as it came, and one that was kept (appendix B and table 5). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trajectories.export.draw import drawn
from trajectories.export.duplicates import same_trees
from trajectories.export.reading import ExportCandidate
from trajectories.outcomes import KEPT

SETS: Mapping[str, tuple[str, str]] = {
    "short-long": ("short", "long"),
    "rejection-sampling": ("unfiltered", "filtered"),
}
"""The names of both sets, which are parts of their files' names."""

HOW: Mapping[str, str] = {
    "short-long": "Short: every kept trajectory as it stood before it was extended. Long: the same ones, an extension "
    "in place of each that has one, the one with the most accepted stages. One that was never extended, or whose chain "
    "it had ended, is in both sets as it is.",
    "rejection-sampling": "Of each chain and each agent (model, scaffold, options) with a kept rollout, unfiltered: "
    "one of all its rollouts that ended, drawn at random, with every round under loss; filtered: one of its kept "
    "rollouts, drawn at random. Both are cut after the last stage that both worked on, so both sets answer the same "
    "queries, in the words that the agents read.",
}
"""How the samples of the sets were paired."""

SAME_IN_BOTH = "same_in_both"
"""The reason for leaving out all pairs where none differs: both sets would be one."""


class CandidatePair(NamedTuple):
    """The trajectories of a pair, one of each set."""

    first: ExportCandidate
    second: ExportCandidate

    @property
    def differs(self) -> bool:
        """Whether it is not one trajectory in both sets."""
        return self.first.id != self.second.id


def longest_extensions(found: Sequence[ExportCandidate], extensions: Mapping[str, str]) -> dict[str, ExportCandidate]:
    """The id of each trajectory that is extended to the one of those in `found` that goes furthest on from it.

    `extensions` has the prefix of each extension. Of equally long ones the one of the lowest sample stays, then of the
    lowest id.
    """
    known = {candidate.id: candidate for candidate in found}
    furthest: dict[str, ExportCandidate] = {}
    for candidate in sorted(found, key=lambda it: (-it.accepted, it.sample, it.id)):
        prefix = extensions.get(candidate.id)
        while prefix is not None and prefix in known:
            furthest.setdefault(prefix, candidate)
            prefix = extensions.get(prefix)
    return furthest


def short_long(
    found: Sequence[ExportCandidate], extensions: Mapping[str, str], *, unique: bool
) -> list[list[CandidatePair]]:
    """Groups of pairs of which one is written, the best first; with `unique`, those whose short ones ended with the
    same trees are one group."""
    furthest = longest_extensions(found, extensions)
    known = {candidate.id for candidate in found}
    roots = [candidate for candidate in found if extensions.get(candidate.id) not in known]
    groups = same_trees(roots) if unique else [[root] for root in roots]
    paired = [[CandidatePair(root, furthest.get(root.id, root)) for root in group] for group in groups]
    return [sorted(group, key=lambda pair: -pair.second.accepted) for group in paired]


def rejection_sampling(
    found: Iterable[ExportCandidate], reached: Mapping[str, int], branches: Collection[str], seed: int
) -> list[list[CandidatePair]]:
    """Groups of one pair each: of all rollouts of one agent over one chain, and of the kept ones.

    `reached` is the last stage in which each trajectory has a turn. `branches` are left out: they begin where others
    had been accepted, and are no draw of what the agent does.
    """
    agents: dict[tuple[str, ...], list[ExportCandidate]] = {}
    for candidate in found:
        if candidate.id not in branches and reached.get(candidate.id):
            agent = (candidate.model, candidate.scaffold, candidate.options_hash, candidate.windows or "")
            key = (candidate.chain_id, *agent)
            agents.setdefault(key, []).append(candidate)
    groups = []
    for rollouts in agents.values():
        kept = [rollout for rollout in rollouts if rollout.outcome in KEPT]
        if not kept:
            continue
        pair = CandidatePair(_one(rollouts, seed), _one(kept, seed))
        stages = min(min(reached[it.id], it.stages) for it in pair)
        groups.append([CandidatePair(*(replace(it, accepted=stages, length=stages) for it in pair))])
    return groups


def _one(found: Sequence[ExportCandidate], seed: int) -> ExportCandidate:
    (name,) = drawn((candidate.id for candidate in found), 1, seed)
    return next(candidate for candidate in found if candidate.id == name)
