"""Whether two databases hold the same facts: `python -m research.same_rows ONE.db OTHER.db`.

Rows are compared by natural key: surrogate ids, times, ids of runs and of trajectories and what names them do not
count, nor do places on this machine and how long something took where it stands in an output. Prints a line a table,
and up to three rows that only one of them has; exit code 1 where there are any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import select

from sql.store import Store, Transaction
from sql.tables import Base, Repository, Trajectory

_NO_FACTS = {"seconds", "run", "worker", "key", "tail", "decided_by", "options_hash", "location", "waited_seconds"}
"""Columns that tell of a run or of a machine, and of no fact."""

_SURROGATES = {"repositories", "mine_runs", "llm_calls", "archived_pages", "trajectories"}
"""Tables whose id is a number, or a name, that another database gives to something else."""

_OF_A_RUN = re.compile(r"\d+\.\d+ ?s\b|/(?:tmp|var/tmp)/[\w./-]+")
_SHOWN = 3


def facts(tx: Transaction, table: Any, names: Mapping[str, str]) -> Counter[str]:
    """The rows of a table by what they say; `names` are trajectories' ids with what they are called by here."""
    drop = _NO_FACTS | ({"id"} if table.name in _SURROGATES else set())
    columns = [
        column
        for column in table.columns
        if column.name not in drop and not column.name.endswith("_at") and column.name != "at"
    ]
    found: Counter[str] = Counter()
    for row in tx.connection.execute(select(*columns)):
        text = json.dumps([_plain(value) for value in row], default=str)
        for name, called in names.items():
            text = text.replace(name, called)
        found[_OF_A_RUN.sub("?", text)] += 1
    return found


def _plain(value: Any) -> Any:
    """A value; of JSON text, without what a new sandbox or an added option leaves in it."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            read = json.loads(value)
        except ValueError:
            return value
        if "scaffold" in read and "gate" in read:
            read.pop("observers", None)
        if "judge" in read:
            read.pop("prefix", None)
        read.pop("restored", None)
        return json.dumps(read, sort_keys=True)
    return value


def all_facts(path: str) -> dict[str, Counter[str]]:
    """Every table's."""
    with closing(Store.open(path, create=False)) as store, store.reading() as tx:
        names = {
            str(name): f"<{chain} sample {sample}>"
            for name, chain, sample in tx.rows(Trajectory, "id", "chain_id", "sample")
        }
        assert len({host + name for host, name in tx.rows(Repository, "host", "name")}) < 2 or not names
        return {table.name: facts(tx, table, names) for table in Base.metadata.sorted_tables}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two databases; exit code 1 where a row is unlike."""
    parser = argparse.ArgumentParser(prog="python -m research.same_rows", description="Compare two databases.")
    parser.add_argument("databases", nargs=2, metavar="FILE.db")
    first, other = map(all_facts, parser.parse_args(arguments).databases)
    unlike = 0
    for table, rows in first.items():
        only = [("first", rows - other[table]), ("second", other[table] - rows)]
        count = sum(found.total() for _, found in only)
        unlike += count
        print(f"{table:<24} {rows.total():>6,} rows, {count:,} unlike" if rows or count else f"{table:<24} none")
        for where, found in only:
            for text in list(found)[:_SHOWN]:
                print(f"  only in the {where}: {text[:400]}")
    print("the same facts" if not unlike else f"{unlike:,} rows unlike")
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
