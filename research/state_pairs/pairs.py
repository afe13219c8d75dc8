"""Real pairs (pr_{t-1}, pr_t): neighbours in a chain, and neighbours on a branch."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeStore
from sql.store import Store
from sql.tables import ChainStage, Landing, Repository, Selection


@dataclass(frozen=True, slots=True)
class Pair:
    """The commits of two pull requests in a row, and the (base, landed) commits of all stages before the second."""

    repository: str
    location: str
    origin: str
    """``chain`` or ``branch``."""
    numbers: tuple[int, int]
    base_before: str
    landed_before: str
    base: str
    landed: str
    earlier: tuple[tuple[str, str], ...]


def draw(store: Store, count: int, seed: int) -> list[Pair]:
    """`count` pairs, up to half of them from chains, spread over the repositories."""
    with store.reading() as tx:
        repositories = {
            row[0]: (f"{row[1]}/{row[2]}", row[3]) for row in tx.rows(Repository, "id", "owner", "name", "location")
        }
        selected = {
            row[0] for row in tx.rows(Selection, "chain_id", "outcome", strategy="reference") if row[1] == "selected"
        }
        stages = defaultdict(list)
        for chain, *stage in tx.rows(
            ChainStage, "chain_id", "position", "repository_id", "number", "base_sha", "landed_sha"
        ):
            if chain in selected:
                stages[chain].append(_Stage(*stage))
        lines = defaultdict(list)
        for branch, *landing in tx.rows(
            Landing, "branch", "position", "repository_id", "number", "base_sha", "landed_sha", is_default=True
        ):
            lines[landing[1], branch].append(_Stage(*landing))
    chained = [
        _pair(repositories, "chain", earlier, later, found[:count_before])
        for found in (sorted(stage) for stage in stages.values())
        for count_before, (earlier, later) in enumerate(pairwise(found), 1)
    ]
    neighbours = [
        _pair(repositories, "branch", earlier, later, [earlier])
        for branch_stages in lines.values()
        for earlier, later in pairwise(sorted(branch_stages))
    ]
    generator = random.Random(seed)
    from_chains = _spread(chained, min(count // 2, len(chained)), generator)
    return from_chains + _spread(neighbours, count - len(from_chains), generator)


class _Stage(NamedTuple):
    position: int
    repository: int
    number: int
    base: str
    landed: str


def _pair(
    repositories: dict[int, tuple[str, str]], origin: str, first: _Stage, second: _Stage, earlier: list[_Stage]
) -> Pair:
    name, location = repositories[first.repository]
    done = tuple((stage.base, stage.landed) for stage in earlier)
    return Pair(
        name,
        location,
        origin,
        (first.number, second.number),
        first.base,
        first.landed,
        second.base,
        second.landed,
        done,
    )


def tests_of(store: TreeStore, pair: Pair) -> set[bytes]:
    """The paths of the test patches of all stages before the pair's second."""
    return {
        change.path
        for base, landed in pair.earlier
        for change in store.diff(base, landed)
        if kind_of(path_text(change.path)) is FileKind.TEST
    }


def _spread(pairs: list[Pair], count: int, generator: random.Random) -> list[Pair]:
    """`count` of the pairs, taken from the repositories in turn while they have some."""
    by_repository = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: (pair.repository, pair.numbers, pair.landed)):
        by_repository[pair.repository].append(pair)
    for group in by_repository.values():
        generator.shuffle(group)
    chosen: list[Pair] = []
    while len(chosen) < count and any(by_repository.values()):
        for group in by_repository.values():
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen
