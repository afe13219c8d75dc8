"""The options that commands share, and how `--help` shows options: those of a long list under headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from typing import Any, TypeVar

import click

from prchain.core.catalogue import Catalogue
from prchain.core.keyed import Given, KeyedOption, type_of
from prchain.core.told import ToldKey, Within, keys_of

_Command = TypeVar("_Command", bound=Callable[..., Any])

WHICH, COST, SANDBOX, OUTPUT = "Which", "Cost", "Sandbox", "Output"
"""Headings of options that commands of every stage share."""

_PLAIN = 10
"""As many options have no headings."""


BEFORE = "prchain.before"
"""In a context's `meta`: what is called with the context of a command before it runs."""


class Command(click.Command):
    """A command whose options stand under headings where they are many. What chooses what is worked on is given once:
    click would take the last and pass over the others without a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`. Raises `click.UsageError` for an option that is given twice and takes one."""
        if not ctx.resilient_parsing:
            given = self.make_parser(ctx).parse_args(list(args))[2]
            for param in given:
                if given.count(param) > 1 and isinstance(param, Option) and param.chooses_one:
                    raise click.UsageError(
                        f"{param.opts[0]} is given twice, and takes one; run the command for each.", ctx
                    )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See `click.Command.invoke`."""
        if before := ctx.meta.get(BEFORE):
            before(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command.format_options`."""
        sections: dict[str, list[tuple[str, str]]] = {}
        last: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                heading = getattr(param, "heading", OUTPUT)
                (last if heading == OUTPUT else sections.setdefault(heading, [])).append(record)
        sections[OUTPUT] = last
        if sum(map(len, sections.values())) <= _PLAIN + 1:
            super().format_options(ctx, formatter)
            return
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type


class Option(click.Option):
    """An option under a heading of `--help`."""

    def __init__(self, flags: Sequence[str], *, heading: str = OUTPUT, **attributes: Any) -> None:
        if isinstance(attributes.get("type"), click.IntRange | click.FloatRange):
            attributes.setdefault("metavar", "N")
        super().__init__(flags, **attributes)
        self.heading = heading

    @property
    def chooses_one(self) -> bool:
        """Whether it has one value, which says what is worked on."""
        return self.heading == WHICH and not self.is_flag and not self.multiple

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        """See `click.Option.get_help_extra`; a value outside of a range is told it, the page has no room."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class ToldOption(Option):
    """An option that a field tells; `prchain.toml` may hold it."""

    of_file = True

    def __init__(self, flags: Sequence[str], *, key: ToldKey, **attributes: Any) -> None:
        super().__init__(flags, **attributes)
        self.key = key


def option(*flags: str, heading: str = OUTPUT, **attributes: Any) -> Callable[[_Command], _Command]:
    """`click.option` with a heading."""
    return click.option(*flags, cls=Option, heading=heading, **attributes)


def told_options(cls: type, *names: str, defaults: Mapping[str, Any] | None = None) -> Callable[[_Command], _Command]:
    """Add the options of a class whose fields are told (`prchain.core.told`): those of `names`, in their order, or all.
    ``stage_limits.steps`` is a field that holds such a class, with one of its keys alone.

    `defaults` is field to default, where a command has another one than the class. The parameters are the fields'
    names, and those of flags that hold several keys; `given` makes fields of them.
    """
    starts = defaults or {}
    keys = keys_of(cls)
    places: dict[Any, list[ToldKey]] = {}
    only: dict[str, list[str]] = {}
    for dotted in names or keys:
        name, _, inner = dotted.partition(".")
        key = keys[name]
        only.setdefault(name, []).extend([inner] if inner else [])
        places.setdefault(key.told.place if isinstance(key.told.place, Within) else key, []).append(key)

    def add(command: _Command) -> _Command:
        for place, found in reversed(places.items()):
            command = _option_of(place, found, starts, only[found[0].field])(command)
        return command

    return add


def _option_of(
    place: Within | ToldKey, keys: Sequence[ToldKey], starts: Mapping[str, Any], only: Sequence[str]
) -> Callable[[_Command], _Command]:
    if isinstance(place, Within):
        own = {key.field: starts[key.field] for key in keys if key.field in starts}
        return click.option(place.flag, cls=KeyedOption, keys=keys, heading=place.heading, starts=own, help=place.help)
    told, default = place.told, starts.get(place.field, place.default)
    flag, heading = f"--{place.name.replace('_', '-')}", str(told.place)
    if isinstance(place.kind, tuple) and default is not None:
        default = str(default)  # click shows an enumeration by its name
    if isinstance(place.kind, type) and is_dataclass(place.kind):
        inner = [key for key in keys_of(place.kind).values() if not only or key.field in only]
        own = {key.field: getattr(default, key.field) for key in inner}
        return click.option(
            flag, place.field, cls=KeyedOption, keys=inner, heading=heading, whole=default, starts=own, help=told.help
        )
    if place.kind is bool:
        return click.option(
            flag, place.field, cls=ToldOption, key=place, heading=heading, is_flag=True, default=default, help=told.help
        )
    return click.option(
        flag,
        place.field,
        cls=ToldOption,
        key=place,
        heading=heading,
        type=type_of(place),
        default=default,
        show_default=told.unset if default is None and told.unset else default is not None,
        **({"metavar": told.metavar} if told.metavar else {}),
        help=told.help,
    )


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Field to value, of parameters of `told_options`: the keys of a flag are fields of their own."""
    found: dict[str, Any] = {}
    for name, value in flags.items():
        found.update(value if isinstance(value, Given) else {name: value})
    return found


