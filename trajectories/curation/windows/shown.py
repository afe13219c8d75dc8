"""What a conversation has shown: Obs(h) of P2T, section 4.2 and appendix H.

Everything that the conversation holds counts: the query, observations, and what the assistant wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import combinations

from prchain.core.code.identifiers import identifiers, name_parts
from trajectories.agents.steps.conversation import steps_of
from trajectories.agents.steps.entities import Entity, EntityKind, entities, normalized_path
from trajectories.agents.steps.world import is_worldly
from trajectories.curation.graphs.surfaced import Surfaced
from trajectories.curation.windows.lines import LinesByFile, lines_shown, listed
from trajectories.model import Entry, EntryKind

SHORTEST = 3
"""Letters or digits from which on a name or a number tells something."""
_BESIDE = ("/__init__.py", "/conftest.py")
"""Files that lie in nearly every folder that was shown."""
NAMES = frozenset({EntityKind.NAME, EntityKind.DEFINED, EntityKind.ERROR})
DOTTED = frozenset({EntityKind.MODULE, EntityKind.QUALIFIED})
_MOST_PARTS = 6
"""Words of a name whose runs are looked at."""


class Shown(Surfaced):
    """Obs(h): what a conversation has shown, with the lines of files."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = LinesByFile()
        self._runs: set[tuple[bool, tuple[str, ...]]] = set()

    def add(self, found: Iterable[Entity]) -> None:
        """See `Surfaced.add`."""
        found = list(found)
        super().add(found)
        for entity in found:
            if entity.kind in {EntityKind.NAME, EntityKind.DEFINED, EntityKind.PATH}:
                for name in identifiers(entity.text):
                    parts = name_parts(name)
                    if len(parts) <= _MOST_PARTS:
                        ends = combinations(range(len(parts) + 1), 2)
                        self._runs |= {(_is_pascal(name), parts[start:end]) for start, end in ends}
                        # one word is the same in each spelling
                        self._runs |= {(spelt, (part,)) for part in parts for spelt in (False, True)}

    def holds(self, entity: Entity) -> bool:
        """See `Surfaced.holds`. A name is also held by a longer one of which it is a run of words (``strip`` by
        ``strip_ansi``), and a dotted name by names of which each was shown: the class here, its method there."""
        if super().holds(entity):
            return True
        if entity.kind is EntityKind.PATH and entity.text.endswith(_BESIDE):
            return super().holds(Entity(EntityKind.PATH, entity.text.rpartition("/")[0]))
        if entity.kind in DOTTED:
            return all(self.knows(part) for part in entity.text.split("."))
        return entity.kind in NAMES and (_is_pascal(entity.text), name_parts(entity.text)) in self._runs

    def knows(self, name: str) -> bool:
        """Whether a part of a dotted name was shown, or tells nothing."""
        return len(name) < SHORTEST or is_worldly(name) or self.holds(Entity(EntityKind.NAME, name))


def _is_pascal(name: str) -> bool:
    return "_" not in name.strip("_") and not name.islower() and not name.isupper()


def observed(query: str, entries: Iterable[Entry], roots: Collection[str]) -> Shown:
    """Obs(h): what a conversation has shown, the query included. An observer's words are none of it: it may guess."""
    kept = [entry for entry in entries if entry.kind not in {EntryKind.SYSTEM, EntryKind.GUIDANCE}]
    surfaced = Shown()
    for text in (query, *map(texts_shown, kept)):
        surfaced.add(entities(text, roots=roots))
    said = frozenset({EntityKind.LINE})
    told = (entry.content for entry in kept if entry.role == "user")
    for entity in entities("\n".join((query, *told)), roots=roots, kinds=said):
        surfaced.lines.add("", map(int, entity.text.split("-")))
    for step in steps_of(kept):
        for call, arguments, result in step.calls:
            if result is not None:
                for path, lines in lines_shown(arguments, result.content, roots):
                    surfaced.lines.add(path, lines)
                for path in listed(call.name, arguments, result.content):
                    surfaced.add([Entity(EntityKind.PATH, normalized_path(path, roots))])
    return surfaced


def texts_shown(entry: Entry) -> str:
    """What an entry adds to the conversation."""
    if entry.kind is not EntryKind.TURN:
        return entry.content
    [step] = steps_of([entry])
    return step.words
