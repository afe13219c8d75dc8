"""What is undone of a reference, on texts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from difflib import SequenceMatcher

import pytest

from environments.proofs.edits import LineChange, SourceFile, Undoing
from environments.proofs.name_stub import name_stub
from environments.proofs.undoings import MOST_HUNKS, MOST_PARTS, MOST_STUBS, undoings
from sql.strength import PARTS, UndoingKind

HUNK, RAISES, NONE = UndoingKind.HUNK, UndoingKind.RAISES, UndoingKind.RETURNS_NONE


def source(base: str | None, landed: str | None, path: str = "a.py") -> SourceFile:
    codes = SequenceMatcher(None, (base or "").split("\n"), (landed or "").split("\n"), autojunk=False).get_opcodes()
    both = base is not None and landed is not None
    return SourceFile(path, base, landed, tuple(LineChange(*it[1:]) for it in codes if it[0] != "equal" and both))


def made(base: str | None, landed: str | None, path: str = "a.py") -> list[Undoing]:
    return list(undoings([source(base, landed, path)], "seed"))


def texts(found: list[Undoing], *kinds: UndoingKind) -> set[str | None]:
    return {text for it in found if it.kind in kinds for text in it.texts.values()}


def test_each_hunk_is_reverted_alone() -> None:
    lines = [f"x{number} = {number}" for number in range(30)]
    changed = [*lines]
    changed[2], changed[4], changed[20] = "x2 = 'two'", "x4 = 'four'", "x20 = 'new'"
    base, landed = "\n".join(lines) + "\n", "\n".join(changed) + "\n"
    near, far = [*changed], [*changed]
    near[2], near[4], far[20] = lines[2], lines[4], lines[20]
    assert texts(made(base, landed), HUNK) == {"\n".join(near) + "\n", "\n".join(far) + "\n"}


def test_a_file_that_comes_or_goes_is_one_hunk() -> None:
    other = source("y = 1\n", "y = 2\n", "b.py")
    back = Undoing(HUNK, "b.py", 1, {"b.py": "y = 1\n"})
    for base, landed in ((None, "x = 1\n"), ("x = 1\n", None)):
        found = undoings([source(base, landed), other], "seed")
        assert sorted(found, key=lambda it: it.path) == [Undoing(HUNK, "a.py", 1, {"a.py": base}), back]


def test_what_undoes_all_of_it_is_the_tree_before_which_the_proof_has_seen_fail() -> None:
    assert made(None, "x = 1\n") == made("x = 1\n", None) == made("a = 1;\n", "a = 2;\n", "a.js") == []
    assert {it.kind for it in made("def f(): return 0\n", "def f(): return 1\n")} == {NONE, RAISES}


@pytest.mark.parametrize(
    ("base", "landed", "path"),
    [
        ("def f(a):\n    return a\n", 'def f(a: int) -> int:\n    """Gives it back."""\n    return a  # it\n', "a.py"),
        ("x = 1\n", "\n\nx = 1\n", "a.py"),
        ("__all__ = ['a']\n", "from re import X as b\n__all__ = ['a', 'b']\n", "a.py"),
        ("let a = 1;\n", "// one\nlet  a = 1;\n", "a.js"),
        ("x: 1\n", "x: 2\n", "a.yaml"),
        ("def f(a): ...\n", "def f(a, b): ...\n", "a.pyi"),
        ("text\n", "other text\n", "docs/a.md"),
    ],
)
def test_what_no_test_can_see_is_not_undone(base: str, landed: str, path: str) -> None:
    assert made(base, landed, path) == []


def test_tests_inside_a_source_file_are_no_work() -> None:
    base = "pub fn one() -> i64 { 1 }\n"
    assert made(base, base + "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() {}\n}\n", "src/lib.rs") == []


PYTHON = '''\
class Cart:
    @property
    def total(self) -> int:
        """What it costs."""
        prices = self.prices
        return sum(prices)

    def same(self):
        return 1


def fast(it): return it + 1
'''


def test_changed_functions_are_stubbed_and_others_are_not() -> None:
    base = PYTHON.replace("sum(prices)", "0").replace("it + 1", "it")
    found = texts(made(base, PYTHON), NONE, RAISES)
    assert len(found) == 4
    assert all(text is not None and text.count("\n") == PYTHON.count("\n") for text in found)
    head = "class Cart:\n    @property\n    def total(self) -> int:\n        {}\n\n\n\n    def same(self):"
    for body in ("return None", "raise NotImplementedError"):
        assert any(text and text.startswith(head.format(body)) for text in found)
        assert any(text and text.endswith(f"def fast(it): {body}\n") for text in found)


def test_a_function_whose_body_begins_with_a_decorated_one_is_stubbed_whole() -> None:
    landed = (
        "import functools\ndef retried(call):\n    @functools.wraps(call)\n    def inner(): call()\n    return inner\n"
    )
    text = "import functools\ndef retried(call):\n    {}\n\n\n"
    found = made("import functools\n", landed)
    assert texts(found, NONE, RAISES) == {text.format(body) for body in ("return None", "raise NotImplementedError")}
    assert found[0] == Undoing(UndoingKind.NEW_RETURN_NONE, "a.py", 2, {"a.py": text.format("return None")})


def test_what_only_declares_is_not_stubbed() -> None:
    landed = "def f(): ...\ndef g():\n    '''Later.'''\n    raise NotImplementedError\ndef h(): return None\n"
    assert texts(made(None, landed), NONE, RAISES) == set()


def test_the_draw_is_bounded_and_the_same_each_time() -> None:
    base = "".join(f"def f{number}():\n    return 0\n" + "#\n" * 8 for number in range(20))
    landed = base.replace("return 0", "return 1")
    found = made(base, landed)
    kinds = [it.kind for it in found]
    assert kinds.count(HUNK) == MOST_HUNKS and len([it for it in kinds if it not in PARTS]) == MOST_HUNKS + MOST_STUBS
    assert len([it for it in kinds if it in PARTS]) == MOST_PARTS
    assert [it.kind for it in found[:4]] == [HUNK, NONE, HUNK, RAISES], "by turns, for time may be up"
    assert found == made(base, landed) != list(undoings([source(base, landed)], "another"))


@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_drawn_of_a_large_file_takes_looks_at_it_that_grow_with_it(
    monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """What is parsed is counted, not seconds; of the smaller file every place is looked at."""
    monkeypatch.setattr("environments.proofs.hunks.MOST_PLACES", 8)
    read: list[int] = []
    parse = ast.parse

    def counted(text: str) -> ast.Module:
        read.append(len(text))
        return parse(text)

    monkeypatch.setattr(ast, "parse", counted)

    def characters(functions: int) -> int:
        read.clear()
        base = "".join(f"def f{number}():\n    return 0\n" + "#\n" * 8 for number in range(functions))
        lines = range(1, 10 * functions, 10)
        edits = tuple(LineChange(line, line + 1, line, line + 1) for line in lines)
        file = SourceFile("a.py", None if is_new else base, base.replace("0\n#", "1\n#"), () if is_new else edits)
        assert len(list(undoings([file], "seed"))) > MOST_STUBS
        return sum(read)

    small = characters(8)
    assert characters(48) < 12 * small


BASE = {
    "src/till/__init__.py": "from till.cart import total\n",
    "src/till/cart.py": "try:\n    import json\nexcept ImportError:\n    json = None\n\ndef total(): ...\n",
    "src/till/lazy.py": "def __getattr__(name): ...\n",
    "tools/json.py": "",
    "tests/helpers.py": "",
}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("from till.cart import total, first_of", {"src/till/cart.py": "first_of = None\n"}),
        ("from till import cart\nassert cart.first_of(1)", {"src/till/cart.py": "first_of = None\n"}),
        ("import till.new\nfrom till.new import it", {"src/till/new.py": "it = None\n"}),
        ("import till\ntill.total()\ntill.late", {"src/till/__init__.py": "late = None\n"}),
        ("from till.cart import json, total\nfrom till import cart\nimport json\njson.loads", {}),
        ("from till.lazy import anything\nfrom elsewhere import it\nfrom tests.helpers import new", {}),
        ("def broken(", {}),
    ],
)
def test_the_stub_binds_what_tests_need_and_the_base_lacks(test: str, expected: Mapping[str, str]) -> None:
    found = name_stub([test], BASE.keys(), BASE.__getitem__)
    assert (found.texts if found else {}) == {path: BASE.get(path, "") + text for path, text in expected.items()}


def test_all_new_functions_return_none_at_once() -> None:
    base = "def old(): return 1\n"
    landed = base + "def one():\n    a = 1\n    return a\nclass It:\n    def two(self): return 2\n"
    found = list(undoings([source(base, landed), source(None, "def three(): return 3\n", "b.py")], "seed"))
    emptied = base + "def one():\n    return None\n\nclass It:\n    def two(self): return None\n"
    texts = {"a.py": emptied, "b.py": "def three(): return None\n"}
    assert found[0] == Undoing(UndoingKind.NEW_RETURN_NONE, "a.py", 2, texts)
    assert UndoingKind.NEW_RETURN_NONE not in {it.kind for it in made(base, base.replace("1", "2"))}


def test_a_hunk_without_which_nothing_parses_is_undone_with_its_neighbour() -> None:
    entries = "".join(f"    {number}: {number},\n" for number in range(12))
    far = "#\n" * 8 + "y = {}\n"
    base, landed = "A = {\n" + entries + "}\n" + far.format(1), "A = it({\n" + entries + "})\n" + far.format(2)
    both, last = base[: -len("1\n")] + "2\n", landed[: -len("2\n")] + "1\n"
    assert texts(made(base, landed), HUNK) == {both, last}
    assert made("A = (\n", "A = 1\n") == [], "it never parsed"


def test_code_that_is_too_deep_for_a_tree_is_compared_by_lines() -> None:
    deep = "def f(a):\n    return " + " + ".join(["a"] * 900) + "{0}\n" + "#\n" * 8 + "x = {0}1\n"
    assert len(texts(made(deep.format(""), deep.format(" + 1")), HUNK, NONE)) == 3
    assert made(deep.format(""), deep.format("  ")) == []
    name_stub(["from till import new\n" + deep], BASE.keys(), lambda path: deep)


CHANGE, STATEMENT = UndoingKind.CHANGE, UndoingKind.STATEMENT


def test_a_hunk_that_leaves_a_name_unbound_is_undone_with_what_reads_it() -> None:
    gap = "#\n" * 8
    base = "import os\n" + gap + "def f(self):\n    return self.x\n" + gap + "y = 1\n"
    landed = "import os, re\n" + gap + "def f(self):\n    return re.escape(self.y)\n" + gap + "y = 2\n"
    early, late = base[: -len("1\n")] + "2\n", landed[: -len("2\n")] + "1\n"
    middle = landed.replace("re.escape(self.y)", "self.x")
    found = texts(made(base, landed), HUNK)
    assert len(found) == 2 and late in found and found < {early, middle, late}, "no import goes alone"
    method = "class It:\n    def one(self): return 1\n" + gap + "    def two(self): return {0}\n" + gap + "x = {1}\n"
    assert len(texts(made("x = 1\n", method.format("self.one()", 2)), HUNK)) == 0
    assert len(texts(made(method.format(0, 1), method.format("self.three()", 2)), HUNK)) == 2


def test_blocks_of_one_hunk_are_parts_of_it() -> None:
    base = "a = 1\nb = 1\nc = 1\n"
    assert texts(made(base, "a = 2\nb = 1\nc = 2\n"), CHANGE) == {"a = 1\nb = 1\nc = 2\n", "a = 2\nb = 1\nc = 1\n"}


FUNCTION = """\
def f(a, b=None):
    new = a.copy()
    if b and a:
        a = b
    for it in a:
        print(it)
    a["k"] = 1
    if a is None:
        raise ValueError(
            "no a")
    return [f"{b if a else a}", new]
