"""The scripted sandbox: answers in order of the list, quotes what it does not know, keeps files."""

from __future__ import annotations

import re
from typing import Any

import pytest

from environments.sandboxes.sandbox import ExecResult, Sandbox
from environments.sandboxes.scripted import ScriptedResult, ScriptedSandbox
from prchain.errors import SandboxFileError, SandboxLost, SandboxScriptExhausted, SnapshotUnknown
from tests.environments.conformance import members, tar_of

OK = ExecResult(0, b"ok")
FAILED = ExecResult(1, b"no")


def test_the_first_unused_line_that_fits_answers() -> None:
    lines: list[Any] = [
        ("git status", OK),
        (re.compile("^pytest"), FAILED),
        ScriptedResult(lambda command: "ls" in command, OK, repeat=True),
    ]
    with ScriptedSandbox(lines) as box:
        assert isinstance(box, Sandbox)
        assert [box.exec(command) for command in ("pytest -q", "ls", "git status", "ls -l")] == [FAILED, OK, OK, OK]
        assert box.unused == 0
        assert box.asked == ["pytest -q", "ls", "git status", "ls -l"]
        with pytest.raises(SandboxScriptExhausted, match="'pytest again'"):
            box.exec("pytest again")


def test_a_line_can_fail() -> None:
    with ScriptedSandbox([("x", SandboxLost("planted"))]) as box, pytest.raises(SandboxLost, match="planted"):
        box.exec("x")


def test_files_snapshots_and_branches() -> None:
    with ScriptedSandbox([("x", OK)], files={"/t/a": b"1"}) as box:
        first = box.snapshot()
        box.write("/t/b", b"2")
        box.put("/t/sub", tar_of({"c": b"3"}))
        assert members(box.get("/t")) == {"t/a": b"1", "t/b": b"2", "t/sub/c": b"3"}
        with box.branch(first) as other:
            assert other.exec("x") == OK and box.unused == 0
            with pytest.raises(SandboxFileError):
                other.read("/t/b")
        box.restore(first)
        for wrong in (lambda: box.read("/t/b"), lambda: box.get("/t/b"), lambda: box.put("/", b"no tar")):
            with pytest.raises(SandboxFileError):
                wrong()
        with pytest.raises(SnapshotUnknown):
            box.restore("none")


def test_a_sandbox_that_does_not_run_says_so() -> None:
    box = ScriptedSandbox([("x", OK)])
    with pytest.raises(SandboxLost, match="not started"):
        box.exec("x")
    box.start()
    box.close()
    with pytest.raises(SandboxLost, match="closed"):
        box.start()
