"""Values that have to be near others: what a mask told is held against the literal of a test by the rule of the
function that this calls. Pure.

A rule is the name of a comparison and its tolerances, ``approx:1e-06:1e-12:False``; with ``<`` before it the literal is
the first of the two that are compared. A value is told as JSON: numbers as they are, lists and tuples as lists, and in
objects of one key what JSON has not: ``f`` a number that is not finite, ``d`` a Decimal, ``q`` a Fraction, ``c`` a
complex number, ``a`` an array, ``m`` the pairs of a dictionary. Another object has no text of its own, and equals
nothing.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from prchain.core.code.syntax_trees import syntax_tree

SWAPPED = "<"
"""Begins a rule whose literal is the first of what is compared."""
_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError)
_LONGEST = 1 << 14
"""Letters of a literal that is read."""
_NEAR_ONE = 1e-12
_MOST_PAIRS = 1_000_000


class _Array(tuple[Any, ...]):
    """The parts of an array."""

    __slots__ = ()


def is_near(rule: str, literal: str, told: str) -> bool:
    """Whether what a mask told is as near to a literal as a rule asks for; in doubt not."""
    try:
        return _holds(rule, written(literal), _decoded(json.loads(told), 0))
    except _ERRORS:
        return False


def is_loose(rule: str, literal: str, digits: int) -> bool:
    """Whether a rule takes what differs from a literal in the last of so many digits: then it may be met by chance."""
    try:
        value = written(literal)
        return _holds(rule, value, _moved(value, 1 + (1 + _NEAR_ONE) * 10.0 ** (1 - digits) / 2))
    except _ERRORS:
        return True


def written(literal: str) -> Any:
    """The value of numbers, texts and constants that are written out, and of lists, tuples and dictionaries of these.
    Raises ValueError, SyntaxError, ArithmeticError, RecursionError or MemoryError for others."""
    if len(literal) > _LONGEST:
        raise ValueError(literal[:20])
    match syntax_tree(literal.strip()).body:
        case [ast.Expr(value=node)]:
            return value_of(node)
    raise ValueError(literal[:20])


def value_of(node: ast.expr) -> Any:
    """The value of an expression, as `written`."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _number(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _number(left) + _number(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _number(left) - _number(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _number(left) * _number(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _number(left) / _number(right)
        case ast.List(elts=parts):
            return [value_of(it) for it in parts]
        case ast.Tuple(elts=parts):
            return tuple(value_of(it) for it in parts)
        case ast.Dict(keys=keys, values=values):
            found = [value_of(it) if it is not None else _unwritten(node) for it in keys]
            if any(isinstance(it, list | dict) for it in found):
                _unwritten(node)
            return dict(zip(found, map(value_of, values), strict=True))
    return _unwritten(node)


def _number(node: ast.expr) -> int | float:
    value = value_of(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(type(node).__name__)
    return value


def _unwritten(node: ast.expr) -> Any:
    raise ValueError(type(node).__name__)


def _decoded(told: Any, depth: int) -> Any:
    """The value that a text of JSON tells."""
    if isinstance(told, list):
        return [_decoded(it, depth + 1) for it in told]
    if not isinstance(told, dict):
        return told
    match [*told.items()]:
        case [("f", "nan" | "inf" | "-inf" as text)]:
            return float(text)
        case [("d", str(text))]:
            return Decimal(text)
        case [("q", str(text))]:
            above, _, below = text.partition("/")
            return Fraction(int(above), int(below or 1))
        case [("c", [first, second])]:
            return complex(_decoded(first, depth + 1), _decoded(second, depth + 1))
        case [("a", list(parts))]:
            return _Array(_decoded(it, depth + 1) for it in parts)
        case [("m", list(pairs))]:
            return {_decoded(key, depth + 1): _decoded(value, depth + 1) for key, value in pairs}
    raise ValueError("no text of its own")


def _moved(value: Any, factor: float) -> Any:
    """A value all of whose numbers are others."""
    if isinstance(value, list | tuple):
        return [_moved(it, factor) for it in value]
    if isinstance(value, dict):
        return {key: _moved(it, factor) for key, it in value.items()}
    return value * factor if isinstance(value, int | float) and not isinstance(value, bool) else value


def _holds(rule: str, literal: Any, given: Any) -> bool:
    name, *given_limits = rule.removeprefix(SWAPPED).split(":")
    limits = [written(it) for it in given_limits]
    first, second = (literal, given) if rule.startswith(SWAPPED) else (given, literal)
    return bool(_RULES[name](first, second, *limits))


def _is_nan(value: Any) -> bool:
    return isinstance(value, int | float | complex) and math.isnan(abs(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | Decimal | Fraction)


def _approx(given: Any, wanted: Any, rel: float | None, absolute: float | None, nan_ok: bool) -> bool:
    """``given == pytest.approx(wanted)``."""
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict)
            and given.keys() == wanted.keys()
            and all(_approx_scalar(given[it], wanted[it], rel, absolute, nan_ok) for it in wanted)
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(given, list | tuple)
            and len(given) == len(wanted)
            and all(_approx_scalar(one, other, rel, absolute, nan_ok) for one, other in zip(given, wanted, strict=True))
        )
    return _approx_scalar(given, wanted, rel, absolute, nan_ok)


