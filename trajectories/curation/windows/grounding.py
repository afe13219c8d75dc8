"""What code decides of a rewritten step: that it names nothing the conversation has not shown (the referential half of
Ground; P2T, section 4.2 and appendix H), and that it is one whole call without words on how it came about (C3 to C5).

In prose a plain word is a name only where it is quoted as code, looks like code, or is defined in S_t. In a call every
name counts, but for those that belong to no repository: programs, their options, and Python's own modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prchain.core.code.identifiers import identifiers, is_code_name, name_parts
from trajectories.agents.scaffolds.turns import ParsedCall
from trajectories.agents.steps.conversation import Step, texts_of
from trajectories.agents.steps.entities import Entity, EntityKind, entities, normalized_path
from trajectories.agents.steps.world import (
    FOLDERS,
    imported_names,
    is_known_file,
    is_made_up,
    is_scratch_word,
    is_worldly,
    programs_in,
    standard_names,
    without_worldly,
)
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.think import Think
from trajectories.curation.graphs.gates import SECRET_WORDS, abbreviation
from trajectories.curation.windows.lines import paths_of
from trajectories.curation.windows.scripts import own_names, parts_of, without_strings
from trajectories.curation.windows.shown import DOTTED, NAMES, SHORTEST, Shown

Defined = Callable[[Collection[str]], Collection[str]]
"""Of some words, those that S_t defines (`trajectories.curation.graphs.graph.defined_names_at`)."""


ENTITIES = "Ents"
"""The rule that a rewritten step names nothing the conversation has not shown."""


class RewriteFault(NamedTuple):
    """A rule that a rewritten step breaks (C1 to C5, J1 to J4, `ENTITIES`), and what breaks it."""

    rule: str
    words: str


_CODE = re.compile(r"`([^`\n]+)`")

_META = re.compile(
    r"\b(?:oracle|process graph|(?:target|graph|frontier) nodes?|(?:golden|gold|reference) (?:patch|solution|fix)|"
    r"unlockers?|curators?|rewrit(?:e|ten|ing) (?:the|this|of the) step|redirect(?:ed|ion)|"
    r"privileged (?:information|knowledge)|I (?:was|am|have been) (?:told|given a hint|instructed to)|"
    r"(?:a|the) hint)\b",
    re.IGNORECASE,
)
"""Words on being guided (C4, J3)."""

_NUMBERS = frozenset({EntityKind.LINE, EntityKind.NUMBER})
_LONGEST_LINE = 7
"""Digits from which on a number is no line's."""


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
    words: str, calls: Sequence[ParsedCall], shown: Shown, defined: Defined, roots: Collection[str]
) -> list[RewriteFault]:
    """What a rewritten step names that the conversation has not shown: Ents(y') minus Obs(h)."""
    named = list(prose_entities(words, defined, roots))
    absent: dict[Entity, None] = {}
    for call in calls:
        named += _call_entities(call, defined, roots)
        absent |= dict.fromkeys(_far_lines(call, shown, roots))
    near = {entity.text for entity in named if entity.kind is EntityKind.LINE and not shown.lines.away(entity.text)}
    lines = near | {number for text in near for number in text.split("-")}
    for entity in named:
        if not (shown.holds(entity) or (entity.kind in _NUMBERS and entity.text in lines)):
            absent[entity] = None
    return [RewriteFault(ENTITIES, f"{entity.kind} {entity.text} was not shown") for entity in absent]


def prose_entities(words: str, defined: Defined, roots: Collection[str]) -> Iterator[Entity]:
    """What prose names. A plain word counts where it is quoted as code, has the shape of code, or is defined in S_t."""
    plain = {entity.text for entity in entities(words, roots=roots, kinds=frozenset({EntityKind.NAME}))}
    yield from _of_repository(entities(words, roots=roots, defined=frozenset(defined(plain))))
    for quoted in _CODE.findall(words):
        yield from _shell_entities(quoted, roots)


def _call_entities(call: ParsedCall, defined: Defined, roots: Collection[str]) -> Iterator[Entity]:
    if call.tool is None or call.arguments is None:
        return
    arguments = call.arguments.model_dump(exclude_none=True)
    if call.tool.name == Think.name:
        for text in texts_of(arguments):
            yield from prose_entities(text, defined, roots)
    elif call.tool.name == EDITOR:
        path, made = str(arguments["path"]), arguments["command"] == "create"
        if made and _is_scratch(path, roots):
            yield from _scratch_entities(path)
        else:
            yield from entities(path, roots=roots, kinds=frozenset({EntityKind.PATH}))
        for name in ("file_text", "old_str", "new_str"):
            yield from _script_entities(str(arguments.get(name, "")), defined, roots, variables=made)
    else:
        for text in texts_of(arguments):
            yield from _command_entities(text, defined, roots)


def _command_entities(command: str, defined: Defined, roots: Collection[str]) -> Iterator[Entity]:
    """What a command names. A file that it writes outside of the repository is its own; of its numbers `_far_lines`
    decides."""
    parts = parts_of(command)
    written = {path for path in _WRITTEN.findall(parts.shell) if _is_scratch(path, roots)}
    own = {path.text for name in written for path in entities(name, roots=roots, kinds=frozenset({EntityKind.PATH}))}
    shell, given = _without_inputs(parts.shell, written)
    made = {name for script in parts.scripts for name in own_names(script)} if written else set()
    for entity in _shell_entities(shell, roots):
        if entity.kind not in _NUMBERS and entity.text not in own and entity.text not in made:
            yield entity
    for entity in prose_entities(given, defined, roots):
        if entity.kind is not EntityKind.FLAG and entity.text not in made:
            yield entity
    for script in parts.scripts:
        yield from _script_entities(script, defined, roots, variables=True)
    for text in parts.prose:
        yield from prose_entities(text, defined, roots)
    for path in written:
        yield from _scratch_entities(path)


