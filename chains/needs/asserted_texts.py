"""Texts that hidden tests use and that only the source patch has: messages, keys, options, markers.

A text counts where a literal of an assertion, or a `match=` pattern, meets a literal of the source patch, or the fixed
part of one with placeholders, that no literal of the source at B_t holds; and where any literal of the tests that is
shaped as a key (an option of a command, a variable of the environment, a field) is such a literal as a whole, a key of
a file of test data, or of a text of several lines in the tests, too; these also where they begin with an underscore
that the source takes off. Tests hand what they expect to helpers of their own and keep it in tables, so every literal
of several words counts that meets one, of a literal of several lines each line. The level and the logger that
`assertLogs` and `logging` set before a message are none of it where no literal of the source patch has them. Python is
parsed. Of other languages, whose assertions go over several lines, every literal counts that is one of the source patch
as a whole.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from re import _constants, _parser  # type: ignore[attr-defined]  # the standard library's own reading of a pattern
from typing import Literal

from chains.needs.python_source import Reader, Scopes, parsed
from chains.needs.python_tests import added_lines
from prchain.git.patches import FilePatch
from prchain.identifiers import is_code_name
from prchain.lexing import family_of, lex
from prchain.needs import Need
from prchain.scrub import redact_mined

LONGEST = 200
"""Characters of a text that a solver is told."""
_SHORTEST = 3
_SHORTEST_PART = 6
"""Characters of a fixed part that a longer literal of a test may hold by no chance, where it has one word."""
_LONGEST_READ = 2_000
"""Characters of a literal that are compared; the rest of a page of output is like its beginning."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\$?\{[^{}\n]{0,80}\}|%(?:\(\w+\))?[-#0 +]*[\d*]*(?:\.\d+)?[sdrifgxXeEcavqwtT%]")
_ASSERTING = re.compile(
    r"(?i)\b(?:assert\w*|expect\w*|should\w*|require\w*|check\w*|panic\w*|t\.(?:error|fatal)\w*|to(?:be|equal|throw|"
    r"match|contain|have)\w*|equals?|contains|want(?:ed)?|is_err)\b|\.message\b|\bmessage\s*[:}]"
    r"|\bt\.(?:true|is|deepEqual|regex|like|throws)\w*\("
)
_CONSTANT = re.compile(r"\s*(?:export\s+)?(?:const|let|var|static)\s+(?:mut\s+)?([^\W\d]\w*)\b[^=\n]{0,80}=\s*[\"'`]")
"""A line that gives a literal a name."""
_JS_PATTERN = re.compile(r"(?:[(,:=]|\breturn)\s*/((?:\\.|\[(?:\\.|[^]\\\n])*\]|[^/\\\n[])+)/[dgimsuvy]*")
_KEY = re.compile(r"(?=.{4,80}$)[-_]{0,2}[^\W\d_]\w*(?:[-_.:/]+\w+)+=?|--[^\W\d_]\w{2,80}|[A-Z]{4,80}")
_OPTION_SET = re.compile(r"\s*(--[^\W\d_][\w-]*)=")
"""An option with what stands between it and its value, which is no part of its name."""
_DATA_KEY = re.compile(r"[\s-]*[\"']?([^\W\d][\w-]{0,79})[\"']?\s*(?::(?:\s|$)|=)")
"""A line of YAML, JSON or TOML that begins with a key."""
_IMPORTING = re.compile(
    r"\s*(?:import\b.*?[\"']|export\b.*\bfrom\s*[\"']|\}\s*from\s*[\"'])|.*\b(?:require|import)\(\s*[\"'`]"
)
"""A line of JavaScript or Go that names a module."""
_GO_IMPORTED = re.compile(r"\s*(?:[\w.]+\s+)?[\"`][^\"`\s]+[\"`]\s*(?://.*)?$")
"""A literal alone on its line without a comma: in Go, part of an import."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_SIGN = re.compile(r"[^\x00-\x7f]")
"""A sign that nobody guesses, as of a prompt."""
_TITLE = re.compile(r"\s*(?:test|it|describe|context|suite|(?:t|b|tap)\.(?:Run|test))(?:\.\w+)*\(")
"""A line of JavaScript or Go that begins with what a test is called."""
_LOGGED = re.compile(
    r"((?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::(?!\s)|\s+-\s+))(?:[^\W\d]\w*(?:(?:\.| \.{3} )\w+)*:)?"
)
"""What logging sets before a message: its level, and the name of its logger, whose points match anything in a pattern.
A level with a colon and a blank is what programs print themselves."""
_CODE = re.compile(r"[;{}]\s*$|^\s*(?:def|class|import|from|return|fn|func|const|let|var)\s+\w|\)\s*->|=>|&&|\|\||::")
_TABLE = re.compile(r"[│┃|].*[│┃|]|[─━]{3}|\+-{2,}\+|\t.*\t")


_Use = Literal["assertion", "argument", "key", "whole"]
"""What a literal of a test is: of an assertion; any, one that a helper or a table may be given; any that is shaped as a
key, or any at all, for one of the source patch as a whole."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """What one assertion compares with: a literal as a whole, or the fixed parts of a pattern."""

    text: str
    parts: tuple[str, ...]
    tests: tuple[str, ...]
    use: _Use

    @property
    def spellings(self) -> tuple[str, ...] | None:
        """What a literal of the source patch has to be as a whole; nothing where a part of one may meet it."""
        if self.use == "key":
            return self.parts
        return (self.text,) if self.use == "whole" else None


@dataclass(frozen=True, slots=True)
class AssertedTexts:
    """What tests compare with and the source patch adds: `needed` where no literal of the source at B_t holds it,
    `known` where one does. `recorded`: the files of test data that hold such a text."""

    needed: tuple[Need, ...]
    known: tuple[str, ...]
    recorded: tuple[str, ...] = ()


def asserted_texts(
    source_patch: Sequence[FilePatch],
    test_patch: Sequence[FilePatch],
    landed: Reader,
    base_holds: Callable[[Collection[str]], set[str]],
    records: Sequence[FilePatch] = (),
) -> AssertedTexts:
    """The texts that the added lines of tests compare with and that the source patch adds.

    `base_holds` gives those of some texts that stand in a literal of the source at B_t. `records` are files of the
    test patch that tests read.
    """
    templates = list(_templates(source_patch, landed))
    met: dict[str, tuple[set[str], set[str]]] = {}
    wholes = {parts[0] for parts in templates if len(parts) == 1}
    for literal in (*_expected(test_patch, landed), *_data_keys(records)):
        expected = _message_of(literal, templates)
        grounds = _meets(expected, templates) if expected.spellings is None else wholes.intersection(expected.spellings)
        if grounds:
            texts, tests = met.setdefault(expected.text, (set(), set()))
            texts |= grounds
            tests |= set(expected.tests)
    held = {patch.path: grounds for patch in records if (grounds := _recorded(patch, templates))}
    old = base_holds({text for texts, _ in met.values() for text in texts}.union(*held.values()))
    known = {text for text, (grounds, _) in met.items() if grounds <= old}
    needed = (
        Need("text", text, tests=tuple(sorted(tests)), withheld=_withheld(text))
        for text, (_, tests) in sorted(met.items())
        if text not in known
    )
    told = old.union(*(texts for texts, _ in met.values()))
    recorded = sorted(path for path, grounds in held.items() if not grounds <= told)
    return AssertedTexts(tuple(needed), tuple(sorted(known)), tuple(recorded))


def literals_of(text: str, path: str) -> list[str]:
    """The string literals of a file: with Python's rules where it parses, neighbours joined; docstrings are none."""
    tree = parsed(text) if path.endswith(".py") else None
    if tree is None:
        return list(lex(text.split("\n"), path).strings)
    return ["\0".join(parts) for _, parts in _python_literals(tree)]