def _approx_scalar(given: Any, wanted: Any, rel: float | None, absolute: float | None, nan_ok: bool) -> bool:
    if isinstance(given, _Array):
        return all(_approx_scalar(it, wanted, rel, absolute, nan_ok) for it in given)
    if isinstance(wanted, list | tuple | dict):
        return False
    if given == wanted:
        return True
    if not (_is_number(wanted) and _is_number(given)):
        return False
    if _is_nan(wanted):
        return nan_ok and _is_nan(given)
    if math.isinf(abs(wanted)):
        return False
    limit = 1e-12 if absolute is None else absolute
    if rel is not None or absolute is None:
        limit = max(limit, (1e-6 if rel is None else rel) * abs(wanted))
    return bool(abs(wanted - given) <= limit)


def _almost(first: Any, second: Any, places: int | None, delta: float | None) -> bool:
    """``assertAlmostEqual(first, second)``."""
    if first == second:
        return True
    difference = abs(first - second)
    if delta is not None:
        return places is None and bool(difference <= delta)
    return bool(round(difference, 7 if places is None else places) == 0)


def _is_close(first: Any, second: Any, rel: float, absolute: float) -> bool:
    """``math.isclose(first, second)``."""
    return _is_number(first) and _is_number(second) and math.isclose(first, second, rel_tol=rel, abs_tol=absolute)


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of the array that a value makes. Raises ValueError where its rows are not alike."""
    if not isinstance(value, list | tuple):
        if isinstance(value, dict):
            raise ValueError("no array")
        return ()
    shapes = {_shape(it) for it in value}
    if len(shapes) > 1:
        raise ValueError("rows are not alike")
    return (len(value), *(shapes.pop() if shapes else ()))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for it in value:
            yield from _flat(it)
    else:
        yield value


def _of_one_shape(first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of two arrays of one shape, or of one and a number."""
    one, other = _shape(first), _shape(second)
    if one == other:
        return zip(_flat(first), _flat(second), strict=True)
    if not one:
        return ((first, it) for it in _flat(second))
    if not other:
        return ((it, second) for it in _flat(first))
    raise ValueError("other shapes")


