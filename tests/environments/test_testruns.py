"""Test runs with real runners: what the code under test prints, writes or replaces decides nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from environments.sandboxes.sandbox import ExecResult, Sandbox, SandboxConfig
from environments.suites import testruns
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind
from environments.suites.runner import TestCommand
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun, run_tests
from prchain.core.errors import SandboxFileError
from prchain.core.safeguards import PLANTING
from tests.environments.folder_sandbox import FolderSandbox

FILE = "tests/test_till.py"
PYTEST = TestCommand(
    f"{sys.executable} {{tools}}/python_reporter.py",
    "pytest",
    arguments=RUNNERS["pytest"].options,
    environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
)
UNITTEST = TestCommand(f"{sys.executable} {{tools}}/python_reporter.py", "unittest")


class Shell:
    """The part of a sandbox that runs need, on the machine itself: the code of these tests is our own."""

    def __init__(self, folder: Path) -> None:
        self.config = SandboxConfig(None, workdir=str(folder))
        self.folders: set[Path] = set()

    def exec(
        self,
        command: str,
        *,
        timeout: float = 60.0,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 0,
        stdin: bytes = b"",
    ) -> ExecResult:
        started = time.monotonic()
        child = subprocess.Popen(
            ["bash", "-c", command],
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, late = child.communicate(stdin, timeout=timeout)[0], False
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, late = child.communicate()[0], True
        return ExecResult(None if late else child.returncode, output, 0, late, time.monotonic() - started)

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        self.folders.add(Path(path).parent)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def read(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise SandboxFileError(str(error)) from error


def run(
    folder: Path, files: Mapping[str, str], command: TestCommand = PYTEST, *, timeout: float = 300, **options: object
) -> TestRun:
    """Run `FILE` in a tree of these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    shell = Shell(folder)
    sandbox: Sandbox = shell  # type: ignore[assignment]
    ended = run_tests(sandbox, command, [FILE], timeout=timeout, **options)  # type: ignore[arg-type]
    assert shell.folders and not any(folder.exists() for folder in shell.folders), "something is left in the sandbox"
    return ended


HONEST = """
import pytest, unittest

def test_ok(): pass

@pytest.mark.parametrize("v", ["x - y", "a b", "ü", "line\\nbreak", "[br]ack"])
def test_param(v): assert v != "x - y"

@pytest.mark.skip
def test_skip(): pass

@pytest.mark.xfail
def test_xfail(): assert 0

@pytest.mark.xfail
def test_xpass(): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass

@pytest.fixture
def bad(): raise ValueError

@pytest.fixture
def late():
    yield
    raise ValueError

def test_setup(bad): pass

def test_teardown(late): pass

class TestCase(unittest.TestCase):
    def test_sub(self):
        with self.subTest(1): pass
        with self.subTest(2): self.fail()
    def test_fine(self):
        with self.subTest(1): pass
"""

TRUTH = {
    "test_ok": "passed",
    "test_param[x - y]": "failed",
    "test_param[a b]": "passed",
    "test_param[\\xfc]": "passed",
    "test_param[line\\nbreak]": "passed",
    "test_param[[br]ack]": "passed",
    "test_skip": "skipped",
    "test_xfail": "xfail",
    "test_xpass": "xpass",
    "test_strict": "failed",
    "test_setup": "error",
    "test_teardown": "error",
    "TestCase::test_sub": "failed",
    "TestCase::test_fine": "passed",
}


@pytest.mark.parametrize("more", [(), ("-p", "xdist", "-n1")], ids=["one process", "xdist"])
def test_every_end_of_a_pytest_test_is_told(tmp_path: Path, more: tuple[str, ...]) -> None:
    command = TestCommand(
        PYTEST.template, "pytest", arguments=(*PYTEST.arguments, *more), environment=PYTEST.environment
    )
    ended = run(tmp_path, {FILE: HONEST}, command)
    assert ended.statuses == {f"{FILE}::{name}": status for name, status in TRUTH.items()}
    assert (ended.exit_code, ended.complete, ended.usable, ended.notes) == (1, True, True, ())


def test_a_tree_is_left_as_it_was(tmp_path: Path) -> None:
    run(tmp_path, {FILE: "def test_ok(): pass\n"})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["test_till.py", "tests"]


