"""The flags that say what watches an agent: ``--observer``, and ``--prm`` with its own."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import click

from prchain.core.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])

_PRM = "prm"

_ON_OFF = {"on": "true", "off": "false"}

_TURNS_ON = ("style", "example", "reads", "action")
"""Axes: to name one is to ask for a process reward model."""

_FLAGS: tuple[tuple[str, Any, str | None, str], ...] = (
    ("style", None, "STYLE", "simple, concise or detailed.  [default: that of the variant]"),
    ("example", click.Choice(list(_ON_OFF)), None, "Whether its prompt shows a reply."),
    ("reads", None, "WHAT", "What the agent reads of it: all, or guidance."),
    ("action", click.Choice(list(_ON_OFF)), None, "Whether it recommends one next call."),
    ("every", click.INT, "N", "It is asked after every N steps.  [default: 5]"),
    ("window", click.INT, "K", "It reads the last K steps.  [default: 8]"),
    ("reply", None, "FORM", "The form of its reply: text or json.  [default: text]"),
    ("keep", None, "WHAT", "What of its words stays in the conversation: all, or last.  [default: all]"),
    ("send", None, "WHEN", "Whether the agent is told of all windows, or of suboptimal ones.  [default: all]"),
    ("schedule", None, "WHEN", "every, none or adaptive.  [default: every]"),
    ("detectors", None, "WHAT", "Findings of code: off, report, or tell the agent, too.  [default: report]"),
    ("taxonomy", None, "FILE", "A TOML file with categories of your own.  [default: the paper's twelve]"),
)


def observer_options(command: _Command) -> _Command:
    """Add ``--observer`` and the flags of process reward models; `observer_specs` reads them."""
    return click.option(
        "--observer",
        "observers",
        multiple=True,
        metavar="NAME[:SETTING=VALUE,...]",
        help="Let it watch each step, and speak to the agent; may be given several times.  [repetition: the same "
        "call with the same result, times=3]",
    )(prm_settings(command))


def prm_settings(command: _Command) -> _Command:
    """Add ``--prm`` and its own flags."""
    for name, kind, metavar, words in reversed(_FLAGS):
        command = click.option(f"--prm-{name}", f"prm_{name}", type=kind, metavar=metavar, help=words)(command)
    return click.option(
        "--prm",
        is_flag=False,
        flag_value="D",
        metavar="[VARIANT]",
        help="Let a process reward model guide the agent: S, C, CG, D (taken if none is named), DN, DG, DNG or DR.",
    )(command)


def observer_specs(flags: MutableMapping[str, Any]) -> tuple[str, ...]:
    """The observers that the flags ask for, as `make_observers` of `setup` takes them; their flags
    are taken out of `flags`. Raises `UsageError` for settings of a process reward model that nobody asked for."""
    specs = tuple(flags.pop("observers"))
    variant = flags.pop(_PRM)
    values = {name: flags.pop(f"{_PRM}_{name}") for name, *_ in _FLAGS}
    chosen = {name: _ON_OFF.get(str(value), str(value)) for name, value in values.items() if value is not None}
    if variant is not None and "," in variant:
        raise UsageError(f"--prm takes one variant, not {variant!r}")
    for name, value in chosen.items():
        if "," in value:
            raise UsageError(f"--prm-{name} cannot hold a comma: {value!r}")
    if variant is None and not chosen.keys() & set(_TURNS_ON):
        if chosen:
            raise UsageError(f"--prm-{next(iter(chosen))} is of a process reward model; ask for one with --prm")
        return specs
    settings = ({} if variant is None else {"variant": variant}) | chosen
    words = ",".join(f"{name}={value}" for name, value in settings.items())
    return (*specs, f"{_PRM}:{words}" if words else _PRM)
