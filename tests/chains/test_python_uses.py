"""What tests in Python use, by module and by parameter."""

from __future__ import annotations

import pytest

from chains.needs.python_uses import NamesUsed, defined_needs, names_used, python_needs
from chains.needs.stage_needs import by_words, merged
from chains.needs.used_names import used_names
from prchain.core.code.needs import Need
from prchain.core.git.patches import FilePatch, Hunk

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
        # All names of a module that can be read are known.
        (
            {"a/__init__.py": "from a.io import *\n", "a/io.py": "def then(): ...\n"},
            {"a/__init__.py": "from a.io import *\nnow = 1\n", "a/io.py": "def then(): ...\n"},
            "from a import now, then\n",
            {"now"},
        ),
        (
            {"a/__init__.py": "from .b import *\n", "a/b/__init__.py": "from ..io import *\n", "a/io.py": "then = 1\n"},
            {"a/__init__.py": "from .b import *\n", "a/b/__init__.py": "from ..io import *\n", "a/io.py": "now = 1\n"},
            "import a\n\na.now, a.then\n",
            {"now"},
        ),
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
        # A variable may be named for the class.
        *(
            ({"a.py": "class JobPool: ...\n"}, {"a.py": "class JobPool:\n    def close(self): ...\n"}, test, expected)
            for test, expected in (
                ("job_pool.close()\n", {"close"}),
                ("self.job.close()\n", {"close"}),
                ("jo.close()\n", set()),
                ("pool.close()\n", set()),
            )
        ),
        # A base behind a dot is of the module of that name, which is not its own.
        (
            {"a/pool.py": "class Pool: ...\n", "b/pool.py": "class Pool(pool.Pool): ...\n"},
            {"a/pool.py": "class Pool:\n    size = 1\n", "b/pool.py": "class Pool(pool.Pool):\n    kind = 1\n"},
            "Pool().size\nPool().kind\n",
            {"kind", "size"},
        ),
        (
            {"b/pool.py": "class Pool(pool.Pool): ...\n"},
            {"b/pool.py": "class Pool(pool.Pool):\n    kind = 1\n"},
            "Pool().kind\n",
            set(),
        ),
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


BARE = "class Base(ABC):\n    pass\n"
ABSTRACT = "class Base(ABC):\n    @abstractmethod\n    def handle(self, scope, next_app): ...\n    order: int = 1\n"
HANDLING = "    def handle(self, scope, next_app):\n        return 1\n"


@pytest.mark.parametrize(
    "test",
    [
        f"from a.base import Base\n\nclass Mine(Base):\n{HANDLING}",
        f"from a.base import Base as Its\n\nclass Mine(Its):\n{HANDLING}",
        f"import a.base\n\nclass Mine(a.base.Base):\n{HANDLING}",
        f"from a import base as b\n\nclass Mine(b.Base):\n{HANDLING}",
        f"from ..a.base import Base as Its\n\nclass Mine(Its):\n{HANDLING}",
        f"from a.base import *\n\nclass Mine(Base):\n{HANDLING}",
        f"from a.base import Base\n\nclass First(Base): ...\nclass Mine(First):\n{HANDLING}",
        f"from a.base import Base\n\nclass Base(Base):\n{HANDLING}",
        f"from a.base import Base\n\nclass Mine(Other, Base[int]):\n{HANDLING}",
    ],
)
def test_members_that_tests_override_and_their_parameters_are_needed(test: str) -> None:
    base = {"src/a/base.py": BARE, "src/a/app.py": "class App:\n    def handle(self, next_app): ...\n"}
    landed = {"src/a/base.py": ABSTRACT, "src/a/app.py": base["src/a/app.py"] + "x = 1\n"}
    assert names(base, landed, test) == {"handle", "scope", "next_app"}


def test_a_need_by_an_override_names_the_class_the_kind_and_the_method() -> None:
    test = f"from a import Base\n\nclass Mine(Base):\n    order = 2\n{HANDLING}"
    patch = FilePatch(TEST, hunks=(Hunk(1, 1, 1, 1, "", tuple(f"+{line}" for line in test.splitlines())),))
    needs = python_needs([patch], ["a.py"], {"a.py": BARE}.get, {"a.py": ABSTRACT, TEST: test}.get)
    assert {(need.kind, need.text, need.owner, need.path) for need in needs} == {
        ("attribute", "order", "Base", "a.py"),
        ("method", "handle", "Base", "a.py"),
        ("parameter", "scope", "handle", "a.py"),
        ("parameter", "next_app", "handle", "a.py"),
    }


