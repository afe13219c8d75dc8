"""What code decides of a rewritten step: that it names nothing the conversation has not shown (the referential half of
Ground; P2T, section 4.2 and appendix H), and that it is one whole call without words on how it came about (C3 to C5).

Everything that the conversation holds counts as shown: the query, observations, and what the assistant wrote (appendix
H). In prose a plain word is a name only where it is quoted as code, looks like code, or is defined in S_t. In a call
every name counts, but for those that belong to no repository: programs, their options, and Python's own modules.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from prchain.identifiers import is_code_name
from trajectories.curation.entities import Entity, EntityKind, entities
from trajectories.curation.gates import SECRET_WORDS, abbreviation
from trajectories.curation.graph import without_marks
from trajectories.curation.surfaced import Surfaced
from trajectories.curation.windows.steps import Step, steps_of, texts_of
from trajectories.model import Entry, EntryKind
from trajectories.scaffolds.tools.edits import EDITOR
from trajectories.scaffolds.tools.think import Think
from trajectories.scaffolds.turns import ParsedCall

Defined = Callable[[Collection[str]], Collection[str]]
"""Of some words, those that S_t defines (`trajectories.curation.graph.defined_names_at`)."""


class RewriteFault(NamedTuple):
    """A rule that a rewritten step breaks (C1 to C5, J1 to J4; ``Ents``), and what breaks it."""

    rule: str
    words: str


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CODE = re.compile(r"`([^`\n]+)`")

_META = re.compile(
    r"\b(?:oracle|process graph|(?:target|graph|frontier) nodes?|(?:golden|gold|reference) (?:patch|solution|fix)|"
    r"unlockers?|curators?|rewrit(?:e|ten|ing) (?:the|this|of the) step|redirect(?:ed|ion)|"
    r"privileged (?:information|knowledge)|I (?:was|am|have been) (?:told|given a hint|instructed to)|"
    r"(?:a|the) hint)\b",
    re.IGNORECASE,
)
"""Words on being guided (C4, J3)."""

_PROGRAMS = _words(
    "awk basename bash cat cd cmp cp cut date diff dirname du echo egrep env false fgrep file find git go "
    "cargo grep head jq less ls make mkdir mv nl node npm npx od perl pip printf pwd py pytest python "
    "python2 python3 read rg rm sed seq sh sort stat tail tee test time timeout touch tox tr tree true "
    "uniq uv wc which xargs"
)
"""Programs that every developer knows, and that tell nothing of a repository."""

_EXPLORING = _words(
    "awk cat cut diff du egrep fgrep file find git grep head jq less ls nl python python3 pytest rg sed "
    "sort stat tail tree uniq wc xargs pip"
)
"""Programs whose options are the world's, too."""

_COMMAND_WORD = re.compile(r"(?:^|[|;&(\n`]|\$\(|\b(?:xargs|time|env|timeout \d+s?|then|do|else)\b)\s*([\w.+-]+)")

_NEAR = 40
"""Lines: a view that begins or ends so near to a line that was shown widens what was seen (J2)."""
_LOW = 100
"""Numbers below tell nothing (appendix H counts from three digits on)."""
_ROUND = 50
"""Of its multiples developers take the ends of what they read: `head -200`."""
_LONGEST_LINE = 7
"""Digits from which on a number is no line's."""


def observed(query: str, entries: Iterable[Entry], roots: Collection[str]) -> Surfaced:
    """Obs(h): what a conversation has shown, the query included."""
    surfaced = Surfaced()
    for text in (query, *(texts_shown(entry) for entry in entries if entry.kind is not EntryKind.SYSTEM)):
        surfaced.add(entities(text, roots=roots))
    return surfaced


def texts_shown(entry: Entry) -> str:
    """What an entry adds to the conversation."""
    if entry.kind is not EntryKind.TURN:
        return entry.content
    [step] = steps_of([entry])
    return step.words


def form_faults(words: str, calls: Sequence[ParsedCall], replaced: Step) -> list[RewriteFault]:
    """What is wrong with a rewritten step by itself (C3, C4, C5). `words` are what it says, `replaced` is the step in
    whose place it would stand."""
    faults = []
    if len(calls) != 1:
        faults.append(RewriteFault("C5", f"it has {len(calls)} calls, and a step has one"))
    for call in calls:
        if call.fault is not None or call.tool is None or call.arguments is None:
            faults.append(RewriteFault("C3", f"its call cannot be run: {call.words or call.fault}"))
            continue
        if call.tool.name == "submit":
            faults.append(RewriteFault("C3", "it hands the work in"))
        arguments = call.arguments.model_dump(exclude_none=True)
        for name, text in arguments.items():
            if isinstance(text, str) and name in {"command", "path"} and (place := abbreviation(text)) is not None:
                faults.append(RewriteFault("C3", f"its {name} is abbreviated: {place!r}"))
        if len(calls) == 1 and (call.call.name, " ".join(call.call.arguments.split())) in replaced.action:
            faults.append(RewriteFault("C3", "it does what the step did that it would replace"))
    said_all = "\n".join([words, *(text for call in calls if call.arguments for text in _values(call))])
    for match in (_META.search(said_all), SECRET_WORDS.search(said_all)):
        if match is not None:
            faults.append(RewriteFault("C4", f"it speaks of how it came about: {match[0]!r}"))
    return faults


