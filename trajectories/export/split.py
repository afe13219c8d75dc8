"""Which samples are for training and which for validation: whole groups, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import sha256

from networkx.utils import UnionFind


def validation_groups(sizes: Mapping[str, int], share: float, seed: int) -> frozenset[str]:
    """The groups that go to validation; `sizes` is the group's name to the number of its samples.

    Groups are taken in the order of their hashes with the seed, each that does not lead beyond the share of all
    samples. Where none is small enough the smallest one goes, unless it is the only one: a validation set of another
    size than asked for is of more use than none.
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


def related_chains(chains: Iterable[str], pulls: Iterable[tuple[str, Hashable]]) -> dict[str, str]:
    """Chain id to the name of its group: chains that share a pull request, also by way of others, are one group.

    `pulls` are pairs of a chain's id and one of its pull requests. Chains (1, 2, 3) and (2, 3, 4) hold the same work:
    apart, they would let a model be tested on what it was trained on.
    """
    groups: UnionFind[str] = UnionFind(chains)
    first: dict[Hashable, str] = {}
    for chain, pull in pulls:
        groups.union(first.setdefault(pull, chain), chain)
    return {chain: min(members) for members in groups.to_sets() for chain in members}
