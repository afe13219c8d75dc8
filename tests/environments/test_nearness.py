"""Values that have to be near others, held outside as the functions of tests hold them."""

from __future__ import annotations

import json
import math
import time
import unittest
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.masks import agrees, is_rough, to_tell, told
from environments.suites.canaries.nearness import is_loose, is_near, written


@pytest.mark.parametrize(
    ("rule", "literal", "value", "near"),
    [
        ("approx:None:None:False", "0.3", "0.30000000000000004", True),
        ("approx:None:None:False", "1000", "1000.001", True),
        ("approx:None:None:False", "1000", "1000.0011", False),
        ("approx:None:0.1:False", "1000", "1000.11", False),
        ("approx:None:None:False", "0", "1e-12", True),
        ("approx:None:None:False", "0", "1.1e-12", False),
        ("approx:None:None:False", "[1, 2]", "[1, 2.0000001]", True),
        ("approx:None:None:False", "[1, 2]", '{"a": [1, 2]}', True),
        ("approx:None:None:False", "[1, 2]", "[1]", False),
        ("approx:None:None:False", "1", '{"a": [1, {"a": [1, 1]}]}', True),
        ("approx:None:None:False", "1", "[1, 1]", False),
        ("approx:None:None:False", "{'a': 1, 'b': 'x'}", '{"m": [["b", "x"], ["a", 1.0000001]]}', True),
        ("approx:None:None:False", "{'a': 1}", '{"m": [["b", 1]]}', False),
        ("approx:None:None:False", "1.5", '{"d": "1.5"}', True),
        ("approx:None:None:False", "1.5", '{"d": "1.50000001"}', False),
        ("approx:None:None:False", "1.5", '{"q": "3/2"}', True),
        ("approx:None:None:False", "1.5", '{"c": [1.5, 0.0]}', True),
        ("approx:None:None:True", "1.5", '{"f": "nan"}', False),
        ("approx:None:None:False", "1", '"1"', False),
        ("approx:None:None:False", "1", "{}", False),
        ("almost:None:None", "1", "1.00000004", True),
        ("almost:None:None", "1", "1.0000001", False),
        ("almost:None:0.5", "1", "1.5", True),
        ("almost:2:None", "1", "1.004", True),
        ("isclose:1e-09:0.0", "1", "1.0000000009", True),
        ("isclose:1e-09:0.0", "0", "1e-300", False),
        ("assert_allclose:1e-07:0:True", "[1, 2]", '{"a": [1.0, 2.0000001]}', True),
        ("assert_allclose:1e-07:0:True", "[1, 2]", "[[1, 2], [1, 2]]", False),
        ("assert_allclose:1e-07:0:True", "1", "[[1, 1], [1, 1]]", True),
        ("<assert_allclose:0.1:0:True", "100", "111", True),
        ("assert_allclose:0.1:0:True", "100", "111", False),
        ("np_allclose:1e-05:1e-08:False", "[1, 2]", "[[1, 2], [1, 2]]", True),
        ("np_allclose:1e-05:1e-08:False", "[1, 2]", "[1, 2, 3]", False),
        ("np_isclose:1e-05:1e-08:False", "1", "[1]", True),
        ("np_isclose:1e-05:1e-08:False", "1", "[1, 1]", False),
        ("array_equal:False", "[1, 2]", "[1, 2.0]", True),
        ("array_equal:False", "1", "[1, 1]", False),
        ("arrays", "['a', 'b']", '{"a": ["a", "b"]}', True),
        ("equal", "[1, [2]]", "[1, [2]]", True),
        ("equal", "[1]", "1", False),
        ("equal", "0.0", "-0.0", False),
        ("digits:2", "0.3", "0.3049", True),
        ("digits:2", "0.3", "0.3051", False),
        ("digits:2", "0x10", "16", True),
        ("digits:2", "0.3", "Infinity", False),
        ("delta:0.5", "1", "1.5", True),
        ("delta:0.5", "1", "true", False),
        ("delta:0.5", "1", "null", False),
        ("unknown:1", "1", "1", False),
        ("delta", "1", "1", False),
    ],
)
def test_a_rule_holds_a_value_as_its_function_does(rule: str, literal: str, value: str, near: bool) -> None:
    assert is_near(rule, literal, value) is near