def _withheld(text: str) -> str:
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _CODE.search(text):
        return "code"
    if _TABLE.search(text):
        return "a table"
    return "holds a secret" if redact_mined(text) != text else ""


def _meets(expected: _Expected, templates: Iterable[tuple[str, ...]]) -> set[str]:
    """What an expected text has in common with the templates of the source patch: itself where a fixed part holds it,
    else the fixed parts that it holds."""
    found: set[str] = set()
    for parts in templates:
        if all(any(piece in part for part in parts) for piece in expected.parts):
            found.add(max(expected.parts, key=len))
        else:
            held = [part for part in parts if any(part.strip() in piece for piece in expected.parts)]
            found.update(part.strip() for part in held if _is_telling(part.strip()))
    return found


def _message_of(expected: _Expected, templates: Sequence[tuple[str, ...]]) -> _Expected:
    """What is expected of a line of a log, without what logging sets before the message; as it is where a literal of
    the source patch has the level itself, or meets nothing behind it."""
    text = expected.text.strip()
    logged = _LOGGED.match(text) if expected.use in ("assertion", "argument") else None
    if logged is None or _hold(templates, logged[1].strip()):
        return expected
    for end in (logged.end(), logged.end(1)):
        rest = text[end:].strip().removeprefix("... ")
        parts = tuple(rest.split(" ... ")) if len(expected.parts) > 1 else (rest,)
        message = replace(expected, text=rest, parts=parts)
        met = [template for template in templates if _counts(rest, expected.use) and _meets(message, [template])]
        # What looks like a logger may be the beginning of the message.
        if met and not any(_begins_in(part.strip(), text, end) for template in met for part in template):
            return message
    return expected


def _hold(templates: Iterable[tuple[str, ...]], text: str) -> bool:
    return any(text in part for parts in templates for part in parts)


