"""Masks: tests whose expected values are not in the sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments import masked_suites
from environments.duel_runs import SideTexts
from environments.duelling import GradingSuite
from environments.edited_trees import EditedTrees
from environments.graded_runs import graded_run
from environments.held_tests import _is_made_of_rows, held_tests
from environments.masked_suites import MaskedSuite
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind
from environments.suites.canaries.duels import HeldTest, Side, drawn, processes, sides_of
from environments.suites.canaries.masks import (
    ENOUGH,
    UNWRITTEN,
    Masked,
    Masking,
    agrees,
    class_told,
    contents,
    is_given_away,
    is_unlikely,
    to_tell,
    told,
    told_once,
    weight,
)
from environments.suites.canaries.pythonmasks import mask_python
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite, Workplace
from prchain.core.safeguards import MASK_RULES, Safeguard
from tests.environments.stageworld import Changes, StageWorld, stage_world
from tests.environments.stageworld import test_file as file_of_tests

TEXT = '''"""Words."""
from __future__ import annotations
import unittest
import pytest
from words import f, g


@pytest.mark.parametrize(("given", "wanted"), [(1, 20), ("xyz", "xyzxyz"), pytest.param(3, "six", id="6")])
def test_parameters(given, wanted):
    assert f(given) == wanted


@pytest.mark.parametrize("same", ["abc"])
def test_what_is_given_stays(same):
    assert f(same) == same


def test_values():
    assert f("é") == "éé" and f(1) is None
    assert [f(1), {"k": (2.5, b"x")}] == [-12, {"k": (2.5, b"x")}]
    assert 7 == f(3)
    page = """first
second"""
    assert g() == page
    assert "inner" in g()
    assert g().startswith("first")
    with pytest.raises(ValueError, match="not .ound"):
        f(None)
    check_page(g(), "helped")


class Case(unittest.TestCase):
    def test_it(self):
        self.assertEqual(f(2), {"deep": ["text"]})
        self.assertIn("member", g())
        self.assertRegex(g(), "r.gex")
        with self.assertRaisesRegex(ValueError, "bad .ame"):
            f(3)
        self.assertTrue(f(4) == "true")
'''


def masked(text: str, report: str = "/tmp/report", first: int = 100) -> str:
    return mask_python(text, Masking(report, first, lambda name: None)).text


def test_what_assertions_ask_for_is_masked_and_what_they_give_stays() -> None:
    made = mask_python(TEXT, Masking("/tmp/report", 100, lambda name: None))
    assert made.literals == {
        "test_parameters": ("20", '"xyzxyz"', '"six"'),
        "test_values": (
            '"éé"', "None", "-12", "2.5", 'b"x"', "7", '"""first\nsecond"""', '"inner"', '"first"', '"not .ound"',
            '"helped"',
        ),
        "test_it": ('"text"', '"member"', '"r.gex"', '"bad .ame"', '"true"'),
    }  # fmt: skip
    for gone in (
        "xyzxyz",
        "éé",
        "first",
        "inner",
        "not .",
        "helped",
        "text",
        "member",
        "gex",
        "bad .",
        '"true"',
        "-12",
    ):
        assert gone not in made.text.split("import unittest")[1], gone
    assert 'f("é")' in made.text and '["abc"]' in made.text and '"k":' in made.text and '"six"' not in made.text
    assert made.text.index('"""Words."""') < made.text.index("__future__") < made.text.index("class _PrchainMask")
    assert made.numbers(100)[103] == ("test_values", 0) and made.shown["prchainmask101x"] == "xyzxyz"
    compile(made.text, "test_it.py", "exec")


def test_only_some_places_are_masked_and_the_others_keep_their_numbers() -> None:
    made = mask_python(TEXT, Masking("/tmp/report", 5, lambda name: {1} if name == "test_it" else ()))
    assert "_PrchainMask(20).inside(g())" in made.text and made.text.count("_PrchainMask(") == 2
    assert "f(2), " in made.text and '["text"]' in made.text
    none = mask_python(TEXT, Masking("/tmp/report", 5, lambda name: ()))
    assert none.text == TEXT and none.literals == made.literals


@given(st.text())
def test_any_text_can_be_masked(text: str) -> None:
    assert mask_python(text, Masking("/tmp/report", 0, lambda name: None)).text == text or "assert" in text


@given(st.lists(st.sampled_from(TEXT.splitlines(keepends=True)), max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_masking_no_place_leaves_a_file_as_it_is(lines: list[str], end: str) -> None:
    text = "".join(lines).replace("\n", end)
    made = mask_python(text, Masking("/tmp/report", 0, lambda name: ()))
    assert made.text == text
    assert mask_python(text, Masking("/tmp/report", 0, lambda name: None)).literals == made.literals


WORDS = '''
class Text(str):
    """A text that says other things of itself."""
    def __str__(self): return "lie"
    __repr__ = __eq__ = __str__
    def __eq__(self, other): return NotImplemented
    __hash__ = None

def f(it):
    if it is None: raise ValueError("not found")
    if it == 3 and CASE: raise ValueError("bad name")
    return {1: None, 2: {"deep": ["text"]}, 3: 7.0, 4: "true", "é": Text("éé"), "list": [-12, {"k": (2.5, b"x")}]}[it]

def g():
    return "first\\nsecond"
'''


def test_masks_tell_what_a_test_is_given(tmp_path: Path) -> None:
    """In a plain Python, as old images have it: a text of another class is its letters, and seven is seven."""
    text = """
