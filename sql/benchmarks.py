"""Which imported chains no training data may hold: those that are marked, and those that are the same tasks."""

from __future__ import annotations

from sqlalchemy import select

from sql.store import Transaction
from sql.tables import ChainStage, ImportedTask


def benchmark_chains(tx: Transaction) -> frozenset[str]:
    """The imported chains that are marked as a benchmark's, or have the instance id, or repository and number, of one
    that is: other data sets hold the same pull requests under names, and with texts, of their own."""
    query = select(
        ImportedTask.chain_id,
        ImportedTask.benchmark,
        ImportedTask.instance_id,
        ChainStage.repository_id,
        ChainStage.number,
    ).outerjoin(ChainStage, ChainStage.chain_id == ImportedTask.chain_id)
    rows = [
        (str(chain), bool(marked), {("instance", name.lower()), *([("number", place, number)] if number else [])})
        for chain, marked, name, place, number in tx.connection.execute(query)
    ]
    barred = {key for _, marked, keys in rows if marked for key in keys}
    return frozenset(chain for chain, _, keys in rows if not keys.isdisjoint(barred))
