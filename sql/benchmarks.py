"""Which chains no training data may hold: imports that are marked, and all chains that hold the same task."""

from __future__ import annotations

from collections.abc import Hashable

from sqlalchemy import select

from sql.store import Transaction
from sql.tables import ChainStage, ImportedTask


def benchmark_chains(tx: Transaction) -> frozenset[str]:
    """The imported chains that are marked as a benchmark's; imported ones with the instance id of one that is; and all
    chains, mined ones too, with a stage of the same repository and number, or the same commit to begin on. Other data
    sets, and we, hold the same pull requests under names, and with texts, of their own."""
    imports = select(ImportedTask.chain_id, ImportedTask.benchmark, ImportedTask.instance_id, ImportedTask.base_commit)
    said = {str(chain): (bool(marked), name, base) for chain, marked, name, base in tx.connection.execute(imports)}
    if not any(marked for marked, _, _ in said.values()):
        return frozenset()
    keys: dict[str, set[Hashable]] = {chain: {("instance", name.lower())} for chain, (_, name, _) in said.items()}
    stages = select(ChainStage.chain_id, ChainStage.repository_id, ChainStage.number, ChainStage.base_sha)
    for chain, place, number, base in tx.connection.execute(stages):
        own = keys.setdefault(str(chain), set())
        own.add(("base", place, base))
        if number:
            own.add(("number", place, number))
        if chain in said:
            own.add(("base", place, said[chain][2]))
    barred = set[Hashable]().union(*(keys[chain] for chain, (marked, _, _) in said.items() if marked))
    return frozenset(chain for chain, own in keys.items() if not own.isdisjoint(barred))