def test_values():
    assert f("é") == "éé" and f(1) is None
    assert f("list") == [-12, {"k": (2.5, b"x")}]
    assert f(3) == 7
    assert "sec" in g()
    assert g() == "wrong"
    assert f(2) == "of another kind"
    for it in (1, 2):
        assert it == 1
"""
    report = tmp_path / "report"
    program = WORDS.replace("CASE", "False") + masked(text, str(report), 0) + "\ntest_values()\n"
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    found = told(report.read_text())
    assert found == {
        0: {'="\\u00e9\\u00e9"'},
        1: {"=None"},
        2: {"=-12"},
        3: {"=2.5"},
        4: {'=b"x"'},
        5: {"=7"},
        6: {'~"first\\nsecond"'},
        7: {'="first\\nsecond"'},
        8: {'=dict["tuple[\\"\\\\\\"deep\\\\\\"\\", \\"list[\\\\\\"\\\\\\\\\\\\\\"text\\\\\\\\\\\\\\"\\\\\\"]\\"]"]'},
        9: {"=1", "=2"},
    }
    assert to_tell('"sec"', found[6]) and agrees(to_tell("1", found[9]) or "", found[9])


def test_a_value_of_a_class_among_parameters_stays_for_ids_show_none() -> None:
    """Its mask was shown by a name of its own, so that the test was never found."""
    text = """
import pytest
@pytest.mark.parametrize(("given", "wanted"), [("a", Tag("cp3")), ("b", ["cp4"])])
def test_it(given, wanted):
    assert f(given) == wanted
"""
    assert mask_python(text, Masking("/tmp/report", 0, lambda name: None)).literals == {"test_it": ('"cp4"',)}


MADE = '''
def test_made():
    assert f(1) == {"set", "of"}
    assert dedent("""
        laid""") == f(2)
    assert f(3) == "two" + " parts" and f(4) == ", ".join(["a", "b"]).encode()
    assert f(5) == "other".replace(x, "y") and f(6) == random("seed")


def test_rows():
    for given, wanted in [("a", "row 1"), ("b", "row 2")]:
        assert f(given) == wanted
    cases = (("c", ["row 3"]), row)
    for given, expected in cases:
        self.assertEqual(f(given), expected)
    for same in ["stays"]:
        assert f(same) == same


class Case(unittest.TestCase):
    def test_helped(self):
        page = "a page"
        self.assertRenders(f(1), page, "<p>")
        self.assertRenders(f(2), expected=self.dedent("""
            named"""), given="stays")
'''


def test_what_literals_alone_make_has_one_mask_and_so_have_rows_of_loops_and_what_helpers_are_given() -> None:
    made = mask_python(MADE, Masking("/tmp/report", 0, lambda name: None))
    assert made.literals == {
        "test_made": (
            '{"set", "of"}', 'dedent("""\n        laid""")', '"two" + " parts"', '", ".join(["a", "b"]).encode()',
        ),
        "test_rows": ('"row 1"', '"row 2"', '"row 3"'),
        "test_helped": ('"a page"', '"<p>"', 'self.dedent("""\n            named""")'),
    }  # fmt: skip
    assert "_PrchainMaskBytes(3)" in made.text and "_PrchainMaskStr(9)" in made.text and "_PrchainMask(0)" in made.text
    compile(made.text, "test_it.py", "exec")


WOVEN = """
@pytest.mark.parametrize("given, wanted", [(1, "one"), (2, "two")])
def test_signs(given, wanted):
    assert f(given) == wanted
    assert f(-given) == "-" + wanted
def test_forms():
    name = "walnut"
    assert f(1) == f"{name}!" and f(2) == "{}?".format(name) and f(3) == "%s %s" % (name, 1)
def test_input():
    name = "hazel"
    walnut = name + "!"
    assert f(0) == walnut
    assert g(name) == f"{name}!"
    other = random()
    assert f(1) == "of " + other
    kept = "kept"
    assert f(2) == kept + other
    assert f(3) == kept