def unshown(
    words: str, calls: Sequence[ParsedCall], shown: Surfaced, defined: Defined, roots: Collection[str]
) -> list[RewriteFault]:
    """What a rewritten step names that the conversation has not shown: Ents(y') minus Obs(h)."""
    named = list(prose_entities(words, defined, roots))
    for call in calls:
        named += _call_entities(call, shown, defined, roots)
    absent = dict.fromkeys(entity for entity in named if not shown.holds(entity))
    return [RewriteFault("Ents", f"{entity.kind} {entity.text} was not shown") for entity in absent]


def prose_entities(words: str, defined: Defined, roots: Collection[str]) -> Iterator[Entity]:
    """What prose names. A plain word counts where it is quoted as code, has the shape of code, or is defined in S_t."""
    plain = {entity.text for entity in entities(words, roots=roots, kinds=frozenset({EntityKind.NAME}))}
    yield from entities(words, roots=roots, defined=frozenset(defined(plain)))
    for quoted in _CODE.findall(words):
        yield from _worldly(quoted, entities(quoted, roots=roots))


def _call_entities(call: ParsedCall, shown: Surfaced, defined: Defined, roots: Collection[str]) -> Iterator[Entity]:
    if call.tool is None or call.arguments is None:
        return
    arguments = call.arguments.model_dump(exclude_none=True)
    if call.tool.name == Think.name:
        for text in texts_of(arguments):
            yield from prose_entities(text, defined, roots)
        return
    lines = arguments.pop("view_range", None) if call.tool.name == EDITOR else None
    yield from _far_lines(lines or (), shown)
    path = arguments.get("path")
    if isinstance(path, str):
        yield from entities(path, roots=roots, kinds=frozenset({EntityKind.PATH}))
        made = arguments.get("command") == "create"
        arguments = {name: text for name, text in arguments.items() if name not in {"path", "command"}}
        for text in texts_of(arguments):
            # What it writes itself is code: parameters and local names are its own.
            found = entities(text, roots=roots)
            yield from _worldly(text, _without_own(text, found) if made else found)
        return
    for text in texts_of(arguments):
        command = without_marks(text)
        numbers: list[Entity] = []
        others: list[Entity] = []
        for entity in _worldly(command, _without_own(command, entities(command, roots=roots))):
            (numbers if entity.kind is EntityKind.NUMBER else others).append(entity)
        yield from others
        yield from _far_lines([int(entity.text) for entity in numbers if len(entity.text) < _LONGEST_LINE], shown)
        yield from (entity for entity in numbers if len(entity.text) >= _LONGEST_LINE)


def _far_lines(lines: Iterable[int], shown: Surfaced) -> Iterator[Entity]:
    """The numbers of lines near which nothing was shown; low and round ones tell nothing."""
    for line in lines:
        if line < _LOW or line % _ROUND == 0:
            continue
        near = range(max(line - _NEAR, 1), line + _NEAR + 1)
        kinds = (EntityKind.NUMBER, EntityKind.LINE)
        if not any(shown.holds(Entity(kind, str(number))) for number in near for kind in kinds):
            yield Entity(EntityKind.LINE, str(line))


_ASSIGNED = re.compile(
    r"(?m)(?:^|[;\s\"'])([A-Za-z_]\w*)[ \t]*=(?!=)|\bfor[ \t]+([A-Za-z_]\w*)[ \t]+in\b|\bas[ \t]+([A-Za-z_]\w*)"
)


def _without_own(text: str, found: Iterable[Entity]) -> Iterator[Entity]:
    """The entities of code without the plain names that it binds itself; one in the shape of code may be somebody
    else's, whatever is assigned to it."""
    own = {name for names in _ASSIGNED.findall(text) for name in names if name and not is_code_name(name)}
    return (entity for entity in found if entity.kind is not EntityKind.NAME or entity.text not in own)


def _worldly(text: str, found: Iterable[Entity]) -> Iterator[Entity]:
    """The entities of a command without those of no repository."""
    programs = {word for word in _COMMAND_WORD.findall(text) if word in _PROGRAMS}
    options_known = bool(programs) and programs <= _EXPLORING | {"cd", "echo", "true", "false", "bash", "sh", "test"}
    every = list(found)
    dotted = {part for name in _dotted(every) if (parts := name.split("."))[0] in _standard() for part in parts}
    for entity in every:
        if entity.kind is EntityKind.FLAG and options_known:
            continue
        if entity.kind in {EntityKind.NAME, EntityKind.ERROR, EntityKind.DEFINED} and (
            entity.text in programs or entity.text in _standard() or entity.text in dotted
        ):
            continue
        if entity.kind in {EntityKind.MODULE, EntityKind.QUALIFIED} and entity.text.split(".")[0] in _standard():
            continue
        yield entity


def _dotted(found: Iterable[Entity]) -> Iterator[str]:
    return (entity.text for entity in found if entity.kind in {EntityKind.MODULE, EntityKind.QUALIFIED})


@cache
def _standard() -> frozenset[str]:
    """Names that Python itself brings."""
    return frozenset(sys.stdlib_module_names) | frozenset(dir(builtins)) | {"pytest"}


def _values(call: ParsedCall) -> Iterator[str]:
    assert call.arguments is not None
    values: Mapping[str, Any] = call.arguments.model_dump(exclude_none=True)
    return texts_of(values)