def _broadcast(first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of two arrays, each of which is repeated as the other's shape asks for."""

    def pairs(one: Any, left: Sequence[int], other: Any, right: Sequence[int]) -> Iterator[tuple[Any, Any]]:
        if not left and not right:
            yield one, other
        elif len(left) > len(right):
            for it in one:
                yield from pairs(it, left[1:], other, right)
        elif len(right) > len(left):
            for it in other:
                yield from pairs(one, left, it, right[1:])
        elif left[0] == right[0]:
            for it, its in zip(one, other, strict=True):
                yield from pairs(it, left[1:], its, right[1:])
        elif right[0] == 1:
            for it in one:
                yield from pairs(it, left[1:], other[0], right[1:])
        elif left[0] == 1:
            for its in other:
                yield from pairs(one[0], left[1:], its, right[1:])
        else:
            raise ValueError("other shapes")

    return _at_most(pairs(first, _shape(first), second, _shape(second)))


def _at_most(pairs: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """As many as a run may take the time for: what was told decides how many there are."""
    for number, pair in enumerate(pairs):
        if number >= _MOST_PAIRS:
            raise ValueError("too large")
        yield pair


def _are_close(given: Any, wanted: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    if not (_is_number(given) and _is_number(wanted)):
        raise TypeError("no number")
    if _is_nan(given) or _is_nan(wanted):
        return equal_nan and _is_nan(given) and _is_nan(wanted)
    if given == wanted:
        return True
    return math.isfinite(abs(wanted)) and bool(abs(given - wanted) <= atol + rtol * abs(wanted))


def _assert_allclose(given: Any, wanted: Any, *limits: Any) -> bool:
    return all(_are_close(*it, *limits) for it in _of_one_shape(given, wanted))


def _allclose(given: Any, wanted: Any, *limits: Any) -> bool:
    return all(_are_close(*it, *limits) for it in _broadcast(given, wanted))


def _isclose(given: Any, wanted: Any, *limits: Any) -> bool:
    """``np.isclose``, of which more than one answer is no condition."""
    return [_are_close(*it, *limits) for it in _broadcast(given, wanted)] == [True]


def _decimals(given: Any, wanted: Any, decimals: int) -> bool:
    """``assert_almost_equal``, ``assert_array_almost_equal``."""

    def is_almost(one: Any, other: Any) -> bool:
        if not (_is_number(one) and _is_number(other)):
            raise TypeError("no number")
        if _is_nan(one) or _is_nan(other):
            return _is_nan(one) and _is_nan(other)
        if math.isinf(abs(one)) or math.isinf(abs(other)):
            return bool(one == other)
        return bool(abs(other - one) < 1.5 * 10.0**-decimals)

    return all(is_almost(*it) for it in _of_one_shape(given, wanted))


def _significant(given: Any, wanted: Any, digits: int) -> bool:
    """``assert_approx_equal``."""
    while isinstance(given, _Array) and len(given) == 1:
        (given,) = given
    one, other = float(given), float(wanted)
    if one == other:
        return True
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return False
    scale = 10.0 ** math.floor(math.log10(0.5 * (abs(one) + abs(other))))
    return abs(other / scale - one / scale) < 10.0 ** -(digits - 1)


def _are_same(one: Any, other: Any, *, equal_nan: bool) -> bool:
    return bool(one == other) or (equal_nan and _is_nan(one) and _is_nan(other))


def _arrays(given: Any, wanted: Any) -> bool:
    """``assert_array_equal``."""
    return all(_are_same(*it, equal_nan=True) for it in _of_one_shape(given, wanted))


def _array_equal(given: Any, wanted: Any, equal_nan: bool) -> bool:
    """``np.array_equal``."""
    return _shape(given) == _shape(wanted) and all(
        _are_same(*it, equal_nan=equal_nan) for it in zip(_flat(given), _flat(wanted), strict=True)
    )


def _equal(given: Any, wanted: Any) -> bool:
    """``assert_equal``."""
    if isinstance(given, _Array) or isinstance(wanted, _Array):
        return _arrays(given, wanted)
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict)
            and given.keys() == wanted.keys()
            and all(_equal(given[it], wanted[it]) for it in wanted)
        )
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        return len(given) == len(wanted) and all(_equal(*it) for it in zip(given, wanted, strict=True))
    if isinstance(given, int | float) and isinstance(wanted, int | float) and given == wanted == 0:
        return math.copysign(1, given) == math.copysign(1, wanted)
    return _are_same(given, wanted, equal_nan=True)


def _digits(given: Any, wanted: Any, digits: float) -> bool:
    """``toBeCloseTo``."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    one, other = float(given), float(wanted)
    return (math.isinf(one) and one == other) or abs(other - one) < 10.0**-digits / 2


def _delta(given: Any, wanted: Any, delta: float) -> bool:
    """``closeTo`` of chai."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return abs(float(given) - float(wanted)) <= delta


_RULES: Mapping[str, Callable[..., bool]] = {
    "approx": _approx,
    "almost": _almost,
    "isclose": _is_close,
    "assert_allclose": _assert_allclose,
    "np_allclose": _allclose,
    "np_isclose": _isclose,
    "decimals": _decimals,
    "significant": _significant,
    "arrays": _arrays,
    "array_equal": _array_equal,
    "equal": _equal,
    "digits": _digits,
    "delta": _delta,
}
