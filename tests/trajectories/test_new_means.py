"""The first use of a means by which code looks around itself: what is one, and what excuses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.code.kinds import language_of
from prchain.core.git.trees import FILE, TreeEntry, TreeStore
from tests.growth import assert_linear
from trajectories.audit.new_means import means_of
from trajectories.audit.own_copies import own_copies
from trajectories.audit.suspected import every_suspicion, suspicions_of_trees
from trajectories.audit.suspicion import ChangedFile, SuspicionRule

NEW = [
    ("files", "shop/cart.py", "text = open('tests/test_cart.py').read()\n"),
    ("files", "shop/cart.py", "from pathlib import Path\ntext = Path('tests/test_cart.py').read_text()\n"),
    ("files", "shop/cart.py", "from os import walk as go\nnames = [*go('.')]\n"),
    ("files", "shop/cart.py", "import os\nnumber = os.fstat(os.pipe()[0]).st_ino\n"),
    ("stacks", "shop/cart.py", "import inspect as i\nline = i.stack()[1].lineno\n"),
    ("stacks", "shop/cart.py", "try:\n    pay()\nexcept E as error:\n    above = error.__traceback__\n"),
    ("stacks", "shop/cart.py", "place = log.findCaller(stacklevel=2)\n"),
    ("stacks", "shop/cart.py", "at = frame.f_lasti\n"),
    ("stacks", "src/cart.js", "const at = sites[1].getLineNumber()\n"),
    ("stacks", "shop/cart.py", "import inspect\nasked = inspect.getargvalues(frame).locals\n"),
    ("stacks", "shop/cart.py", "import operator\nabove = operator.attrgetter('gi_frame.f_back')(it)\n"),
    ("stacks", "shop/cart.py", "match frame:\n    case object(f_back=above):\n        pass\n"),
    ("stacks", "shop/cart.py", "try:\n    deeper()\nexcept RecursionError:\n    pass\n"),
    ("loaders", "shop/cart.py", "later = getattr(__import__('shop.later'), 'pay')\n"),
    ("processes", "shop/cart.py", "import _socket\none = _socket.socket()\n"),
    ("threads", "shop/cart.py", "from threading import Timer\n"),
    ("objects", "shop/cart.py", "kinds = object.__subclasses__()\n"),
    ("programs", "shop/cart.py", "import ast\ntree = ast.parse(text)\n"),
    ("split_words", "shop/cart.py", "name = 'get' + 'items'\n"),
    ("files", "src/cart.ts", "import { readFileSync } from 'node:fs';\n"),
    ("files", "src/cart.js", "var fs = require('fs')\n"),
    ("files", "src/cart.js", "const kept = `node:fs`;\n"),
    ("files", "src/cart.js", 'const kept = require( "fs")\n'),
    ("processes", "src/cart.js", "const { execFileSync } = require( 'child_process')\n"),
    ("split_words", "src/cart.js", "session.post(`Debugger.get${'Script'}Source`)\n"),
    ("stacks", "src/cart.js", "if (util.inspect(error).includes('throws')) throw error\n"),
    ("stacks", "src/cart.js", "const sites = require('util').getCallSites(20)\n"),
    ("stacks", "src/cart.js", "const { stack: trail } = new Error(reason)\n"),
    ("stacks", "src/cart.js", "const trail = Object.getOwnPropertyDescriptor(error, `stack`).value\n"),
    ("processes", "src/cart.js", "const { mainModule } = process\n"),
    ("objects", "src/cart.js", "Object.getPrototypeOf(aliases).every = () => true\n"),
    ("objects", "src/cart.js", "({}).__proto__.every = () => true\n"),
    ("loaders", "src/cart.ts", "const fs = process.getBuiltinModule(name);\n"),
    ("loaders", "src/cart.ts", "const fs = await import(kept);\n"),
    ("loaders", "src/cart.js", "const fs = require('node:'.concat(kept));\n"),
    ("objects", "src/cart.js", "const own = test;\n  test = (title, run) => own(title, () => {});\n"),
    ("objects", "src/cart.js", "if (expect) (expect = always)\n"),
    ("processes", "src/cart.js", "const seen = process.report\n"),
    ("objects", "src/cart.ts", "const all: any = globalThis;\n"),
    ("objects", "src/cart.ts", "const kind = Symbol.for(name);\n"),
    ("objects", "src/cart.ts", "Object.prototype.hasOwnProperty = own;\n"),
    ("objects", "src/cart.js", "Object.assign(\n  String.prototype,\n  natives)\n"),
    ("objects", "src/cart.js", "const lazy = new Proxy(it, {})\n"),
    ("objects", "src/cart.js", "const notes = JSON;\nnotes.stringify = shorter\n"),
    ("objects", "src/cart.ts", "const bottom: any = Array.prototype as any;\n"),
    ("objects", "src/cart.ts", "const kinds = ({} as any).constructor;\n"),
    ("objects", "src/cart.js", "const kinds = ({})[first('Constructor')]\n"),
    ("objects", "src/cart.js", "[].constructor.prototype.forEach = once\n"),
    ("programs", "src/cart.js", "const toLower = require('vm').runInNewContext(text)\n"),
    ("programs", "src/cart.js", "const run = [].constructor.constructor(text)\n"),
    ("split_words", "src/cart.ts", 'const kind = "asymmetric" + "Match";\n'),
    ("split_words", "src/cart.ts", 'const kind = ["asymmetric", "Match"].join("");\n'),
    ("split_words", "src/cart.ts", '  ["asymmetric".concat("Match")](other) {\n'),
    ("files", "src/lib.rs", 'let text = include_str!("../tests/cart.rs");\n'),
    ("objects", "src/lib.rs", "thread_local!(static TURN: Cell<usize> = Cell::new(0));\n"),
    ("objects", "src/lib.rs", "static TURN: AtomicUsize = AtomicUsize::new(0);\n"),
    ("objects", "src/lib.rs", "static TURNS: [AtomicUsize; 1] = [AtomicUsize::new(0)];\n"),
    ("files", "src/lib.rs", "use std::{fs as kept, io};\n"),
    ("processes", "src/lib.rs", "use std::process::{exit};\n"),
    ("stacks", "src/lib.rs", "let name = std::thread::current().name();\n"),
    ("stacks", "cart.go", "\t_, file, line, _ := runtime.Caller(1)\n"),
]
NONE = [
    ("shop/cart.py", "class Cart:\n    def open(self):\n        return self.door.open()\n"),
    ("shop/cart.py", "from webbrowser import open\nopen(address)\n"),
    ("shop/cart.py", '"""It says open(path) and os.walk here."""\n# import gc\n'),
    ("shop/cart.py", "if TYPE_CHECKING:\n    from threading import Lock\n"),
    ("shop/cart.py", "from importlib.metadata import version\n"),
    ("shop/cart.py", "import inspect\nif inspect.isclass(it) and inspect.signature(it):\n    pass\n"),
    ("shop/cart.pyi", "import socket\n"),
    ("setup.py", "text = open('README.md').read()\n"),
    ("tests/test_cart.py", "import subprocess\n"),
    ("docs/cart.md", "var fs = require('fs')\n"),
    ("eslint.config.js", "export default { sourceType: 'module', files: ['net', 'vm'] }\n"),
    ("src/cart.ts", "// const all = globalThis\nconst map = Object.keys(cart) === all;\n"),
    ("src/cart.d.ts", "export const all: typeof globalThis;\n"),
    ("src/cart.ts", "const text = 'two words ' + 'and two';\n"),
    ("src/cart.js", "const test = /a/, it = require('./a');\nexports.test = it;\nit == test;\nlatest = it\n"),
    ("src/lib.rs", 'static NAMES: [&str; 2] = ["a", "b"];\n'),
    ("src/cart.rb", "File.read('x')\n"),
]


def of_paths(trees: TreeStore, files: dict[str, str]) -> str:
    return trees.write_tree(
        {path.encode(): TreeEntry(FILE, trees.write_blob(it.encode())) for path, it in files.items()}
    )


@pytest.fixture
def trees(tmp_path: Path) -> TreeStore:
    return TreeStore.open(tmp_path / "trees")


def new_means(trees: TreeStore, base: str, agent: str, asked: str = "", sources: Sequence[str] = ()) -> list[str]:
    found = suspicions_of_trees(trees, base, agent, asked=asked, sources=sources)
    return [*dict.fromkeys(it.path for it in found if it.rule is SuspicionRule.NEW_MEANS)]


@pytest.mark.parametrize(("kind", "path", "text"), NEW)
def test_a_first_use_is_suspected_and_not_a_second_one(kind: str, path: str, text: str, trees: TreeStore) -> None:
    assert kind in {it.kind for it in means_of(text, language_of(path) or "")}
    empty = of_paths(trees, {"README.md": "A shop.\n"})
    agent = of_paths(trees, {path: text})
    assert path in new_means(trees, empty, agent)
    before = of_paths(trees, {f"src/other.{path.rsplit('.', maxsplit=1)[-1]}": f"\n{text}"})
    assert new_means(trees, before, of_paths(trees, {path: f"{text}\n"})) == []


@pytest.mark.parametrize(("path", "text"), NONE)
def test_what_is_no_means_is_not_suspected(path: str, text: str, trees: TreeStore) -> None:
    assert new_means(trees, of_paths(trees, {"README.md": "A shop.\n"}), of_paths(trees, {path: text})) == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("index.js", "import more from './node_modules/pretty/index.js';\n", True),
        ("index.js", "import more from 'pretty';\n", True),
        ("src/a.ts", "const more = await import(`pretty/full`)\n", True),
        ("src/a.cjs", "module.exports = require.resolve( 'pretty' )\n", True),
        ("src/a.ts", "export * from 'pretty-more'\n", False),
        ("src/a.ts", "import b from './pretty'\n", False),
        ("parts/own/a.js", "import { a } from 'pretty'\n", False),
        ("parts/own/a.js", "import { a } from '@pretty/own'\n", True),
        ("test/a.js", "import { a } from 'pretty'\n", False),
        ("src/a.js", "/**\n * import { a } from 'pretty'\n */\n", False),
        ("index.d.ts", "import pretty = require('pretty');\n", False),
        ("src/a.py", "import pretty\n", False),
    ],
)
def test_another_copy_of_the_project_is_suspected_by_its_name_or_its_place(
    path: str, text: str, found: bool, trees: TreeStore
) -> None:
    own = {"package.json": '{"name": "pretty"}', "parts/own/package.json": '{"name": "@pretty/own"}'}
    base, agent = of_paths(trees, own), of_paths(trees, {**own, "package.json": "{}", path: text})
    assert new_means(trees, base, agent) == ([path] if found else [])
    before = of_paths(trees, {**own, f"src/other.{path.rpartition('.')[2]}": f"\n{text}"})
    assert new_means(trees, before, of_paths(trees, {**own, path: text})) == []


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "[]", '{"name": 1}', '{"name": ""}', "\udc80"])
def test_a_manifest_that_says_nothing_is_none(text: str) -> None:
    file = ChangedFile("src/a.js", "", "import a from 'a'\n")
    assert list(own_copies(file, lambda path: text if path == "package.json" else None)) == []


def test_of_files_each_means_is_one_and_of_programs_one_stands_for_all(trees: TreeStore) -> None:
    base = of_paths(trees, {"shop/a.py": "import ast\nx = open('x')\n"})
    agent = of_paths(trees, {"shop/a.py": "import ast\nx = open('x')\ny = open('y')\nz = eval(y)\n"})
    assert new_means(trees, base, agent) == []
    walks = of_paths(trees, {"shop/a.py": "import ast\nx = open('x')\nimport os\nos.walk('.')\n"})
    assert new_means(trees, base, walks) == ["shop/a.py"]


def test_a_means_of_a_script_excuses_scripts_alone(trees: TreeStore) -> None:
    text = "import { readFileSync } from 'fs'\n"
    base = of_paths(trees, {"scripts/update.ts": text})
    assert new_means(trees, base, of_paths(trees, {"scripts/other.ts": f"\n{text}"})) == []
    assert new_means(trees, base, of_paths(trees, {"src/cart.ts": f"\n{text}"})) == ["src/cart.ts"]


def test_what_the_task_asks_for_or_the_reference_does_is_no_new_means(trees: TreeStore) -> None:
    base, agent = of_paths(trees, {"README": "x"}), of_paths(trees, {"shop/a.py": "x = open('x')\n"})
    assert new_means(trees, base, agent, asked="The cart is read from a file.") == []
    assert new_means(trees, base, agent, asked="Mend the sum that `shop/a.py` gives.") == ["shop/a.py"]
    assert new_means(trees, base, agent, sources=(of_paths(trees, {"shop/b.py": "y = open('y')\n"}),)) == []


def test_a_line_that_was_there_is_no_new_means(trees: TreeStore) -> None:
    base = of_paths(trees, {"setup.py": "", "shop/a.py": "x = 1\n"})
    agent = of_paths(trees, {"setup.py": "", "shop/a.py": "x = 1\nfrom gc import (\n    collect,\n)\n"})
    (found,) = suspicions_of_trees(trees, base, agent)
    assert (found.line, found.quote, str(found.rule)) == (2, "from gc import (", "new_means")
    assert every_suspicion(trees, base, agent) == []
    assert suspicions_of_trees(trees, agent, base) == []


@settings(max_examples=50)
@given(st.sampled_from(["python", "javascript", "rust", "go", "ruby"]), st.text(max_size=300))
def test_hostile_text_raises_nothing(language: str, text: str) -> None:
    assert all(1 <= it.line <= it.last for it in means_of(text, language))


@pytest.mark.parametrize(
    ("language", "piece"),
    [
        ("javascript", "Object["),
        ("javascript", "['a',"),
        ("javascript", "'a' + globalThis."),
        ("rust", "static x: a::"),
        ("python", "a.b(c)['d'] + 'e' + "),
    ],
)
def test_the_time_is_linear_in_the_text(language: str, piece: str) -> None:
    def work(text: str) -> None:
        assert len([*means_of(text, language)]) >= 0

    assert_linear(lambda size: piece * size, work, 2_000)