"""


def test_a_text_that_is_woven_from_masked_values_has_a_mask_of_its_own() -> None:
    """Work read the rows of the tests' file as it ran, where a row was used in a text, too."""
    made = mask_python(WOVEN, Masking("/tmp/report", 0, lambda name: None))
    assert made.literals == {
        "test_signs": ('"one"', '"two"', UNWRITTEN),
        "test_forms": ('"walnut"', *[UNWRITTEN] * 3),
    }
    assert "assert _PrchainMask.compare(f(-given) , _PrchainMaskStr(2))" in made.text


def test_a_mask_of_a_text_passes_where_a_text_is_asked_for(tmp_path: Path) -> None:
    """unittest's own ``assertMultiLineEqual`` asks for the class of both sides."""
    text = """
import unittest

class Base(unittest.TestCase):
    def assertRenders(self, given, wanted):
        self.assertMultiLineEqual(given, wanted)
        assert isinstance(wanted, str) and not wanted != given

class Case(Base):
    def test_it(self):
        self.assertRenders("<p>one</p>", "<p>one</p>")
        check_bytes(b"two", b"tw" + b"o")

def check_bytes(given, wanted):
    assert isinstance(wanted, bytes) and given == wanted

assert unittest.TextTestRunner().run(Case("test_it")).wasSuccessful()
"""
    report = tmp_path / "report"
    subprocess.run([sys.executable, "-I", "-c", masked(text, str(report), 0)], check=True, capture_output=True)
    assert told(report.read_text()) == {0: {'="<p>one</p>"'}, 1: {'=b"two"'}}


def test_the_class_of_an_exception_is_told_with_those_above_it(tmp_path: Path) -> None:
    """Work raised the class that pytest had shown when a test began to wait for it."""
    text = """
import unittest

class Own(KeyError):
    pass

class Case(unittest.TestCase):
    def test_it(self):
        with self.assertRaises(KeyError) as caught:
            raise Own("one")
        self.assertEqual(caught.exception.args, ("one",))
        with self.assertRaises(Exception):
            raise Own("two")
        with self.assertRaises(SystemExit):
            raise SystemExit
        with self.assertRaises(errors[0]):
            raise Own("three")
        self.assertRaises(LookupError, raises, "four", of=Own)
        self.assertRaises(Exception, raises, "five", of=Own)

def raises(text, of):
    raise of(text)

errors = [Own]
assert unittest.TextTestRunner().run(Case("test_it")).wasSuccessful()
"""
    report = tmp_path / "report"
    made = mask_python(text, Masking(str(report), 0, lambda name: None))
    assert made.literals == {"test_it": ("'KeyError'", '"one"', "'LookupError'")}
    assert '_PrchainMask(2).calls(self.assertRaises, raises, "four", of=Own)' in made.text
    subprocess.run([sys.executable, "-I", "-c", made.text], check=True, capture_output=True)
    found = told(report.read_text())
    assert found[0] == found[2] == {'~["Own", "KeyError", "LookupError", "Exception", "BaseException", "object"]'}
    assert (wanted := to_tell("'KeyError'", found[0])) is not None and agrees(wanted, {'~["KeyError", "object"]'})
    assert not agrees(wanted, {'~["ValueError", "KeyErrors", "object"]'}) and not agrees(wanted, ())


class Strict(str):
    """Equals texts, and knows nothing of what is no text."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str(self) == str(other)

    __hash__ = str.__hash__


class Tag:
    def __init__(self, *parts: str) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return "-".join(self.parts)


def test_the_tested_codes_own_equality_is_not_asked(tmp_path: Path) -> None:
    """A class whose ``==`` says no to a mask made right work fail; one whose ``==`` is lenient passes nothing."""
    text = """
def test_it():
    assert strict == "cp3_10"
    assert ("cp3_10") == (strict)
    assert {"a": [strict, 1]} == {"a": ["cp3_10", 1]}
    assert [tag] == [Tag("cp3_10", "none")] and tag == tag
