"""The calls of a file of Python that ask whether a value is near another (`environments.suites.canaries.nearness`).
Which function a name is says what the file imports; where that is not known nothing is. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from environments.suites.canaries.nearness import value_of
from environments.suites.canaries.pythontests import called

_NOT_GIVEN: Mapping[str, Any] = MappingProxyType({})


class _Form(NamedTuple):
    """A function: the rule by which it compares, what it takes behind two values, in this order, with what these are
    where they are not given, and which of these say nothing of what is asked for."""

    rule: str
    limits: Mapping[str, Any] = _NOT_GIVEN
    silent: tuple[str, ...] = ()
    only_named: bool = False
    of_numbers: bool = True


_TEXTS = ("err_msg", "verbose")
_CLOSE = {"rtol": 1e-05, "atol": 1e-08, "equal_nan": False}
_STATED = {
    "numpy.testing.assert_allclose": _Form("assert_allclose", {"rtol": 1e-07, "atol": 0, "equal_nan": True}, _TEXTS),
    "numpy.testing.assert_almost_equal": _Form("decimals", {"decimal": 7}, _TEXTS),
    "numpy.testing.assert_array_almost_equal": _Form("decimals", {"decimal": 6}, _TEXTS),
    "numpy.testing.assert_approx_equal": _Form("significant", {"significant": 7}, _TEXTS),
    "numpy.testing.assert_array_equal": _Form("arrays", {}, _TEXTS, of_numbers=False),
    "numpy.testing.assert_equal": _Form("equal", {}, _TEXTS, of_numbers=False),
}
"""Assert by themselves: https://numpy.org/doc/stable/reference/routines.testing.html"""
_ALMOST = _Form("almost", {"places": None, "msg": None, "delta": None}, ("msg",))
"""https://docs.python.org/3/library/unittest.html#unittest.TestCase.assertAlmostEqual"""
_METHODS = {"assertAlmostEqual": _ALMOST, "assertAlmostEquals": _ALMOST}
_ASKED = {
    "numpy.allclose": _Form("np_allclose", _CLOSE),
    "numpy.isclose": _Form("np_isclose", _CLOSE),
    "numpy.array_equal": _Form("array_equal", {"equal_nan": False}, of_numbers=False),
    "math.isclose": _Form("isclose", {"rel_tol": 1e-09, "abs_tol": 0.0}, only_named=True),
}
"""Conditions: https://docs.python.org/3/library/math.html#math.isclose"""
_APPROX = _Form("approx", {"rel": None, "abs": None, "nan_ok": False})
"""https://docs.pytest.org/en/stable/reference/reference.html#pytest-approx"""
NEAR_NAMES = frozenset({it.rpartition(".")[2] for it in (*_STATED, *_METHODS, *_ASKED)} | {"assertNotAlmostEqual"})
"""What these functions are called: no helpers of a file's own."""


class NearAsked(NamedTuple):
    """A call that asks whether two values are near each other. What is `wanted` is written out as the `literal`, or is
    a name; `by_name` are the names where none of the two is written out."""

    func: ast.expr
    rule: str
    wanted: ast.expr | None = None
    literal: ast.expr | None = None
    by_name: tuple[ast.Name, ...] = ()


