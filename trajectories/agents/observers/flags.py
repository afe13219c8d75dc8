"""The flags that say what watches an agent: ``--observer`` and ``--prm``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import click

from prchain.core.cli_options import option
from prchain.core.keyed import Given, KeyedOption
from prchain.core.told import Told, ToldKey, keys_of
from trajectories.agents.guidance.settings import PRM, PrmSettings
from trajectories.agents.guidance.variants import VARIANTS

_Command = TypeVar("_Command", bound=Callable[..., Any])

_PRM = "prm"

_AXES = ("style", "example", "reads", "action")

_VARIANT = ToldKey(
    "variant",
    tuple(VARIANTS),
    "D",
    Told("The paper's name of a point on the four axes.", PRM, "the paper's eight", head=True, metavar="VARIANT"),
)


def observer_options(command: _Command) -> _Command:
    """Add ``--observer`` and ``--prm``; `observer_specs` reads them."""
    return option(
        "--observer",
        "observers",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        heading=PRM.heading,
        help="Let it watch each step, and speak to the agent; may be given several times. repetition:times=3 tells of "
        "repeated calls.",
    )(prm_option(command))


def prm_option(command: _Command) -> _Command:
    """Add ``--prm``: a variant, or settings, or both; the parameter is None where it was not given."""
    words = f"{PRM.help} {', '.join(VARIANTS)}."
    return click.option(
        PRM.flag, cls=_PrmOption, is_flag=False, flag_value="D", keys=_KEYS, heading=PRM.heading, help=words
    )(command)


def sweep_option(command: _Command) -> _Command:
    """Add ``--prm`` with what all variants of a comparison share."""
    words = "What all variants share."
    keys = [key for key in _KEYS if key is not _VARIANT and key.field not in _AXES]
    return click.option(PRM.flag, cls=_PrmOption, keys=keys, heading=PRM.heading, help=words)(command)


_KEYS = (_VARIANT, *keys_of(PrmSettings).values())


class _PrmOption(KeyedOption):
    """Settings that were given, as texts; None where the flag was not."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """See `KeyedOption.process_value`."""
        found: Given = super().process_value(ctx, value)
        return {name: _text(one) for name, one in found.items()} or None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def observer_specs(flags: MutableMapping[str, Any]) -> tuple[str, ...]:
    """The observers that the flags ask for, as `make_observers` of `setup` takes them; their flags are taken out of
    `flags`."""
    specs = tuple(flags.pop("observers"))
    chosen: Mapping[str, str] | None = flags.pop(_PRM)
    return specs if chosen is None else (*specs, prm_spec(chosen))


def prm_spec(chosen: Mapping[str, str]) -> str:
    """A process reward model of these settings, as `make_observers` takes it; D where no axis is named."""
    named = chosen.keys() & {"variant", *_AXES}
    return f"{_PRM}:" + ",".join(
        f"{name}={value}" for name, value in (({} if named else {"variant": "D"}) | {**chosen}).items()
    )
