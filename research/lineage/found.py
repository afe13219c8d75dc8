"""What lineage finds in the repositories of a database."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import click
from sqlalchemy import text

from prchain.core.console.terminal import say_table
from sql.store import Store

_STRENGTHS = (("1-4", 1), ("5-19", 5), ("20-99", 20), ("100-", 100))
"""Real lines from which a pair counts for a column."""
_PAIRS = text("SELECT repository, real_lines, cited FROM lineage_edges")
_LANDINGS = text(
    "SELECT r.owner || '/' || r.name, l.outcome FROM lineage_landings AS l JOIN repositories AS r "
    "ON r.id = l.repository_id"
)
_WALKS = text(
    "SELECT r.owner || '/' || r.name, w.missing_blobs, w.unread FROM lineage_walks AS w JOIN repositories AS r "
    "ON r.id = w.repository_id ORDER BY 1"
)


@click.command()
@click.option("--db", required=True, help="In which `prchain chains lineage` has run.")
def found(db: str) -> None:
    """Count pairs by strength, the share that nobody cites, sweeping landings and missing files."""
    with closing(Store.open(db, create=False)) as store, store.reading() as tx:
        pairs: dict[str, Counter[str]] = {}
        for name, lines, cited in tx.connection.execute(_PAIRS):
            counts = pairs.setdefault(name, Counter())
            strength = next((title for title, fewest in reversed(_STRENGTHS) if lines >= fewest), "0")
            counts[strength] += 1
            counts["uncited"] += not cited
            counts["all"] += 1
        landings: dict[str, Counter[str]] = {}
        for name, outcome in tx.connection.execute(_LANDINGS):
            landings.setdefault(name, Counter())[outcome] += 1
        rows = [
            (
                name,
                landings[name].total(),
                landings[name]["paired"],
                landings[name]["sweeping"],
                landings[name]["same_change"],
                landings[name]["carries_landings"],
                *(pairs[name][strength] for strength in ("0", *(title for title, _ in _STRENGTHS))),
                f"{pairs[name]['uncited'] / pairs[name]['all']:.1%}",
                missing,
                unread,
            )
            for name, missing, unread in tx.connection.execute(_WALKS)
        ]
    columns = ("repository", "landed", "paired", "sweeping", "same", "carrying", "pairs of 0 lines")
    say_table((*columns, *(title for title, _ in _STRENGTHS), "uncited", "missing", "unread"), rows)
