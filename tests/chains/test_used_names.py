"""The interface of a stage: what its tests use and only its source patch defines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chains.needs.base_names import names_at_base
from chains.needs.used_names import used_names
from prchain.core.git.patches import FilePatch, Hunk
from prchain.core.leaks import candidate_names


def patch(path: str, added: str, removed: str = "") -> FilePatch:
    lines = tuple(["-" + line for line in removed.splitlines()] + ["+" + line for line in added.splitlines()])
    return FilePatch(path, hunks=(Hunk(1, 1, 1, 1, "", lines),))


def interface_of(
    source: str, test: str, base: Mapping[str, str] | None = None, name: str = "pool.py"
) -> tuple[str, ...]:
    """The names that the test patch needs and that no source file of `base` defines."""
    suffix = name.rpartition(".")[2]
    used = used_names([patch(f"src/{name}", source)], [patch(f"tests/test_it.{suffix}", test)])
    files = [([path], text.encode()) for path, text in (base or {}).items()]
    return tuple(sorted(used - names_at_base(files, used, used).defined))


@pytest.mark.parametrize(
    ("name", "source", "test", "expected"),
    [
        ("a.py", "def grow(by=1): ...", "from a import grow\nassert grow(by=2)", ("by", "grow")),
        ("a.py", "class Pool:\n    def drain(self): ...", "import a\na.Pool().drain()", ("Pool", "drain")),
        ("a.py", "class Pool:\n    size: int = 0", "assert make().size == 0", ("size",)),
        ("a.py", "def go(\n    limit: int = 3,\n): ...", "go(\n    limit=4,\n)", ("go", "limit")),
        ("a.py", "class C:\n    max_size: int = 3", 'make(**{"max_size": 3})', ("max_size",)),
        ("a.py", "from b import (\n    x\n)\nLIMIT = 3", "from a import (\n    LIMIT,\n)\nassert LIMIT", ("LIMIT",)),
        ("a.ts", "export function parseIt(x) {", 'import { parseIt } from "../src/a";\nparseIt(1);', ("parseIt",)),
        ("a.js", "  tabSize: {", "format({ tabSize: 4 });", ("tabSize",)),
        ("a.rs", "pub fn aligned(&self) -> u8 {", "assert_eq!(x.aligned(), 3);", ("aligned",)),
        (
            "a.rs",
            "pub struct Node {\n    pub limit: u8,",
            "use a::{Node};\nlet n = Node { limit: 3 };",
            ("Node", "limit"),
        ),
        ("a.go", "func Drain(x int) {", "a.Drain(3)", ("Drain",)),
        ("a.go", "var EnableHooks = false", "\tEnableHooks = true\n", ("EnableHooks",)),
        ("a.go", "var enabled = false", "\tenabled := true\n\tuse(enabled)\n", ()),
        ("A.java", "    public int drain(int x) {", "pool.drain(3);", ("drain",)),
    ],
)
def test_new_names_that_tests_use_are_the_interface(
    name: str, source: str, test: str, expected: tuple[str, ...]
) -> None:
    assert interface_of(source, test, name=name) == expected


def test_names_that_the_source_defines_at_the_base_are_known_already() -> None:
    base = {"src/pool.py": "def grow():\n    pass\n"}
    assert interface_of("def grow(by=1): ...", "grow(by=2)", base) == ("by",)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("LICENSE", "You may copy it.\n"),
        ("src/pool.py", "import shutil\n\nshutil.copy('a', 'b')  # copy\nprint('copy')\n"),
        ("src/pool.py", "from shutil import copy\n"),
        ("tests/helpers.py", "def copy():\n    pass\n"),
        ("docs/index.rst", "def copy():\n    pass\n"),
    ],
)
def test_a_word_that_only_stands_somewhere_at_the_base_tells_nobody_of_the_name(path: str, text: str) -> None:
    assert interface_of("def copy(): ...", "import pool\npool.copy()", {path: text}) == ("copy",)


def test_words_and_definitions_of_a_tree_are_looked_up_together() -> None:
    files = [(["a.py"], b"def first(): second()\n"), (["README"], b"third\n"), (["b.py"], b"class Last: ...\n")]
    found = names_at_base(files, {"first", "second", "third", "none"}, {"first", "third", "Last", "none"})
    assert found.standing == {"first", "second", "third"} and found.defined == {"first", "Last"}


@pytest.mark.parametrize(
    "test",
    [
        "def helper(): ...\nhelper()",
        "helper = 3\nassert helper",
        "for helper in range(3): print(helper)",
        "with make() as helper: helper",
        "# helper\ncheck('the helper is here')",
        '"""Use helper."""',
    ],
)
def test_what_tests_define_themselves_or_only_mention_is_no_interface(test: str) -> None:
    assert interface_of("def helper(): ...", test) == ()


def test_a_local_variable_of_the_source_is_no_interface() -> None:
    assert interface_of("def f():\n    outcome = g()", "def test_f():\n    outcome = run()\n    assert outcome") == ()


def test_an_imported_name_is_interface_though_the_tests_shadow_it() -> None:
    assert interface_of("def result(): ...", "from a import result\nresult = result()") == ("result",)


def test_tests_that_are_data_tell_nothing() -> None:
    assert used_names([patch("a.py", "def grow(): ...")], [patch("tests/out.snap", "grow()")]) == frozenset()


def test_candidates_are_the_names_of_both_sides_and_their_spellings() -> None:
    source = patch("a.py", 'def max_size(): return limits["old-key"]', "def minimum(): ...")
    names = candidate_names([source], [patch("tests/test_a.py", "assert max_size() == other  # nothing")])
    assert {"max_size", "maxSize", "MaxSize", "MAX_SIZE", "minimum", "limits", "old", "key", "other"} <= names
    assert "nothing" not in names