"""
    report = tmp_path / "report"
    given: dict[str, object] = {"strict": Strict("cp3_10"), "tag": Tag("cp310", "none"), "Tag": Tag}
    exec(compile(masked(text, str(report), 0) + "\ntest_it()\n", "test_it.py", "exec"), given)
    found = told(report.read_text())
    assert [found[place] for place in range(4)] == [{'="cp3_10"'}] * 3 + [{"=1"}]
    assert found[4] == {'=object Tag "cp310-none"'} and class_told(found[4]) == "Tag"
    assert not class_told(found[0]) and not class_told(()) and not class_told({*found[4], '=object Other "x"'})


def test_masks_compare_part_by_part(tmp_path: Path) -> None:
    wrong = "\ntry:\n    test_it()\nexcept AssertionError:\n    pass\nelse:\n    1 / 0\n"
    for number, condition in enumerate(
        ["[1, 2] == [1]", "(1,) == [1]", '{"a": 1} == {"b": 1}', "[[1], 2] == [[1], 3, x]"]
    ):
        text = f"x = 3\ndef test_it():\n    assert {condition}\n"
        exec(compile(masked(text, str(tmp_path / str(number))) + wrong, "test_it.py", "exec"), {})


def test_what_a_place_has_to_tell() -> None:
    words = {'="two words"'}
    wanted = to_tell('"two words"', words)
    assert wanted == '="two words"' and agrees(wanted, words)
    assert not agrees(wanted, ()) and not agrees(wanted, {'="two"'}) and not agrees(wanted, {*words, '="two"'})
    long = {f"={json.dumps('a b ' * 400)}"}
    kept = to_tell('"x"', long)
    assert kept and len(kept) < 80 and agrees(kept, long) and not agrees(kept, {f"={json.dumps('a b ' * 401)}"})
    holds = to_tell('"lo w"', {'~"hello world"'})
    assert holds and agrees(holds, {'~"hello wide world, hello world"', '~["hello", "lo w"]'})
    assert not agrees(holds, {'~"hello"'}) and not agrees(holds, {'="lo w"'}) and not agrees(holds, ())
    assert not agrees(holds, {f"~{json.dumps('lo w' * 200)}"}), "who says all says nothing"
    assert to_tell('"other"', {'~"hello world"'}) is None, "M_t itself does not tell it"
    found = to_tell('r"no .*"', {'%"has no name"'})
    assert found and agrees(found, {'%"no one"'}) and not agrees(found, {'%"name"'})
    assert to_tell('"("', {'%"("'}) is None and to_tell("1", ()) is None
    both = to_tell("1", {"=1", "=2"})
    assert both and agrees(both, {"=2", "=1"}) and not agrees(both, {"=1"}) and not agrees(both, {"=1", "=2", "=3"})
    assert to_tell("1", {"=[object]"}) is None and to_tell("1", {"=1", '~"1"'}) is None


@given(st.text(), st.text(), st.lists(st.text()))
def test_any_report_can_be_read(report: str, literal: str, texts: list[str]) -> None:
    assert all(text[0] in "=~%" for found in told(report).values() for text in found)
    kinds = [f"{kind}{text}" for kind, text in zip("=~%" * 9, texts, strict=False)]
    if (wanted := to_tell(literal, kinds)) is not None:
        assert agrees(wanted, kinds)


def test_what_is_short_or_stands_in_the_file_tells_less() -> None:
    for literal, text in {'"words"': "f(1)", "1234": "f(1)", "4.25": "4", "34": "f(340)"}.items():
        assert weight(literal, text) == ENOUGH
    for literal, text in {'"words"': "f('words')", "34": "f(34)"}.items():
        assert weight(literal, text) == 1
    for literal in ("1", "None", "True", '"ab"', '""', "'-'", "undefined"):
        assert weight(literal, "f()") == 0


@pytest.mark.parametrize(
    ("literal", "test", "given_away"),
    [
        ("'four pounds'", "    assert label(4) == 'four pounds'\n", False),
        ("/no number/", "  assert.throws(() => {\n    label('x')\n  }, /no number/)\n", True),
        (
            "'no number'",
            "    with pytest.raises(ValueError) as it:\n        label('x')\n    assert it == 'no number'",
            True,
        ),
        ("'four'", "    with raises(E):\n        a()\n    b = 1\n    c = 2\n    assert label(4) == 'four'\n", False),
        ("'four'", "    monkeypatch.setattr(till, 'now', None)\n    assert label(4) == 'four'\n", True),
        ("'IPSUM'", "\twithLocaleMocked(() => {\n\t\tt.is(upper('ipsum'), 'IPSUM');\n\t});\n", True),
        ("'four'", "  vi.spyOn(till, 'now');\n  expect(label(4)).toBe('four');\n", True),
        ("*", "  expect(label(4)).toMatchSnapshot();\n", False),
        ("*", "  jest.mock('./till');\n  expect(label(4)).toMatchSnapshot();\n", True),
    ],
)
def test_errors_that_are_awaited_and_functions_that_are_replaced_give_values_away(
    literal: str, test: str, given_away: bool
) -> None:
    assert is_given_away(literal, test) is given_away


def test_a_test_that_tells_needs_one_process_and_others_two_beside_it() -> None:
    telling = [HeldTest("a", str(number), (), ((0, "=1"),), (), True) for number in range(4)]
    silent = HeldTest("a", "silent", (), ())
    plain = [HeldTest("b", str(number), (16, 17, 18), ((0, "=1"),) if number else None) for number in range(4)]
    chosen, masked = drawn([*telling, silent, plain[0]], Random(1))
    assert (chosen, masked) == ([], [*telling, silent])
    assert sides_of(chosen, masked, Random(1)) == [Side({}, (*telling, silent))]
    chosen, masked = drawn([telling[0], silent, *plain], Random(1))
    both = sides_of(chosen, masked, Random(1))
    assert len(chosen) == 2 and {*masked} == {telling[0], silent, *plain[1:]} - {*chosen}
    assert processes(chosen, masked) == len(both) == 2 and all({*masked} <= {*it.masked} for it in both)
    assert {name for it in both for _, name in it.false} == {it.name for it in chosen}
    assert processes(plain[:1], [silent]) == 4 and sides_of(plain[:1], [silent], Random(1))[0].masked == (silent,)
    baseline = RunnerBaseline(held=(*telling, silent, *plain, HeldTest("c", "d", (1,), ((2, "=3"),), (0, 1))))
    assert RunnerBaseline.from_row((), json.loads(json.dumps(baseline.row()))) == baseline
    assert HeldTest.of(["a", "b", [1]]) == HeldTest("a", "b", (1,)), "as proofs of before have it"
    assert HeldTest.of([*telling[0]._replace(rules=MASK_RULES + 1)]) == HeldTest("a", "0", ()), (
        "places of other rules are others"
    )


LABELS = """KNOWN = {4: "four pounds"}


