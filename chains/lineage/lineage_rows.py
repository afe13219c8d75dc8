"""The rows of lineage: landings read, and the results of a walk written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chains.chain_rows import lock
from chains.history import MinedRepository
from chains.lineage.evidence import LandingEvidence
from chains.lineage.landings import LandedRange
from chains.lineage.outcomes import CARRIES_LANDINGS, OFF_LINE, PAIRED, SAME_CHANGE, SWEEPING, UNPAIRED
from chains.lineage.tracer import Tracer
from chains.lineage.walk import WalkedLanding
from sql.store import Store, Transaction
from sql.tables import Landing, Lineage, LineageLanding, LineageWalk


def read_ranges(tx: Transaction, repository_id: int) -> list[LandedRange]:
    """Where every landed pull request landed: branch by branch, the default one first, then the ones with the most
    landings, and within each the newest first."""
    columns = ("number", "branch", "is_default", "position", "base_sha", "landed_sha", "landed_at")
    rows = list(tx.rows(Landing, *columns, repository_id=repository_id))
    sizes = Counter(row[1] for row in rows)
    best: dict[int, tuple[bool, str, str]] = {}
    for number, branch, is_default, _, _, _, landed_at in rows:
        rank = (not is_default, landed_at, branch)
        best[number] = min(best.get(number, rank), rank)
    rows.sort(key=lambda row: (not row[2], -sizes[row[1]], row[1], -row[3], row[0]))
    return [
        LandedRange(number, branch, base, landed, best[number] == (not is_default, landed_at, branch))
        for number, branch, is_default, _, base, landed, landed_at in rows
    ]


def store_walk(
    store: Store, mined: MinedRepository, tracer: Tracer, walked: Sequence[WalkedLanding], key: str, *, is_whole: bool
) -> None:
    """Write the rows of a walk; a whole walk's replace all there are."""
    walked_before = None if is_whole else key
    with store.transaction() as tx:
        lock(tx, mined.id)
        last = next(tx.rows(LineageWalk, "key", repository_id=mined.id), None)
        if is_whole:
            for table in (Lineage, LineageLanding):
                tx.delete(table, repository_id=mined.id)
        counting = [one for one in walked if one.landing.counts]
        for one in counting:
            if not is_whole:
                tx.delete(Lineage, repository_id=mined.id, later=one.landing.number)
        tx.upsert(LineageLanding, (_landing_row(mined.id, one) for one in counting))
        tx.upsert(LineageLanding, (_off_line_row(mined.id, number) for number in tracer.landings.off_line))
        tx.upsert(Lineage, (row for one in counting for row in _pair_rows(mined.id, one)))
        row = {
            "repository_id": mined.id,
            "key": key,
            "key_before": last[0] if last and walked_before else None,
            "commits": len(tracer.commits),
            "branches": len({landed.branch for landed in tracer.ranges}),
            "missing_blobs": len(tracer.missing),
            "unread": tracer.unread,
        }
        tx.upsert(LineageWalk, [row])


def _outcome(one: WalkedLanding) -> str:
    if one.carries:
        return CARRIES_LANDINGS
    if one.same_as is not None:
        return SAME_CHANGE
    if one.evidence.sweeps:
        return SWEEPING
    return PAIRED if one.evidence.pairs else UNPAIRED


def _landing_row(repository_id: int, one: WalkedLanding) -> dict[str, object]:
    evidence = one.evidence
    return {
        "repository_id": repository_id,
        "number": one.landing.number,
        "outcome": _outcome(one),
        "owners": evidence.owners,
        "removed_lines": evidence.removed_lines,
        "real_removed": evidence.removed_real,
        "added_lines": evidence.added_lines,
        "real_added": evidence.added_real,
        "moved_lines": evidence.moved_lines,
        "same_as": one.same_as,
    }


def _off_line_row(repository_id: int, number: int) -> dict[str, object]:
    empty = LandingEvidence(0, 0, 0, 0, 0, 0, {})
    landing = LandedRange(number, "", "", "", True)
    return {**_landing_row(repository_id, WalkedLanding(landing, empty, False, None)), "outcome": OFF_LINE}


def _pair_rows(repository_id: int, one: WalkedLanding) -> list[dict[str, object]]:
    if _outcome(one) != PAIRED:
        return []
    return [
        {
            "repository_id": repository_id,
            "later": one.landing.number,
            "earlier": earlier,
            "removed_lines": pair.removed_lines,
            "real_lines": pair.real_lines,
            "source_lines": pair.source_lines,
            "moved_lines": pair.moved_lines,
            "inserted_lines": pair.inserted_lines,
            "functions": pair.functions[:_MOST_NAMES],
            "names": pair.names[:_MOST_NAMES],
        }
        for earlier, pair in one.evidence.pairs.items()
    ]


_MOST_NAMES = 50
"""Functions, and names, that are kept of a pair."""
