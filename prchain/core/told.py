"""What an option is, told once: beside the field of the class that holds it.

    @dataclass(frozen=True, slots=True)
    class Options:
        rounds: int = told(6, "Rounds at most.", "Graph", why="the paper's number, appendix D", least=1)

From this come the flag and its help, the keys of `prchain.toml`, and `docs/options.md`; `prchain.core.cli_options`
makes click's options of it. A field without it can be set by code alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Within:
    """A flag that takes ``KEY=VALUE,...``: several fields of a class are its keys."""

    flag: str
    heading: str
    """Of the group of `--help` that it stands in."""
    help: str


@dataclass(frozen=True, slots=True)
class Told:
    """How a field is told on the command line."""

    help: str
    place: str | Within
    """The heading of its flag in `--help`, or the flag whose key it is."""
    why: str
    """Who needs it to be an option."""
    name: str | None = None
    """The flag or the key, where it is not the field's name."""
    least: float | None = None
    most: float | None = None
    unset: str | None = None
    """What holds where it is None."""
    metavar: str | None = None
    times: float = 1
    """What a number is multiplied by, for a field that counts in another unit."""
    head: bool = False
    """Whether its value stands before the keys, without a name: ``both:threshold=0.9``."""
    above: bool = False
    """Whether the number has to be more than `least`, not as much."""
    below: bool = False
    """Whether it has to be less than `most`."""


@dataclass(frozen=True, slots=True)
class ToldKey:
    """A field that is told."""

    field: str
    kind: Any
    """Its type without None; the choices, as a tuple, of a `Literal` or an enumeration."""
    default: Any
    told: Told

    @property
    def name(self) -> str:
        """How it is written, with underscores."""
        return self.told.name or self.field


def told(default: Any, help: str, place: str | Within, *, why: str, **more: Any) -> Any:
    """A dataclass's field that is an option; `more` are the other fields of `Told`."""
    return field(default=default, metadata={"told": Told(help, place, why, **more)})


def keys_of(cls: type) -> dict[str, ToldKey]:
    """Field to key, of a dataclass whose fields are `told` or of a pydantic model with `Told` in its annotations."""
    return {key.field: key for key in _keys(cls)}


def _keys(cls: type) -> Iterator[ToldKey]:
    if is_dataclass(cls):
        hints = get_type_hints(cls)
        for one in fields(cls):
            if found := one.metadata.get("told"):
                yield ToldKey(one.name, _kind(hints[one.name]), one.default, found)
        return
    model_fields: Mapping[str, Any] = cls.model_fields  # type: ignore[attr-defined]
    for name, info in model_fields.items():
        for found in info.metadata:
            if isinstance(found, Told):
                yield ToldKey(name, _kind(info.annotation), info.default, found)


def _kind(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (one for one in get_args(annotation) if one is not NoneType)
    if get_origin(annotation) is Literal:
        return tuple(str(one) for one in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(str(one) for one in annotation)
    return annotation
