"""Which chains no training data may hold: imports that are marked, and all chains that hold the same task."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence

from sqlalchemy import select

from sql.store import Transaction
from sql.tables import ChainStage, ImportedTask


def benchmark_chains(tx: Transaction) -> frozenset[str]:
    """The imported chains that are marked as a benchmark's; imported ones with the instance id of one that is; and all
    chains, mined ones too, with a stage of the same repository and number, or the same commit to begin on, of whichever
    host, also where a row tells the beginning of its name alone. Other data sets, and we, hold the same pull requests
    under names, and with texts, of their own."""
    imports = select(ImportedTask.chain_id, ImportedTask.benchmark, ImportedTask.instance_id, ImportedTask.base_commit)
    said = {str(chain): (bool(marked), name, base) for chain, marked, name, base in tx.connection.execute(imports)}
    if not any(marked for marked, _, _ in said.values()):
        return frozenset()
    keys: dict[str, set[Hashable]] = {chain: {("instance", name.lower())} for chain, (_, name, _) in said.items()}
    bases = {chain: {base.lower()} for chain, (_, _, base) in said.items()}
    stages = select(ChainStage.chain_id, ChainStage.repository_id, ChainStage.number, ChainStage.base_sha)
    for chain, place, number, base in tx.connection.execute(stages):
        bases.setdefault(str(chain), set()).add(base.lower())
        if number:
            keys.setdefault(str(chain), set()).add(("number", place, number))
    known = sorted(set[str]().union(*bases.values()))
    for chain, own in bases.items():
        keys.setdefault(chain, set()).update(("base", it) for base in own for it in _meant(base, known))
    barred = set[Hashable]().union(*(keys[chain] for chain, (marked, _, _) in said.items() if marked))
    return frozenset(chain for chain, own in keys.items() if not own.isdisjoint(barred))


def _meant(base: str, known: Sequence[str]) -> Sequence[str]:
    """The names among `known`, which are sorted, that begin with a commit's name; a whole one is meant by itself."""
    first = bisect_left(known, base)
    return known[first : bisect_left(known, f"{base}~", first)]
