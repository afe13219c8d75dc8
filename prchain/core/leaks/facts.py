"""What the leak check knows of a stage: names, digests, paths, numbers and shas, but no code."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from prchain.core.code.identifiers import code_identifiers, defined_names, identifiers, is_code_name, spellings
from prchain.core.code.lexing import family_of, is_prose, lex
from prchain.core.code.needs import Need, names_of, texts_of
from prchain.core.git.patches import FilePatch
from prchain.core.leaks.folding import bare_lines, digest, words_of
from prchain.core.leaks.library import builtin_names, library_names
from prchain.core.leaks.vocabulary import is_plain

SHORTEST_NAME = 3
"""Shorter names (`i`, `df`) stand everywhere and say nothing."""
SHORTEST_LINE = 12
"""Characters, without white space, from which on a line of code is distinctive."""
SHORTEST_LITERAL = 12
SHORTEST_MARKED_LITERAL = 6
"""A literal with other than word characters in it is distinctive sooner."""
SHINGLE = 4
"""So many words of a message in a row are no coincidence, when enough of them carry meaning."""
PROSE_SHINGLE = 7
"""A comment or docstring needs more: descriptions of the same thing often use the same words."""
_LONGEST_LITERAL = 2000

_PLACEHOLDER = re.compile(r"\{[^{}\n]{0,60}\}|%\([\w.]{1,40}\)[sdrifg]|%[sdrifgv]|\\.")
_COMPOUND = re.compile(r"[a-z]+(?:-[a-z]+)+")
_WORD = re.compile(r"\w+")
_OPTION = re.compile(r"--[^\W\d_][\w-]*")
_PLAIN_VALUE = r"(?:[+-]?\d+(?:\.\d+)?|True|False|None|\"\w{0,20}\"|'\w{0,20}')"
PLAIN_ARGUMENTS = re.compile(rf"(?:{_PLAIN_VALUE}(?:,\s?{_PLAIN_VALUE}){{0,3}})?")
"""Arguments that tell nothing: up to four numbers, constants or quoted words."""
_PLAIN_USE = re.compile(rf"([^\W\d]\w*(?:\.[^\W\d]\w*){{0,3}})(?:\({PLAIN_ARGUMENTS.pattern}\))?")


@dataclass(frozen=True)
class StageFacts:
    """One stage's patch as the check sees it. Make it with `stage_facts`; compact, and JSON by `to_json`."""

    number: int
    """The pull request's number."""
    shas: tuple[str, ...]
    """Full shas of its commits, landed and own."""
    introduced: frozenset[str]
    """Identifiers in its added lines that stand nowhere at its base."""
    changed: frozenset[str]
    """Names defined on changed lines that stand at its base."""
    standing: frozenset[str]
    """Other spellings of introduced names, where they stand at its base."""
    literals: frozenset[str]
    """Digests of distinctive string literals, and of the runs of `SHINGLE` words in longer ones."""
    prose: frozenset[str]
    """Digests of the runs of `PROSE_SHINGLE` words in comments and docstrings."""
    line_digests: frozenset[str]
    """Digests of distinctive lines that the source patch adds, white space left out."""
    test_line_digests: frozenset[str]
    """The same of the test patch. An issue may hold them: tests are made from the examples of issues."""
    paths: tuple[str, ...]
    """Paths of its source patch, old names of renamed files among them."""
    interface: frozenset[str] = frozenset()
    """Names that its hidden tests need and the solver is given; exempt."""
    told: frozenset[str] = frozenset()
    """Names and digests of the above that its title, commits and issues hold too (`prchain.core.leaks.told`); what they
    say may be said in its own query. Digests of the options of commands that its patch adds: users type them."""

    def to_json(self) -> str:
        """One line of JSON, the same for the same facts."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values.items()}
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StageFacts:
        """The facts that `to_json` wrote; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        values = json.loads(text)
        return cls(
            number=int(values["number"]),
            shas=tuple(values["shas"]),
            introduced=frozenset(values["introduced"]),
            changed=frozenset(values["changed"]),
            standing=frozenset(values["standing"]),
            literals=frozenset(values["literals"]),
            prose=frozenset(values["prose"]),
            line_digests=frozenset(values["line_digests"]),
            test_line_digests=frozenset(values["test_line_digests"]),
            paths=tuple(values["paths"]),
            interface=frozenset(values["interface"]),
            told=frozenset(values.get("told", ())),
        )


