"""Test files with odd names, and files that a runner gives up all for: the others run, what is left out is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.proofs.proof import (
    EARLIER_BROKEN,
    NO_F2P,
    NOTHING_COLLECTED,
    UNPROVED,
    EarlierTests,
    prove,
)
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind
from environments.suites.plaincommands import plain_command
from environments.suites.reporters.parent_kinds import Cargo, Go, Slow
from environments.suites.runner import shell_word
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status, read_events
from environments.suites.testruns import LEFT_OUT, TestRun, run_tests
from prchain.core.git.output import name_text, path_name, path_text
from prchain.core.safeguards import PLANTING
from prchain.core.swebench.logparsers import LOG_PARSERS
from tests.environments.test_parent_reporter import program
from tests.environments.test_testruns import PYTEST, UNITTEST, Shell

P, F, E = Status.passed, Status.failed, Status.error

ODD = [
    b"tests/test_half[int].py",
    b"tests/[id]/test_a.py",
    b"tests/test_c::d.py",
    b"tests/test_a::test_x[y].py",
    b"@x_test.py",
    b"-y_test.py",
    b"tests/test_sp ace.py",
    b"tests/test_st*r?.py",
    b"tests/test_'q\"{a,b}!.py",
    b"tests/test_new\nline.py",
    b"tests/test_bad\xff.py",
    "tests/test_é.py".encode(),
    b"tests/test_dollar$HOME.py",
]


def write(folder: Path, files: Sequence[bytes], text: str) -> list[str]:
    for name in files:
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text(text)
    return [path_text(name) for name in files]


def test_pytest_runs_files_whatever_their_names_are_and_names_those_that_are_not_there(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('v', ['a::b'])\ndef test_x(v): pass\n"
    files = write(tmp_path, [b"tests/test_plain.py", *ODD], text)
    os.symlink("nowhere", tmp_path / "tests/test_link.py")
    sandbox: Any = Shell(tmp_path)
    run = run_tests(sandbox, PYTEST, [*files, "tests/test_gone.py", "tests/test_link.py"], timeout=60)
    assert run.statuses == {f"{path}::test_x[a::b]": P for path in files}
    assert run.left_out == ("tests/test_gone.py", "tests/test_link.py") and not run.cheats
    runner = RUNNERS["pytest"]
    assert {(runner.file_of(test, files), runner.name_of(test)) for test in run.statuses} == {
        (path, "test_x") for path in files
    }


CASE = "import unittest\nclass T(unittest.TestCase):\n    def test_x(self): pass\n"
RAISES = ["undefined", "import os; os.undefined", "raise SystemExit(0)", "def", "raise ValueError", "import undefined"]


def test_unittest_runs_the_modules_beside_one_that_cannot_be_imported_and_odd_names(tmp_path: Path) -> None:
    good = [name for name in ODD if b"tests/" in name] + [b"tests/test_plain.py"]
    files = write(tmp_path, good, CASE)
    for number, line in enumerate(RAISES):
        files += write(tmp_path, [b"tests/test_raises%d.py" % number], f"{line}\n{CASE}")
    no_names = write(tmp_path, [b".ci/test_a.py", b"v1.2/test_b.py", b"tests/test_c.d.py"], CASE)
    sandbox: Any = Shell(tmp_path)
    run = run_tests(sandbox, UNITTEST, [*files, *no_names], timeout=60)
    passed = {test for test, status in run.statuses.items() if status is P}
    assert {RUNNERS["unittest"].file_of(test, files) for test in passed} == set(files[: len(good)])
    assert len(passed) == len(good) and len(run.statuses) == len(good) + len(RAISES)
    assert all(status in {P, E} for status in run.statuses.values())
    assert run.left_out == tuple(no_names)
    assert {RUNNERS["unittest"].name_of(test) for test in passed} == {"test_x"}


LEFT = [
    ("go", "a b/x_test.go", True),
    ("go", "é/x_test.go", True),
    ("go", "a[b]/x_test.go", True),
    ("go", "a@v1/x_test.go", True),
    ("go", "dots./x_test.go", True),
    ("go", "dots...x/_y/testdata/.z/a b_test.go", False),
    ("go", "a/Con/x_test.go", True),
    ("go", "aux.d/x_test.go", True),
    ("go", "a~1/x_test.go", True),
    ("go", "a~b/conn/com10/x~1z.y~2/con_test.go", False),
    ("go", "x_test.go", False),
    ("cargo", "tests/half[int].rs", True),
    ("cargo", "tests/-x.rs", True),
    ("cargo", "tests/@x.rs", True),
    ("cargo", "tests/a.b.rs", True),
    ("cargo", "tests/a b.rs", True),
    ("cargo", "tests/st*r/x.rs", True),
    ("cargo", "tests/it/st*r.rs", False),
    ("cargo", "crates/st*r/tests/it.rs", False),
    ("cargo", "tests/smoke-test_2.rs", False),
    ("surefire", "src/test/java/a-b/CartTest.java", False),
    ("surefire", "src/test/resources/${name}Test.java", True),
    ("surefire", "src/test/java/Cart[1]Test.java", True),
    ("surefire", "src/test/java/!CartTest.java", True),
    ("surefire", "src/test/java/1Test.java", True),
    ("unittest", "v1.2/tests/test_a.py", True),
    ("unittest", "tests/test_a.b.py", True),
    ("unittest", "tests/test_a[1].py", False),
    ("jest", "pages/[id].test.tsx", False),
    ("vitest", "a/(g)/{x}.test.ts", False),
    ("mocha", "test/back\\slash.js", True),
    ("nodetest", "test/[id].test.js", True),
    ("vitest", path_text(b"bad\xff.test.ts"), True),
    ("pytest", "tests/test_half[int].py", False),
]


@pytest.mark.parametrize(("runner", "path", "is_left_out"), LEFT)
def test_what_a_runner_cannot_be_given_is_known_by_its_name(runner: str, path: str, is_left_out: bool) -> None:
    assert RUNNERS[runner].left_out(["x/plain", path]) == ((path,) if is_left_out else ())


def test_a_run_in_which_all_is_left_out_says_so() -> None:
    sandbox: Any = None
    run = run_tests(sandbox, RUNNERS["go"].command, ["a b/x_test.go"], timeout=1)
    assert (run.statuses, run.left_out, run.usable) == ({}, ("a b/x_test.go",), True)


@pytest.mark.parametrize(
    ("runner", "files", "words"),
    [
        ("pytest", ["tests/test_half[int].py", "a_test.py"], "a_test.py"),
        ("pytest", ["tests/test_a::b.py", "@a_test.py"], "./@a_test.py"),
        ("pytest", [path_text(b"t_test\xff\n.py"), "a_test.py"], "$'t_test\\xff\\x0a.py' a_test.py"),
        ("unittest", ["-x/test_a.py", "tests/test_b.py"], "-v tests.test_b"),
        ("go", ["a b/x_test.go", "c/x_test.go"], "./c"),
        ("cargo", ["tests/common/mod.rs", "tests/cart.rs"], "--test cart"),
        ("cargo", ["tests/it/shop/mod.rs"], "--test it"),
        ("surefire", ["Cart[1]Test.java", "TaxTest.java"], "-Dtest=TaxTest -DfailIfNoTests"),
        ("jest", ["-x.test.js", "pages/[id].test.js"], "./-x.test.js 'pages/[id].test.js'"),
    ],
)
def test_a_plain_command_is_one_line_without_what_would_end_it(runner: str, files: list[str], words: str) -> None:
    command = plain_command(runner, files)
    assert words in command and "\n" not in command
    assert command.endswith(words) or runner == "surefire"


def test_a_helper_of_rusts_tests_is_no_target() -> None:
    assert RUNNERS["cargo"].given(["tests/common/mod.rs"]) == []


@given(st.binary(min_size=1).filter(lambda it: b"\0" not in it))
def test_a_path_is_given_by_the_bytes_that_it_has(path: bytes) -> None:
    name = path_name(path_text(path))
    assert os.fsencode(name) == path
    assert name_text(name).encode() is not None


@pytest.mark.parametrize("name", [*ODD, b"\xff'\\\n\t$(x)`y`", "\u200b\u2028".encode(), b"\\x41"])
def test_a_word_of_the_shell_is_what_was_meant(name: bytes) -> None:
    word = shell_word(os.fsdecode(name))
    assert "\n" not in word and word.encode() is not None
    printed = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert printed == name


@pytest.mark.parametrize(
    ("runner", "test", "name"),
    [
        ("pytest", "t/test_half[int].py::C::test_x[a::b[1]]", "test_x"),
        ("pytest", "t/test_a.py", "t/test_a.py"),
        ("jest", "pages/[id].test.tsx > list [1] > adds up", "adds up"),
        ("vitest", "a[b].test.ts > adds", "adds"),
        ("unittest", "tests.test_half[int].Case.test_x", "test_x"),
    ],
)
def test_the_name_of_a_test_does_not_end_in_its_file(runner: str, test: str, name: str) -> None:
    assert RUNNERS[runner].name_of(test) == name


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("t/test_a.py::test_x[a b]", "t/test_a.py::test_x[a"),
        ("t/test_a.py::test_x[b.py::c]", "t/test_a.py::test_x[b.py::c]"),
        ("t/test_half[int].py::test_x", ""),
        ("t/test_c::d.py::test_x", ""),
    ],
)
def test_a_test_whose_file_no_command_line_takes_has_no_name_in_swebenchs_log(test: str, name: str) -> None:
    assert LOG_PARSERS["pytest"].name_of(test) == name


REFUSES = """#!{python}
import json, sys
folders = [word for word in sys.argv if word.startswith("./")]
for folder in folders:
    if folder != "./good" and folder != "./broken":
        print("main module (h.org/m) does not contain package h.org/m/" + folder[2:])
        sys.exit(1)