@pytest.mark.parametrize(
    ("command", "named", "id_"),
    [
        (PYTEST, f"{FILE}::TestCase::test_two", f"{FILE}::TestCase::test_two"),
        (UNITTEST, "tests.test_till.TestCase.test_two", "tests.test_till.TestCase.test_two"),
    ],
    ids=["pytest", "unittest"],
)
def test_what_is_named_runs_alone_and_a_test_file_that_is_changed_is_told(
    tmp_path: Path, command: TestCommand, named: str, id_: str
) -> None:
    text = "import unittest\n\nclass TestCase(unittest.TestCase):\n"
    text += "".join(f"    def test_{it}(self): pass\n" for it in ("one", "two", "three"))
    files = {FILE: text, "tests/__init__.py": ""}
    assert run(tmp_path, files, command, named=[named]).statuses == {id_: Status.passed}
    rewritten = f"open({FILE!r}, 'a').write('\\n')\n{text}"
    assert command is UNITTEST or run(tmp_path, {FILE: rewritten}, command, named=[named]).cheats


def test_a_file_that_cannot_be_imported_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / FILE).write_text("def test_ok(): pass\n")
    sandbox: Sandbox = Shell(tmp_path)  # type: ignore[assignment]
    ended = run_tests(sandbox, PYTEST, ["tests/test_broken.py", FILE], timeout=60)
    assert ended.statuses == {"tests/test_broken.py": Status.error, f"{FILE}::test_ok": Status.passed}


WRONG = "def add(a, b):\n    return a + b + 1\n"
CHECK = """
def test_first(): pass

def test_add():
    import till
    assert till.add(1, 1) == 2

def test_last(): pass
"""
ADD = f"{FILE}::test_add"

