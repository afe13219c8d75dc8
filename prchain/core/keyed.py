"""Flags that take ``KEY=VALUE,...``: what a key is, what it takes, and what was meant.

    --stage-limits steps=40,usd=2
    --gate both:threshold=0.9         the head, which has no name, comes first

``help`` in the place of a value prints the keys. A flag that is given twice has the keys of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from prchain.core.console.terminal import say_table
from prchain.core.suggest import meant
from prchain.core.told import ToldKey

_ON_OFF = ("on", "off")

HELP = "help"

_MANY = 8
"""With more keys `--help` has their names alone."""


class Given(dict[str, Any]):
    """Field to value, of the keys that were given."""


def type_of(key: ToldKey) -> click.ParamType[Any]:
    """What click reads a key's value with."""
    told = key.told
    if isinstance(key.kind, tuple):
        return click.Choice(key.kind)
    if key.kind is bool:
        return click.Choice(_ON_OFF)
    if key.kind is int:
        return click.IntRange(
            None if told.least is None else int(told.least), None if told.most is None else int(told.most)
        )
    if key.kind is float:
        return click.FloatRange(told.least, told.most, min_open=told.above, max_open=told.below)
    if key.kind is Path:
        return click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.STRING


def takes(key: ToldKey) -> str:
    """A word for what a key takes: its choices, the first of them the default, or its default."""
    kind = type_of(key)
    if isinstance(kind, click.Choice):
        first = written(key.default)
        choices = [str(one) for one in kind.choices]
        return _folded(sorted(choices, key=lambda one: one != first))
    return (key.told.metavar or "N") if key.default is None else written(key.default)


def _folded(choices: Sequence[str]) -> str:
    """Choices between bars; those that each have a longer one with the same ending after a ``+``: ``a|b[+x]``."""
    plain = [one for one in choices if "+" not in one]
    endings = dict.fromkeys(one[one.index("+") :] for one in choices if "+" in one)
    if {*choices} != {one + ending for one in plain for ending in ("", *endings)}:
        return "|".join(choices)
    return "|".join(plain) + "".join(f"[{ending}]" for ending in endings)