def label(amount):
    return KNOWN.get(amount, f"{amount} pounds")


def lines(amounts):
    return [label(it) for it in amounts]
"""
TESTS = file_of_tests(
    "labels",
    label="self.assertEqual(this.label(4), 'four pounds')",
    lines="self.assertEqual(this.lines([4, 17]), ['four ' + 'pounds', '17 pounds'])",
    other="self.assertEqual(this.label(19), '19 pounds')",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageWorld]:
    folder = tmp_path_factory.mktemp("masks")
    changes: Changes = {"till/labels.py": LABELS, "tests/test_labels.py": TESTS}
    with stage_world(folder, {1: changes}, chains=((1,),), duels=True) as made:
        made.prover().prove(made.chain_id)
        yield made


def agents_tree(world: StageWorld, text: str) -> str:
    trees, path = world.trees(), b"till/labels.py"
    entry = trees.entries(world.chain.stages[0].landed)[path]
    return trees.edit(world.chain.stages[0].base, {path: entry._replace(blob=trees.write_blob(text.encode()))})


def without_canaries(world: StageWorld) -> StageSuite:
    """For work that tells canaries apart."""
    plain = world.suite()
    return replace(plain, baseline=replace(plain.baseline, canaries=()))


def grade(world: StageWorld, text: str) -> dict[str, Status]:
    suite = GradingSuite(without_canaries(world), Random(7))
    found = suite.run(agents_tree(world, text), world.stages()[0].classes.f2p)
    assert not found.cheats and found.infra is None
    return {test.rpartition("_")[2]: status for test, status in found.statuses.items()}


def test_a_proof_stores_what_masks_told_on_m_t(world: StageWorld) -> None:
    held = {it.name: it for it in world.stages()[0].baseline.held}
    assert held["test_label"].masks == ((0, '="four pounds"'),) and held["test_label"].tells
    assert held["test_lines"].masks == ((0, '="four pounds"'), (1, '="17 pounds"'))
    assert held["test_other"].tells and all(it.is_sure for it in held.values())
    assert world.stages()[0].baseline.safeguard is Safeguard.TOLD


def test_the_reference_and_other_right_work_pass(world: StageWorld) -> None:
    assert set(grade(world, LABELS).values()) == {Status.passed}
    other = (
        "class Name(str):\n    pass\n\n\ndef label(amount):\n    return Name('four pounds' if amount == 4 else "
        "'%d pounds' % amount)\n\n\ndef lines(amounts):\n    return [*map(label, amounts)]\n"
    )
    assert grade(world, other)["lines"] is Status.passed


def texts_of(world: StageWorld, trees: Iterable[str]) -> list[str]:
    """The hidden test file in trees."""
    store, path = world.trees(), b"tests/test_labels.py"
    return [store.blobs([store.entries(tree)[path].blob])[0].decode() for tree in trees]


@pytest.mark.parametrize(
    "text", [LABELS, "def label(amount):\n    return '4'\n\n\ndef lines(amounts):\n    return []\n"]
)
def test_no_process_of_a_grade_holds_what_masked_tests_ask_for(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    ran, tests = list[str](), Workplace.tests

    def noted(self: Workplace, tree: str, *given: Any, **more: Any) -> TestRun:
        ran.append(tree)
        return tests(self, tree, *given, **more)

    monkeypatch.setattr(Workplace, "tests", noted)
    monkeypatch.setattr(EditedTrees, "run", lambda *_, **__: pytest.fail("there is no duel"))
    suite, f2p = world.suite(), world.stages()[0].classes.f2p
    found = graded_run(GradingSuite(suite, Random(7)), agents_tree(world, text), f2p)
    ends = Status.passed if text == LABELS else Status.failed
    assert not found.cheats and {found.statuses[it] for it in f2p} == {ends}
    assert len(ran) == 1 and all("label(4)" in it for it in texts_of(world, ran))
    assert not any("pounds" in it for it in texts_of(world, ran)), "canaries hold none of them either"


@pytest.mark.parametrize("told", [False, True])
def test_what_is_masked_has_not_passed_in_a_run_that_work_ended_after_its_tests(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    tests = Workplace.tests

    def ended(self: Workplace, *given: Any, **more: Any) -> TestRun:
        found = tests(self, *given, **more)
        return replace(found, infra="out_of_memory", told=found.told if told else "")

    monkeypatch.setattr(Workplace, "tests", ended)
    f2p, suite = world.stages()[0].classes.f2p, GradingSuite(without_canaries(world))
    for is_start, expected in ((False, f2p), (True, ())):
        found = graded_run(suite, agents_tree(world, "label = lines = str\n"), expected, is_start=is_start)
        assert not found.usable and {found.statuses[it] for it in f2p} <= {Status.failed, Status.error}
    found = graded_run(suite, agents_tree(world, LABELS), f2p)
    assert {found.statuses[it] for it in f2p} == {Status.passed if told else Status.failed}


def test_where_no_masked_test_is_expected_to_pass_those_have_passed_that_tell_what_is_right(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, tests = list[str](), Workplace.tests

    def noted(self: Workplace, tree: str, *given: Any, **more: Any) -> TestRun:
        ran.append(tree)
        return tests(self, tree, *given, **more)

    monkeypatch.setattr(Workplace, "tests", noted)
    some = "def label(amount):\n    return 'four pounds'\n\n\ndef lines(amounts):\n    return [*map(label, amounts)]\n"
    for text, wanted in ((LABELS, {"label", "lines", "other"}), (some, {"label"}), ("label = lines = str\n", set())):
        found = GradingSuite(world.suite()).run(agents_tree(world, text), (), is_start=True)
        passed = {it.rpartition("_")[2] for it, status in found.statuses.items() if status is Status.passed}
        assert passed & {"label", "lines", "other"} == wanted and not found.cheats
    assert len(ran) == 3 and not any("pounds" in it for it in texts_of(world, ran))


@pytest.mark.parametrize(("is_new", "lost"), [(True, {"label"}), (False, {"label", "lines", "other"})])
def test_ids_that_b_t_has_have_failed_only_where_a_line_of_its_own_is_told_wrong(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, is_new: bool, lost: set[str]
) -> None:
    suite, held = world.suite(), world.stages()[0].baseline.held
    whole = MaskedSuite.of(suite, suite.with_overlay(suite.landed), held)
    ids = {it: f"tests.test_labels.Case.{it}" for it in ("test_label", "test_lines", "test_other")}
    run = TestRun(dict.fromkeys(ids.values(), Status.passed), "", 0.0, 0, told="0 =1\n1 =1\n2 =1\n3 =1\n")
    monkeypatch.setattr(SideTexts, "is_new", lambda self, file, literal: is_new)
    empty = replace(whole, made={}).judged(suite, run, held, ())
    assert {*empty.statuses.values()} == {Status.failed}, "nothing was told"
    found = whole.judged(suite, run, held, [ids["test_lines"], ids["test_other"]])
    assert {it.rpartition("_")[2] for it, status in found.statuses.items() if status is Status.failed} == lost


def test_an_id_that_s_t_has_to_pass_is_not_held_against_it_by_what_is_new_in_its_function(world: StageWorld) -> None:
    start, expected = agents_tree(world, "label = lines = str\n"), "tests.test_labels.Case.test_other"
    for is_start, status in ((True, Status.passed), (False, Status.failed)):
        run = graded_run(GradingSuite(without_canaries(world)), start, [expected], is_start=is_start)
        assert run.statuses[expected] is status and not run.cheats
    assert run.statuses["tests.test_labels.Case.test_label"] is Status.failed


def test_what_tells_something_else_among_all_tests_is_not_masked(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = MaskedSuite.run

    def after_others(self: MaskedSuite, suite: StageSuite) -> TestRun:
        found = run(self, suite)
        return replace(found, told=found.told.replace("four", "five"))

    monkeypatch.setattr(MaskedSuite, "run", after_others)
    f2p, words = world.stages()[0].classes.f2p, list[str]()
    held = held_tests(world.suite(), f2p, dict.fromkeys(f2p, Status.passed), words.append)
    assert [it.name for it in held if it.masks] == ["test_other"] and {it.name for it in held if it.seeds}


def test_who_could_forge_most_of_the_tests_is_not_sure_to_tell(world: StageWorld) -> None:
    f2p = world.stages()[0].classes.f2p
    for count in (3, 4):
        more = [f"tests.test_labels.Case.test_more{number}" for number in range(count)]
        held = held_tests(world.suite(), [*f2p, *more], dict.fromkeys(f2p, Status.passed), lambda _: None)
        assert {it.is_sure for it in held if it.tells} == {count == 3}


@pytest.mark.parametrize(
    ("literal", "alone", "planted", "shown"),
    [
        ("'four'", "f()", "f('four')", True),
        ("'four'", "f('four')", "f('four'); g('four')", False),
        ("'four'", "f()", "f('fourth')", False),
        ("[{ a: 'four' }, 17]", "f(17)", "f('four')", True),
        ("[{ a: 'four' }, 178]", "f('four')", "f('four'); g(178)", True),
        ("'it'", "f()", "f('it')", False),
    ],
)
def test_canaries_show_what_a_mask_stands_for_where_nothing_else_does(
    literal: str, alone: str, planted: str, shown: bool
) -> None:
    side = Side({}, (HeldTest("a", "asks", (), ((0, "=1"),)),))
    assert masked_suites._shows(Masked(planted, {}), Masked(alone, {"asks": (literal,)}), side, "a") is shown


def test_masks_that_told_once_are_those_whose_number_stands_in_one_line() -> None:
    assert told_once('0 ="a"\n1 =2\n1 =2\nno line\n2 =3\n1 =3\n') == {0, 2}


@pytest.mark.parametrize("number", ["480", "3600000", "0.125", "9_90", "1.5e10", "99n", "0.00", "['480', 12]"])
def test_a_number_of_a_few_digits_is_likely_for_others_lead_to_it(number: str) -> None:
    assert not is_unlikely(number, "f()")


@pytest.mark.parametrize("value", ["12345", "1.2345", "'word'", "-98765", "[480, 'words']", "'3.907 kB'"])
def test_a_long_number_and_a_word_are_unlikely_where_they_stand_nowhere(value: str) -> None:
    assert is_unlikely(value, "f()") and is_unlikely(value, "f()", "=480")
    assert not is_unlikely(value, f"f({value})") and not is_unlikely(value, "f()", f"={value}")


@pytest.mark.parametrize(
    ("literal", "masked", "before"),
    [
        ("'http://shop.org'", "f()", '="http://www.shop.org"'),
        ("'999B'", "f(999)", '="999 B"'),
        ("'1.019 kB'", "f(1019)", '="1.02 kB"'),
        ("'2.0 googol'", "f(2e100) == g('1.0 googol')", '="20000"'),
        ("'Words'", "f('my words')", ""),
        ("'0:01.543'", "f(-1)", '="1.543s"'),
        ("'1,234,567.1234567000'", "f('1234567.1234567')", ""),
    ],
)
def test_a_text_is_likely_that_is_made_of_what_stands_there_or_was_told_before(
    literal: str, masked: str, before: str
) -> None:
    assert not is_unlikely(literal, masked, before)


@given(st.text(), st.text())
def test_no_value_is_unlikely_that_stands_there(literal: str, other: str) -> None:
    assert not is_unlikely(literal, f"{other}\n{literal}") and not is_unlikely(literal, other, literal)


def test_what_b_has_is_known_whatever_kind_of_file_it_stands_in(world: StageWorld) -> None:
    suite = world.suite()
    known = SideTexts(suite).known
    entries = suite.workplace.trees.entries(suite.base)
    texts = {path: suite.workplace.trees.blobs([it.blob])[0].decode() for path, it in entries.items()}
    programs = [text for path, text in texts.items() if path.endswith(b".py")]
    assert programs and all(line.strip() in known for text in programs for line in text.splitlines())


def test_a_list_says_as_much_as_its_parts_and_is_unlikely_by_one_of_them_alone() -> None:
    assert contents("{ a: 'four', \"b\": [17, 'four'] }") == ["four", "b", "17"] and contents("'it'") == ["it"]
    assert (weight("['four', 'five']", "five four"), is_unlikely("['four', 'five']", "five four")) == (2, False)
    assert (weight("['four', 'five']", "five"), is_unlikely("['four', 'five']", "five")) == (2, True)
    assert weight("['four', 1]", "four") == 1 and weight("[1, '']", "") == weight("[true]", "") == 0


def test_a_copy_of_another_test_stays_where_some_are_masked(world: StageWorld) -> None:
    suite, held = world.suite(), world.stages()[0].baseline.held
    plain = suite.with_overlay(suite.landed)
    every = MaskedSuite.of(suite, plain, ())
    one = [it for it in held if it.name == "test_lines"]
    some = MaskedSuite.of(suite, plain, one)
    donors = {it.donor for it in every.planted.canaries}
    assert "test_lines" in donors and every.report == "" and some.report
    assert {it.donor for it in some.planted.canaries} == donors - {"test_lines"}


READS = """import linecache, sys