for folder in folders:
    for event in ({{"Action": "run", "Test": "TestA"}}, {{"Action": "pass", "Test": "TestA"}},
                  {{"Action": "output", "Output": "PASS\\n"}}, {{"Action": "pass"}}):
        print(json.dumps({{**event, "Package": folder}}))
"""


@pytest.mark.parametrize(
    ("folders", "left_out", "code"),
    [
        (["good", "broken"], (), 0),
        (["good", "nested", "broken", "tagged"], ("./nested", "./tagged"), 0),
        (["nested"], ("./nested",), 1),
    ],
)
def test_folders_that_go_refuses_are_named_and_the_others_run(
    tmp_path: Path, folders: list[str], left_out: tuple[str, ...], code: int
) -> None:
    command = program(tmp_path, "go", REFUSES.format(python=sys.executable))
    sandbox: Any = Shell(tmp_path)
    run = run_tests(sandbox, command, [f"{folder}/a_test.go" for folder in folders], timeout=30)
    assert run.statuses == {f"./{it}.TestA": P for it in folders if f"./{it}" not in left_out}
    assert (run.left_out, run.exit_code, run.complete) == (left_out, code, True)


@pytest.mark.parametrize(("folder", "cheats"), [("nested", ()), ("good", ("exit code 0 although a test must fail",))])
def test_a_canary_that_is_left_out_need_not_fail(tmp_path: Path, folder: str, cheats: tuple[str, ...]) -> None:
    command = program(tmp_path, "go", REFUSES.format(python=sys.executable))
    sandbox: Any = Shell(tmp_path)
    canary = Canary("f:1", CanaryKind.FAIL, f"{folder}/a_test.go", "TestMany")
    known = RunnerBaseline(canaries=("f:1",), planting=PLANTING)
    files = ["broken/a_test.go", f"{folder}/a_test.go"]
    run = run_tests(sandbox, command, files, timeout=30, baseline=known, canaries=[canary])
    assert run.cheats == cheats


METADATA = {
    "packages": [
        {
            "id": "till",
            "features": {"default": ["on"], "on": ["deep"]},
            "targets": [
                {"kind": ["test"], "name": "cart", "src_path": "/x/tests/cart.rs", "required-features": ["deep"]},
                {"kind": ["test"], "name": "renamed", "src_path": "/x/tests/other.rs"},
                {"kind": ["test"], "name": "it", "src_path": "/x/tests/it/main.rs"},
                {"kind": ["test"], "name": "needs", "src_path": "/x/tests/needs.rs", "required-features": ["off"]},
                {"kind": ["bin"], "name": "ui", "src_path": "/x/src/main.rs"},
            ],
        }
    ],
    "workspace_default_members": ["till"],
}


@pytest.mark.parametrize(
    ("files", "given_words", "left_out"),
    [
        (["tests/cart.rs", "tests/ui/x.rs"], "--test cart", ["--test ui"]),
        (["tests/other.rs", "tests/it/shop.rs"], "--test renamed --test it", []),
        (["tests/needs.rs", "tests/cart.rs"], "--test cart", ["--test needs"]),
        (["tests/ui/x.rs"], "", ["--test ui"]),
        (["src/tests.rs"], "", []),
    ],
)
def test_cargo_is_given_the_targets_that_there_are(
    tmp_path: Path, files: list[str], given_words: str, left_out: list[str]
) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(METADATA)}\nE\n")
    cargo.chmod(0o755)
    kind = Cargo(30)
    command = [str(cargo), "test", "--offline", *RUNNERS["cargo"].given(files)]
    assert kind.commands(command, []) == [[str(cargo), "test", "--offline", *given_words.split()]]
    assert kind.left_out == left_out


def test_where_cargo_does_not_say_its_targets_all_are_given(tmp_path: Path) -> None:
    assert Cargo(30).commands(["/no/cargo", "test", "--test", "x"], []) == [["/no/cargo", "test", "--test", "x"]]


def running(kind: Any, lines: Sequence[str]) -> list[str]:
    slow = Slow(-1)
    for line in lines:
        kind.line(line, slow)
    return slow.late()


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        (["test a ... "], ["a"]),
        (["test a ... ", "test a ... dots"], ["a"]),
        (["test a ... dots", "more", "words"], ["a"]),
        (["test a ... dots", "moreok", ""], []),
        (["test a ... dots", "test b ... "], ["b"]),
        (["test a ... dotsok", ""], []),
        (["50%test a ... ok", ""], []),
        (["test a ... okzz", "test result: ok. 1 passed"], []),
        (["test a has been running for over 60 seconds", "..test b ... ok"], ["a"]),
        (["test a has been running for over 60 seconds", "..test a ... ok"], []),
    ],
)
def test_a_test_of_cargo_that_prints_runs_until_it_ends(lines: list[str], late: list[str]) -> None:
    assert running(Cargo(1), lines) == late


def output(text: str, **more: str) -> str:
    return json.dumps({"Action": "output", "Package": "m", "Output": text, **more})


@pytest.mark.parametrize(
    ("rows", "late"),
    [
        ([output("x--- PASS: A (0.00s)\n", Test="A")], []),
        ([output("p1=== CONT  B\n", Test="A")], ["m A", "m B"]),
        ([output("x\n", Test="A")], ["m A"]),
        ([json.dumps({"Action": "pass", "Package": "m"})], []),
        ([json.dumps({"Action": "start", "Package": "m"}), output("x--- PASS: A (0.00s)\n", Test="A")], ["m A"]),
    ],
)
def test_a_test_of_go_that_prints_runs_until_it_ends(rows: list[str], late: list[str]) -> None:
    assert running(Go(1), [json.dumps({"Action": "run", "Package": "m", "Test": "A"}), *rows]) == late


MOCHA = """
const esm = require('./mocha/lib/nodejs/esm-utils.js')
const Mocha = require('./mocha/lib/mocha.js')
const Reporter = require('./mocha_reporter.cjs')
const { EventEmitter } = require('events')
const load = async (files) => { for (const file of files) { if (file.includes('bad')) throw new Error(file) } }
const runner = new EventEmitter()
esm.loadFilesAsync(['t/a.js', 't/bad.js', 't/c.js']).then(() => {
  const old = new Mocha(['t/d.js', 't/bad2.js', 't/e.js'])
  old.loadFiles()
  if (old.loaded.join() !== 't/d.js,t/e.js' || esm.loaded.join() !== 't/a.js,t/c.js') process.exit(3)
  new Reporter(runner)
  runner.emit('end')
})
"""
ESM = """
exports.loaded = []
exports.loadFilesAsync = async (files) => {
  for (const file of files) { if (file.includes('bad')) throw new Error(file); exports.loaded.push(file) }
}
"""
OLD = """
module.exports = class {
  constructor (files) { this.files = files; this.loaded = []; this.suite = new (require("events"))() }
  loadFiles () {
    for (const file of this.files) { if (file.includes('bad')) throw new Error(file); this.loaded.push(file) }
  }
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_file_that_mocha_cannot_load_is_an_error_and_the_others_run(tmp_path: Path) -> None:
    for file in resources.files("environments.suites.reporters").iterdir():
        if file.name.endswith("js"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "mocha/lib/nodejs").mkdir(parents=True)
    (tmp_path / "mocha/lib/nodejs/esm-utils.js").write_text(ESM)
    (tmp_path / "mocha/lib/mocha.js").write_text(OLD)
    (tmp_path / "drive.cjs").write_text(MOCHA)
    order = json.dumps({"key": "00", "report": str(tmp_path / "report")})
    subprocess.run(["node", "drive.cjs"], cwd=tmp_path, input=order.encode(), check=True, timeout=60)
    read = read_events((tmp_path / "report").read_bytes(), b"\0")
    assert (read.statuses, read.started, read.exit_code) == ({"t/bad.js": E, "t/bad2.js": E}, True, 1)


NOTHING = TestRun({}, "", 1.0, 4)
FILE, OTHER = "tests/test_a.py", "tests/test_b.py"
EARLIER = EarlierTests((f"{OTHER}::two",), (OTHER,), frozenset())


@pytest.mark.parametrize(
    ("after", "own", "earlier", "outcome"),
    [
        ([NOTHING], (FILE,), (), NOTHING_COLLECTED),
        ([NOTHING, NOTHING], (FILE,), (EARLIER,), NOTHING_COLLECTED),
        ([NOTHING], (), (EARLIER,), NOTHING_COLLECTED),
        ([NOTHING], (), (), UNPROVED),
        ([NOTHING], (), (replace(EARLIER, changed=frozenset({OTHER})),), UNPROVED),
        ([replace(NOTHING, statuses={f"{FILE}::one": P})], (FILE,), (EARLIER,), EARLIER_BROKEN),
        ([replace(NOTHING, statuses={FILE: E})], (FILE,), (EARLIER,), EARLIER_BROKEN),
    ],
)
def test_a_run_that_finds_no_test_breaks_no_earlier_work(
    after: list[TestRun], own: tuple[str, ...], earlier: tuple[EarlierTests, ...], outcome: str
) -> None:
    proof = prove([NOTHING], after, runner="pytest", files=[FILE, OTHER], own_files=own, earlier=earlier)
    assert proof.outcome == outcome
    if outcome == NOTHING_COLLECTED:
        assert proof.reason == "no test was found in 2 files (exit code 4)"


def test_a_proof_names_what_was_left_out() -> None:
    odd = replace(NOTHING, exit_code=0, notes=(f"{LEFT_OUT}a b/x_test.go", "overruled: x"))
    proof = prove([odd], [odd, odd], runner="go", files=["a b/x_test.go"], own_files=["a b/x_test.go"])
    assert proof.outcome == NOTHING_COLLECTED
    assert proof.reason == "no test was found in 1 file; left out: a b/x_test.go"
    some = replace(odd, statuses={"m.TestA": P})
    proof = prove([some], [some], runner="go", files=["a b/x_test.go"], own_files=["a b/x_test.go"])
    assert (proof.outcome, proof.reason) == (NO_F2P, "1 p2p; left out: a b/x_test.go")
