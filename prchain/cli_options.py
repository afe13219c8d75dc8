"""The options that commands of every stage share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def db_option(command: _Command) -> _Command:
    """Add ``--db``; the parameter ``db`` is None where it was not given, as `Settings.load` expects."""
    return click.option(
        "--db",
        metavar="URL",
        help="Database: a SQLAlchemy URL or a SQLite file's path.  [default: sqlite:///data/prchain.db]",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add ``--json``; the parameter is ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(command)


STRATEGIES = click.Choice(["reference", "temporal", "single"])
"""How chains are chosen."""


def strategy_option(command: _Command) -> _Command:
    """Add ``--strategy``, which names one; reference where it is not given."""
    return click.option(
        "--strategy", type=STRATEGIES, default="reference", show_default=True, help="Of the chains chosen how."
    )(command)


def repository_option(command: _Command) -> _Command:
    """Add ``--repository``; the parameter is None where it was not given."""
    return click.option("--repository", metavar="OWNER/NAME", help="Of one repository only.")(command)