def _passes(run: Callable[[], Any]) -> bool:
    try:
        found = run()
    except AssertionError:
        return False
    return found is None or bool(found)


_CASE = unittest.TestCase()
REAL: dict[str, Callable[[Any, Any], Any]] = {
    "approx:None:None:False": lambda one, other: one == pytest.approx(other),
    "approx:0.01:0.1:True": lambda one, other: one == pytest.approx(other, 0.01, 0.1, nan_ok=True),
    "approx:0.01:None:False": lambda one, other: one == pytest.approx(other, rel=0.01),
    "approx:None:0.1:False": lambda one, other: one == pytest.approx(other, abs=0.1),
    "almost:None:None": _CASE.assertAlmostEqual,
    "almost:1:None": lambda one, other: _CASE.assertAlmostEqual(one, other, 1),
    "almost:None:0.1": lambda one, other: _CASE.assertAlmostEqual(one, other, delta=0.1),
    "isclose:1e-09:0.0": math.isclose,
    "isclose:0.01:0.1": lambda one, other: math.isclose(one, other, rel_tol=0.01, abs_tol=0.1),
    "assert_allclose:1e-07:0:True": npt.assert_allclose,
    "assert_allclose:0.01:0.1:False": lambda one, other: npt.assert_allclose(one, other, 0.01, 0.1, equal_nan=False),
    "np_allclose:1e-05:1e-08:False": np.allclose,
    "np_isclose:1e-05:1e-08:False": np.isclose,
    "decimals:7": npt.assert_almost_equal,
    "decimals:1": lambda one, other: npt.assert_array_almost_equal(one, other, 1),
    "significant:7": npt.assert_approx_equal,
    "significant:3": lambda one, other: npt.assert_approx_equal(one, other, 3),
    "arrays": npt.assert_array_equal,
    "array_equal:False": np.array_equal,
    "equal": npt.assert_equal,
}
STEPS = (0, 1e-13, 1e-9, 9e-8, 1.1e-7, 1e-6, 2e-5, 0.0099, 0.0101, 0.0499, 0.0501, 0.1, 0.11, 2)
NUMBERS = st.sampled_from([0.0, -0.0, 1, 3, 100, 0.25, -7.5, 12345.678, 1e-9]) | st.floats(-1e6, 1e6)


def told_of(value: float) -> str:
    return json.dumps(value) if math.isfinite(value) else json.dumps({"f": repr(value)})


@pytest.mark.parametrize("rule", REAL)
@given(wanted=NUMBERS, step=st.sampled_from(STEPS), times=st.booleans())
def test_numbers_are_near_where_the_function_itself_says_so(rule: str, wanted: float, step: float, times: bool) -> None:
    value = wanted * (1 + step) if times else wanted + step
    assert is_near(rule, repr(wanted), told_of(value)) is _passes(lambda: REAL[rule](value, wanted))


@pytest.mark.parametrize("rule", REAL)
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wanted", [0, 1.5])
def test_what_is_no_finite_number_is_near_where_the_function_itself_says_so(
    rule: str, value: float, wanted: float
) -> None:
    assert is_near(rule, repr(wanted), told_of(value)) is _passes(lambda: REAL[rule](value, wanted))


ARRAYS = [it for it in REAL if not it.startswith(("almost", "isclose", "significant", "approx"))]
SHAPES = ["1", "[1]", "[1, 1]", "[1, 1, 1]", "[[1, 1], [1, 1]]", "[[1, 1]]", "[[1], [1]]", "[]"]


@pytest.mark.parametrize("rule", ARRAYS)
@pytest.mark.parametrize("value", SHAPES)
def test_arrays_fit_where_the_function_itself_says_so(rule: str, value: str) -> None:
    array = np.array(json.loads(value))

    def parts(it: Any) -> Any:
        return {"a": [parts(one) for one in it]} if isinstance(it, list) else it

    for literal in SHAPES:
        try:
            fits = _passes(partial(REAL[rule], array[()], json.loads(literal)))
        except ValueError:
            fits = False
        assert is_near(rule, literal, json.dumps(parts(array.tolist()))) is fits, (literal, value)


