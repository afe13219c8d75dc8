"""Tests proper that have another name in a run: else whoever is called as no test of the repository is a canary.

The name of a test is changed where nothing else can know it: it stands once in the whole tree. What the test is called
then is told outside of the process that runs it (`canary.CanaryResults`). Pure.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting, renamed_slot
from environments.suites.canaries.names import NewNames

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_HEAD = re.compile(r"(?m)^([ \t]*(?:async[ \t]+)?def[ \t]+)(test\w*)(?=[ \t]*\()")
_WORD = re.compile(rb"\b[Tt]est\w+")
_LOOKED_AT = (
    r"request\.(?:node|function)|\bitem\.(?:name|nodeid|originalname|function|obj)\b|\bnodeid\b|\bgetfixture"
    r"|PYTEST_CURRENT_TEST|\bcurrentframe\b|_getframe|inspect\.stack|extract_stack|_testMethodName|\.id\(\)"
    r"|\bsnapshot\b|globals\(\)|\bdir\((?:self|cls|sys|\))|getmembers"
    r"|\b(?:num|data|file|image|ndarrays|dataframe)_regression\b|image_compare"
)
"""What may look at the name of a test beside it, and in `_SHARED` at that of any test."""
_ASKED_FOR = re.compile(_LOOKED_AT)
_SHARED = re.compile(rf"{_LOOKED_AT}|\.__(?:qual)?name__")
_CONFIGURED = re.compile(r"(?:^|[\s\"'=,\[])-k\b|--deselect\b|\bpython_functions\b|\bpython_classes\b")
"""Settings that choose tests by name."""
_SETTINGS = re.compile(rb"(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?pytest\.ini|\.?pytest\.toml)")


def lone_names(texts: Iterable[tuple[bytes, bytes]]) -> frozenset[str]:
    """The words that begin as tests' names do and stand once in all the paths and texts of a tree; none where its
    settings choose tests by name, or what is shared by tests looks at their names."""
    counts = Counter[bytes]()
    for path, text in texts:
        shared = path.rpartition(b"/")[2] == b"conftest.py" and _SHARED
        chosen = _SETTINGS.fullmatch(path) and _CONFIGURED
        if (rule := shared or chosen) and rule.search(text.decode("utf-8", "replace")):
            return frozenset()
        counts.update(_WORD.findall(path))
        counts.update(_WORD.findall(text))
    return frozenset(word.decode("utf-8", "replace") for word, count in counts.items() if count == 1)


def renamed_python(path: str, text: str, tree: ast.Module, found: PlantedFile, planting: Planting) -> PlantedFile:
    """A file with canaries in which tests have other names, too: in slots that may be used, or, where these are not
    known, all whose name stands nowhere else. `text` and `tree` are the file's own."""
    functions = [*_functions(tree)]
    names = [it.name for it in functions]
    if planting.slots is None:
        chosen = [] if _ASKED_FOR.search(text) else [it for it in enumerate(names, 1) if it[1] in planting.lone]
    else:
        chosen = [it for it in enumerate(names, 1) if renamed_slot(path, it[0]) in planting.slots]
    if not chosen:
        return found
    new_names = NewNames.of_functions(names, planting.named, _identifiers(tree))
    said = Counter(_IDENTIFIER.findall(found.text))
    others: dict[str, str] = {}
    renamed: list[Canary] = []
    for number, name in chosen:
        if said[name] == 1:
            others[name] = new_names.draw(planting.draw, planting.taken)
            planting.taken.add(others[name])
            renamed.append(Canary(renamed_slot(path, number), CanaryKind.TRUE, path, others[name], name))
    made = _HEAD.sub(lambda head: f"{head[1]}{others.get(head[2], head[2])}", found.text)
    return PlantedFile(made, (*found.canaries, *renamed))


def _functions(tree: ast.Module) -> Iterator[_Function]:
    """The tests of a file that no class inherits, and that run in the order in which they stand there."""
    bodies: list[Iterable[ast.stmt]] = [tree.body]
    bodies += [
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not (node.bases or node.keywords)
    ]
    for body in bodies:
        for node in body:
            if isinstance(node, _Function) and node.name.startswith("test") and not _draws_by_name(node.decorator_list):
                yield node


def _draws_by_name(decorators: Iterable[ast.expr]) -> bool:
    """Whether what a test is given follows from its name."""
    return any(re.search(r"\bgiven\b|\bseed\b", ast.unparse(it)) for it in decorators)


def _identifiers(tree: ast.Module) -> Collection[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
