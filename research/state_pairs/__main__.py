"""Carry agents from one real pull request to the next, and check the state that they find there.

    python -m research.state_pairs --db mined.db --pairs 200

Two things are proved. An agent that did what the developers did finds exactly B_t, in every pair. For other agents, no
line of the reference that their own work lacks enters the state (`research.state_pairs.leaks`), outside the test files
of earlier stages. With --scripts a third one: what an exported task of Harbor's ships between two steps makes of each
agent's tree the tree that our own rule does. Exit code 1 where one fails.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import click

from environments.checkouts.state import next_state
from prchain.core.errors import IncompleteRepository, MergeUnsupported, NoneUnavailable
from prchain.core.git.trees import TreeStore
from research.state_pairs.agents import WAYS, perturbed
from research.state_pairs.leaks import leaks
from research.state_pairs.pairs import Pair, draw, tests_of
from research.state_pairs.scripts import tree_by_script
from sql.store import Store

SEED = 20261121


@click.command()
@click.option("--db", type=click.Path(exists=True), required=True, help="A SQLite database of prchain with chains.")
@click.option("--pairs", "count", default=200, show_default=True)
@click.option("--seed", default=SEED, show_default=True)
@click.option("--scripts", is_flag=True, help="Also by what Harbor's tasks ship between steps.")
@click.option("--verbose", is_flag=True, help="Name the pairs with conflicts.")
def main(db: str, count: int, seed: int, scripts: bool, verbose: bool) -> None:
    """Prove the rule of stage state on the pairs of a mined database."""
    with closing(Store.open(db, create=False)) as store:
        pairs = draw(store, count, seed)
    sums: Counter[str] = Counter()
    failures: list[str] = []
    stores: dict[str, TreeStore] = {}
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        for index, pair in enumerate(pairs):
            if pair.location not in stores:
                own = Path(folder) / str(len(stores))
                stores[pair.location] = TreeStore.open(own, [Path(pair.location)])
            sums[f"pairs from a {pair.origin}"] += 1
            try:
                failures += _carried(stores[pair.location], pair, random.Random(seed + index), sums, verbose, scripts)
            except IncompleteRepository:
                sums["pairs whose objects the mirror lacks"] += 1
    for name, number in sorted(sums.items()):
        click.echo(f"{number:>6,}  {name}")
    for failure in failures:
        click.echo(f"FAILED {failure}")
    sys.exit(1 if failures else 0)


def _carried(
    store: TreeStore, pair: Pair, generator: random.Random, sums: Counter[str], verbose: bool, scripts: bool
) -> list[str]:
    tests = tests_of(store, pair)
    name = f"{pair.repository} #{pair.numbers[0]} -> #{pair.numbers[1]} ({pair.origin})"
    failures = []
    same = next_state(
        store, landed_before=pair.landed_before, agent_tree=pair.landed_before, base=pair.base, test_paths=tests
    )
    exact = same.tree == store.tree_of(pair.base) and not same.conflicts and not same.test_paths_reset
    sums["agent = reference: S_t is B_t"] += exact
    failures += [] if exact else [f"{name}: an agent that did what the developers did does not find B_t"]
    sums["... where upstream did something between the two"] += store.tree_of(pair.landed_before) != same.tree
    for way in WAYS:
        sums[f"{way}: agents"] += 1
        agent = perturbed(store, pair.base_before, pair.landed_before, way, generator)
        try:
            state = next_state(
                store, landed_before=pair.landed_before, agent_tree=agent, base=pair.base, test_paths=tests
            )
        except MergeUnsupported as error:
            sums[f"{way}: merge_unsupported"] += 1
            failures += [f"{name}: {way}: {error}"] if verbose else []
            continue
        if scripts:
            found = tree_by_script(store, (pair.base_before, pair.landed_before, pair.base), agent, tests)
            alike = found == (state.tree, len(state.conflicts))
            sums["by the script: the same S_t, and as many conflicts"] += alike
            failures += [] if alike else [f"{name}: {way}: the script makes {found[0]} of it, and we {state.tree}"]
        if state.conflicts:
            sums[f"{way}: with conflicts"] += 1
            if verbose:
                conflicts = ", ".join(
                    f"{conflict.path!r} {conflict.kind} {conflict.hunks}" for conflict in state.conflicts[:4]
                )
                click.echo(f"{name}: {way}: {conflicts}")
        leaked, moved = leaks(store, (pair.landed_before, agent, pair.base, state.tree), tests)
        sums[f"{way}: with lines that upstream had moved"] += bool(moved)
        sums[f"{way}: with leaks"] += bool(leaked)
        if leaked:
            failures.append(f"{name}: {way}: {sum(leaked.values())} lines, e.g. {leaked.most_common(3)}")
    try:
        next_state(store, landed_before="", agent_tree="", base=pair.base, carry="none", earlier=pair.earlier)
        sums["carry none: available"] += 1
    except (NoneUnavailable, MergeUnsupported) as error:
        sums[f"carry none: {error.name}"] += 1
    return failures


if __name__ == "__main__":
    main()