def _begins_in(part: str, text: str, end: int) -> bool:
    """Whether a text has a fixed part of words that begins before some place in it."""
    words = re.escape(part) + (r"(?!\w)" if part[-1:].isalnum() else "")
    found = re.search(rf"(?<!\w){words}", text) if _WORD.search(part) else None
    return found is not None and found.start() < end


def _recorded(patch: FilePatch, templates: Iterable[tuple[str, ...]]) -> set[str]:
    """The fixed parts of the source patch that a file of data has, and did not have before."""
    added, removed = "\n".join(patch.added), "\n".join(patch.removed)
    parts = {part.strip() for parts in templates for part in parts}
    return {part for part in parts if part in added and part not in removed and _is_telling(part)}


def _is_telling(part: str) -> bool:
    words = len(_WORD.findall(part))
    return (
        words > 1
        or _SIGN.search(part) is not None
        or (words == 1 and len(part) >= _SHORTEST_PART and not part.isalpha())
    )


def _fixed_parts(text: str) -> tuple[str, ...]:
    """The parts of a literal between placeholders of `str.format` and ``%``."""
    return tuple(part for part in _PLACEHOLDER.split(text) if part.strip())


def _templates(patches: Sequence[FilePatch], landed: Reader) -> Iterator[tuple[str, ...]]:
    """The literals that the source patch adds, each as its fixed parts."""
    for patch in patches:
        if family_of(patch.path) is None:
            continue
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is None:
            for value in lex(patch.added, patch.path).strings:
                if parts := (*_fixed_parts(value[:_LONGEST_READ]),):
                    yield parts
            continue
        added = added_lines(patch)
        for node, literal in _python_literals(tree):
            parts = tuple(part for piece in literal for part in _fixed_parts(piece[:_LONGEST_READ]))
            if parts and not added.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                yield parts


def _python_literals(tree: ast.AST) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """Every string of a tree that is no docstring, as its constant parts."""
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(it) for it in node.values}
            yield (
                node,
                tuple(it.value for it in node.values if isinstance(it, ast.Constant) and isinstance(it.value, str)),
            )
        elif isinstance(node, ast.Constant) and id(node) not in prose | inside:
            if isinstance(node.value, str):
                yield node, (node.value,)
            elif isinstance(node.value, bytes):
                yield node, (node.value.decode("latin-1"),)


def _expected(patches: Sequence[FilePatch], landed: Reader) -> Iterator[_Expected]:
    for patch in patches:
        if family_of(patch.path) is None:
            continue
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is not None:
            yield from _python_expected(tree, patch)
            continue
        asserting = "\n".join(filter(_ASSERTING.search, patch.added))
        for value in lex(patch.added, patch.path).strings:
            for line in value.split("\n") if "\n" in value else ():
                if _counts(line, "argument"):
                    yield _Expected(line.strip(), (line.strip(),), (patch.path,), "argument")
        for line in patch.added:
            if (
                _TITLE.match(line)
                or _IMPORTING.match(line)
                or (patch.path.endswith(".go") and _GO_IMPORTED.match(line))
            ):
                continue
            named = _CONSTANT.match(line)
            is_asserted = _ASSERTING.search(line) or (named and re.search(rf"\b{named[1]}\b", asserting))
            uses: tuple[_Use, ...] = ("assertion",) if is_asserted else ("whole", "argument")
            for value in lex([line], patch.path).strings:
                # A placeholder of a template, as in `${name}: not found`, parts it.
                parts = tuple(part for part in _JS_PLACEHOLDER.split(value) if part.strip())
                for use in uses:
                    if parts and _counts(value, use):
                        yield _Expected(value, parts, (patch.path,), use)
            if is_asserted and family_of(patch.path) == "javascript":
                yield from _js_patterns(line, patch.path)


def _data_keys(records: Iterable[FilePatch]) -> Iterator[_Expected]:
    """The keys that files of test data add."""
    for patch in records:
        yield from _keys_of(patch.added, (patch.path,))


def _keys_of(lines: Iterable[str], tests: tuple[str, ...]) -> Iterator[_Expected]:
    """The keys that lines of data begin with, each with its name without leading underscores."""
    for key in dict.fromkeys(found[1] for line in lines if (found := _DATA_KEY.match(line))):
        if _counts(key, "key"):
            yield _Expected(key, tuple(dict.fromkeys((key, key.lstrip("_")))), tests, "key")


_JS_PLACEHOLDER = re.compile(r"\$\{[^{}\n]{0,200}\}")


def _js_patterns(line: str, path: str) -> Iterator[_Expected]:
    """The regular expressions of a line in JavaScript, each as its runs of plain characters."""
    for found in _JS_PATTERN.finditer(line):
        pieces = tuple(piece for piece in _literal_runs(found[1].replace("\\/", "/")) if piece.strip())
        text = " ... ".join(piece.strip() for piece in pieces)
        if pieces and _counts(text, "assertion"):
            yield _Expected(text, pieces, (path,), "assertion")


