"""Masks for assertions of Python that ask for more than equality: how near a number is, of which class a value is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments import held_tests
from environments.suites.canaries.masks import Masked, Masking, agrees, to_tell, told
from environments.suites.canaries.pythonmasks import mask_python

IMPORTS = """import math, re
import unittest
from unittest import mock
import numpy as np
import numpy.testing as npt
import pytest
from collections.abc import Mapping
from decimal import Decimal
from numpy.testing import assert_allclose as close, assert_equal
from pytest import approx
from .own import assert_almost_equal
"""


def masked(text: str, report: str = "/tmp/report") -> Masked:
    return mask_python(text, Masking(report, 0, lambda _: None))


FORMS = {
    "assert f(1) == pytest.approx(0.3)": ["0.3"],
    "assert approx(0.3, abs=1e-3) == f(1)": ["0.3"],
    "assert f(1) == approx([0.1, {'a': 2}], rel=1 / 8, nan_ok=True)": [],
    "assert f(1) == approx([0.1, 1 / 3], rel=1 / 8)": ["[0.1, 1 / 3]"],
    "assert f(1) == approx({'a': -1})": ["{'a': -1}"],
    "assert f(1) == [approx(0.1), {'a': approx(0.2)}, 'x']": ["0.1", "0.2", "'x'"],
    "wanted = 0.5\n    assert f(1) == approx(wanted)": ["0.5"],
    "wanted = [0.5, 2]\n    assert f(1) == approx(wanted)": ["[0.5, 2]"],
    "wanted = 0.5\n    assert f(1) == approx(wanted) and g() == wanted": [],
    "wanted = 0.5\n    assert f(1) == approx(wanted)\n    close(g(), wanted)": ["0.5"],
    "wanted = 0.5\n    assert f(1) == approx(wanted) or g()": [],
    "wanted = 0.5\n    self.assertEqual(f(1), [approx(wanted)])": ["0.5"],
    "assert f(1) == approx(0.3, rel=limit)": [],
    "assert f(1) == approx(True)": [],
    "assert f(1) == approx(math.pi)": [],
    "assert f(1) != approx(0.3)": [],
    "assert f(1) == own.approx(0.3)": [],
    "assert 0.3 == approx(f(1))": [],
    "self.assertEqual(f(1), approx(0.3))": ["0.3"],
    "self.assertAlmostEqual(f(1), 0.3)": ["0.3"],
    "self.assertAlmostEqual(0.3, f(1), 5, 'a message')": ["0.3"],
    "self.assertAlmostEqual(f(1), 0.3, delta=0.1, msg='a message')": ["0.3"],
    "self.assertAlmostEqual(f(1), 0.3, delta=timedelta(1))": [],
    "self.assertNotAlmostEqual(f(1), 0.3)": [],
    "np.testing.assert_allclose(f(1), [0.3, 2], rtol=1e-3, err_msg='a message')": ["[0.3, 2]"],
    "close(f(1), np.array([0.3, 2]), 1e-3, 1e-4)": ["[0.3, 2]"],
    "close(f(1), [0.3, 2], strict=True)": [],
    "close(f(1), [0.3, 2], *more)": [],
    "npt.assert_array_almost_equal(f(1), (0.3, 2), decimal=3)": ["(0.3, 2)"],
    "npt.assert_approx_equal(f(1), 0.3)": ["0.3"],
    "npt.assert_array_equal(f(1), ['a', None])": ["['a', None]"],
    "assert_equal(f(1), {'a': [1]})": ["{'a': [1]}"],
    "assert_almost_equal(f(1), 0.3)": [],
    "assert math.isclose(f(1), 0.3, rel_tol=1e-3)": ["0.3"],
    "assert math.isclose(f(1), 0.3, 1e-3)": [],
    "assert not math.isclose(f(1), 0.3)": [],
    "assert np.allclose(f(1), [0.3, 2]) and np.isclose(f(2), 0.5)": ["[0.3, 2]", "0.5"],
    "self.assertTrue(np.array_equal(f(1), [1, 2]))": ["[1, 2]"],
    "assert isinstance(f(1), Decimal)": ["'Decimal'"],
    "assert isinstance(f(1), own.Thing), 'a message'": ["'Thing'"],
    "assert isinstance(f(1), (int, Decimal))": [],
    "assert isinstance(f(1), Mapping)": [],
    "assert isinstance(f(1), kind)": [],
    "Kind = g()\n    assert isinstance(f(1), Kind) and type(f(2)) is Kind": [],
    "assert not isinstance(f(1), Decimal)": [],
    "self.assertIsInstance(f(1), dict)": ["'dict'"],
    "assert type(f(1)) is Decimal and type(f(2)) == own.Thing": ["'Decimal'", "'Thing'"],
    "assert type(f(1)) == type(f(2))": [],
    "self.assertMultiLineEqual(f(1), 'a')": ["'a'"],
    "self.assertSetEqual(f(1), {'a'})": ["{'a'}"],
    "self.assertCountEqual(f(1), ['a', 'b'])": ["['a', 'b']"],
    "wanted = ['a', 'b']\n    self.assertCountEqual(f(1), wanted)": ["['a', 'b']"],
    "self.assertCountEqual(f(1), [a, 'b'])": [],
    "self.assertIs(f(1), True)": ["True"],
    "self.assertIs(f(1), a)": [],
    "self.assertIsNone(f(1))": ["None"],
    "assert re.search('a+', f(1)) and re.match(r'b|c', f(2))": ["'a+'", r"'\\A(?:b|c)'"],
    "assert re.search('a+', f(1), re.I)": [],
    "it.assert_called_once_with(1, 'a', key=[2])": ["1", "'a'", "2"],
    "it.assert_awaited_with('a', *more, **named)": ["'a'"],
    "it.assert_any_call('a')": [],
    "assert 'a' in f('{}')": ["'a'"],
    "wanted = 'a'\n    assert wanted in f(1)": ["'a'"],
    "wanted = 'a'\n    assert wanted in f(1) and f(2) == wanted": [],
    "wanted = 'a'\n    assert wanted not in f(1)": [],
    "wanted = 'a'\n    assert f(1) in wanted": [],
    "wanted = ['a', 'b']\n    assert wanted in f(1)": [],
    "wanted = 'a'\n    assert wanted in (f(1))": [],
}


@pytest.mark.parametrize("body", FORMS)
def test_what_an_assertion_asks_for_is_found_where_it_is_written_out(body: str) -> None:
    text = f"{IMPORTS}\n\ndef test_it(self):\n    {body}\n"
    made = masked(text)
    assert [*made.literals.get("test_it", ())] == FORMS[body]
    assert (made.text == text) == (not FORMS[body])
    compile(made.text, "test_it.py", "exec")


PIECES = [" ", "assert ", "f(1)", "==", "approx(", "pytest.approx(", "0.5", "wanted", ")", ",", "rel=", "[", "]", "is "]
PIECES += ["isinstance(", "type(", "Decimal", "math.isclose(", "close(", "self.assertAlmostEqual(", "\n    ", "-1", "{"]
PIECES += ["wanted = ", "self.assertCountEqual(", "'{}'", "}", ":", "\\", "re.search(", "é", "assert_equal(", "9e999"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_test_can_be_masked(body: str) -> None:
    text = f"{IMPORTS}\n\ndef test_it(self):\n    {body}\n"
    nothing = mask_python(text, Masking("/tmp/report", 0, lambda _: ()))
    everything = masked(text)
    assert nothing.text == text and nothing.literals == everything.literals
    if everything.literals:
        compile(everything.text, "test_it.py", "exec")


RUN = (
    IMPORTS.replace("from .own import assert_almost_equal\n", "")
    + """from fractions import Fraction


