"""The scripted sandbox: answers in order of the list, quotes what it does not know, keeps files."""

from __future__ import annotations

import re
from typing import Any

import pytest

from environments.sandboxes.sandbox import ExecResult, Sandbox
from prchain.core.errors import SandboxFileError, SandboxLost, SnapshotUnknown
from tests.environments.conformance import members, tar_of
from tests.environments.scripted_sandbox import ScriptedResult, ScriptedSandbox

OK = ExecResult(0, b"ok")
FAILED = ExecResult(1, b"no")


def test_the_first_unused_line_that_fits_answers() -> None:
    lines: list[Any] = [
        ("git status", OK),
        (re.compile("^pytest"), FAILED),
        ScriptedResult(lambda command: "ls" in command, OK, repeat=True),
    ]
    with ScriptedSandbox(lines) as sandbox:
        assert isinstance(sandbox, Sandbox)
        assert [sandbox.exec(command) for command in ("pytest -q", "ls", "git status", "ls -l")] == [FAILED, OK, OK, OK]
        assert sandbox.unused == 0
        assert sandbox.asked == ["pytest -q", "ls", "git status", "ls -l"]
        with pytest.raises(AssertionError, match="'pytest again'"):
            sandbox.exec("pytest again")


def test_a_line_can_fail() -> None:
    with ScriptedSandbox([("x", SandboxLost("planted"))]) as sandbox, pytest.raises(SandboxLost, match="planted"):
        sandbox.exec("x")


def test_files_snapshots_and_branches() -> None:
    with ScriptedSandbox([("x", OK)], files={"/t/a": b"1"}) as sandbox:
        first = sandbox.snapshot()
        sandbox.write("/t/b", b"2")
        sandbox.put("/t/sub", tar_of({"c": b"3"}))
        assert members(sandbox.get("/t")) == {"t/a": b"1", "t/b": b"2", "t/sub/c": b"3"}
        with sandbox.branch(first) as other:
            assert other.exec("x") == OK and sandbox.unused == 0
            with pytest.raises(SandboxFileError):
                other.read("/t/b")
        sandbox.restore(first)
        for wrong in (lambda: sandbox.read("/t/b"), lambda: sandbox.get("/t/b"), lambda: sandbox.put("/", b"no tar")):
            with pytest.raises(SandboxFileError):
                wrong()
        with pytest.raises(SnapshotUnknown):
            sandbox.restore("none")


def test_a_sandbox_that_does_not_run_says_so() -> None:
    sandbox = ScriptedSandbox([("x", OK)])
    with pytest.raises(SandboxLost, match="not started"):
        sandbox.exec("x")
    sandbox.start()
    sandbox.close()
    with pytest.raises(SandboxLost, match="closed"):
        sandbox.start()