def db_option(command: _Command) -> _Command:
    """Add ``--db``; the parameter ``db`` is None where it was not given, as `Settings.load` expects."""
    return option(
        "--db",
        metavar="URL",
        help="URL or SQLite file.  [default: sqlite:///data/prchain.db]",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add ``--json``; the parameter is ``as_json``."""
    return option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(command)


def choice_option(
    flag: str, choices: Sequence[str], words: str, *name: str, heading: str = OUTPUT
) -> Callable[[_Command], _Command]:
    """Add an option that takes one of the choices; the first is the default."""
    kind = click.Choice(choices)
    return option(flag, *name, type=kind, default=choices[0], show_default=True, help=words, heading=heading)


STRATEGIES = click.Choice(["reference", "lineage", "evidence", "temporal", "single"])
"""How chains are chosen."""

IMPORTED = "imported"
"""In place of a strategy: chains that `prchain tasks import` made of tasks of others."""

SURVEYED = "survey"
"""In place of a strategy: chains of one that `prchain environments survey` drew. They are no choice of the user's, so
that nothing works on them but that command."""


def strategy_option(command: _Command) -> _Command:
    """Add ``--strategy``; the default is ``last``, the strategy that chains were last built with."""
    words = "Only chains that this strategy chose; last: that of the last `prchain chains build`."
    return choice_option("--strategy", ["last", *STRATEGIES.choices, IMPORTED], words, heading=WHICH)(command)


def repository_option(command: _Command) -> _Command:
    """Add ``--repository``; the parameter is None where it was not given."""
    return option("--repository", metavar="OWNER/NAME", heading=WHICH, help="Of one repository only.")(command)


def proof_option(command: _Command) -> _Command:
    """Add ``--proof``; the values are those of `sql.proof_filter.ProofFilter`."""
    words = "Proved so. own: no import alone hid the tests; caught: undoing shows; told: no grade holds what they ask."
    kind = click.Choice(["any", "own", "caught", "told"])
    return option("--proof", type=kind, default="any", show_default=True, heading=WHICH, help=words)(command)


def labels_option(command: _Command) -> _Command:
    """Add ``--labels``; the values are those of `sql.labels.LabelFilter`."""
    words = "Of chains nobody labelled drop; kept: and one keep."
    kind = click.Choice(["any", "undropped", "kept"])
    return option("--labels", type=kind, default="any", show_default=True, heading=WHICH, help=words)(command)


def chain_option(command: _Command) -> _Command:
    """Add ``--chain``; the parameter is None where it was not given."""
    words = "Of one chain only, by its id or its beginning."
    return option("--chain", metavar="ID", heading=WHICH, help=words)(command)


def limit_option(words: str = "Only the N best chains that have a task.") -> Callable[[_Command], _Command]:
    """Add ``--limit``; the parameter is None where it was not given."""
    return option("--limit", type=click.IntRange(min=1), metavar="N", heading=WHICH, help=words)


def samples_option(words: str = "Rollouts of each chain.") -> Callable[[_Command], _Command]:
    """Add ``--samples``."""
    kind = click.IntRange(min=1)
    return option("--samples", type=kind, metavar="N", default=1, show_default=True, heading=WHICH, help=words)


def backend_options(
    catalogue: Catalogue[Any], default: str = "docker, or environments_backend", *, unsafe: bool = True
) -> Callable[[_Command], _Command]:
    """Add ``--backend`` and ``--unsafe-local`` (the parameter ``unsafe``)."""

    def add(command: _Command) -> _Command:
        words = f"Where commands run.  [default: {default}]"
        if unsafe:
            needed = "Needed for the backend of that name."
            command = option("--unsafe-local", "unsafe", is_flag=True, heading=SANDBOX, help=needed)(command)
        return click.option("--backend", cls=CatalogueOption, of=catalogue, heading=SANDBOX, help=words)(command)

    return add


def workers_option(words: str) -> Callable[[_Command], _Command]:
    """Add ``--workers``; `words` says what is worked on at once."""
    return option(
        "--workers", type=click.IntRange(1, 64), metavar="N", heading=COST, help=f"{words} at once.  [default: 2]"
    )


def budget_option(words: str = "Spend no more than this in this run.") -> Callable[[_Command], _Command]:
    """Add ``--budget``."""
    return option("--budget", type=click.FloatRange(min=0), metavar="USD", heading=COST, help=words)


def spending_options(workers: str) -> Callable[[_Command], _Command]:
    """Add ``--workers``, ``--budget`` and ``--dry-run``; `workers` says what is worked on at once."""
    words = "Say what it would take, in calls, tokens and USD; ask nothing."

    def add(command: _Command) -> _Command:
        dry = option("--dry-run", is_flag=True, heading=COST, help=words)
        return workers_option(workers)(budget_option()(dry(command)))

    return add


class CatalogueOption(Option):
    """Takes a name of a catalogue whose items have a ``help``. Its own help shows theirs; only this imports them.
    With a `metavar` a user may have items of their own, whose names are looked up later."""

    def __init__(self, flags: Sequence[str], *, of: Mapping[str, Any], **attributes: Any) -> None:
        super().__init__(flags, type=None if "metavar" in attributes else click.Choice(list(of)), **attributes)
        self._of = of

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """See `click.Option.get_help_record`."""
        option = copy(self)
        text, mark, default = str(self.help).partition("  [")
        option.help = f"{text} {'; '.join(f'{name}: {thing.help}' for name, thing in self._of.items())}.{mark}{default}"
        return super(CatalogueOption, option).get_help_record(ctx)
