"""The parent of runners that print how tests ended: what it signs, tests that take too long, and real cheats."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from environments.suites import testruns
from environments.suites.baseline import RunnerBaseline
from environments.suites.runner import TestCommand
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun, run_tests
from tests.environments.gradeworld import Graded, grade_tree
from tests.environments.test_testruns import Shell

GO = """#!{python}
import json, os, re, sys, time
def say(action, test=None, output=None):
    event = {{"Action": action, "Package": "h.org/" + folder.strip("./")}}
    if test: event["Test"] = test
    if output: event["Output"] = output
    print(json.dumps(event), flush=True)
tests = {{"a": ["TestGood", "TestHangs", "TestAfter"], "b": ["TestOther"]}}
words = sys.argv[1:]
folders = [word for word in words if word.startswith("./")]
if "-list" in words:
    folder = folders[0].strip("./")
    print("\\n".join(tests[folder]), "ok  \\th.org/" + folder + "\\t0.1s", sep="\\n")
    sys.exit(0)
pattern = words[words.index("-run") + 1] if "-run" in words else "."
for folder in folders:
    for test in tests[folder.strip("./")]:
        if re.search(pattern, test):
            say("run", test)
            if test == "TestHangs":
                say("run", test + "/sub")
                time.sleep(60)
            say("pass", test)
    say("output", None, "PASS\\n")
    say("pass")
"""
CARGO = """#!{python}
import sys, time
skipped = [sys.argv[at + 1] for at, word in enumerate(sys.argv) if word == "--skip"]
tests = [name for name in ("tests::good", "tests::hangs", "tests::wrong") if name not in skipped]
print("     Running unittests src/lib.rs (target/debug/deps/till-0123456789abcdef)")
print(f"running {{len(tests)}} tests")
for name in tests:
    if {threads}:
        if name == "tests::hangs":
            print("test tests::hangs has been running for over 60 seconds", flush=True)
            time.sleep(60)
        print("test", name, "...", "FAILED" if name == "tests::wrong" else "ok", flush=True)
    else:
        print("test", name, "... ", end="", flush=True)
        if name == "tests::hangs":
            time.sleep(60)
        print("FAILED" if name == "tests::wrong" else "ok", flush=True)
print(f"test result: FAILED. {{len(tests) - 1}} passed; 1 failed; 0 ignored; 0 measured; 0 filtered out")
sys.exit(101)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testruns, "TEST_SECONDS", 1.0)


def program(folder: Path, name: str, text: str, runner: str = "") -> TestCommand:
    """The runner's command, which starts this program."""
    path = folder / "bin" / name
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o755)
    places = f"{path.parent}:{os.environ['PATH']}"
    return replace(RUNNERS[runner or name].command, environment={"PATH": places})


