"""Kinds of observers from the values of ``--observer``.

Kinds are found by entry points of the group ``prchain.observers``: any package can bring some. An entry point
names a callable that takes settings by their names, as texts, and returns an
`trajectories.agents.scaffolds.scaffold.ObserverKind`; `trajectories.agents.observers.repetition` is an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from pydantic import ValidationError

from prchain.core.errors import UsageError
from trajectories.agents.observers.failures import observer_errors
from trajectories.agents.scaffolds.scaffold import ObserverKind

GROUP = "prchain.observers"


def make_observers(specs: Sequence[str]) -> tuple[ObserverKind, ...]:
    """The requested kinds; each spec is ``NAME`` or ``NAME:setting=value,setting=value``.

    Raises `UsageError` for an unknown or repeated name, and for settings that the kind refuses.
    """
    kinds = tuple(_make(spec) for spec in specs)
    names = [kind.name for kind in kinds]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"the observer {twice[0]} is named twice")
    return kinds


def _make(spec: str) -> ObserverKind:
    name, _, words = spec.partition(":")
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise UsageError(f"there is no observer {name!r}; known are {', '.join(sorted(points)) or 'none'}")
    settings: dict[str, str] = {}
    for word in filter(None, words.split(",")):
        setting, equals, value = word.partition("=")
        if not equals or not setting:
            raise UsageError(f"--observer takes NAME or NAME:setting=value,..., not {spec!r}")
        settings[setting.strip()] = value.strip()
    return _load(points[name], settings)


def _load(point: EntryPoint, settings: dict[str, str]) -> ObserverKind:
    try:
        factory = point.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the observer {point.name} cannot be loaded: {error}") from None
    with observer_errors(point.name):
        try:
            kind = factory(**settings)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            words = first["msg"].removeprefix("Value error, ")
            raise UsageError(f"the observer {point.name}: {f'{where}: ' if where else ''}{words}") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"the observer {point.name}: {error}") from None
    if not isinstance(kind, ObserverKind):
        raise UsageError(f"the observer {point.name} is none: {point.value} does not make an ObserverKind")
    return kind