class Thing:
    pass


class Part(Thing):
    pass


class Proxy:
    __class__ = Thing


class Text(float):
    def __repr__(self): return "lie"
    __str__ = __float__ = __repr__


class Case(unittest.TestCase):
    def test_near(self):
        assert 0.1 + 0.2 == approx(0.3)
        assert (Text(0.5), 2) == approx([0.5, 2])
        assert np.array([[1.0, 2.0]]) == approx(1.5, abs=1)
        assert np.float32(0.5) == approx(0.5) and Decimal("1.5") == approx(1.5) and Fraction(1, 2) == approx(0.5)
        assert {"a": [0.1], 1: None} == {"a": [approx(0.1)], 1: None}
        wanted = [3, 4.5]
        assert [3, 4.5] == approx(wanted)
        self.assertAlmostEqual(f(1.5 + 1e-9)[0], 1.5)
        npt.assert_allclose(np.array([1, 2]), [1, 2])
        assert_equal(f("a"), ["a", None, True])
        assert math.isclose(f(2.5)[0], 2.5) and np.isclose(np.float64(1), 1)
        assert object == approx(7) if False else True

    def test_kinds(self):
        assert isinstance(Part(), Thing) and type(Part()) is Part
        self.assertIsInstance(Proxy(), Thing)
        self.assertCountEqual(iter([2, "a", 1.0]), ["a", 1, 2])
        self.assertSetEqual(frozenset([1]), {1})
        assert {"a": 1}.keys() == {"a"}
        self.assertSequenceEqual((1, 2), [1, 2])
        self.assertIs(f(None)[0], None)
        assert re.search("b+", "abb") and re.match("a", "abb")
        it = mock.Mock()
        it(1, key="two")
        it.assert_called_once_with(1, key="two")


