"""The text of one test in its file, so that two versions of it can be told apart.

Pure. In Python a test is a function of the syntax tree; in other languages it is found by its first and last lines, as
formatters lay them out. Where neither finds it, once and no more, nothing is said.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from environments.suites.runners import RUNNERS
from environments.suites.syntax import bare_lines, parsed, unless_too_deep
from prchain.core.code.kinds import language_of

_FIRST = (
    r"^(?P<indent>[ \t]*)(?:"
    r"(?:[\w<>\[\], ]+ )?(?:fn|func|void)\s+(?:\([^)]*\)\s*)?{0}\s*[(<]"  # a function
    r"|[\w.]+(?:\([^)]*\)|\.\w+)*\(\s*(?P<quote>['\"`]){0}(?P=quote)"  # a call with a title
    r")"
)


Read = Callable[[str], str | None]
"""The text of a file by its path; None where there is none."""


@dataclass(frozen=True)
class ChangedTests:
    """Says of a test whether a pull request adds or changes it, by its text on both sides.

    `files` are the test files that are run, `touched` those that the pull request changes, with their paths before.
    An id may name no file, or the root of the target that the test's module belongs to; then the test is looked for in
    all touched test files of the language.
    """

    runner: str
    files: Collection[str]
    touched: Mapping[str, str]
    old: Read
    new: Read

    def __call__(self, test: str) -> bool | None:
        """None where the text of the test is not found."""
        runner = RUNNERS[self.runner]
        path = runner.file_of(test, self.files)
        if path is not None:
            told = self._differs(path, test) if path in self.touched else False
            is_root = language_of(path) == "rust" and test_text(self.runner, path, self.new(path) or "", test) is None
            if not is_root:
                return told
        languages = {language_of(it) for it in self.files} if path is None else {language_of(path)}
        others = [it for it in self.touched if it != path and language_of(it) in languages]
        found = {it: told for it in others if (told := self._differs(it, test)) is not None}
        # Names are the same in many packages; an id may hold the folder of its own.
        folders = {it: posixpath.dirname(it) for it in found}
        near = {it: len(folder) for it, folder in folders.items() if f"{folder}." in test or f"{folder}/" in test}
        nearest = [it for it, size in near.items() if size == max(near.values())] or found
        return any(found[it] for it in nearest) if found else None

    def _differs(self, path: str, test: str) -> bool | None:
        old, new = self.old(self.touched[path]), self.new(path)
        if new is None or (now := test_text(self.runner, path, new, test)) is None:
            return None
        return old is None or test_text(self.runner, path, old, test) != now


_COMMENTS = ("//", "/*", "* ", "*/")


def test_text(runner: str, path: str, text: str, test: str) -> str | None:
    """What a test of a file does, without white space, comments and docstrings; None where it is not found. The id is
    one of the runner's (`environments.suites.runner.Runner`). In Python its parameters are part of it, and the values
    of the module that it reads: what it expects may stand there."""
    if language_of(path) == "python":
        return _python(text, test)
    name = RUNNERS[runner].name_of(test)
    if not name:
        return None
    lines = text.splitlines()
    pattern = re.compile(_FIRST.replace("{0}", re.escape(name)))
    found = [(number, match) for number, line in enumerate(lines) if (match := pattern.match(line))]
    if len(found) != 1:
        return None
    place, match = found[0]
    indent = match["indent"]
    if lines[place].rstrip().endswith(("}", "});", "})", ");")):
        return "".join(bare_lines(lines[place : place + 1], _COMMENTS))
    for end in range(place + 1, len(lines)):
        if lines[end].startswith(f"{indent}}}"):
            return "".join(bare_lines(lines[place : end + 1], _COMMENTS))
    return None


test_text.__test__ = False  # type: ignore[attr-defined]  # no test, whatever pytest thinks of its name


def _python(text: str, test: str) -> str | None:
    tree = parsed(text)
    if tree is None:
        return None
    bare = test.partition("[")[0]
    words = bare.split("::") if "::" in bare else bare.split(".")
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    owner = words[-2] if len(words) > 1 and words[-2] in classes else None
    named = [node for of, node in _functions(tree, words[-1]) if of == owner]
    if len(named) != 1:
        return None
    node = named[0]
    read = _read_values(tree, node)
    if _is_docstring(node.body[0]) and len(node.body) > 1:
        node.body = node.body[1:]
    return "\n".join(_dumped(text, it) for it in (node, *read))


def _read_values(tree: ast.Module, test: ast.AST) -> list[ast.stmt]:
    """The assignments of a module whose names a test reads, in itself or in another of them."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)]
    names = _names(test, ast.Load)
    while more := [it for it in assigned if _names(it, ast.Store) & names and not _names(it, ast.Load) <= names]:
        names = names.union(*(_names(it, ast.Load) for it in more))
    return [it for it in assigned if _names(it, ast.Store) & names]


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, context)}


def _dumped(text: str, node: ast.stmt) -> str:
    dumped = unless_too_deep(lambda: ast.dump(node))
    return (
        "".join(bare_lines(text.split("\n")[node.lineno - 1 : node.end_lineno], ("#",))) if dumped is None else dumped
    )


def _functions(tree: ast.Module, name: str) -> Iterator[tuple[str | None, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        for owner, it in (
            [(None, node), *((node.name, it) for it in node.body)] if isinstance(node, ast.ClassDef) else [(None, node)]
        ):
            if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef) and it.name == name:
                yield owner, it


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