def _python_expected(tree: ast.Module, patch: FilePatch) -> Iterator[_Expected]:
    added, scopes = added_lines(patch), Scopes(tree, patch.path)
    for node, use in _asserting(tree):
        patterns = {id(it) for it in _patterns(node)}
        for literal, parts in _python_literals(node):
            if added.isdisjoint(range(literal.lineno, (literal.end_lineno or literal.lineno) + 1)):
                continue
            tests = tuple(sorted(scopes([literal.lineno])))
            if use == "key":
                yield from _keys_of((line for part in parts for line in part.split("\n")), tests)
            if id(literal) in patterns:
                pieces = tuple(piece for part in parts for piece in _literal_runs(part))
                text = " ... ".join(piece.strip() for piece in pieces)
                if pieces and _counts(text, use):
                    yield _Expected(text, pieces, tests, use)
            elif len(parts) == 1:
                text = parts[0][:_LONGEST_READ]
                for piece in text.split("\n") if use == "argument" else (text,):
                    told = piece.strip() if use == "argument" else piece
                    told = found[1] if (found := _OPTION_SET.fullmatch(told)) else told
                    if _counts(told, use):
                        yield _Expected(told, (told.strip(),), tests, use)


def _counts(text: str, use: _Use) -> bool:
    """Whether a literal can be one that a solver must be told: no number, no sign alone; of those outside of
    assertions, which are mostly input, several words."""
    if use == "key":
        return _KEY.fullmatch(text) is not None and _WORD.search(text) is not None
    if _SIGN.search(text):
        return True
    words = _WORD.findall(text)
    if len(text.strip()) < _SHORTEST or not words:
        return False
    return use in ("assertion", "whole") or (len(words) > 1 and not is_code_name(text))


def _asserting(tree: ast.Module) -> Iterator[tuple[ast.AST, _Use]]:
    """The parts of a test file whose literals may be needed, and what these are."""
    yield tree, "key"
    yield tree, "argument"
    compared = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for name in ast.walk(node.test)
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield test, "assertion"
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | bytes()) as value):
                # An expected text with a name of its own.
                if name in compared:
                    yield value, "assertion"
            case ast.Call(func=ast.Attribute(attr=name)) if name.startswith("assert") or name in _RAISING:
                yield node, "assertion"
            case ast.Call(func=ast.Name(id=name)) if name.startswith("assert") or name in _RAISING:
                yield node, "assertion"


_RAISING = frozenset({"raises", "warns", "match", "fnmatch_lines", "RaisesGroup", "RaisesExc"})


def _patterns(node: ast.AST) -> Iterator[ast.expr]:
    """The regular expressions among the arguments of an assertion."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            yield from (it.value for it in call.keywords if it.arg in ("match", "expected_regex", "msg_regex"))
            if name in ("match", "search", "fullmatch", "compile") and call.args:
                yield call.args[0]
            elif name in ("assertRaisesRegex", "assertWarnsRegex", "assertRegex") and len(call.args) > 1:
                yield call.args[1]


def _literal_runs(pattern: str) -> Iterator[str]:
    """The runs of plain characters in a regular expression, at any depth of its groups; the whole where it is none."""
    try:
        tokens = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        yield pattern
        return
    run: list[str] = []
    for part in _flat(tokens):
        if part is not None:
            run.append(part)
        elif run:
            yield "".join(run)
            run = []
    if run:
        yield "".join(run)


def _flat(tokens: Iterable[tuple[object, object]]) -> Iterator[str | None]:
    for name, value in tokens:
        if name is _constants.LITERAL:
            yield chr(value)  # type: ignore[arg-type]
        elif name is _constants.SUBPATTERN:
            yield from _flat(value[3])  # type: ignore[index]
        elif name is not _constants.AT:
            yield None


def texts_held(
    texts: Collection[str], files: Iterable[tuple[Collection[str], bytes]], is_source: Callable[[str], bool]
) -> set[str]:
    """Those of some texts that a literal of a source file holds; `files` as `GitRepository.text_files` gives them."""
    held: set[str] = set()
    words: dict[str, bytes] = {text: max(re.findall(r"\w+", text) or [""], key=len).encode() for text in texts}
    by_word: dict[bytes, set[str]] = defaultdict(set)
    for text, word in words.items():
        by_word[word].add(text)
    for paths, content in files:
        path = next(filter(is_source, paths), None)
        if path is None:
            continue
        asked = {text for word, group in by_word.items() if word in content for text in group} - held
        if asked:
            values = literals_of(content.decode("utf-8", "replace"), path)
            held |= {text for text in asked if any(text in value for value in values)}
    return held
