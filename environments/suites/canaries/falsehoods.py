"""Tests of Python that are made false where they stand, for duels (`environments.suites.canaries.duels`).

A falsehood asks for another value, or for another exception, and does what the test does. Of a test that asks for
nothing it asks for a value of what is done there. Whether it fails on M_t is tried there, so it need not be known
whether its place is reached.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from random import Random

from environments.suites.canaries.duels import Falsifier
from environments.suites.canaries.falsify import (
    OPPOSITE_METHODS,
    FormDice,
    LiteralText,
    Patch,
    PlausibleDice,
    assertion,
    constants,
    falsified,
    file_values,
    lines_of,
    near,
    patched,
)
from environments.suites.canaries.plausible_python import PlausibleFile, turned
from environments.suites.canaries.pythonmasks import compared_by_type
from environments.suites.canaries.pythontests import Function, functions_of, statements, tests_of
from prchain.core.code.syntax_trees import syntax_tree

_OTHER_EXCEPTIONS = ("BufferError", "BlockingIOError", "ChildProcessError", "FloatingPointError", "ProcessLookupError")
"""Built in, and hardly ever what a test waits for."""
_USUAL_EXCEPTIONS = ("AttributeError", "IndexError", "KeyError", "RuntimeError", "TypeError", "ZeroDivisionError")
"""What tests wait for where the file's tests wait for one alone."""
_ROOTS = frozenset({"BaseException", "Exception"})
_ASSERTING = ("assert", "check", "expect")
"""Begin the names of helpers that assert."""
_RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp"})
_BOM = "\ufeff"


