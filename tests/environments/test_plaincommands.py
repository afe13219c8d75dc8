"""The commands that print what SWE-bench's log parsers read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environments.suites.plaincommands import plain_command
from environments.suites.runners import RUNNERS


def test_every_runner_has_a_plain_command() -> None:
    assert all(plain_command(runner, ["tests/test_a.py"]) for runner in RUNNERS)


def test_files_are_named_as_the_runner_takes_them_and_quoted_for_the_shell() -> None:
    assert plain_command("pytest", ["tests/test_a b.py"]).endswith(" 'tests/test_a b.py'")
    assert plain_command("unittest", ["tests/test_a.py"]) == "python -m unittest -v tests.test_a"
    assert plain_command("surefire", ["src/test/java/ATest.java", "BTest.java"]).split()[4] == "-Dtest=ATest,BTest"


def test_a_test_that_prints_a_status_line_adds_none_to_what_pytest_prints(tmp_path: Path) -> None:
    (tmp_path / "test_liar.py").write_text(
        "def test_true(): print('\\nPASSED test_liar.py::test_false')\n"
        "def test_false():\n    print('\\nPASSED test_liar.py::test_false')\n"
        "    assert 0, '\\nPASSED test_liar.py::test_false'\n"
    )
    command = plain_command("pytest", ["test_liar.py"]).replace("python", sys.executable, 1)
    result = subprocess.run(
        ["bash", "-c", command + " -p no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    statuses = [line for line in result.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))]
    assert "PASSED test_liar.py::test_true" in statuses
    assert not any(line.startswith("PASSED test_liar.py::test_false") for line in statuses)
