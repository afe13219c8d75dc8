"""A quote counts only where it stands in the window."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import ToolCall
from tests.growth import assert_linear
from tests.trajectories.prmworld import Attempt, stage
from trajectories.agents.guidance.evidence import WindowText
from trajectories.agents.guidance.window import StepWindow


def words(text: str = "", command: str = "ls") -> WindowText:
    entries = stage(Attempt(4, guided=2))
    call = ToolCall("c2", "bash", json.dumps({"command": command}))
    entries = [
        replace(entry, content=entry.content + text) if entry.step == 3 and entry.kind == "observation" else entry
        for entry in entries
    ]
    entries = [replace(it, tool_calls=(call,)) if it.step == 2 and it.kind == "turn" else it for it in entries]
    window = StepWindow.of(entries, 8)
    assert window is not None
    return WindowText(window)


@pytest.mark.parametrize(
    ("evidence", "step"),
    [
        ("cat file_1.py", 1),
        ("CAT   File_1.py", 1),
        ("Let me look at file 4.", 4),
        ("def function_3(): return 3", 3),
        ("Guidance after 2.", None),
        ("return", 4),
        ("def function_3() ... return 3", 3),
        ("def function_3() [...] return 3", 3),
        ("return 3 ... def function_3()", None),
        ("def function_1() ... return 3", None),
        ("cat file_9.py", None),
        ("ls", None),
        ("", None),
        ("...", None),
        ("  \\n ", None),
    ],
)
def test_a_quote_stands_at_the_last_step_that_holds_it_or_nowhere(evidence: str, step: int | None) -> None:
    assert words().step_of(evidence) == step


def test_a_call_can_be_quoted_as_it_was_written_and_as_it_was_meant() -> None:
    text = words(command='printf "one\\ntwo"\ncat <<EOF')
    assert text.step_of('printf "one\\ntwo"\ncat <<EOF') == 2
    assert text.step_of('printf \\"one\\\\ntwo\\"\\ncat') == 2


@given(st.text(min_size=1, max_size=60), st.integers(0, 200), st.integers(4, 40))
def test_every_piece_of_a_text_of_the_window_is_found(noise: str, start: int, length: int) -> None:
    text = f"the beginning {noise} and more of it, " * 5
    piece = text[start : start + length]
    found = words(text).step_of(piece)
    if len(" ".join(piece.split()).casefold()) >= 4 and "..." not in piece and "…" not in piece:
        assert found == 3


def test_looking_for_a_quote_takes_linear_time() -> None:
    text = words("ab " * 20_000)
    assert_linear(lambda size: "ab " * size + "...", text.step_of, 2_000)
