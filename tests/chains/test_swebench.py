"""Stages as SWE-bench instances: what its harness reads, in the form in which it reads it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chains.tasks.record import CostRecord, NeedRecord, RepositoryRecord, StageRecord, TaskRecord
from chains.tasks.swebench import END, START, HarnessTests, eval_script, harness_ids, instance
from prchain.core.errors import UsageError

TEST_PATCH = """diff --git a/tests/test_cart.py b/tests/test_cart.py
index 1111111..2222222 100644
--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -1 +1,2 @@
 def test_ok(): pass
+def test_new(): import cart; assert cart.NEW
diff --git a/tests/test_more.py b/tests/test_more.py
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/tests/test_more.py
@@ -0,0 +1 @@
+def test_more(): pass
"""

STAGE = StageRecord(
    position=2,
    number=7,
    title="T",
    url="https://github.com/shop/till/pull/7",
    branch="main",
    base_sha="b" * 40,
    landed_sha="c" * 40,
    landed_at="2024-01-01T00:00:00Z",
    source_patch="diff --git a/cart.py b/cart.py\n",
    test_patch=TEST_PATCH,
    lossy=False,
    files=("cart.py",),
    test_files=("tests/test_cart.py", "tests/test_more.py"),
    outcome="ready",
    query="Do it.",
    interface=(NeedRecord(kind="constant", text="NEW", path="cart.py"),),
    unmet=(),
    verdict="solvable",
    needs_of="patch",
    evidence=None,
    findings=(),
)

TASK = TaskRecord(
    chain_id="0123456789abcdef0123",
    outcome="ready",
    language="python",
    licence="MIT",
    strategy="reference",
    score=1.0,
    selection="selected",
    repository=RepositoryRecord(host="github.com", name="shop/till", location=None),
    overview="All of it.",
    findings=(),
    interface_mode="appended",
    verdict="solvable",
    stages=(STAGE.model_copy(update={"position": 1}), STAGE),
    prompts={},
    cost=CostRecord(calls=0, tokens_in=0, tokens_out=0, usd=0.0),
    model=None,
    created="2024-01-01T00:00:00Z",
)

TESTS = HarnessTests(
    image="prchain/shop--till:1",
    runner="pytest",
    command="python -m pytest -rA tests/test_cart.py",
    f2p=("tests/test_cart.py::test_new",),
    p2p=("tests/test_cart.py::test_ok",),
)


def test_an_instance_has_what_the_harness_reads() -> None:
    row = instance(TASK, STAGE, TESTS)
    needed = {
        "instance_id",
        "image",
        "repo",
        "version",
        "FAIL_TO_PASS",
        "PASS_TO_PASS",
        "log_parser",
        "eval_type",
        "eval_script",
        "patch",
        "test_patch",
        "problem_statement",
        "hints_text",
        "created_at",
        "base_commit",
        "environment_setup_commit",
    }
    assert needed <= row.keys()
    assert row["instance_id"] == "shop__till-0123456789abcdef__s2"
    assert (row["image"], row["repo"]) == ("prchain/shop--till:1", "shop/till")
    assert (row["log_parser"], row["eval_type"]) == ("parse_log_pytest", "pass_and_fail")
    assert json.loads(row["FAIL_TO_PASS"]) == ["tests/test_cart.py::test_new"]
    assert json.loads(row["PASS_TO_PASS"]) == ["tests/test_cart.py::test_ok"]
    assert (row["problem_statement"], row["chain_position"], row["chain_length"]) == ("Do it.", 2, 2)
    assert json.loads(json.dumps(row)) == row


def test_the_test_command_stands_right_before_the_end_mark() -> None:
    lines = eval_script(STAGE, TESTS.command, ["source env"]).splitlines()
    assert lines[:4] == ["#!/bin/bash", "set -uxo pipefail", "cd /testbed", "source env"]
    end = next(n for n, line in enumerate(lines) if END in line)
    assert lines[end - 2 : end] == [f": '{START}'", TESTS.command]


@pytest.mark.parametrize("change", ["", "agent"])
def test_the_script_lays_the_reference_tests_over_whatever_stands_there(tmp_path: Path, change: str) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_cart.py").write_text("def test_ok(): pass\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e@e", "commit", "-qm", "base")
    if change:
        (tmp_path / "tests/test_cart.py").unlink()
        (tmp_path / "tests/test_more.py").mkdir()
        (tmp_path / "tests/test_more.py/x").write_text("in the way")
    script = eval_script(STAGE, "cat tests/test_cart.py tests/test_more.py").replace("/testbed", str(tmp_path))
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    output = ran.stdout + ran.stderr
    assert ran.returncode == 0, output
    assert "def test_new(): import cart; assert cart.NEW" in ran.stdout and "def test_more(): pass" in ran.stdout
    assert START in output and END in output
    assert (tmp_path / "tests/test_cart.py").read_text() == "def test_ok(): pass\n"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_deleted_and_moved_test_files_are_restored_by_their_old_names() -> None:
    patch = """diff --git a/tests/a b.py b/tests/c.py
