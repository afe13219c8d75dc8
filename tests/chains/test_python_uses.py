"""What tests in Python use, by module and by parameter."""

from __future__ import annotations

import pytest

from chains.needs.python_uses import python_needs
from prchain.git.patches import FilePatch, Hunk

TEST = "tests/test_pool.py"


def names(base: dict[str, str], landed: dict[str, str], test: str, *, old: str = "") -> set[str]:
    """The names that the lines which `test` adds to `old` need; both trees hold the source."""
    lines = (*(f" {line}" for line in old.splitlines()), *(f"+{line}" for line in test.splitlines()))
    patch = FilePatch(TEST, hunks=(Hunk(1, 1, 1, 1, "", lines),))
    tree = {**landed, TEST: f"{old}{test}"}
    changed = [path for path in landed if landed[path] != base.get(path)]
    needs = python_needs([patch], changed, base.get, tree.get, [path for path in base if path not in landed])
    return {need.text for need in needs}


@pytest.mark.parametrize(
    ("base", "landed", "test", "expected"),
    [
        # Another library has a function of that name, the module of the repository has none.
        ({"src/a/io.py": "import sniffio\n"}, {"src/a/io.py": "def now(): ...\n"}, "from a.io import now\n", {"now"}),
        ({"a/io.py": "def now(): ...\n"}, {"a/io.py": "def now(): ...\nx = 1\n"}, "from a.io import now\n", set()),
        # It is there, and tests look for it elsewhere.
        (
            {"a/__init__.py": "", "a/io.py": "def now(): ...\n"},
            {"a/__init__.py": "from a.io import now as now\n", "a/io.py": "def now(): ...\n"},
            "from a import now\n",
            {"now"},
        ),
        ({"a.py": "x = 1\n"}, {"a.py": "def now(): ...\n"}, "import a\n\na.now()\n", {"now"}),
        ({"a.py": "x = 1\n"}, {"a.py": "def now(): ...\n"}, "import a as b\n\nb.now()\n", {"now"}),
        ({}, {"a/fresh.py": "def now(): ...\n"}, "from a.fresh import now\n", {"fresh", "now"}),
        ({"a/__init__.py": ""}, {"a/__init__.py": "", "a/fresh.py": ""}, "from a import fresh\n", {"fresh"}),
        ({"a/io.py": ""}, {"a/io.py": "def now(): ...\n"}, "patch('a.io.now')\n", {"now"}),
        # Members and names that tests reach by a text.
        (
            {"a/io.py": "class Pool:\n    def open(self): ...\n"},
            {"a/io.py": "class Pool:\n    def open(self): ...\n    def _drain(self): ...\n"},
            "patch('a.io.Pool._drain', None)\npatch('a.io.Pool.open', None)\n",
            {"_drain"},
        ),
        (
            {"a/__init__.py": "", "a/dirs.py": "x = 1\n"},
            {"a/__init__.py": "", "a/dirs.py": "x = 1\n_DATA = None\n"},
            "from a import dirs\n\nmonkeypatch.setattr(dirs, '_DATA', 1)\nmonkeypatch.setattr(dirs, 'x', 1)\n",
            {"_DATA"},
        ),
        (
            {"a/io.py": "class Pool: ...\n"},
            {"a/io.py": "class Pool:\n    def drain(self): ...\n"},
            "from a.io import Pool\n\npatch.object(Pool, 'drain')\n",
            {"drain"},
        ),
        (
            {"a/__init__.py": "", "a/dirs.py": ""},
            {"a/__init__.py": "", "a/dirs.py": "def home(): ...\n"},
            "from a import dirs\n\ndirs.home()\n",
            {"home"},
        ),
        # What cannot be told is not guessed.
        ({"a.py": "from b import *\n"}, {"a.py": "from b import *\ndef now(): ...\n"}, "from a import now\n", set()),
        ({"a.py": "def (\n"}, {"a.py": "def (\nnow\n"}, "from a import now\n", set()),
        ({}, {"a.py": "x = 1\n"}, "from other import now\nfrom . import conftest\n", set()),
        # Helpers of tests come with the tests.
        ({}, {"tests/helpers.py": "def now(): ...\n"}, "from tests.helpers import now\n", set()),
        # Parameters of a function, whoever else has some of that name.
        (
            {"a.py": "def dump(x): ...\ndef load(limit): ...\n"},
            {"a.py": "def dump(x, limit=1): ...\ndef load(limit): ...\n"},
            "dump(1, limit=2)\nload(limit=2)\n",
            {"limit"},
        ),
        ({"a.py": "def dump(limit): ...\n"}, {"a.py": "def dump(limit, x): ...\n"}, "dump(limit=2)\n", set()),
        # A function under a new name keeps its parameters.
        ({"a.py": "def ask(url): ...\n"}, {"a.py": "def send(url, ext): ...\n"}, "send(url=2, ext=1)\n", {"ext"}),
        (
            {"a.py": "class C: ...\n"},
            {"a.py": "class C:\n    def __init__(self, size): ...\n"},
            "C(size=2)\n",
            {"size"},
        ),
        ({"a.py": "class C: ...\n"}, {"a.py": "class C:\n    size: int = 0\n"}, "x.C(size=2)\n", {"size"}),
        # Members of a class, whoever else has some of that name; only where the file names the class.
        (
            {"a.py": "class C: ...\nclass D:\n    def close(self): ...\n"},
            {"a.py": "class C:\n    def close(self): ...\nclass D:\n    def close(self): ...\n"},
            "C().close()\n",
            {"close"},
        ),
        ({"a.py": "class C: ...\n"}, {"a.py": "class C:\n    def close(self): ...\n"}, "x.close()\n", set()),
        ({"a.py": "class C: ...\n"}, {"a.py": "class C:\n    def f(self): self.size = 1\n"}, "C().size\n", {"size"}),
        (
            {"a.py": "class B:\n    def close(self): ...\nclass C(B): ...\n"},
            {"a.py": "class B:\n    def close(self): ...\nclass C(B):\n    def close(self): ...\n"},
            "C().close()\n",
            set(),
        ),
        ({"a.py": ""}, {"a.py": "class C(ssl.C):\n    def f(self): self.log = 1\n"}, "import a\n\na.C().log\n", {"C"}),
        ({"a.py": "class C(B): ...\n"}, {"a.py": "class C(B):\n    def close(self): ...\n"}, "C().close()\n", set()),
    ],
)
def test_what_tests_need_and_the_base_has_not(
    base: dict[str, str], landed: dict[str, str], test: str, expected: set[str]
) -> None:
    assert names(base, landed, test) == expected


def test_only_added_lines_need_something() -> None:
    base, landed = {"a.py": "x = 1\n"}, {"a.py": "def now(): ...\ndef then(): ...\n"}
    assert names(base, landed, "from a import then\n", old="from a import now\n") == {"then"}


def test_a_function_that_moved_to_another_file_keeps_its_parameters() -> None:
    assert names({"a.py": "def dump(limit): ...\n"}, {"b.py": "def dump(limit): ...\n"}, "dump(limit=1)\n") == set()