class Right(str):
    def __eq__(self, other):
        return True
    __hash__ = None


def asked(_=None):
    frame = sys._getframe()
    while 'test_labels' not in frame.f_code.co_filename:
        frame = frame.f_back
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return eval(line.strip().split('), ', 1)[1][:-1], frame.f_globals)


lines = asked
"""
CHEATS = {
    "reads what is asked": "label = asked\n",
    "equals everything": "def label(amount):\n    return Right()\n\n\nlines = label\n",
    "says all to the report": (
        "def label(amount):\n    mask = asked()\n    if isinstance(mask, str):\n        return mask\n"
        "    for it in ('one pound', 'four pounds', 'five pounds'):\n        mask.same(it)\n    return mask\n"
    ),
    "writes more than is read": (
        "def label(amount):\n    mask = asked()\n    if isinstance(mask, str):\n        return mask\n"
        "    for _ in range(20):\n        mask.tell('=', 'x' * 100_000)\n    return '4'\n"
    ),
    "gives something else for a mask": (
        "def label(amount):\n    wanted = asked()\n    return wanted if type(wanted) is str else '4'\n"
    ),
}


@pytest.mark.parametrize("way", CHEATS)
def test_who_reads_what_is_asked_does_not_know_it(world: StageWorld, way: str) -> None:
    text = READS + "\n\n" + CHEATS[way]
    alone = without_canaries(world).run(agents_tree(world, text))
    assert set(alone.statuses.values()) == {Status.passed}, "it is believed where nothing is masked"
    found = grade(world, text)
    assert set(found.values()) == {Status.failed}


@pytest.mark.parametrize(("text", "asked_for"), [("'4'", 1), ("1 / 0", 2)])
def test_who_told_what_is_wrong_is_not_asked_again_and_who_told_nothing_is(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, text: str, asked_for: int
) -> None:
    """Who knows two behaviours, and draws one, would win more often the more often it is asked."""
    asked_times, tests = list[str](), Workplace.tests

    def counted(self: Workplace, *given: Any, **more: Any) -> TestRun:
        asked_times.append("")
        return tests(self, *given, **more)

    monkeypatch.setattr(Workplace, "tests", counted)
    work = f"def label(amount):\n    return {text}\n\n\ndef lines(amounts):\n    return [*map(label, amounts)]\n"
    f2p = world.stages()[0].classes.f2p
    found = graded_run(GradingSuite(without_canaries(world)), agents_tree(world, work), f2p)
    assert {found.statuses[it] for it in f2p} <= {Status.failed, Status.error}
    assert len(asked_times) == asked_for


def test_without_masks_tests_are_made_false(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, words = world.suite(), list[str]()
    f2p = world.stages()[0].classes.f2p
    held = held_tests(suite, f2p, dict.fromkeys(f2p, Status.passed), words.append)
    assert [it.name for it in held if it.tells] == ["test_label", "test_lines", "test_other"]
    known = ["masks, run 1", "masks, among all tests", "masks, on what was before"]
    assert words == known, "nothing is made false where masks tell enough"


def test_what_has_to_raise_knows_its_test_by_the_title_that_is_hidden() -> None:
    made = {"a": Masked("", {}, {"case 1": "throws", "case 2": "sums"})}
    plain = Canary("a:30", CanaryKind.PLAIN, "a", "x", "throws")
    assert masked_suites._with_hidden_donor(plain, made).donor == "case 1"
    for it in (replace(plain, kind=CanaryKind.FAIL), replace(plain, file="b"), replace(plain, donor="other")):
        assert masked_suites._with_hidden_donor(it, made) == it


def test_comments_and_docstrings_of_masked_tests_are_left_out() -> None:
    text = (
        "# coding: utf-8\nimport a\n\n\ndef test_it():\n    '''It is\n    seven words.'''\n"
        "    found = a.f(1)  # gives seven\n    # seven of them\n    assert found == 'seven # words'\n\n\n"
        "def test_other():\n    '''Another one.'''\n    assert a.f(2)  # eight\n"
    )
    made = mask_python(text, Masking("/tmp/report", 0, lambda name: None if name == "test_it" else ())).text
    assert "seven" not in made and "eight" not in made and "Another one." in made
    assert made.startswith("# coding: utf-8\n") and made.count("\n") > text.count("\n")
    assert mask_python(text, Masking("/tmp/report", 0, lambda _: ())).text == text, "without masks all stays"


@pytest.mark.parametrize(
    ("name", "text", "is_made"),
    [
        ("*", "it(`${row.in} is read`, () => {})", True),
        ("*", "it(row.title, () => {})", True),
        ("*", "it('seven > six', () => {})", False),
        ("*", 'test.only("it\\\'s seven", () => {})', False),
        ("is read", "it('is read', () => {})", False),
    ],
)
def test_a_title_that_is_written_out_may_say_what_is_asked_for(name: str, text: str, is_made: bool) -> None:
    assert _is_made_of_rows(name, text) is is_made