_WRITTEN = re.compile(r"(?:(?<![0-9&])>{1,2}|\btee|\btouch|\bmkdir(?:[ \t]+-p)?)[ \t]*([\w./-]+)")
"""The file that a command writes."""


def _without_inputs(shell: str, written: Collection[str]) -> tuple[str, str]:
    """A command without what it gives to scripts that it has written itself, and that: options and inputs of its own,
    and so prose."""
    kept: list[str] = []
    given: list[str] = []
    for line in re.split(r"(?<=[\n;|&])", shell):
        before, run, inputs = line.partition(".py ")
        if run and f"{before.rpartition(' ')[2]}.py" in written and ">" not in before:
            kept.append(f"{before}{run}")
            given.append(inputs)
        else:
            kept.append(line)
    return "".join(kept), " ".join(given)


def _is_scratch(path: str, roots: Collection[str]) -> bool:
    """Whether a file is no part of the repository: in a folder for such files, or, being written now, beside its
    folders."""
    return path.startswith("/tmp/") or "/" not in normalized_path(path, roots)


def _scratch_entities(path: str) -> Iterator[Entity]:
    """What the name of a scratch file tells: nothing, if it is one word; else its words, but for those that are usual
    in such names."""
    for name in identifiers(path.rpartition("/")[2].partition(".")[0]):
        parts = name_parts(name)
        if len(parts) > 1:
            yield from (Entity(EntityKind.NAME, part) for part in parts if not is_scratch_word(part))


def _shell_entities(command: str, roots: Collection[str]) -> Iterator[Entity]:
    """What a shell's command names, without what belongs to no repository."""
    programs = programs_in(command)
    for entity in _of_repository(entities(without_worldly(command, programs), roots=roots)):
        if entity.kind in NAMES and (entity.text in programs or entity.text in FOLDERS):
            continue
        yield entity


def _script_entities(code: str, defined: Defined, roots: Collection[str], *, variables: bool) -> Iterator[Entity]:
    """What code names that the step writes itself: its strings and remarks are prose, and what it binds is its own;
    variables in the shape of code only where they are no part of the repository (`variables`)."""
    bound = own_names(code) | imported_names(code)
    own = {name for name in bound if variables or not is_code_name(name)}
    own -= set(defined({name for name in own if is_code_name(name)}))
    plain = _of_repository(entities(without_strings(code), roots=roots, kinds=NAMES | DOTTED))
    for entity in {*prose_entities(code, defined, roots), *plain}:
        if entity.kind in DOTTED:
            names = [name for name in entity.text.split(".") if name not in own and len(name) >= SHORTEST]
            yield from (Entity(EntityKind.NAME, name) for name in names if not is_worldly(name))
        elif entity.kind is EntityKind.NUMBER and _tells_nothing(entity.text):
            continue
        elif entity.kind not in NAMES or not (entity.text in own or (variables and is_made_up(entity.text))):
            yield entity


def _tells_nothing(number: str) -> bool:
    """Whether a number is one of those that anybody takes to try something: short, round, a power of two or one less,
    digits in a row."""
    if len(number) <= SHORTEST or number in "01234567890" or len(set(number)) == 1:
        return True
    if len(number) >= _LONGEST_LINE:
        return not number.strip("0")[1:]
    value = int(number)
    return value % _ROUND == 0 or value & (value - 1) == 0 or value & (value + 1) == 0


_ROUND = 50


def _far_lines(call: ParsedCall, shown: Shown, roots: Collection[str]) -> Iterator[Entity]:
    """The numbers of lines in a call near which nothing was shown of its files."""
    if call.tool is None or call.arguments is None or call.tool.name == Think.name:
        return
    arguments = call.arguments.model_dump(exclude_none=True)
    numbers = list(arguments.get("view_range", ()))
    if call.tool.name != EDITOR:
        shell = without_worldly(parts_of("\n".join(texts_of(arguments))).shell, ())
        kinds = frozenset({EntityKind.NUMBER})
        texts = [entity.text for entity in entities(shell, roots=roots, kinds=kinds)]
        numbers += [int(text) for text in texts if len(text) < _LONGEST_LINE]
        yield from (
            Entity(EntityKind.NUMBER, text)
            for text in texts
            if len(text) >= _LONGEST_LINE and not shown.holds(Entity(EntityKind.NUMBER, text))
        )
    for line in shown.lines.far(sorted(numbers), paths_of(arguments, roots)):
        yield Entity(EntityKind.LINE, str(line))


def _of_repository(found: Collection[Entity]) -> Iterator[Entity]:
    """Entities without those of no repository."""
    dotted = [entity.text.split(".") for entity in found if entity.kind in DOTTED]
    theirs = {part for parts in dotted if parts[0] in standard_names() for part in parts}
    for entity in found:
        if entity.kind in NAMES and (is_worldly(entity.text) or entity.text in theirs):
            continue
        if entity.kind is EntityKind.PATH and is_known_file(entity.text):
            continue
        if entity.kind in DOTTED and entity.text.partition(".")[0] in standard_names():
            continue
        yield entity


def _values(call: ParsedCall) -> Iterator[str]:
    assert call.arguments is not None
    values: Mapping[str, Any] = call.arguments.model_dump(exclude_none=True)
    return texts_of(values)