def written(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return _ON_OFF[not value]
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


class KeyedType(click.ParamType[Given]):
    """``KEY=VALUE,...``, or ``HEAD:KEY=VALUE,...``."""

    name = "key=value"

    def __init__(self, keys: Sequence[ToldKey]) -> None:
        self.keys = {key.name: key for key in keys if not key.told.head}
        self.head = next((key for key in keys if key.told.head), None)

    @property
    def every(self) -> list[ToldKey]:
        """Head and keys."""
        return [*([] if self.head is None else [self.head]), *self.keys.values()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Given:
        """See `click.ParamType.convert`; a mapping is what a table of `prchain.toml` holds."""
        if isinstance(value, Given):
            return value
        if isinstance(value, Mapping):
            found = [(str(name), one) for name, one in value.items()]
        elif value == HELP:
            self._print(ctx)
            raise click.exceptions.Exit(0)
        else:
            found = self._parts(str(value), param, ctx)
        given = Given()
        for name, text in found:
            key = self.head if self.head is not None and name == self.head.name else self.keys.get(name)
            if key is None:
                known = [*self.keys, *([self.head.name] if self.head and isinstance(value, Mapping) else [])]
                words = meant(name, known, "known are")
                self.fail(f"{name!r} is no key; {words}{'' if words.endswith('?') else '.'}", param, ctx)
            if key.field in given:
                self.fail(f"{name} is given twice.", param, ctx)
            given[key.field] = self._value(key, text, param, ctx)
        return given

    def _parts(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[str, str]]:
        parts = []
        if self.head is not None and "=" not in text.partition(":")[0]:
            first, colon, text = text.partition(":")
            parts.append((self.head.name, first))
            if not colon:
                return parts
        for word in text.split(","):
            name, equals, value = (part.strip() for part in word.partition("="))
            if not equals or not name:
                self.fail(f"it takes {self.form}, not {word!r}; keys are {', '.join(self.keys)}.", param, ctx)
            parts.append((name, value))
        return parts

    def _value(self, key: ToldKey, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = written(value) if isinstance(value, bool) else value
        try:
            found = type_of(key).convert(text, param, ctx)
        except click.BadParameter as error:
            words = error.message if key.told.head else f"{key.name}: {error.message}"
            self.fail(words, param, ctx)
        if key.kind is bool:
            return found == _ON_OFF[0]
        return found if key.told.times == 1 else found * key.told.times

    @property
    def form(self) -> str:
        """What is typed."""
        if self.head is None:
            return "KEY=VALUE,..."
        return f"{self.head.told.metavar or takes(self.head)}[:KEY=VALUE,...]"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """See `click.ParamType.get_metavar`."""
        return self.form

    def _print(self, ctx: click.Context | None) -> None:
        rows = [[key.name, takes(key), _words(key)] for key in self.every]
        if ctx is None or not ctx.resilient_parsing:
            say_table(["key", "value", "what"], rows)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        """Heads, keys, and the values of keys that have choices."""
        before, last = _last(incomplete, ":,")
        items: list[CompletionItem[str]] = []
        if self.head is not None and not before and "=" not in last:
            choices = type_of(self.head).shell_complete(ctx, param, last)
            items += [CompletionItem(item.value) for item in choices]
        name, equals, value = last.partition("=")
        if equals:
            key = self.keys.get(name)
            choices = [] if key is None else type_of(key).shell_complete(ctx, param, value)
            return [CompletionItem(f"{before}{name}={item.value}") for item in choices if item.type == "plain"]
        used = {part.partition("=")[0] for part in before.replace(":", ",").split(",")}
        for name, key in self.keys.items():
            if name.startswith(last) and name not in used:
                items.append(CompletionItem(f"{before}{name}=", help=_words(key)))
        return items


def _last(text: str, marks: str) -> tuple[str, str]:
    """The text up to and with its last mark, and what comes after."""
    end = 1 + max(text.rfind(mark) for mark in marks)
    return text[:end], text[end:]


def _words(key: ToldKey) -> str:
    return f"{key.told.help}  [default: {key.told.unset}]" if key.told.unset else key.told.help


def _listed(kind: KeyedType, flag: str) -> str:
    if not kind.keys:
        return ""
    if len(kind.keys) > _MANY:
        return f"Keys, which `{flag} {HELP}` tells: {', '.join(kind.keys)}."
    return f"Keys: {', '.join(f'{name}={takes(key)}' for name, key in kind.keys.items())}."


class KeyedOption(click.Option):
    """A flag of `KeyedType`. Its value is `Given`, or, with `whole`, that instance with what was given replaced."""

    of_file = True
    type: KeyedType

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        keys: Sequence[ToldKey],
        heading: str,
        whole: Any = None,
        starts: Mapping[str, Any] | None = None,
        **attributes: Any,
    ) -> None:
        """`starts` is field to default, where it is another than the class's."""
        kind = KeyedType([replace(key, default=(starts or {}).get(key.field, key.default)) for key in keys])
        self.help_of_place = str(attributes["help"])
        """The help without the keys."""
        attributes["help"] = f"{attributes['help']} {_listed(kind, declarations[0])}".rstrip()
        super().__init__(declarations, type=kind, multiple=True, **attributes)
        self.heading = heading
        self._whole = whole
        self._starts = starts or {}

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """See `click.Parameter.consume_value`."""
        value, source = super().consume_value(ctx, opts)
        return ([value] if source is ParameterSource.DEFAULT_MAP else value), source

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """See `click.Parameter.process_value`."""
        parts = super().process_value(ctx, value) or ()
        of_file = ctx.lookup_default(str(self.name)) if parts else None
        under = Given() if of_file is None else self.type.convert(of_file, self, ctx)
        given = Given()
        for part in parts:
            if twice := given.keys() & part.keys():
                raise click.BadParameter(f"{min(twice)} is given twice.", ctx=ctx, param=self)
            given.update(part)
        values = Given({**self._starts, **under, **given})
        return replace(self._whole, **values) if is_dataclass(self._whole) else values  # type: ignore[type-var]