def test_an_overridden_member_is_one_of_the_topmost_class_that_has_it() -> None:
    landed = f"{ABSTRACT}class Dull(Base):\n{HANDLING}"
    test = f"from a import Dull\n\nclass Mine(Dull):\n{HANDLING}"
    patch = FilePatch(TEST, hunks=(Hunk(1, 1, 1, 1, "", tuple(f"+{line}" for line in test.splitlines())),))
    needs = list(python_needs([patch], ["a.py"], {"a.py": BARE}.get, {"a.py": landed, TEST: test}.get))
    assert [need.owner for need in needs if need.kind == "method"] == ["Base"]
    assert sorted(need.text for need in needs if need.kind == "parameter") == ["next_app", "scope"]


def test_a_base_class_that_is_nested_or_inherits_the_member_counts() -> None:
    base = {"a.py": "class Outer:\n    class Inner: ...\nclass Late(Root): ...\nclass Root: ...\n"}
    landed = {
        "a.py": "class Outer:\n    class Inner:\n        def run(self): ...\n"
        "class Late(Root): ...\nclass Root:\n    def stop(self): ...\n"
    }
    test = "from a import Late, Outer\n\nclass A(Outer.Inner):\n    def run(self): ...\n"
    assert names(base, landed, f"{test}\nclass B(Late):\n    def stop(self): ...\n") == {"run", "stop"}


@pytest.mark.parametrize(
    "test",
    [
        # Of no class, of one of another package, of one of the tests' own.
        f"class Mine:\n{HANDLING}",
        f"import unittest\n\nclass Mine(unittest.TestCase):\n{HANDLING}",
        f"from other import Base\n\nclass Mine(Base):\n{HANDLING}",
        f"class Base:\n    pass\n\nclass Mine(Base):\n{HANDLING}",
        # Another class of the changed files, which has no such method.
        f"from a.base import Plain\n\nclass Mine(Plain):\n{HANDLING}",
        # What the base has, what the source has not, and what no caller names.
        "from a.base import Base\n\nclass Mine(Base):\n    def run(self, x): ...\n",
        "from a.base import Base\n\nclass Mine(Base):\n    def other(self, next_app): ...\n",
        "from a.base import Base\n\nclass Mine(Base):\n    def __init__(self, next_app): ...\n",
    ],
)
def test_a_method_that_merely_shares_a_name_is_no_override(test: str) -> None:
    more = "    def run(self, x): ...\nclass Plain: ...\n"
    assert names({"a/base.py": BARE + more}, {"a/base.py": ABSTRACT + more}, test) == set()


def test_an_override_on_old_lines_needs_only_its_new_parameter() -> None:
    base = {"a.py": "class Base:\n    def run(self, x): ...\n"}
    landed = {"a.py": "class Base:\n    def run(self, x, *, y): ...\n    def stop(self): ...\n"}
    old = "from a import Base\n\nclass Mine(Base):\n    def stop(self): ...\n"
    assert names(base, landed, "    def run(self, x, y): ...\n", old=old) == {"y"}
    assert names(base, landed, "    def run(self, x, z): ...\n", old=old) == set()


def test_a_function_that_takes_itself_is_a_method_of_a_class_that_is_made_elsewhere() -> None:
    tree = {"a/levels.py": "async def aexception(self, event): ...\ndef level(name): ...\n"}
    kinds = {name: need.kind for name, need in defined_needs(tree, tree.get, NamesUsed()).items()}
    assert (kinds["aexception"], kinds["level"]) == ("method", "function")
    text = "def made():\n    async def alog(self, level): ...\n    def plain(level): ...\n"
    patch = FilePatch("a/levels.py", hunks=(Hunk(1, 0, 1, 3, "", tuple(f"+{line}" for line in text.splitlines())),))
    assert [by_words(name, [patch]).kind for name in ("alog", "plain")] == ["method", "function"]


MIDDLEWARE = """
class CorsMiddleware:
    def __init__(self, app, allow_origins=(), max_age=600):
        self.app = app
        self.allow_origins = allow_origins
        self.max_age = max_age
    def allowed(self): ...
"""