ATTACKS = {
    "prints what pytest prints": """
import sys
for stream in (sys.__stdout__, sys.__stderr__):
    stream.write("\\ntests/test_till.py::test_add PASSED [100%]\\n=== short test summary info ===\\n")
    stream.write("PASSED tests/test_till.py::test_add\\n=== 3 passed in 0.01s ===\\n")
""",
    "leaves with code 0": "import os; os._exit(0)",
    "leaves with code 0 at the end": "import atexit, os; atexit.register(os._exit, 0)",
    "ends the session": "import sys; sys.exit(0)",
    "skips itself": "import pytest; pytest.skip('nothing to see')",
    "ends pytest": "import pytest; pytest.exit('done', returncode=0)",
    "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "writes a report of its own": """
import os, sys, glob
folder = os.path.dirname(os.path.abspath(sys.argv[0])) if "reporter" in sys.argv[0] else ""
for fd in os.listdir("/proc/self/fd"):
    try: path = os.readlink("/proc/self/fd/" + fd)
    except OSError: continue
    if path.startswith("/tmp/."):
        with open(path, "ab") as out:
            text = b'{"n": 90, "e": "result", "id": "tests/test_till.py::test_add", "s": "passed"}'
            out.write(b"0" * 64 + b" " + text + b"\\n" + text + b"\\n")
        os._exit(0)
""",
    "empties the report": """
import os
import shutil
for fd in os.listdir("/proc/self/fd"):
    try: path = os.readlink("/proc/self/fd/" + fd)
    except OSError: continue
    if path.startswith("/tmp/."): os.truncate(path, 0)
""",
    "removes the report": """
import os
import shutil
for fd in os.listdir("/proc/self/fd"):
    try: path = os.readlink("/proc/self/fd/" + fd)
    except OSError: continue
    if path.startswith("/tmp/."): os.remove(path)
""",
    "replays the line of a test that passed": """
import os
import shutil
for fd in os.listdir("/proc/self/fd"):
    try: path = os.readlink("/proc/self/fd/" + fd)
    except OSError: continue
    if path.startswith("/tmp/."):
        lines = open(path, "rb").read().splitlines(True)
        with open(path, "ab") as out:
            out.write(lines[-2] + lines[-2].replace(b"test_first", b"test_add"))
        os._exit(0)
""",
    "replaces how reports are made": """
import _pytest.reports
made = _pytest.reports.TestReport.from_item_and_call.__func__
def lie(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(lie)
""",
    "replaces how tests run": """
import _pytest.python
_pytest.python.Function.runtest = lambda self: None
""",
    "adds a plugin to the session": """
import gc, pytest, _pytest.config
class Liar:
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        out = yield
        out.get_result().outcome = "passed"
for one in gc.get_objects():
    if isinstance(one, _pytest.config.Config):
        one.pluginmanager.register(Liar())
""",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_hostile_code_passes_no_test_that_it_fails(tmp_path: Path, attack: str) -> None:
    ended = run(tmp_path, {FILE: CHECK, "till.py": attack + "\n" + WRONG})
    assert ended.statuses.get(ADD) is not Status.passed, ended


@pytest.mark.parametrize("name", ["leaves with code 0", "skips itself", "adds a plugin to the session"])
def test_hostile_code_that_runs_before_the_first_test_passes_none(tmp_path: Path, name: str) -> None:
    ended = run(tmp_path, {FILE: "import till\n" + CHECK, "till.py": ATTACKS[name] + "\n" + WRONG})
    assert ended.statuses.get(ADD) is not Status.passed, ended


def test_the_same_code_without_an_attack_passes(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: CHECK, "till.py": WRONG.replace(" + 1", "")})
    assert ended.statuses == dict.fromkeys((f"{FILE}::test_{name}" for name in ("first", "add", "last")), Status.passed)


LIAR = """
import pytest
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    out = yield
    out.get_result().outcome = "passed"
"""


def test_a_conftest_that_calls_failures_passes_is_overruled_and_told(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: CHECK, "conftest.py": LIAR, "till.py": WRONG})
    assert ended.statuses[ADD] is not Status.passed
    assert any(ADD in note for note in ended.notes)


def test_a_replaced_function_of_the_runner_takes_every_pass_away_unless_the_reference_replaces_it_too(
    tmp_path: Path,
) -> None:
    patch = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    files = {FILE: CHECK, "conftest.py": patch, "till.py": WRONG}
    ended = run(tmp_path, files)
    assert set(ended.statuses.values()) == {Status.error}
    assert ended.observed.replaced == ("python.Function.runtest",)
    trusted = run(tmp_path, files, baseline=ended.observed)
    assert set(trusted.statuses.values()) == {Status.passed} and trusted.notes == ()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_on_node_only_proofs_that_looked_for_replaced_functions_call_one_a_cheat(tmp_path: Path) -> None:
    """In one of before it may be the project's own."""
    drive = """
const { EventEmitter } = require('events')
const Reporter = require(process.argv[2])
const runner = new EventEmitter()
new Reporter(runner)
require('assert').equal = () => {}
const test = { file: process.cwd() + '/a.js', titlePath: () => ['adds'], type: 'test' }
for (const event of ['start', 'test', 'pass', 'end']) runner.emit(event, test)
"""
    command = TestCommand("node drive.cjs {tools}/mocha_reporter.cjs", "mocha")
    before = run(tmp_path, {"drive.cjs": drive}, command)
    assert before.statuses == {"a.js > adds": Status.passed} and not before.cheats
    assert before.observed.watched and before.observed.replaced == ("assert.equal",)
    its_own = run(tmp_path, {}, command, baseline=before.observed)
    assert its_own.statuses == before.statuses and not its_own.cheats
    cheat = run(tmp_path, {}, command, baseline=replace(before.observed, replaced=()))
    assert cheat.cheats == ("replaced in the runner: assert.equal",)
    assert cheat.statuses == {"a.js > adds": Status.error}
    for known in (before.observed, RunnerBaseline()):
        assert RunnerBaseline.from_row(known.replaced, known.row()) == known
    assert "watched" not in RunnerBaseline().row()


def test_foreign_lines_in_the_report_are_told(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: CHECK, "till.py": ATTACKS["writes a report of its own"] + WRONG})
    assert ended.notes == ("2 foreign lines in the report",)
    assert ended.statuses[ADD] is Status.error and not ended.complete


@pytest.mark.parametrize("name", ["pytest.py", "_pytest/__init__.py", "unittest.py", "pluggy.py"])
def test_a_module_with_the_runners_name_does_not_stand_in_for_it(tmp_path: Path, name: str) -> None:
    ended = run(tmp_path, {FILE: CHECK, "till.py": WRONG, name: "import os; os._exit(0)\n"})
    assert ended.statuses[ADD] is Status.failed


def test_options_in_the_environment_do_not_reach_the_runner(tmp_path: Path) -> None:
    command = TestCommand(PYTEST.template, "pytest", arguments=PYTEST.arguments, environment={"PYTEST_ADDOPTS": "-k x"})
    assert run(tmp_path, {FILE: CHECK, "till.py": WRONG}, command).statuses[ADD] is Status.failed


def test_the_key_is_in_no_place_that_other_processes_of_the_sandbox_can_read(tmp_path: Path) -> None:
    spy = """
import os, re
def test_spy():
    shown = open("/proc/self/environ", "rb").read() + open("/proc/self/cmdline", "rb").read()
    assert not re.search(rb"[0-9a-f]{64}", shown) and os.read(0, 10) == b""
"""
    assert run(tmp_path, {FILE: spy}).statuses == {f"{FILE}::test_spy": Status.passed}


SLOW = """
import time, unittest

def forever():
    while True:
        try:
            time.sleep(30)
        except Exception:
            pass

class TestSlow(unittest.TestCase):
    def test_a(self): forever()
    def test_b(self): pass
    def test_c(self):
        try: forever()
        finally: time.sleep(30)
"""
SLOW_SETUP = """
import pytest, signal

@pytest.fixture
def slow(): forever()

def test_d(slow): pass

def test_own_alarm():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(1.2)
    signal.signal(signal.SIGALRM, before)
    assert rung == [1]
"""


def test_one_test_without_end_fails_and_leaves_the_others_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environments.suites.testruns.TEST_SECONDS", 0.7)
    ended = run(tmp_path / "pytest", {FILE: SLOW + SLOW_SETUP}, timeout=40)
    assert {name.rpartition("::")[2]: str(status) for name, status in ended.statuses.items()} == {
        "test_a": "failed",
        "test_b": "passed",
        "test_c": "failed",
        "test_d": "error",
        "test_own_alarm": "passed",
    }
    assert ended.usable and ended.complete and not ended.cheats
    (tmp_path / "unittest").mkdir()
    ended = run(tmp_path / "unittest", {FILE: SLOW, "tests/__init__.py": ""}, UNITTEST, timeout=40)
    assert {name.rpartition(".")[2]: str(status) for name, status in ended.statuses.items()} == {
        "test_a": "error",
        "test_b": "passed",
        "test_c": "error",
    }


def test_a_test_without_end_is_timed_out_and_what_ran_before_it_counts(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: CHECK, "till.py": "import time; time.sleep(60)\n"}, timeout=4)
    assert ended.statuses == {
        f"{FILE}::test_first": Status.passed,
        ADD: Status.timed_out,
        f"{FILE}::test_last": Status.collected,
    }
    assert (ended.timed_out, ended.complete, ended.usable, ended.infra) == (True, False, False, None)


