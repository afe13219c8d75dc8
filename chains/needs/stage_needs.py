"""The needs of a stage, and which of its patch's names stand at its base."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from chains.needs.asserted_texts import asserted_texts
from chains.needs.base_names import names_at_base
from chains.needs.literals import texts_held
from chains.needs.python_source import Reader, Scopes, parsed
from chains.needs.python_tests import added_lines
from chains.needs.python_uses import defined_needs, foreign_names, names_used, python_needs
from chains.needs.test_files import is_record, unread, without_inline_tests
from chains.needs.used_names import SHORTEST, used_names
from prchain.core.code.identifiers import defined_names, definitions, is_code_name
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.code.lexing import family_of, lex
from prchain.core.code.needs import Need, NeedKind
from prchain.core.code.reference import Reference
from prchain.core.git import FilePatch, GitRepository
from prchain.core.leaks import candidate_names

_KEYWORDS: dict[str, NeedKind] = {
    "fn": "function",
    "func": "function",
    "function": "function",
    "def": "function",
    "fun": "function",
    "class": "class",
    "struct": "class",
    "enum": "class",
    "interface": "class",
    "trait": "class",
    "record": "class",
    "const": "constant",
    "static": "constant",
    "mod": "module",
    "namespace": "module",
}

_TAKES_ITSELF = re.compile(r"\(\s*&?(?:mut\s+)?self\b")


@dataclass(frozen=True, slots=True)
class StageNeeds:
    """`standing`: the patch's names that stand at B_t, for the leak check; a name that tests need and that is shaped as
    one in code is none of them, wherever its word stands. `needs`: what its hidden tests need, each once. `known`: the
    texts that they compare with and that the source at B_t holds as well: no leak, and nothing that has to be told."""

    standing: frozenset[str]
    needs: tuple[Need, ...]
    known: frozenset[str] = frozenset()


def stage_needs(repository: GitRepository, base: str, landed: str, reference: Reference) -> StageNeeds:
    """Look up the needs of a stage between two commits. Raises `GitError`."""
    at_base, at_landed = _reader(repository, base), _reader(repository, landed)
    candidates = candidate_names(reference.source, reference.test)
    reference = without_inline_tests(reference, at_base, at_landed)
    paths = [file.path for file in reference.source]
    old_paths = [file.old_path for file in reference.source if file.old_path]
    used = used_names(reference.source, reference.test)
    base_names = names_at_base(repository.text_files(base), candidates, used)
    exact = [
        need
        for need in python_needs(reference.test, paths, at_base, at_landed, old_paths)
        if len(need.text) >= SHORTEST
    ]
    seen = {need.text for need in exact}
    by_tests = names_used(reference.test, at_landed)
    defined = defined_needs(paths, at_landed, by_tests)
    named = [
        replace(defined.get(name) or by_words(name, reference.source), tests=_uses_of(name, reference.test, at_landed))
        for name in sorted(
            used - base_names.defined - seen - foreign_names(reference.test, paths, at_landed) - {*by_tests.variables}
        )
        if name in defined or not _is_local(name, reference, by_tests.keywords)
    ]

    named = [
        replace(it, kind="parameter") if it.kind == "name" and it.text in by_tests.keywords else it for it in named
    ]

    def base_holds(texts: Collection[str]) -> set[str]:
        return texts_held(texts, repository.text_files(base), _is_source) if texts else set()

    records = [file for file in reference.test if is_record(file.path)]
    texts = asserted_texts(reference.code, reference.test, at_landed, base_holds, records)
    needs = merged([*exact, *named])
    names = {need.text for need in needs}
    needs += merged(need for need in texts.needed if need.text not in names)
    needs += unread(reference.test, at_landed, texts.recorded)
    standing = base_names.standing - {name for name in names if is_code_name(name)}
    return StageNeeds(standing, tuple(needs), frozenset(texts.known))


def _is_local(name: str, reference: Reference, keywords: Collection[str]) -> bool:
    """Whether a name is a variable of functions in Python alone, and no test has it as a string: what tests use under
    that name is another library's, unless the source looks up by a string what tests name as an argument. Only for
    names that no module, class or function of the changed files has."""
    if name in keywords and any(name in lex(file.added, file.path).strings for file in reference.code):
        return False
    paths = [file.path for file in reference.source if name in definitions(file.added, file.path).weak]
    return (
        bool(paths)
        and all(path.endswith(".py") for path in paths)
        and not any(name in lex(file.added, file.path).strings for file in reference.test if family_of(file.path))
    )


def _is_source(path: str) -> bool:
    return kind_of(path) is FileKind.SOURCE and family_of(path) is not None


def merged(needs: Iterable[Need]) -> list[Need]:
    """Each need once, with the tests of all, by kind and name; what is no more than a name, only where no other need
    says what it is."""
    tests: dict[Need, set[str]] = {}
    for need in needs:
        tests.setdefault(replace(need, tests=()), set()).update(need.tests)
    known = {need.text for need in tests if need.kind not in ("name", "text")}
    tests = {need: mine for need, mine in tests.items() if need.kind != "name" or need.text not in known}
    found = (replace(need, tests=tuple(sorted(mine))) for need, mine in tests.items())
    return sorted(found, key=lambda need: (need.kind == "text", need.text, need.owner, need.path))


def by_words(name: str, patches: Sequence[FilePatch]) -> Need:
    """A name's kind and place by the line that defines it, of languages that are not parsed."""
    pattern = re.compile(rf"\b({'|'.join(_KEYWORDS)})\b!?\s+(?:mut\s+)?(?:\([^()\n]*\)\s*)?{re.escape(name)}\b")
    path = ""
    for patch in patches:
        if name in defined_names(patch.added, patch.path):
            path = path or patch.path
            added = "\n".join(patch.added)
            match = pattern.search(added)
            if match is not None:
                kind = "method" if _TAKES_ITSELF.match(added, match.end()) else _KEYWORDS[match[1]]
                return Need(kind, name, "", patch.path)
    return Need("name", name, "", path)


def _uses_of(name: str, patches: Sequence[FilePatch], landed: Reader) -> tuple[str, ...]:
    """The tests whose added lines hold a name."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return tuple(sorted({test for patch in patches for test in _tests_with(word, patch, landed)}))


def _tests_with(word: re.Pattern[str], patch: FilePatch, landed: Reader) -> Iterator[str]:
    if not any(map(word.search, patch.added)):
        return
    text = landed(patch.path) if patch.path.endswith(".py") else None
    tree = parsed(text)
    if text is None or tree is None:
        yield patch.path
        return
    lines = text.split("\n")
    hits = [number for number in added_lines(patch) if number <= len(lines) and word.search(lines[number - 1])]
    yield from Scopes(tree, patch.path)(hits)


def _reader(repository: GitRepository, commit: str) -> Reader:
    blobs = repository.blobs_at(commit)

    @cache
    def read(path: str) -> str | None:
        return repository.blob(blobs[path]).decode("utf-8", "replace") if path in blobs else None

    return read