class NearNames:
    """What the names of a file stand for, by its imports."""

    def __init__(self, tree: ast.AST | None = None) -> None:
        self._known: dict[str, str] = {}
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Import(names=names):
                    for it in names:
                        # Of `import a.b` the name `a` is known alone.
                        self._known[it.asname or it.name.partition(".")[0]] = (
                            it.name if it.asname else it.name.partition(".")[0]
                        )
                case ast.ImportFrom(module=module, names=names, level=level):
                    for it in names:
                        self._known[it.asname or it.name] = f"{'.' * level}{module or ''}.{it.name}"

    def whole(self, node: ast.expr) -> str:
        """What a name with its members stands for; empty for what is not imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        known = self._known.get(node.id, "") if isinstance(node, ast.Name) else ""
        return ".".join([known, *reversed(parts)]) if known else ""

    def approx(self, node: ast.expr) -> NearAsked | None:
        """What ``pytest.approx(..)`` asks for."""
        match node:
            case ast.Call(func=func, args=[wanted, *limits], keywords=named) if self.whole(func) == "pytest.approx":
                rule = _rule(_APPROX, limits, named)
                if rule and isinstance(wanted, ast.Name):
                    return NearAsked(func, rule, by_name=(wanted,))
                if rule and _is_flat(wanted) and _can_be_asked(wanted, of_numbers=False):
                    return NearAsked(func, rule, node, wanted)
        return None

    def has_approx(self, node: ast.expr) -> bool:
        """Whether ``pytest.approx`` is called in an expression."""
        return any(isinstance(it, ast.Call) and self.whole(it.func) == "pytest.approx" for it in ast.walk(node))

    def stated(self, call: ast.Call) -> NearAsked | None:
        """What a call that is a statement asks for."""
        method = _METHODS.get(called(call)) if isinstance(call.func, ast.Attribute) else None
        form = method or _STATED.get(self.whole(call.func))
        return self._asked(call, form) if form is not None else None

    def condition(self, test: ast.expr) -> NearAsked | None:
        """What a condition that is a call asks for."""
        form = _ASKED.get(self.whole(test.func)) if isinstance(test, ast.Call) else None
        return self._asked(test, form) if isinstance(test, ast.Call) and form is not None else None

    def _asked(self, call: ast.Call, form: _Form) -> NearAsked | None:
        if len(call.args) < 2 or (form.only_named and len(call.args) > 2):
            return None
        first, second, *limits = call.args
        rule = _rule(form, limits, call.keywords)
        if not rule:
            return None
        for wanted, other in ((second, first), (first, second)):
            literal = self._in_array(wanted)
            is_array = literal is not wanted
            if _can_be_asked(literal, of_numbers=form.of_numbers) and not _can_be_asked(other, of_numbers=False):
                kept = "arrays" if is_array and form.rule == "equal" else rule
                return NearAsked(call.func, kept, wanted, literal)
        names = tuple(it for it in (first, second) if isinstance(it, ast.Name))
        return NearAsked(call.func, rule, by_name=names) if names else None

    def _in_array(self, node: ast.expr) -> ast.expr:
        """What numpy makes an array of."""
        match node:
            case ast.Call(func=func, args=[ast.List() | ast.Tuple() as parts], keywords=[]):
                return parts if self.whole(func) in ("numpy.array", "numpy.asarray") else node
        return node


def _rule(form: _Form, given: list[ast.expr], named: list[ast.keyword]) -> str:
    """The rule of a call, with its limits; empty where one of these is not written out."""
    names = [*form.limits, *form.silent] if form is not _ALMOST else [*form.limits]
    limits = {**form.limits}
    if len(given) > len(names):
        return ""
    for name, node in [*zip(names, given, strict=False), *((it.arg or "", it.value) for it in named)]:
        if name in form.silent:
            continue
        if name not in limits:
            return ""
        try:
            limits[name] = value_of(node)
        except (ValueError, ArithmeticError, RecursionError):
            return ""
        if not isinstance(limits[name], int | float | None):
            return ""
    kept = [repr(it) for name, it in limits.items() if name not in form.silent]
    return ":".join([form.rule, *kept]) if not any(it in ("inf", "-inf", "nan") for it in kept) else ""


def _can_be_asked(node: ast.expr, *, of_numbers: bool) -> bool:
    """Whether a value is written out that rules read, of numbers alone or of constants, too."""
    if isinstance(node, ast.Call | ast.Name | ast.Attribute):
        return False
    try:
        value = value_of(node)
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return False
    return not of_numbers or _is_of_numbers(value)


def _is_of_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_of_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_flat(node: ast.expr) -> bool:
    """Whether a value is one that ``approx`` takes in all its versions: no list in a list, and no boolean."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return all(not isinstance(it, ast.List | ast.Tuple | ast.Dict) and _is_flat(it) for it in parts)
        case ast.Constant(value=bool()):
            return False
    return True