@pytest.mark.parametrize(
    ("use", "name", "kind"),
    [
        ("app.add_middleware(CorsMiddleware, allow_origins=['*'])", "allow_origins", "parameter"),
        ("CorsMiddleware(None, allow_origins=['*'])", "allow_origins", "parameter"),
        ("app.add(CorsMiddleware, allow_origins=['*']).middleware.allow_origins", "allow_origins", "attribute"),
        ("assert made().max_age == 600", "max_age", "attribute"),
        ("made().allowed()", "allowed", "method"),
    ],
)
def test_what_a_name_is_follows_from_how_tests_use_it(use: str, name: str, kind: str) -> None:
    tree = {"web/cors.py": MIDDLEWARE, "tests/test_cors.py": f"def test_it(app):\n    {use}\n"}
    need = defined_needs(["web/cors.py"], tree.get, names_used([whole("tests/test_cors.py", tree)], tree.get))[name]
    assert (need.kind, need.owner) == (kind, "CorsMiddleware")


def test_a_variable_of_the_tests_is_no_name_of_the_source() -> None:
    tree = {"tests/test_cors.py": "from web import cors\n\ndef test_it(app, client):\n    client.get(app).max_age\n"}
    tree["tests/test_cors.py"] += (
        "    for root in (1, 2):\n        with app.subTest(root=root):\n            assert cors.f(root)\n"
    )
    used = names_used([whole("tests/test_cors.py", tree)], tree.get)
    assert {"app", "client", "root"} <= set(used.variables) and not {"cors", "max_age", "get"} & set(used.variables)


def whole(path: str, tree: dict[str, str]) -> FilePatch:
    """A file as a patch that adds it."""
    lines = tuple(f"+{line}" for line in tree[path].splitlines())
    return FilePatch(path, hunks=(Hunk(1, 0, 1, len(lines), "", lines),))


OWN = """
from a.io import Adder

class TestAdder:
    _all_keys = set(Adder)

    def test_all(self):
        assert Adder(self._all_keys)

    @classmethod
    def keys(cls):
        return cls._all_keys
"""


def test_what_a_class_of_the_tests_has_itself_is_no_need() -> None:
    base, landed = {"a/io.py": "class Adder: ...\n"}, {"a/io.py": "class Adder:\n    _all_keys = set()\n"}
    assert names(base, landed, OWN) == set()
    assert names(base, landed, OWN.replace("self._all_keys", "Adder._all_keys")) == {"_all_keys"}
    source, test = FilePatch("a/io.py", hunks=hunks(landed["a/io.py"])), FilePatch(TEST, hunks=hunks(OWN))
    assert "_all_keys" not in used_names([source], [test])
    other = FilePatch(TEST, hunks=hunks(OWN.replace("self._all_keys", "Adder._all_keys")))
    assert "_all_keys" in used_names([source], [other])


def hunks(text: str) -> tuple[Hunk, ...]:
    return (Hunk(1, 0, 1, text.count("\n"), "", tuple(f"+{line}" for line in text.splitlines())),)


def test_a_name_that_a_package_takes_of_its_module_is_in_the_file_of_that() -> None:
    base = {"a/__init__.py": "from .io import *\n", "a/io.py": ""}
    tree = {**base, "a/io.py": "def now(): ...\n", TEST: "from a import now\n"}
    patch = FilePatch(TEST, hunks=(Hunk(1, 1, 1, 1, "", ("+from a import now",)),))
    (need,) = python_needs([patch], ["a/io.py"], base.get, tree.get)
    assert (need.kind, need.text, need.path) == ("function", "now", "a/io.py")


def test_a_name_of_which_more_is_known_is_told_once() -> None:
    needs = [
        Need("name", "testing", "", "a/__init__.py", ("t",)),
        Need("module", "testing", "", "a/testing.py", ("t",)),
    ]
    assert merged([*needs, Need("name", "other"), Need("text", "testing")]) == [
        Need("name", "other"),
        needs[1],
        Need("text", "testing"),
    ]


SUM = " + ".join(["'ab'"] * 600)
ELIFS = "if x == 0:\n    a = 0\n" + "".join(f"elif x == {it}:\n    a = {it}\n" for it in range(1, 1200))


@pytest.mark.parametrize(
    ("landed", "test"),
    [
        ("def now(): ...\n", f"from a import now\n\nassert now() == {SUM}\n"),
        (f"{ELIFS}def now(): ...\n", "from a import now\n"),
        (f"class A:\n    @known({SUM})\n    def f(self): ...\n\ndef now(): ...\n", "from a import now\n"),
        (f"class A(made({SUM})): ...\n\ndef now(): ...\n", "from a import now\n"),
        ("def now(): ...\n", f"from a import now\n\nclass A(made({SUM})):\n    x = now()\n"),
    ],
)
def test_code_that_is_nested_deeper_than_python_calls_is_read(landed: str, test: str) -> None:
    assert names({"a.py": ""}, {"a.py": landed}, test) == {"now"}
