"""Whether two databases hold the same facts: `python -m research.same_rows ONE.db OTHER.db`.

Rows are compared by natural key. Ignored are surrogate ids, times (as columns and within JSON), ids of runs and of
trajectories and columns that name them, hashes of requests, since agents read durations, and, within outputs, paths of
this machine and durations. Prints a line for each table, and up to three rows
that only one of them has; exit code 1 where there are any.
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

from sql.json_text import as_stored
from sql.store import Store, Transaction
from sql.tables import Base, Repository, Trajectory

_NO_FACTS = {"seconds", "run", "worker", "key", "tail", "decided_by", "options_hash", "location", "waited_seconds"}
_NO_FACTS |= {"request_hash"}
"""Columns, and fields of JSON, about a run or a machine, which are not facts."""

_SURROGATES = {"repositories", "mine_runs", "llm_calls", "archived_pages", "trajectories"}
"""Tables whose id is a number, or a name, that means another row in another database."""

_OF_A_RUN = re.compile(r"\d+\.\d+ ?s\b|/(?:tmp|var/tmp)/[\w./-]+")
_SHOWN = 3


def facts(tx: Transaction, table: Any, names: Mapping[str, str]) -> Counter[str]:
    """The rows of a table as texts of facts; `names` maps ids of trajectories to labels that do not depend on a run."""
    drop = _NO_FACTS | ({"id"} if table.name in _SURROGATES else set())
    columns = [column for column in table.columns if column.name not in drop and not _is_time(column.name)]
    found: Counter[str] = Counter()
    for row in tx.connection.execute(select(*as_stored(columns))):
        text = json.dumps([_plain(value) for value in row], default=str)
        for name, label in names.items():
            text = text.replace(name, label)
        found[_OF_A_RUN.sub("?", text)] += 1
    return found


def _is_time(name: str) -> bool:
    return name == "at" or name.endswith("_at")


def _plain(value: Any) -> Any:
    """A value; of JSON text, without the fields that a new sandbox or an added option changes."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            data = json.loads(value)
        except ValueError:
            return value
        return json.dumps(_factual(data), sort_keys=True)
    return value


def _factual(data: Any) -> Any:
    if isinstance(data, list):
        return [_factual(item) for item in data]
    if not isinstance(data, dict):
        return data
    drop = _NO_FACTS | {"restored"}
    drop |= {"observers"} if "scaffold" in data and "gate" in data else set()
    drop |= {"prefix"} if "judge" in data else set()
    return {name: _factual(item) for name, item in data.items() if name not in drop and not _is_time(name)}


def all_facts(path: str) -> dict[str, Counter[str]]:
    """The facts of every table."""
    with closing(Store.open(path, create=False)) as store, store.reading() as tx:
        names = {
            str(name): f"<{chain} sample {sample}>"
            for name, chain, sample in tx.rows(Trajectory, "id", "chain_id", "sample")
        }
        assert len({host + name for host, name in tx.rows(Repository, "host", "name")}) < 2 or not names
        return {table.name: facts(tx, table, names) for table in Base.metadata.sorted_tables}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two databases; exit code 1 where a row differs."""
    parser = argparse.ArgumentParser(prog="python -m research.same_rows", description="Compare two databases.")
    parser.add_argument("databases", nargs=2, metavar="FILE.db")
    first, second = map(all_facts, parser.parse_args(arguments).databases)
    different = 0
    for table, rows in first.items():
        only = [("first", rows - second[table]), ("second", second[table] - rows)]
        count = sum(found.total() for _, found in only)
        different += count
        print(f"{table:<24} {rows.total():>6,} rows, {count:,} unlike" if rows or count else f"{table:<24} none")
        for label, found in only:
            for text in list(found)[:_SHOWN]:
                print(f"  only in the {label}: {text[:400]}")
    print("the same facts" if not different else f"{different:,} rows unlike")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
