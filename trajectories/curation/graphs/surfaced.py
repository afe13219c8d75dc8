"""What texts have shown so far, and whether that covers what another text names (P2T, app. H)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations

from prchain.core.code.identifiers import identifiers
from trajectories.agents.steps.entities import Entity, EntityKind

_MOST_PARTS = 12
"""Parts of a dotted name whose combinations are looked at; one of more parts stands for itself alone."""
_MOST_FOLDERS = 32
"""The same of a path's parts, of which only the ends and the beginnings are looked at."""

_SHELVES = {
    EntityKind.MODULE: "dotted",
    EntityKind.QUALIFIED: "dotted",
    EntityKind.DEFINED: "name",
    EntityKind.ERROR: "name",
}
"""Kinds whose entities are held by each other's."""


class Surfaced:
    """What texts have shown, in their order: the entities of each are added, and `holds` asks for one in a time that
    does not grow with them.

    An entity is held if what was shown says at least as much as it does, so the vaguer is held by the fuller and never
    the other way round:

    - A path shows itself, its ends at a slash, its folders, the words in it, and the module that it is the file of. A
      bare `x.py` does not show `a/x.py`: that there is one in `a` is more than was said.
    - A dotted name shows every run of its parts. It is also held by any of its own ends of two parts or more (P2T,
      app. H): `a.b.c` by `b.c`, because what an object is called in one scope tells nothing in another.
    - A name is one name, whether it is mentioned, defined, or an error's.
    - Lines `10-20` show the numbers `10` and `20`; what lies between them need not have been seen.
    """

    def __init__(self) -> None:
        self._known: set[Entity] = set()
        self._first: dict[tuple[str, str], int] = {}
        self._texts = 0

    def add(self, found: Iterable[Entity]) -> None:
        """Take what the next text names."""
        for entity in found:
            if entity not in self._known:
                self._known.add(entity)
                for form in _shown(entity):
                    self._first.setdefault(form, self._texts)
        self._texts += 1

    def first(self, entity: Entity) -> int | None:
        """The number, from 0, of the text since which the entity is held; None if it is not."""
        return min((self._first[form] for form in _asked(entity) if form in self._first), default=None)

    def holds(self, entity: Entity) -> bool:
        """Whether the texts have shown the entity."""
        return any(form in self._first for form in _asked(entity))


def holds(entity: Entity, surfaced: Surfaced | Collection[Entity]) -> bool:
    """Whether what was shown covers an entity, by the rules of `Surfaced`."""
    if not isinstance(surfaced, Surfaced):
        shown, surfaced = surfaced, Surfaced()
        surfaced.add(shown)
    return surfaced.holds(entity)


def _shelf(kind: EntityKind) -> str:
    return _SHELVES.get(kind, kind.value)


def _asked(entity: Entity) -> Iterator[tuple[str, str]]:
    """The forms of which any holds an entity."""
    shelf = _shelf(entity.kind)
    yield shelf, entity.text
    if shelf == "dotted":
        parts = entity.text.split(".")
        for start in range(1, len(parts) - 1) if len(parts) <= _MOST_PARTS else ():
            yield shelf, ".".join(parts[start:])


def _shown(entity: Entity) -> Iterator[tuple[str, str]]:
    """The forms that an entity shows."""
    shelf = _shelf(entity.kind)
    yield shelf, entity.text
    if entity.kind is EntityKind.PATH:
        yield from _shown_by_path(entity.text)
    elif shelf == "dotted":
        yield from _runs(entity.text.split("."))
    elif entity.kind is EntityKind.LINE:
        for line in entity.text.split("-"):
            yield shelf, line


def _shown_by_path(path: str) -> Iterator[tuple[str, str]]:
    parts = [part for part in path.split("/") if part]
    for name in identifiers(path):
        yield EntityKind.NAME.value, name
    if len(parts) > _MOST_FOLDERS:
        return
    begin = "/" if path.startswith("/") else ""
    for place in range(len(parts)):
        yield EntityKind.PATH.value, "/".join(parts[place:])
        yield EntityKind.PATH.value, begin + "/".join(parts[: place + 1])
    module = [*parts[:-1], parts[-1].partition(".")[0]] if parts else []
    if module[-1:] == ["__init__"]:
        del module[-1]
    yield from _runs(module)


def _runs(parts: list[str]) -> Iterator[tuple[str, str]]:
    """Every run of names, joined by dots, and each of them alone."""
    for part in parts:
        yield EntityKind.NAME.value, part
    if len(parts) <= _MOST_PARTS:
        for start, end in combinations(range(len(parts) + 1), 2):
            if end - start > 1:
                yield "dotted", ".".join(parts[start:end])