similarity index 100%
rename from tests/a b.py
rename to tests/c.py
diff --git a/tests/gone.py b/tests/gone.py
deleted file mode 100644
index 1111111..0000000
--- a/tests/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
"""
    script = eval_script(STAGE.model_copy(update={"test_patch": patch}), "true")
    assert "git checkout HEAD -- 'tests/a b.py' tests/gone.py\n" in script and "rm -rf -- tests/c.py\n" in script


def test_a_stage_without_test_files_runs_its_command_all_the_same() -> None:
    script = eval_script(STAGE.model_copy(update={"test_patch": ""}), "pytest")
    assert "git apply" not in script and f"pytest\n: '{END}'" in script


def registry_name(runner: str, line: str) -> str | None:
    """What SWE-bench's parser takes for the test's name, restated from its log_parsers."""
    match runner:
        case "pytest":
            return line.split()[1]
        case "go":
            return found[2] if (found := re.match(r"^--- (PASS|FAIL|SKIP): (.+) \((.+)\)$", line.strip())) else None
        case "cargo":
            return found[1] if (found := re.match(r"^test\s+(\S+)\s+\.\.\.\s+(\w+)$", line.strip())) else None
        case "unittest":
            return line.rsplit(" ... ok", 1)[0]
        case _:
            found = re.match(r"^\s*(✓)\s(.+?)(?:\s\((\d+\s*m?s)\)|\s(\d+\s*m?s?))?$", line)
            return found[2] if found else None


@pytest.mark.parametrize(
    ("runner", "test", "line"),
    [
        ("pytest", "tests/t.py::test_a", "PASSED tests/t.py::test_a"),
        ("pytest", "tests/t.py::test_a[x y - z]", "PASSED tests/t.py::test_a[x y - z]"),
        ("go", "h.org/p/v2.TestA/one_two.5", "    --- PASS: TestA/one_two.5 (0.00s)"),
        ("go", "h.org/p.ExampleCart", "--- PASS: ExampleCart (0.00s)"),
        ("cargo", "till src/lib.rs tests::adds", "test tests::adds ... ok"),
        ("unittest", "tests.test_a.Till.test_ok", "test_ok (tests.test_a.Till.test_ok) ... ok"),
        ("jest", "t/a.test.js > cart é > adds up", "    ✓ adds up (3 ms)"),
        ("vitest", "v/a.test.js > cart é > adds > up", " ✓ v/a.test.js > cart é > adds > up 2ms"),
    ],
)
def test_ids_are_those_that_the_harness_reads_from_the_log(runner: str, test: str, line: str) -> None:
    assert harness_ids(runner, [test], [])[0] == [registry_name(runner, line)]


def test_tests_that_the_harness_takes_for_one_are_left_out_and_named() -> None:
    f2p, p2p, dropped = harness_ids(
        "pytest", ["t.py::a[x 1]", "t.py::b"], ["t.py::a[x 2]", "t.py::c[y 1]"], ["t.py::d"]
    )
    assert (f2p, p2p, dropped) == (["t.py::b"], ["t.py::c[y"], ["t.py::a[x 1]", "t.py::a[x 2]"])
    assert harness_ids("pytest", ["t.py::a[x 1]"], [], ["t.py::a[x 2]"]) == ([], [], ["t.py::a[x 1]"])
    doc = "till doc src/lib.rs - add (line 2)"
    assert harness_ids("cargo", [doc], []) == ([], [], [doc])


@pytest.mark.parametrize(
    ("stage", "tests", "words"),
    [
        ({"lossy": True}, {}, "no UTF-8"),
        ({}, {"runner": "surefire"}, "no log parser"),
        ({}, {"f2p": ()}, "no F2P test"),
        ({}, {"command": "true\nfalse"}, "one line"),
        ({}, {"command": f"echo '{END}'"}, "marks"),
        ({"test_patch": TEST_PATCH.replace("test_more(): pass", f"'{START}'")}, {}, "marks"),
        ({"test_patch": TEST_PATCH.replace("test_more(): pass", "'\0'")}, {}, "a NUL byte"),
    ],
)
def test_a_stage_that_cannot_be_expressed_is_refused(stage: dict[str, Any], tests: dict[str, Any], words: str) -> None:
    fields = {name: getattr(TESTS, name) for name in ("image", "runner", "command", "f2p", "p2p")}
    with pytest.raises(UsageError, match=words):
        instance(TASK, STAGE.model_copy(update=stage), HarnessTests(**{**fields, **tests}))