def falsify_python(text: str, dice: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
    """`Falsifier.falsify` for pytest and unittest. Where two functions of the file have one name, its name is that with
    its class: ``Case.test_it``."""
    bom, plain = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    try:
        tree = syntax_tree(plain)
        lines = lines_of(plain)
        functions = list(functions_of(tree))
        values = file_values(tree)
        waits = _waits(functions)
        plausible = PlausibleFile(tree, LiteralText(lines), [node for _, node in functions])
        patches: list[Patch] = []
        done: set[str] = set()
        for known_as, node in tests_of(tree):
            if (order := dice(known_as)) is None:
                continue
            if isinstance(order, PlausibleDice) and order.by_kind:
                made = _other_types(compared_by_type(plain, node), plausible, order)
            else:
                made = _falsehood(node, lines, values, waits, plausible, order)
            if made:
                patches += made
                done.add(known_as)
        if not done:
            return text, frozenset()
        return bom + "".join(patched(lines, 1, len(lines), patches)), frozenset(done)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text, frozenset()


def _other_types(numbers: Sequence[ast.expr], plausible: PlausibleFile, order: PlausibleDice) -> list[Patch]:
    """Equal numbers of another type in one line, by each dice of a place in another one. Old lines, too: it is all of
    them whose types are asked for anew."""
    lines = sorted({it.lineno for it in numbers})
    if not lines:
        return []
    line = order.taken(order.place.sample(lines, len(lines)))
    some = [it for it in numbers if it.lineno == line]
    made = [_of_other_type(plausible.source.text(it)) for it in some]
    return [Patch(it.lineno, it.col_offset, it.end_col_offset or 0, text) for it, text in zip(some, made, strict=True)]


def _of_other_type(number: str) -> str:
    """An equal number, a float for an int or the other way round."""
    value = ast.literal_eval(number)
    return repr(int(value)) if isinstance(value, float) else f"{value}.0"


def _waits(functions: Sequence[tuple[str, Function]]) -> list[str]:
    """The exceptions that tests wait for, as they write them."""
    found = (it for _, node in functions for one in statements(node.body) for it in _exceptions(one))
    return sorted({ast.unparse(it) for it in found if isinstance(it, ast.Name | ast.Attribute)} - _ROOTS)


def _falsehood(
    node: Function,
    lines: Sequence[str],
    values: Sequence[object],
    waits: Sequence[str],
    plausible: PlausibleFile,
    order: Random,
) -> list[Patch]:
    """What makes a test false: another value in an assertion, else in a call that asserts, else another exception,
    else a value of what it calls or keeps. `waits` are the exceptions that the file's tests wait for."""
    body = list(statements(node.body))
    asserted = [found for it in body if (found := assertion(it)) is not None]
    if isinstance(order, PlausibleDice):
        helped = [it for statement in body for it in _wanted(statement)]
        if patches := plausible.falsehood(node, asserted, [] if asserted else helped, order):
            return patches
        asserted = [turned(order.place.choice(asserted))] if asserted else []
    if asserted:
        return falsified(order.choice(asserted), [], lines, values, order, by_value=True, arguments=False)[0]
    source = LiteralText(lines)
    wanted = [it for statement in body for it in _wanted(statement) if source.is_simple(it)]
    if wanted:
        literal = order.choice(wanted)
        return [source.with_value(literal, near(literal.value, order))]
    exceptions = [it for statement in body for it in _exceptions(statement)]
    if exceptions:
        waited = (order.place if isinstance(order, PlausibleDice) else order).choice(exceptions)
        other = _other_exception(waited, waits, order)
        return [Patch(waited.lineno, waited.col_offset, waited.end_col_offset or 0, other)]
    by_form = isinstance(order, FormDice)
    made = [
        asking
        for it in statements(node.body)
        if (asking := _asked_of(it, source.literal(_value(values, order)), lines if by_form else None))
    ]
    return order.choice(made) if made else []


def _other_exception(waited: ast.expr, waits: Sequence[str], order: Random) -> str:
    """Another exception than a test waits for; by dice of forms one that the file's tests, or most tests, wait for."""
    if not isinstance(order, FormDice):
        return order.choice(_OTHER_EXCEPTIONS)
    known = ast.unparse(waited)
    if isinstance(order, PlausibleDice):
        # Those of the file are often of one family, of which the one that comes is another's kind, too.
        of_file, usual = ([it for it in some if it not in known] for some in (waits, _USUAL_EXCEPTIONS))
        of_file, usual = (order.place.sample(some, len(some)) for some in (of_file, usual))
        return order.taken([*of_file[:1], *usual[:1], *of_file[1:2], *usual[1:]])
    others = [it for it in waits if it not in known] or [it for it in _USUAL_EXCEPTIONS if it not in known]
    return order.choice(others)


def _value(values: Sequence[object], order: Random) -> object:
    """A value near one of the file's."""
    return near(order.choice(values or [order.randint(2, 9)]), order)


def _asked_of(statement: ast.stmt, wanted: str, lines: Sequence[str] | None) -> list[Patch]:
    """What asks for a value of a statement that calls something, keeps something or imports a name. With the file's
    lines it does so as people write it: on a line of its own, without parentheses."""
    last = statement.end_lineno or statement.lineno
    end = statement.end_col_offset or 0
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await()):
            before, after = ("assert (", ")") if lines is None else ("assert ", "")
            begin = Patch(statement.lineno, statement.col_offset, statement.col_offset, before)
            return [begin, Patch(last, end, end, f"{after} == {wanted}")]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [Patch(last, end, end, f"{_next(statement, lines)}assert {name} == {wanted}")]
        case ast.Import(names=[ast.alias() as alias]) | ast.ImportFrom(names=[ast.alias() as alias]):
            name = alias.asname or alias.name.partition(".")[0]
            return [] if name == "*" else [Patch(last, end, end, f"{_next(statement, lines)}assert {name} == {wanted}")]
    return []


def _next(statement: ast.stmt, lines: Sequence[str] | None) -> str:
    """What parts a statement from one behind it: a new line, where it begins its own."""
    line = "" if lines is None else lines[statement.lineno - 1]
    indent = line.encode()[: statement.col_offset].decode()
    if not line or indent.strip():
        return "; "
    return f"{line[len(line.rstrip(chr(13) + chr(10))) :] or chr(10)}{indent}"


def _wanted(statement: ast.stmt) -> Iterator[ast.Constant]:
    """The literals behind the first argument of a call that asserts by a helper: ``self.assertRenders(a, "<p>")``."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[_, *more])) if (
            name.lower().startswith(_ASSERTING) and name not in OPPOSITE_METHODS and name not in _RAISING
        ):
            for it in more:
                yield from constants(it)


def _exceptions(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a ``with`` waits to be raised, where that stands on one line."""
    if isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            match item.context_expr:
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[found, *_]) if (
                    name in _RAISING and found.lineno == found.end_lineno
                ):
                    yield found


PYTHON_FALSIFIER = Falsifier(falsify_python, (28, 29, 30, 31, 32), (34, 1), first_seeds=tuple(range(40, 49)))
"""The first of the last seeds changes another place, the other asks for an exception that nobody waits for."""
