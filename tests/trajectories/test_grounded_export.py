"""Guided turns stay under loss only where everything that they name was shown otherwise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import UsageError
from prchain.core.llm.model import ToolCall
from trajectories.export.grounded import ungrounded_steps
from trajectories.export.masks import loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.model import Entry, EntryKind, Reason


def conversation(words: str, command: str = "ls", *, guided: bool = True) -> list[Entry]:
    call = ToolCall("c", "bash", json.dumps({"command": command}))
    entries = [
        Entry(0, 1, 1, 0, EntryKind.QUERY, "user", "Mend read_token() in src/lexer.py; it fails on line 4096."),
        Entry(1, 1, 1, 1, EntryKind.TURN, "assistant", "I look.", tool_calls=(call,)),
        Entry(
            2, 1, 1, 1, EntryKind.OBSERVATION, "tool", "def read_token(text):\n    return MAX_SIZE\n", tool_call_id="c"
        ),
    ]
    if guided:
        entries.append(Entry(3, 1, 1, 1, EntryKind.GUIDANCE, "user", "Look at skip_blank() in src/blank.py, line 777."))
    turn = ToolCall("d", "bash", json.dumps({"command": command}))
    return [*entries, Entry(len(entries), 1, 1, 2, EntryKind.TURN, "assistant", words, tool_calls=(turn,))]


@pytest.mark.parametrize(
    ("words", "command", "grounded"),
    [
        ("I mend read_token() with MAX_SIZE.", "sed -n 1,20p src/lexer.py", True),
        ("The file lexer.py is next, at 4096.", "ls", True),
        ("I look at skip_blank().", "ls", False),
        ("Next.", "cat src/blank.py", False),
        ("Line 777 it is.", "ls", False),
        ("Next.", "grep -n skip_blank .", False),
        ("Let me think about that.", "git diff", True),
    ],
)
def test_a_turn_is_grounded_where_all_that_it_names_was_shown(words: str, command: str, grounded: bool) -> None:
    assert ungrounded_steps(conversation(words, command)) == (frozenset() if grounded else {2})
    assert ungrounded_steps(conversation(words, command, guided=False)) == frozenset()


def test_an_ungrounded_turn_is_kept_out_of_the_loss_and_stays_in_the_conversation() -> None:
    entries = conversation("I look at skip_blank().")
    decisions = loss_decisions(entries, {1: 1}, ungrounded=ungrounded_steps(entries))
    assert [decision.reason for decision in decisions][-1] is Reason.GUIDED
    assert [decision.train for decision in decisions] == [False, True, False, False, False]
    assert loss_decisions(entries, {1: 1})[-1].train


def test_it_is_of_turns_whose_guidance_is_dropped() -> None:
    with pytest.raises(UsageError, match="--guidance drop"):
        ExportOptions(grounded=True)
    assert not ExportOptions(guidance="drop", grounded=True, masks=frozenset(), refinements="keep").masks_nothing


@given(st.text(), st.text())
def test_hostile_words_never_raise(words: str, command: str) -> None:
    ungrounded_steps(conversation(words, command))