def stage_facts(
    number: int,
    shas: Iterable[str],
    source_patch: Sequence[FilePatch],
    test_patch: Sequence[FilePatch],
    names_at_base: Collection[str],
    told: Collection[Need] = (),
) -> StageFacts:
    """The facts of one stage.

    `names_at_base` are those of the patch's identifiers (`candidate_names`) that stand at B_t. `told` is what
    the solver is given: its names are exempt, and its texts are no literals of the patch that could leak.
    Of the test patch only code-shaped names count: its other words are those of examples. Python's own names are
    introduced by nobody.
    """
    standing = frozenset(names_at_base)
    introduced: set[str] = set()
    changed: set[str] = set()
    for patch in source_patch:
        introduced |= code_identifiers(patch.added, patch.path)
        introduced.update(filter(is_code_name, _literal_names(patch)))
        changed |= defined_names(patch.added, patch.path) | defined_names(patch.removed, patch.path)
    for patch in test_patch:
        introduced.update(filter(is_code_name, code_identifiers(patch.added, patch.path)))
    told_marks = {mark for text in texts_of(told) for mark in (digest(phrase(text)), *shingles(text))}
    library = library_names([*source_patch, *test_patch])
    new = frozenset(name for name in introduced - standing - library if len(name) >= SHORTEST_NAME)
    common = standing | library | builtin_names()
    return StageFacts(
        number=number,
        shas=tuple(shas),
        introduced=new,
        changed=frozenset(name for name in changed & standing if len(name) >= SHORTEST_NAME),
        standing=frozenset(spelling for name in new for spelling in spellings(name)) & standing,
        literals=frozenset(_literal_digests(source_patch, standing)) - told_marks,
        prose=frozenset(_prose_digests(source_patch)),
        line_digests=frozenset(_line_digests(source_patch, common)),
        test_line_digests=frozenset(_line_digests(test_patch, common)),
        paths=tuple(sorted({path for patch in source_patch for path in (patch.path, patch.old_path) if path})),
        interface=frozenset(names_of(told)),
        told=frozenset(map(digest, _options(source_patch))),
    )


def candidate_names(source_patch: Sequence[FilePatch], test_patch: Sequence[FilePatch]) -> set[str]:
    """Every identifier of the two patches whose presence at B_t has to be looked up.

    Names in code, names that string literals hold, and defined names, of added and removed lines, and the other
    spellings of names of several words: a text may mean one of those (`MarkMatcher`) where a patch introduces another
    (`mark_matcher`).
    """
    found: set[str] = set()
    for patch in source_patch:
        for lines in (patch.added, patch.removed):
            found |= code_identifiers(lines, patch.path) | defined_names(lines, patch.path)
        found |= _literal_names(patch)
    for patch in test_patch:
        found |= code_identifiers(patch.added, patch.path)
    others = {spelling for name in found for spelling in spellings(name)}
    return {name for name in found | others if len(name) > 1}


def _literal_names(patch: FilePatch) -> set[str]:
    """The words of the literals that a file's patch adds and that could be names (of options, keys, columns)."""
    return {word for value in lex(patch.added, patch.path).strings for word in identifiers(value[:_LONGEST_LITERAL])}


def _options(patches: Sequence[FilePatch]) -> Iterator[str]:
    """The options of commands among the literals that the patches add, `--all/--not-all` as two."""
    for patch in patches:
        for value in lex(patch.added, patch.path).strings:
            yield from filter(_OPTION.fullmatch, value.strip().split("/"))