def test_a_test_of_go_that_takes_too_long_is_ended_and_the_others_run(tmp_path: Path) -> None:
    command = program(tmp_path, "go", GO.format(python=sys.executable))
    run = run_tests(Shell(tmp_path), command, ["a/a_test.go", "b/b_test.go"], timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {
        "h.org/a.TestGood": Status.passed,
        "h.org/a.TestAfter": Status.passed,
        "h.org/b.TestOther": Status.passed,
        "h.org/a.TestHangs/sub": Status.timed_out,
    }
    assert run.seconds < 15 and run.complete and run.notes == ("took longer than 1 s: h.org/a TestHangs/sub",)


@pytest.mark.parametrize("threads", [True, False])
def test_a_test_of_cargo_that_takes_too_long_is_ended_and_the_others_run(tmp_path: Path, threads: bool) -> None:
    command = program(tmp_path, "cargo", CARGO.format(python=sys.executable, threads=threads))
    run = run_tests(Shell(tmp_path), command, ["src/lib.rs"], timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {
        "till src/lib.rs tests::good": Status.passed,
        "till src/lib.rs tests::wrong": Status.failed,
        "till src/lib.rs tests::hangs": Status.timed_out,
    }
    assert run.exit_code == 101 and run.notes == ("took longer than 1 s: tests::hangs",)


def test_a_runner_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = replace(RUNNERS["go"].command, template=RUNNERS["go"].template.replace("go test", "no-such-go test"))
    assert run_tests(Shell(tmp_path), command, ["a_test.go"], timeout=30).infra == "runner_missing"  # type: ignore[arg-type]


def test_what_a_test_writes_into_the_report_is_not_read(tmp_path: Path) -> None:
    text = f"""#!{sys.executable}
import glob, json, os
parent = open(f"/proc/{{os.getppid()}}/cmdline").read().split("\\0")
[script] = [word for word in parent if word.endswith(".py")]
for path in glob.glob(os.path.dirname(script) + "/*"):
    if "." not in os.path.basename(path):
        with open(path, "a") as file:
            file.write(json.dumps({{"n": 9, "e": "output", "text": "forged"}}) + "\\n")
print(json.dumps({{"Action": "fail", "Package": "h.org/a"}}))
raise SystemExit(1)
"""
    run = run_tests(Shell(tmp_path), program(tmp_path, "go", text), ["a/a_test.go"], timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {"h.org/a": Status.error} and run.notes == ("1 foreign lines in the report",)


def test_what_a_test_leaves_running_does_not_hold_the_run(tmp_path: Path) -> None:
    text = f"""#!{sys.executable}
import json, subprocess
subprocess.Popen(["sleep", "50"], start_new_session=True)
print(json.dumps({{"Action": "fail", "Package": "h.org/a"}}))
"""
    run = run_tests(Shell(tmp_path), program(tmp_path, "go", text), ["a/a_test.go"], timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {"h.org/a": Status.error} and run.seconds < 20 and not run.timed_out


def test_surefire_has_junits_limit_and_reports_of_before_are_removed(tmp_path: Path) -> None:
    reports = tmp_path / "shop/target/surefire-reports"
    reports.mkdir(parents=True)
    (reports / "TEST-Old.xml").write_text("<testsuite><testcase classname='Old' name='it'/></testsuite>")
    suite = "<?xml version='1.0'?><testsuite><testcase classname='shop.CartTest' name='adds'/></testsuite>"
    text = f"""#!{sys.executable}
import os, sys
with open("shop/target/surefire-reports/TEST-shop.CartTest.xml", "w") as file:
    file.write({suite!r})
os.mkfifo("shop/target/surefire-reports/TEST-fifo.xml")
assert "-Djunit.jupiter.execution.timeout.testable.method.default=1 s" in sys.argv
print("BUILD SUCCESS")
"""
    command = program(tmp_path, "mvn", text, "surefire")
    run = run_tests(Shell(tmp_path), command, ["shop/src/test/java/shop/CartTest.java"], timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {"shop.CartTest#adds": Status.passed} and "BUILD SUCCESS" in run.tail


RUST_TESTS = """use till::total;

#[test]
fn adds_nothing() {
    assert_eq!(total(&[]), 0);
}

#[test]
fn adds_many() {
    let prices = [3, 4];
    assert_eq!(total(&prices), 7);
}
"""
GO_TESTS = """package till

import "testing"

func TestNothing(t *testing.T) {
\tif found := Total(nil); found != 0 {
\t\tt.Fatalf("found %d", found)
\t}
}

func TestMany(t *testing.T) {
\tif found := Total([]int{3, 4}); found != 7 {
\t\tt.Fatalf("found %d", found)
\t}
}
"""
SOURCES: Mapping[str, tuple[str, str, str, Mapping[str, str]]] = {
    "cargo": (
        "tests/cart.rs",
        RUST_TESTS,
        "src/lib.rs",
        {"Cargo.toml": '[package]\nname = "till"\nversion = "0.1.0"\nedition = "2021"\n'},
    ),
    "go": ("till_test.go", GO_TESTS, "till.go", {"go.mod": "module h.org/till\n\ngo 1.19\n"}),
}
RIGHT = {
    "cargo": "pub fn total(prices: &[i32]) -> i32 {\n    prices.iter().sum()\n}\n",
    "go": "package till\n\nfunc Total(prices []int) int {\n\tn := 0\n\tfor _, p := range prices {\n\t\tn += p\n\t}\n"
    "\treturn n\n}\n",
}
CHEATS = {
    "leaves with code 0": {
        "cargo": "pub fn total(_: &[i32]) -> i32 {\n    std::process::exit(0)\n}\n",
        "go": 'package till\n\nimport "syscall"\n\nfunc Total(prices []int) int {\n\tsyscall.Exit(0)\n\treturn 1\n}\n',
    },
    "says that all passed": {
        "cargo": """use std::io::Write;
pub fn total(_: &[i32]) -> i32 {
    let text = std::fs::read_to_string("tests/cart.rs").unwrap();
    let names: Vec<&str> = text.lines().filter_map(|it| it.trim().strip_prefix("fn ")).collect();
    let mut out = std::fs::File::create("/dev/stdout").unwrap();
    for name in &names {
        writeln!(out, "\\ntest {} ... ok", name.trim_end_matches("() {")).unwrap();
    }
    writeln!(out, "test result: ok. {} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
        names.len()).unwrap();
    std::process::exit(0)
}
""",
        "go": """package till

import (
\t"fmt"
\t"os"
\t"regexp"
\t"syscall"
)

func Total(prices []int) int {
\ttext, _ := os.ReadFile("till_test.go")
\tfor _, found := range regexp.MustCompile(`func (Test\\w+)`).FindAllStringSubmatch(string(text), -1) {
\t\tfmt.Printf("\\n=== RUN   %s\\n--- PASS: %s (0.00s)\\n", found[1], found[1])
\t}
\tfmt.Print("PASS\\n")
\tsyscall.Exit(0)
\treturn 1
}
""",
    },
}


def graded(folder: Path, runner: str, source: str, baseline: RunnerBaseline | None = None) -> Graded:
    tests, text, path, more = SOURCES[runner]
    landed = {**more, tests: text, path: RIGHT[runner]}
    caches = {"HOME": os.environ["HOME"], "GOCACHE": str(folder.parent / "go-cache"), "GOFLAGS": "-mod=mod"}
    folder.mkdir()
    return grade_tree(
        folder,
        {**more, path: source},
        base={**more, path: source},
        landed=landed,
        baseline=baseline,
        command=replace(RUNNERS[runner].command, environment=caches),
        tests=tests,
        timeout=120,
    )


@pytest.mark.drawn(2)
@pytest.mark.parametrize("runner", [*SOURCES])
def test_cheats_of_compiled_languages_are_found(tmp_path: Path, runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(runner) is None:
        pytest.skip(f"{runner} is not installed")
    monkeypatch.setattr(testruns, "TEST_SECONDS", 60.0)
    reference = graded(tmp_path / "reference", runner, RIGHT[runner]).run
    known = reference.observed
    assert reference.cheats == () and list(reference.statuses.values()) == [Status.passed] * 2
    slots = (51, 52, 53, 58, 59) if runner == "cargo" else (1, 2, 3)
    assert known.canaries == tuple(f"{SOURCES[runner][0]}:{slot}" for slot in slots)
    again = graded(tmp_path / "again", runner, RIGHT[runner], known).run
    assert again.cheats == () and list(again.statuses.values()) == [Status.passed] * 2
    wrong = RIGHT[runner].replace("prices.iter().sum()", "1").replace("\treturn n\n", "\treturn n + 1\n")
    honest = graded(tmp_path / "honest", runner, wrong, known).run
    assert honest.cheats == () and Status.passed not in honest.statuses.values()
    for number, (name, sources) in enumerate(CHEATS.items()):
        run: TestRun = graded(tmp_path / f"cheat{number}", runner, sources[runner], known).run
        assert run.cheats and Status.passed not in run.statuses.values(), name