def f(it):
    return [it, None, True]


if __name__ == "__main__":
    unittest.main(argv=["it"])
"""
)


def test_masks_tell_what_is_given_so_that_it_can_be_held_as_the_test_asks(tmp_path: Path) -> None:
    report = tmp_path / "report"
    made = masked(RUN, str(report))
    ran = subprocess.run([sys.executable, "-I", "-c", made.text], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    said = told(report.read_text())
    literals = {number: made.literals[name][place] for number, (name, place) in made.numbers(0).items()}
    assert literals.keys() == said.keys()
    near = "@approx:None:None:False "
    assert [sorted(said[it]) for it in sorted(said)] == [
        [f"{near}0.30000000000000004"],
        [f"{near}[0.5, 2]"],
        ['@approx:None:1:False {"a": [{"a": [1.0, 2.0]}]}'],
        [f"{near}0.5"],
        [near + '{"d": "1.5"}'],
        [near + '{"q": "1/2"}'],
        [f"{near}0.1"],
        ["=None"],
        [f"{near}[3, 4.5]"],
        ["@almost:None:None 1.500000001"],
        ['@assert_allclose:1e-07:0:True {"a": [1, 2]}'],
        ['@equal ["a", null, true]'],
        ["@isclose:1e-09:0.0 2.5"],
        ["@np_isclose:1e-05:1e-08:False 1.0"],
        ['~["Part", "Thing", "object"]'],
        ['="Part"'],
        ['~["Proxy", "object", "Thing", "object"]'],
        [r'=counted["\"a\"", "1", "2"]'],
        ['=set["1"]'],
        [r'=set["\"a\""]'],
        ["=1"],
        ["=2"],
        ["=None"],
        ['%"abb"'],
        ['%"abb"'],
        ["=1"],
        ['="two"'],
    ]
    for number, literal in literals.items():
        wanted = to_tell(literal, said[number])
        assert wanted is not None and agrees(wanted, said[number]), literal


PARAMETERS = """
import pytest
from pytest import approx

@pytest.mark.parametrize("given, wanted", [(1, 0.5), (2, [1.5, 2]), (3, -0.25), (4, 1 / 4)])
def test_rows(given, wanted):
    assert {1: 0.5 + 1e-9, 2: (1.5, 2), 3: -0.25, 4: 0.25}[given] == pytest.approx(wanted, rel=1e-6)

@pytest.mark.parametrize("wanted", ["some", "one"])
def test_texts(wanted):
    assert wanted in "someone"

@pytest.mark.parametrize("given, wanted", [(1, approx(2.5)), (2, approx([1], abs=1)), (3, "x")])
def test_made(given, wanted):
    assert [0, 2.5, [2], "x"][given] == wanted

def test_loop():
    for given, wanted in [(1, 1.0), (2, 4.0)]:
        assert given * given == approx(wanted)
"""


def test_rows_keep_their_ids_and_tell_by_the_rule_of_the_assertion_that_reads_them(tmp_path: Path) -> None:
    report = tmp_path / "report"
    made = masked(PARAMETERS, str(report))
    ids: list[list[str]] = []
    for name, text in (("test_plain.py", PARAMETERS), ("test_masked.py", made.text)):
        (tmp_path / name).write_text(text)
        command = ["-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=.", name]
        ran = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout
        lines = [line.split()[0].partition("::")[2] for line in ran.stdout.splitlines() if "PASSED" in line]
        for shown, own in made.shown.items():
            lines = [line.replace(shown, own) for line in lines]
        ids.append(lines)
    assert ids[0] == ids[1] and len(ids[0]) == 10, ids
    said = told(report.read_text())
    for number, (name, place) in made.numbers(0).items():
        kind = {"test_texts": "~"}.get(name, "=" if made.literals[name][place] == '"x"' else "@")
        assert to_tell(made.literals[name][place], said[number]) is not None
        assert all(it.startswith(kind) for it in said[number])


def test_a_place_against_which_nothing_can_be_held_is_not_masked() -> None:
    """What it asked for would be asked by nobody."""
    test = ("a", "test_it")
    said = {
        0: {'~["Other", "object"]'},
        1: {"@approx:None:None:False 9"},
        2: {"=1"},
        3: {"=[object]"},
        4: {"=1", "@x 1"},
    }
    ran: Any = SimpleNamespace(literals={test: ("'Kind'", "0.5", "1", "a", "1")}, told={test: said})
    assert held_tests._mute(ran, test) == {0, 1, 4} and held_tests._mute(ran, ("a", "none")) == set()
