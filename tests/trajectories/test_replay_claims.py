"""Evidence that a node claims, beside what its action printed when it was run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.sandboxes.sandbox import ExecResult
from tests.environments.folder_sandbox import FolderSandbox
from trajectories.agents.tools.observations import ADVICE, command_observation
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.replay import Replay, Replayer, observation_fault

FACT = Node("f", NodeKind.DYNAMIC_FACT, "It prints two words", Action(ActionTool.BASH, command="printf 'one\\ntwo'"))


def replayed(output: bytes) -> Replay:
    """What a command gave."""
    return Replay(command_observation(ExecResult(0, output), most=1000, timeout=1)[0])


@pytest.mark.parametrize("output", [b"one\ntwo", b"one\ntwo\n"])
@pytest.mark.parametrize("claimed", ["two", "one\ntwo", "<output>\none\ntwo"])
def test_a_last_line_is_quoted_without_the_mark_behind_it(output: bytes, claimed: str) -> None:
    assert observation_fault(FACT, replayed(output), claimed) is None


def test_the_mark_may_be_quoted_with_it() -> None:
    assert observation_fault(FACT, replayed(b"one\ntwo"), "two</output>") is None


def test_lines_between_those_that_are_quoted_may_be_left_out() -> None:
    assert observation_fault(FACT, replayed(b"[tool]\nfiles = 1\nstrict = true\n"), "[tool]\nstrict = true") is None


@pytest.mark.parametrize(
    ("claimed", "is_shown"), [("text\nof", False), ("The till\n  reads text", True), ("The absent", False)]
)
def test_of_the_problem_statement_a_passage_is_evidence(claimed: str, is_shown: bool) -> None:
    node = Node("f", NodeKind.STATIC_FACT, "It reads", Action(ActionTool.VIEW_PROBLEM))
    assert (observation_fault(node, Replay("The till reads text of\nany kind."), claimed) is None) is is_shown


def test_a_fault_names_the_line_that_is_not_printed() -> None:
    fault = observation_fault(FACT, replayed(b"one\ntwo\n"), "one\nthree")
    assert fault is not None and "this line is not printed: 'three'" in fault.words
    fault = observation_fault(FACT, replayed(b"one\ntwo\n"), "two\none")
    assert fault is not None and "in this order" in fault.words


@pytest.mark.parametrize("claimed", ["three", "tw", "two\nthree", "two\none"])
def test_what_was_not_printed_is_a_fault(claimed: str) -> None:
    fault = observation_fault(FACT, replayed(b"one\ntwo"), claimed)
    assert fault is not None and fault.rule == "R4"


@pytest.mark.parametrize(
    "claimed",
    ["<output_tail>", "17 characters elided", "<warning>", f"<warning>\n{ADVICE}\n</warning>", "</elided_chars>"],
)
def test_marks_where_an_output_was_cut_show_nothing_of_it(claimed: str) -> None:
    text, _ = command_observation(ExecResult(0, b"x" * 40 + b"\n"), most=24, timeout=1)
    assert claimed in text
    assert observation_fault(FACT, Replay(text), claimed) is not None


@pytest.mark.parametrize("claimed", ["<output>", "</output>", "<output>\n[...]\n</output>", "\n<output>\n\n", "[...]"])
def test_marks_around_an_output_show_nothing_of_it(claimed: str) -> None:
    fault = observation_fault(FACT, replayed(b"one\ntwo\n"), claimed)
    assert fault is not None and fault.rule == "R4" and "quote" in fault.words


def test_the_head_of_a_view_shows_nothing_of_the_file() -> None:
    view = Node("f", NodeKind.STATIC_FACT, "It is 1", Action(ActionTool.VIEW, path="a.py", first=1, last=1))
    head = "Lines 1 to 1 of /testbed/a.py, which has 9:"
    replay = Replay(f"{head}\n     1\tx = 1")
    assert observation_fault(view, replay, head) is not None
    assert observation_fault(view, replay, f"{head}\n     1\tx = 1") is None


def test_a_move_that_fails_is_no_edit() -> None:
    edit = Node("e", NodeKind.CODE_EDIT, "Move it", Action(ActionTool.BASH, command="mv a.py new/a.py"))
    assert observation_fault(edit, replayed(b""), "") is None
    failed = Replay(command_observation(ExecResult(1, b"mv: no such folder\n"), most=1000, timeout=1)[0])
    fault = observation_fault(edit, failed, "")
    assert fault is not None and fault.rule == "R6" and "no such folder" in fault.words


def test_what_a_command_prints_can_be_stored_in_every_database(tmp_path: Path) -> None:
    sandbox = FolderSandbox(tmp_path / "testbed")
    sandbox.folder.mkdir()
    replay = Replayer(sandbox, sandbox.snapshot(), "").observe(Action(ActionTool.BASH, command="printf 'a\\0b\\377'"))
    assert "a\ufffdb\ufffd" in replay.text and "\0" not in replay.text


def test_a_return_code_is_evidence_of_a_command_that_prints_nothing() -> None:
    assert observation_fault(FACT, replayed(b""), "<returncode>0</returncode>") is None
