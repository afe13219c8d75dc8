"""The command ``prchain sql``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from prchain.core.cli_options import db_option, json_option
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store


def _queries(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of queries that begin so, for the shell; without SQLAlchemy, which `sql.named` loads."""
    names = sorted(path.stem for path in Path(__file__).with_name("queries").glob("*.sql"))
    return [name for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_queries)
@click.argument("values", metavar="[PARAMETER=VALUE]...", nargs=-1)
@click.option("--list", "as_list", is_flag=True, help="List the named queries and their parameters.")
@click.option("--query", metavar="SQL", help="Run this statement instead of a named query; it can only read.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@json_option
@db_option
def sql(
    name: str | None,
    values: tuple[str, ...],
    as_list: bool,
    query: str | None,
    as_csv: bool,
    as_json: bool,
    db: str | None,
) -> None:
    """Run a named query, or one of your own, over the database. Nothing can be written this way.

    \b
    Examples:
      prchain sql --list
      prchain sql funnel repository=numpy/numpy
      prchain sql --csv --query "SELECT * FROM citation_edges WHERE counted = 1"
    """
    from sql import named, output

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    if (name is not None) + (query is not None) + as_list != 1:
        raise UsageError("name one query, or give --query SQL, or --list")
    if query is not None and values:
        raise UsageError("--query takes no parameters; write the values into the SQL")
    if as_json:
        write = output.write_json
    elif as_csv:
        write = output.write_csv
    else:
        write = output.write_table if sys.stdout.isatty() else output.write_lines

    if as_list:
        rows = [
            (named_query.name, " ".join(named_query.parameters), named_query.description)
            for named_query in named.named_queries().values()
        ]
        write(("name", "parameters", "description"), rows, sys.stdout)
        return
    chosen = named.find_query(name) if name is not None else None
    parameters = _parameters(values)
    with opened_store(load_settings(db=db).db) as store:
        running = named.run_query(store, chosen, parameters) if chosen else named.run_sql(store, query or "")
        with running as result:
            write(result.columns, result.rows, sys.stdout)


def _parameters(values: tuple[str, ...]) -> dict[str, str]:
    parameters = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise UsageError(f"{value} is no parameter; write NAME=VALUE, such as repository=numpy/numpy")
        parameters[name] = text
    return parameters