@given(st.sampled_from([*REAL, "digits:2", "delta:1", "almost:-9999999:None", "<equal", "x"]), st.text(), st.text())
def test_any_text_can_be_held(rule: str, literal: str, text: str) -> None:
    is_near(rule, literal, text)
    is_near(rule, "[1, {'a': 2.5}]", text)
    is_near(rule, literal, "[1]")
    is_loose(rule, literal, 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda it: st.lists(it, max_size=3) | st.dictionaries(st.sampled_from("fdqcamx"), it, max_size=2),
    max_leaves=8,
)


@given(st.sampled_from([*REAL, "digits:2", "delta:1"]), JSON)
def test_any_told_value_can_be_held(rule: str, value: Any) -> None:
    for literal in ("1.5", "[1, 2]", "{'a': 1}", "'x'"):
        is_near(rule, literal, json.dumps(value))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        json.dumps([1.0] * 100_000),
        "9" * 300_000,
        '{"d": "1e999999999"}',
        '{"d": "' + "9" * 200_000 + '"}',
        '{"q": "' + "9" * 200_000 + '/7"}',
        '{"q": "1/0"}',
        '{"f": "' + "1" * 200_000 + '"}',
        '{"a":' * 50_000,
    ],
)
def test_what_hostile_code_tells_takes_no_long_time(text: str) -> None:
    begin = time.process_time()
    for rule in ("approx:None:None:False", "np_allclose:1e-05:1e-08:False", "almost:None:None", "equal"):
        assert not is_near(rule, "[1, 2]", text) and not is_near(rule, "1.5", text)
    assert time.process_time() - begin < 10


def test_values_are_written_out_by_numbers_and_their_sums() -> None:
    assert written("[1/4, -2 * 3, {'a': (+1, None)}]") == [0.25, -6, {"a": (1, None)}]
    for text in ("a", "f(1)", "2 ** 9", "[*a]", "{**a}", "{[1]: 2}", "'a' * 9", "True + 1", "1 / 0", "1j", "b'a'", ""):
        with pytest.raises((ValueError, SyntaxError, ArithmeticError)):
            written(text)
    with pytest.raises(ValueError):
        written(" " * 100_000 + "1")


def test_a_place_tells_a_number_as_near_as_its_own_test_asks() -> None:
    found = told("3 @approx:None:None:False 0.30000000000000004\n4 @approx:None:0.1:False 7\n")
    wanted = to_tell("0.3", found[3])
    assert wanted is not None and agrees(wanted, {"@approx:None:None:False 0.3"})
    for other in ("@approx:None:9.0:False 0.3", "=0.3", "@approx:None:None:False 0.31", "@", "@approx:None:None:False"):
        assert not agrees(wanted, {other}) and not agrees(wanted, {*found[3], other})
    assert not agrees(wanted, ())
    assert to_tell("7", {*found[3], *found[4]}) is None, "by two rules"
    assert to_tell("9", found[4]) is None, "M_t itself does not tell it"


@pytest.mark.parametrize(
    ("wanted", "digits", "rough"),
    [
        ("@approx:None:None:False 1234.5", 4, False),
        ("@approx:0.5:None:False 1234.5", 2, True),
        ("@digits:2 365.2425", 4, False),
        ("@digits:2 0.04", 2, True),
        ("@delta:40 1234.5", 2, False),
        ("@delta:40 1234.5", 4, True),
        ("@equal [0, 0]", 2, True),
        ("@equal ['a', 12]", 2, False),
        ('="words"', 2, False),
    ],
)
def test_what_takes_a_wide_range_may_be_met_by_chance(wanted: str, digits: int, rough: bool) -> None:
    assert is_rough(wanted, digits) is rough


def test_exact_numbers_of_other_kinds_are_compared_as_they_are() -> None:
    for value, text in ((Decimal("0.1"), '{"d": "0.1"}'), (Fraction(1, 10), '{"q": "1/10"}')):
        for wanted in (0, 1, 0.5):
            try:
                near = _passes(partial(_CASE.assertAlmostEqual, value, wanted))
            except TypeError:
                near = False
            assert is_near("almost:None:None", repr(wanted), text) is near


def test_what_is_told_does_not_decide_how_long_it_is_looked_at() -> None:
    literal = str([[number] for number in range(2_000)])
    given = json.dumps({"a": [0] * 200_000})
    assert not is_near("np_allclose:1e-05:1e+300:False", literal, given)