"""


def test_new_statements_do_nothing_one_at_a_time() -> None:
    found = texts(made("def f(a, b=None):\n    return a\nx = 1\n", FUNCTION + "x = 2\n"), STATEMENT, CHANGE)
    edits = (
        ("if b and a:", "if False:"),
        ("if b and a:", "if b and True:"),
        ("if b and a:", "if True and a:"),
        ("        a = b\n", "        pass\n"),
        ("for it in a", "for it in ()"),
        ("        print(it)", "        pass"),
        ('    a["k"] = 1', "    pass"),
        ("if a is None", "if False"),
        ('raise ValueError(\n            "no a")', "pass"),
    )
    possible = {FUNCTION.replace(old, new) + "x = 2\n" for old, new in edits}
    assert len(possible) == len(edits) and {it for it in found if it and it.endswith("x = 2\n")} < possible
    assert len(found) == 8, "at most so many"
    assert not any(text and "new = a.copy()" not in text for text in found), "nothing else binds it"


@pytest.mark.parametrize(
    ("base", "landed", "expected"),
    [
        ("return a", "x = a\n    return x", set()),
        ("return a", "a = a or 1\n    return a", {"pass\n    return a", "a = a or False\n    return a"}),
        ("if a:\n        g(a)\n    return a", "g(a)\n    return a", set()),
        (
            "return a",
            "if a:\n        return g(a)\n    return a",
            {"if False:\n        return g(a)\n    return a", "if a:\n        return None\n    return a"},
        ),
        ("return a", "self.a = a\n    return a", {"self.a = None\n    return a"}),
        ("return a", "return f'{g(a) if a else 1}'", set()),
    ],
)
def test_only_what_is_new_and_leaves_names_bound_is_a_part(base: str, landed: str, expected: set[str]) -> None:
    head = "def g(a): return a\n\n\ndef f(self, a):\n    "
    assert texts(made(f"{head}{base}\n", f"{head}{landed}\n"), STATEMENT) == {f"{head}{it}\n" for it in expected}