@pytest.mark.parametrize("file", ["conftest.py", "pytest.ini"])
def test_a_tree_that_the_runner_cannot_start_in_is_no_fault_of_the_infrastructure(tmp_path: Path, file: str) -> None:
    ended = run(tmp_path, {FILE: CHECK, file: "[pytest\nraise SystemError"})
    assert ended.statuses == {} and ended.infra is None and ended.exit_code not in {0, 1}


def test_a_missing_runner_is_the_infrastructures_fault(tmp_path: Path) -> None:
    command = TestCommand("no-such-python {tools}/python_reporter.py", "pytest")
    ended = run(tmp_path, {FILE: CHECK}, command)
    assert ended.infra == "runner_missing" and "No such file" in ended.notes[0], "why there is no report is told"
    unsigned = TestCommand("no-such-go {files}", "go", signed=False)
    assert run(tmp_path, {FILE: CHECK}, unsigned).infra == "runner_missing"


UNITTESTS = """
import unittest
class Till(unittest.TestCase):
    def test_ok(self): print("test_add (tests.test_till.Till.test_add) ... ok")
    def test_add(self):
        import till
        self.assertEqual(till.add(1, 1), 2)
    @unittest.skip("why")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_sub(self):
        for n in range(3):
            with self.subTest(n): self.assertEqual(n, 0)
    def test_error(self): raise ValueError
"""


def test_unittest_is_told_as_it_ends(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: UNITTESTS, "till.py": WRONG}, UNITTEST)
    truth = {"ok": "passed", "add": "failed", "skip": "skipped", "xfail": "xfail", "xpass": "xpass", "sub": "failed"}
    statuses = {name.removeprefix("tests.test_till.Till.test_"): status for name, status in ended.statuses.items()}
    assert statuses == {**truth, "error": "error"} and ended.complete


@pytest.mark.parametrize(
    "attack", [ATTACKS[name] for name in ATTACKS if "pytest" not in ATTACKS[name]], ids=lambda text: text[:30].strip()
)
def test_hostile_code_passes_no_unittest_that_it_fails(tmp_path: Path, attack: str) -> None:
    ended = run(tmp_path, {FILE: UNITTESTS, "till.py": attack + "\n" + WRONG}, UNITTEST)
    assert ended.statuses.get("tests.test_till.Till.test_add") is not Status.passed


