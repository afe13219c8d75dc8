"""The queries of ``sql/queries``: SQL for people, run by name.

A file is one statement. Its first line is a comment that says what the query answers. Parameters are written
``:name`` and are all optional: a query reads ``CAST(:name AS TEXT) IS NULL OR ...``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from prchain.core.errors import StoreUnavailable, UsageError
from prchain.core.secrets.scrub import redact
from prchain.core.suggest import meant
from sql.store import Store

FOLDER = Path(__file__).with_name("queries")


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One query: its name, what it answers, its SQL and its parameters."""

    name: str
    description: str
    statement: str

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        return sorted(text(self.statement)._bindparams)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A query's columns, and its rows as they stream in."""

    columns: tuple[str, ...]
    rows: Iterator[Sequence[Any]]


def named_queries() -> dict[str, NamedQuery]:
    """All queries of the package by name."""
    return {path.stem: _load(path) for path in sorted(FOLDER.glob("*.sql"))}


def find_query(name: str) -> NamedQuery:
    """The query of that name; raises `UsageError`, which tells the nearest name, or all there are."""
    queries = named_queries()
    if name not in queries:
        hint = meant(name, queries, "there are")
        raise UsageError(f"there is no query named {name!r}; {hint}; SQL of your own goes after --query")
    return queries[name]


@contextmanager
def run_query(store: Store, query: NamedQuery, values: Mapping[str, str]) -> Iterator[QueryResult]:
    """Run a named query in a transaction that cannot write; a parameter without a value is null.

    Raises `UsageError` for a value whose name is no parameter of the query.
    """
    unknown = sorted(set(values) - set(query.parameters))
    if unknown:
        hint = meant(unknown[0], query.parameters, "its parameters:") if query.parameters else "nor any other parameter"
        raise UsageError(f"{query.name} takes no {unknown[0]}; {hint}")
    parameters = {name: values.get(name) for name in query.parameters}
    with _run(store, text(query.statement), parameters) as result:
        yield result


@contextmanager
def run_sql(store: Store, statement: str) -> Iterator[QueryResult]:
    """Run the user's own statement in a transaction that cannot write.

    Raises `UsageError` with the database's words where it refuses the statement.
    """
    try:
        with _run(store, text(statement.strip().rstrip(";").replace(":", r"\:")), {}) as result:
            yield result
    except StoreUnavailable as error:
        error_code = getattr(getattr(error.__cause__, "orig", None), "sqlite_errorcode", None)
        if error_code == sqlite3.SQLITE_READONLY:
            raise UsageError("the query writes; only reading is possible here") from error
        raise
    except DBAPIError as error:
        message = next(iter(str(error.orig).splitlines()), "")
        raise UsageError(f"the database refuses the query: {redact(message)}") from error
    except ResourceClosedError as error:
        raise UsageError("the query gives no rows; only reading is possible here") from error


@contextmanager
def _run(store: Store, statement: TextClause, parameters: Mapping[str, str | None]) -> Iterator[QueryResult]:
    with store.reading() as tx:
        # A server-side cursor streams; and PostgreSQL takes nothing but one query for it.
        answer = tx.connection.execute(statement, parameters, execution_options={"yield_per": 1000})
        yield QueryResult(tuple(answer.keys()), iter(answer))


def _load(path: Path) -> NamedQuery:
    comment, _, statement = path.read_text(encoding="utf-8").partition("\n")
    return NamedQuery(path.stem, comment.removeprefix("--").strip(), statement)