def _literal_digests(patches: Sequence[FilePatch], standing: frozenset[str]) -> Iterator[str]:
    old = {value for patch in patches for value in lex(patch.removed, patch.path).strings}
    old_shingles = {shingle for value in old for shingle in shingles(value)}
    paths = {patch.path for patch in patches}
    for patch in patches:
        for value in lex(patch.added, patch.path).strings:
            if value in old or value in paths or not value.strip():
                continue
            if "\n" not in value:
                yield from (shingle for shingle in shingles(value) if shingle not in old_shingles)
            if is_distinctive(value.strip(), standing):
                yield digest(phrase(value))


def is_distinctive(value: str, standing: Collection[str]) -> bool:
    """Whether a literal of few words is one that no text holds by chance.

    One of plain words is not: it may be said in any sentence. Nor is one of code-shaped names that all stand at the
    base: an existing key or option.
    """
    words = _WORD.findall(value)
    if not any(any(map(str.isalpha, word)) for word in words) or len(words_of(value)) >= SHINGLE:
        return False
    if all(map(is_plain, words)) and (" " in value or len(words) == 1 or _COMPOUND.fullmatch(value)):
        return False
    if len(words) == 1 and words[0] == value:
        return len(value) >= SHORTEST_LITERAL and value not in standing
    new = any(word not in standing and not is_plain(word) for word in words)
    return len(value) >= SHORTEST_MARKED_LITERAL and (new or (" " not in value and len(value) >= SHORTEST_LITERAL))


def phrase(value: str) -> str:
    """A literal as it is compared: white space folded, case kept (`--no-verify` and `--No-Verify` differ)."""
    return " ".join(value.split())


def shingles(value: str, length: int = SHINGLE) -> Iterator[str]:
    """Digests of every run of `length` words of a message; a placeholder ends a run, and a lone name has none."""
    if " " not in value:
        return
    for piece in _PLACEHOLDER.split(value[:_LONGEST_LITERAL]):
        words = words_of(piece)
        for start in range(len(words) - length + 1):
            yield digest(" ".join(words[start : start + length]))


def _prose_digests(patches: Sequence[FilePatch]) -> set[str]:
    """Runs of words of what the patches say in comments, docstrings and lines that are sentences; not what they only
    move."""
    sides: list[set[str]] = []
    for added in (True, False):
        found: set[str] = set()
        for patch in patches:
            lexed = lex(patch.added if added else patch.removed, patch.path)
            texts = [*lexed.comments, *(value for value in lexed.strings if "\n" in value)]
            texts += [line for line in lexed.code.split("\n") if is_prose(line)]
            for value in texts:
                found.update(shingles(value, PROSE_SHINGLE))
        sides.append(found)
    return sides[0] - sides[1]


def _line_digests(patches: Iterable[FilePatch], common: Collection[str]) -> Iterator[str]:
    for patch in patches:
        code = family_of(patch.path) is not None
        removed = {bare for line in patch.removed for bare in bare_lines(line)}
        added = {bare for line in patch.added for bare in bare_lines(line)}
        distinctive = (bare for bare in added - removed if is_distinctive_line(bare, code=code))
        yield from (digest(bare) for bare in distinctive if not _is_common(bare, common))


def _is_common(bare: str, names: Collection[str]) -> bool:
    """Whether a line is nothing but a public name that everybody knows, alone or called with plain values."""
    match = _PLAIN_USE.fullmatch(bare)
    return match is not None and all(name in names and name[0] != "_" for name in match[1].split("."))


def is_distinctive_line(bare: str, *, code: bool = True) -> bool:
    """Whether a line, without its white space, is long enough and has letters enough to be known again."""
    letters = sum(map(str.isalnum, bare))
    return len(bare) >= SHORTEST_LINE and letters >= (SHORTEST_LINE // 2 if code else SHORTEST_LINE)