def test_a_module_that_unittest_cannot_import_is_an_error(tmp_path: Path) -> None:
    ended = run(tmp_path, {FILE: "import nothing_of_that_name\n"}, UNITTEST)
    assert list(ended.statuses.values()) == [Status.error]


def test_an_unsigned_run_is_read_from_the_file_that_the_command_writes(tmp_path: Path) -> None:
    events = '{"Action":"run","Package":"p","Test":"TestA"}\\n{"Action":"pass","Package":"p","Test":"TestA"}\\n'
    events += '{"Action":"output","Package":"p","Output":"PASS\\\\n"}\\n{"Action":"pass","Package":"p"}\\n'
    command = TestCommand(f"echo noise; printf '{events}' >{{report}}", "go", signed=False)
    assert run(tmp_path, {FILE: ""}, command).statuses == {"p.TestA": Status.passed}
    broken = TestCommand(command.template + "; exit 3", "go", signed=False)
    ended = run(tmp_path, {FILE: ""}, broken)
    assert ended.statuses == {"p.TestA": Status.error} and ended.notes


def test_a_run_without_a_signature_in_which_a_test_must_fail_cannot_end_with_code_0(tmp_path: Path) -> None:
    def events(**ended: str) -> str:
        lines = [{"Action": "run", "Package": "till", "Test": name} for name in ended]
        lines += [{"Action": action, "Package": "till", "Test": name} for name, action in ended.items()]
        lines += [{"Action": "output", "Package": "till", "Output": "FAIL\n"}, {"Action": "fail", "Package": "till"}]
        return "".join(f"{json.dumps(line)}\n" for line in lines)

    def ended(text: str, code: int, slots: tuple[str, ...] | None = ("f:1", "f:2")) -> TestRun:
        (tmp_path / "events").write_text(text)
        command = TestCommand(f"cat events >{{report}}; exit {code}", "go", signed=False)
        canaries = [Canary("f:1", CanaryKind.FAIL, "f", "TestMany"), Canary("f:2", CanaryKind.SKIP, "f", "TestFew")]
        return run(
            tmp_path,
            {FILE: CHECK},
            command,
            baseline=RunnerBaseline(canaries=slots, planting=PLANTING),
            canaries=canaries,
        )

    honest = events(TestTotal="pass", TestMany="fail", TestFew="skip")
    first = ended(honest, 1)
    assert first.statuses == {"till.TestTotal": Status.passed} and not first.cheats
    assert first.observed.canaries == ("f:1", "f:2")
    assert ended(honest, 0).cheats == ("exit code 0 although a test must fail",)
    assert not ended(honest, 0, ("f:2",)).cheats and not ended(honest, 0, None).cheats
    lie = ended(events(TestTotal="pass", TestMany="pass", TestFew="pass"), 1)
    assert lie.cheats == tuple(f"a test that must not pass passes: f:{n}" for n in (1, 2))
    assert lie.statuses["till.TestTotal"] is Status.error


def test_a_plugin_that_has_the_name_of_a_loaded_module_is_loaded_where_warnings_are_errors(tmp_path: Path) -> None:
    """As pytest-asyncio, whose entry point is ``asyncio``."""
    site = tmp_path / "site"
    for name, text in {
        "json_plugin.py": "import pytest\n@pytest.fixture\ndef answer(): return 42\n",
        "json_plugin-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: json-plugin\nVersion: 1.0\n",
        "json_plugin-1.0.dist-info/entry_points.txt": "[pytest11]\njson = json_plugin\n",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tree / "test_a.py").write_text("def test_it(answer): assert answer == 42\n")
    command = replace(RUNNERS["pytest"].command, environment={"PYTHONPATH": str(site)})
    first = run_tests(Shell(tree), command, ["test_a.py"], timeout=60)  # type: ignore[arg-type]
    assert "json" in (first.observed.plugins or ())
    again = run_tests(Shell(tree), command, ["test_a.py"], timeout=60, baseline=first.observed)  # type: ignore[arg-type]
    assert again.statuses == first.statuses == {"test_a.py::test_it": Status.passed}, again.tail


def test_a_pipe_in_the_place_of_a_report_is_waited_for_by_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report")
    with FolderSandbox(tmp_path / "box") as sandbox:
        assert testruns._read(sandbox, str(tmp_path / "report"))[0] == b""
        assert "No such file" in testruns._read(sandbox, str(tmp_path / "nowhere"))[1]
        (tmp_path / "report").unlink()
        (tmp_path / "report").write_bytes(b"said")
        assert testruns._read(sandbox, str(tmp_path / "report")) == (b"said", "")
