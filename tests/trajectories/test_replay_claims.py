"""Evidence that a node claims, beside what its action printed when it was run again."""

from __future__ import annotations

import pytest

from environments.sandboxes.sandbox import ExecResult
from trajectories.curation.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.replay import Replay, observation_fault
from trajectories.scaffolds.observations import command_observation

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


def test_a_fault_names_the_line_that_is_not_printed() -> None:
    fault = observation_fault(FACT, replayed(b"one\ntwo\n"), "one\nthree")
    assert fault is not None and "this line is not printed: 'three'" in fault.words
    fault = observation_fault(FACT, replayed(b"one\ntwo\n"), "two\none")
    assert fault is not None and "in this order" in fault.words


@pytest.mark.parametrize("claimed", ["three", "tw", "two\nthree", "two\none"])
def test_what_was_not_printed_is_a_fault(claimed: str) -> None:
    fault = observation_fault(FACT, replayed(b"one\ntwo"), claimed)
    assert fault is not None and fault.rule == "R4"
