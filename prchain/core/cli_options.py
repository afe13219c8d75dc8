"""The options that commands of every stage share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

import click

from prchain.core.catalogue import Catalogue

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


def choice_option(flag: str, choices: Sequence[str], words: str, *name: str) -> Callable[[_Command], _Command]:
    """Add an option that takes one of the choices; the first is the default."""
    return click.option(flag, *name, type=click.Choice(choices), default=choices[0], show_default=True, help=words)


STRATEGIES = click.Choice(["reference", "lineage", "evidence", "temporal", "single"])
"""How chains are chosen."""


def strategy_option(command: _Command) -> _Command:
    """Add ``--strategy``; the default is ``last``, the strategy that chains were last built with."""
    words = "Only chains that this strategy chose; last: what `prchain chains build` was last run with."
    return choice_option("--strategy", ["last", *STRATEGIES.choices], words)(command)


def repository_option(command: _Command) -> _Command:
    """Add ``--repository``; the parameter is None where it was not given."""
    return click.option("--repository", metavar="OWNER/NAME", help="Of one repository only.")(command)


def proof_option(command: _Command) -> _Command:
    """Add ``--proof``; the values are those of `sql.strength.ProofFilter`."""
    words = "Only what is proved so. own: by tests that no import alone hid; caught: and undoing the work shows."
    return choice_option("--proof", ["any", "own", "caught"], words)(command)


def spending_options(workers: str) -> Callable[[_Command], _Command]:
    """Add ``--workers``, ``--budget`` and ``--dry-run``; `workers` says what is worked on at once."""

    def add(command: _Command) -> _Command:
        for option in (
            click.option(
                "--dry-run", is_flag=True, help="Say how many calls, tokens and USD it would take; ask nothing."
            ),
            click.option(
                "--budget", type=click.FloatRange(min=0), metavar="USD", help="Spend no more than this in this run."
            ),
            click.option("--workers", type=click.IntRange(1, 64), help=f"{workers} at once.  [default: 2]"),
        ):
            command = option(command)
        return command

    return add


class CatalogueOption(click.Option):
    """Takes a name of a catalogue whose items have a ``help``. Its own help shows theirs; only this imports them."""

    def __init__(self, flags: Sequence[str], *, of: Catalogue[Any], **attributes: Any) -> None:
        super().__init__(flags, type=click.Choice(list(of)), **attributes)
        self._of = of

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """See `click.Option.get_help_record`."""
        option = copy(self)
        text, mark, default = str(self.help).partition("  [")
        option.help = f"{text} {'; '.join(f'{name}: {thing.help}' for name, thing in self._of.items())}.{mark}{default}"
        return super(CatalogueOption, option).get_help_record(ctx)
