"""Which samples are for training and which for validation: whole groups, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import sha256

from networkx.utils import UnionFind


def validation_groups(sizes: Mapping[str, int], share: float, seed: int) -> frozenset[str]:
    """The groups for validation; `sizes` maps a group's name to its number of samples.

    Groups are tried in the order of their hashes with the seed; a group is taken if the share of all samples is not
    exceeded. If none is small enough, the smallest is taken, unless it is the only group: a validation set that is too
    large is better than none.
    """
    if not share or len(sizes) < 2:
        return frozenset()
    order = sorted(sizes, key=lambda group: (sha256(f"{seed}:{group}".encode()).digest(), group))
    room = share * sum(sizes.values())
    chosen: set[str] = set()
    for group in order:
        if sizes[group] <= room:
            chosen.add(group)
            room -= sizes[group]
    return frozenset(chosen or {min(order, key=lambda group: sizes[group])})


def related_chains(chains: Iterable[str], works: Iterable[tuple[str, Hashable]]) -> dict[str, str]:
    """Chain id to the name of its group: chains that share a pull request, also through other chains, are one group.

    `works` are pairs of a chain's id and one of its pull requests. Chains (1, 2, 3) and (2, 3, 4) hold the same work:
    in different files, they would let a model be tested on its training data.
    """
    groups: UnionFind[str] = UnionFind(chains)
    first: dict[Hashable, str] = {}
    for chain, work in works:
        groups.union(first.setdefault(work, chain), chain)
    return {chain: min(members) for members in groups.to_sets() for chain in members}


def shared_works(works: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The pull requests that several chains hold, with the chains; sorted. `works` as in `related_chains`."""
    chains: dict[str, set[str]] = {}
    for chain, work in works:
        chains.setdefault(work, set()).add(chain)
    return {work: sorted(chains[work]) for work in sorted(chains) if len(chains[work]) > 1}
