"""Whether a command failed, by its text and its exit codes."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.llm.model import ToolCall
from tests.growth import assert_linear
from trajectories.agents.shell.failures import call_failed, command_failed
from trajectories.model import Entry, EntryKind


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ls /nowhere", 2),
        ("python repro.py", 1),
        ("python -c 'import shop'", 1),
        ("python - <<'EOF'\nassert 0\nEOF", 1),
        ("cat missing", 1),
        ("grep x missing", 2),
        ("grep -q x a && python repro.py", 1),
        ("grep x a; python repro.py", 1),
        ("grep x a | sort -z -q", 2),
        ("diff a b || exit 1", 1),
        ("pytest", 127),
        ("pytest --no-such-option", 4),
        ("pytest tests/none.py", 4),
        ("pytest -k nothing", 5),
        ("pytest --collect-only", 2),
        ("timeout 5 pytest", 124),
        ("python -m unittest", 5),
        ("pytest", 139),
        ("cd /nowhere", 1),
        ("git checkout nothing", 1),
        ("git apply a.diff", 1),
        ("for f in a b; do cat $f; done", 1),
        ("(cd a && ./build)", 1),
        ("if grep -q x a; then ./build; fi", 1),
        ("bash -c './build | cat'", 1),
        ("bash -c", 1),
        ("echo 'never closed", 2),
        ("pip install nothing", 1),
        ("test -f a\n./build", 1),
        ("x=$(./build)", 1),
        ("f() { grep x a; }; ./build", 1),
        ("grep x a &\n./build", 1),
        ("", 1),
        (")", 1),
    ],
)
def test_a_command_that_could_not_do_its_work_failed(command: str, code: int) -> None:
    assert command_failed(command, code)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("grep x a", 1),
        ("cd /testbed && grep -rn x src", 1),
        ("cat a | grep -v x", 1),
        ("ls |\n  grep x", 1),
        ("grep x a && echo found", 1),
        ("find . -name '*.py' | xargs grep -n x", 123),
        ("find . | xargs grep -n x", 1),
        ("(cd src; grep x a)", 1),
        ("(cd src; grep x a) 2>/dev/null", 1),
        ("bash -lc 'cd src && grep x a'", 1),
        ("for f in a b; do grep x $f; done", 1),
        ("{ echo; grep x a; }", 1),
        ("if grep x a; then true; else grep y a; fi", 1),
        ("count=$(grep -c x a)", 1),
        ("! python repro.py", 1),
        ("diff a b", 1),
        ("git --no-pager diff --exit-code", 1),
        ("git -C src grep x", 1),
        ("test -f a", 1),
        ("[ -f a ]", 1),
        ("[[ -f a && -f b ]]", 1),
        ("command -v ruff", 1),
        ("which ruff", 1),
        ("ruff check .", 1),
        ("python -m mypy src", 1),
        ("pylint src", 8),
        ("pytest", 1),
        ("pytest tests", 2),
        ("cd /testbed && python -m pytest -x tests/test_a.py 2>&1", 1),
        ("python -m pytest && git diff", 1),
        ("set -e\npytest tests\npython repro.py", 1),
        ("set -euo pipefail; pytest | tail -3", 1),
        ("pytest | tail -3; exit ${PIPESTATUS[0]}", 1),
        ("pytest; code=$?; exit $code", 1),
        ("coverage run -m pytest", 1),
        ("python -m unittest tests.test_a", 1),
        ("python tests/runtests.py admin", 1),
        ("python tests/test_a.py", 1),
        ("bash ./run_tests.sh", 1),
        ("tox -e py311", 1),
        ("cargo test", 101),
        ("go test ./...", 1),
        ("npm test", 1),
        ("make test", 2),
        ("python setup.py build_ext && pytest", 1),
        ("yes | head -1", 141),
        ("anything", 0),
    ],
)
def test_an_answer_and_tests_that_ran_are_no_failure(command: str, code: int) -> None:
    assert not command_failed(command, code)


@pytest.mark.parametrize(
    ("command", "codes", "failed"),
    [
        ("python repro.py | tail", (1, 0), True),
        ("cat missing | head", (1, 0), True),
        ("cd a && cat missing | grep x", (1, 1), True),
        ("grep x missing | head", (2, 0), True),
        ("pytest missing.py | tail", (4, 0), True),
        ("pytest | tail", (1, 0), False),
        ("cd /testbed && python -m pytest tests 2>&1 | tail -20", (1, 0), False),
        ("cd /testbed; timeout 100 pytest | grep -c x", (1, 1), False),
        ("grep x a | head", (1, 0), False),
        ("grep x a | wc -l && echo", (1, 0), False),
        ("yes | grep -v y | head -1", (141, 1, 0), False),
        ("(cd a && pytest) | tail", (1, 0), False),
        ("(cd a && ./build) | tail", (1, 0), True),
        ("for f in a b; do ./build $f; done | tail", (1, 0), True),
        ("for f in a b; do grep x $f; done | tail", (1, 0), False),
        ("./build | tail; ls", (1, 0, 0), False),
    ],
)
def test_the_codes_of_a_pipeline_tell_what_its_last_command_hides(
    command: str, codes: tuple[int, ...], failed: bool
) -> None:
    assert command_failed(command, codes[-1], codes) is failed


def test_a_missing_module_is_no_test_run() -> None:
    output = "<returncode>1</returncode>\n<output>\n/usr/bin/python3: No module named pytest\n</output>"
    assert command_failed("python -m pytest tests", 1, output=output)
    assert command_failed("python -m pytest | tail", 0, (1, 0), output=output)
    assert not command_failed("python -m pytest tests", 1, output="E  ModuleNotFoundError: No module named 'shop'")


def test_a_command_that_was_ended_failed() -> None:
    assert command_failed("pytest", None)


def failed(details: dict[str, Any], *, command: object = "ls", tool: str = "bash", error: str | None = None) -> bool:
    call = ToolCall("1", tool, json.dumps({"command": command}))
    observation = Entry(2, 1, 1, 1, EntryKind.OBSERVATION, "tool", "", tool_call_id="1", error=error, details=details)
    return call_failed(call, observation)


def test_only_bash_commands_that_ran_can_have_failed() -> None:
    assert failed({"exit_code": 2})
    assert not failed({"exit_code": 130, "goes_on": True}, command="ctrl+c")
    assert not failed({"exit_code": None, "goes_on": True, "running": True}, command="make")
    assert failed({"exit_code": 0, "pipestatus": [2, 0]}, command="ls | head")
    assert failed({"exit_code": None, "timed_out": True}, error="timed_out")
    assert not failed({"exit_code": 0})
    assert not failed({})
    assert not failed({"exit_code": 2}, tool="think")
    assert not failed({"exit_code": 2}, command=7)
    assert not failed({}, error="not_run")


SIMPLE = st.sampled_from(["true", "false", "(exit 3)", "grep -q x /dev/null", "! true", "! false"])
LISTS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["&&", "||", "|", ";", "\n"]), inner),
        st.builds("( {} )".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("if {}; then {}; fi".format, inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(LISTS)
def test_a_code_that_no_command_but_grep_can_give_is_no_failure(command: str) -> None:
    """A real shell says which code a command has: 1 that only ``grep`` or ``!`` gives is an answer, 3 is none."""
    text = command.replace("false", "true")
    code = subprocess.run(["bash", "-c", text], check=False, capture_output=True).returncode
    assert command_failed(text, code) is (code == 3)


@given(st.text(alphabet="ab ;&|(){}!\n$<>'\"[]=\\#-", max_size=60), st.integers(0, 255))
def test_any_text_is_read(command: str, code: int) -> None:
    assert command_failed(command, code, (1, code)) in {True, False}
    assert command_failed(f"set -e; {command}; if; done", code) in {True, False}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("piece", ["(", "a | (", "x; } | ", "a && ", "a\n", "if a; then ", "bash -c '", "$(", "! "])
@pytest.mark.parametrize("lead", ["", "set -eo pipefail; "])
def test_long_commands_take_time_that_grows_with_their_length(piece: str, lead: str) -> None:
    assert_linear(lambda size: lead + piece * (size // len(piece)), lambda text: command_failed(text, 1, (1, 1)), 2_000)
