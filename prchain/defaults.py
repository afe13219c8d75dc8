"""Options that `prchain.toml` holds for a command, in a table of its name: ``[defaults.rollouts.run]``.

Only options that a class tells (`prchain.core.told`) can stand there: none that chooses what is worked on, and none
that lets code run unprotected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from prchain.core.errors import SettingsError
from prchain.core.suggest import meant

TABLE = "defaults"


def file_defaults(group: click.Group, context: click.Context, invoked: str | None, file: Path) -> dict[str, Any] | None:
    """What click takes for the defaults of the invoked command (`click.Context.default_map`); None without any.

    A file that cannot be read is left to `prchain.core.settings.Settings.load`, which says so. Raises `SettingsError`.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get(TABLE, {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    if not isinstance(table, Mapping):
        return None
    for name in table:
        _require(name, group.list_commands(context), f"{TABLE}.{name}", "command")
    if invoked is None or invoked not in table:
        return None
    command = group.get_command(context, invoked)
    return None if command is None else {invoked: _values(command, table[invoked], f"{TABLE}.{invoked}")}


def _values(command: click.Command, table: Any, place: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise SettingsError(f"prchain.toml: {place} must be a table")
    found: dict[str, Any] = {}
    if isinstance(command, click.Group):
        for name, inner in table.items():
            _require(name, command.commands, f"{place}.{name}", "command")
            found[name] = _values(command.commands[name], inner, f"{place}.{name}")
        return found
    options = {
        param.opts[0].removeprefix("--").replace("-", "_"): param
        for param in command.params
        if getattr(param, "of_file", False)
    }
    for name, value in table.items():
        _require(name, options, f"{place}.{name}", "option")
        option = options[name]
        try:
            option.type.convert(value, option, None)
        except click.BadParameter as error:
            raise SettingsError(f"prchain.toml: {place}.{name}: {error.message}") from None
        found[str(option.name)] = value
    return found


def _require(name: str, known: Any, place: str, noun: str) -> None:
    if name not in known:
        raise SettingsError(f"prchain.toml: {place} is no {noun} that it can hold; {meant(name, known, 'known are')}")
