from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import Reply, ToolCall
from trajectories.agents.scaffolds.turns import named_calls, read_object, read_turn, sent, valid_tool_name
from trajectories.agents.tools.toolset import toolset
from trajectories.model import Entry, EntryKind, TurnFault

FULL = toolset("full")


def parse(*calls: ToolCall, text: str = "", **fields: str):  # type: ignore[no-untyped-def]
    reply = Reply(text, "m", tool_calls=calls, **fields)  # type: ignore[arg-type]
    return read_turn(reply, named_calls(reply, 1), FULL.tools, FULL.ending)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ('{"a": [1]}', {"a": [1]}),
        ('{"a": 1} and more', str),
        ("[]", "a list"),
        ("null", "a NoneType"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": ' * 200_000, "nested too deeply"),
        ("1" * 5000, str),
    ],
)
def test_arguments_are_an_object_or_words_on_what_they_are_instead(text: str, expected: object) -> None:
    value = read_object(text)
    assert isinstance(value, expected) if isinstance(expected, type) else value == expected


def test_what_is_told_of_bad_arguments_names_them() -> None:
    turn = parse(ToolCall("a", "bash", '{"comand": "ls"}'))
    assert turn.fault is TurnFault.BAD_ARGUMENTS
    assert "command" in turn.calls[0].words and "comand" in turn.calls[0].words
    assert "str_replace_editor" in parse(ToolCall("a", "edit", "{}")).calls[0].words
    assert "submit" in parse(text="I am done").words


def test_numbers_that_are_written_as_text_are_read() -> None:
    turn = parse(
        ToolCall("a", "str_replace_editor", '{"command": "insert", "path": "/a", "insert_line": "3", "new_str": ""}')
    )
    assert turn.fault is None and turn.calls[0].arguments is not None


def test_a_good_call_beside_a_bad_one_is_read() -> None:
    turn = parse(ToolCall("a", "bash", '{"command": "ls"}'), ToolCall("b", "bash", "{"))
    assert turn.fault is TurnFault.BAD_ARGUMENTS
    assert [call.arguments is None for call in turn.calls] == [False, True]


def test_an_odd_word_of_how_a_reply_finished_is_no_fault() -> None:
    assert parse(ToolCall("a", "bash", '{"command": "ls"}'), finish="stop").fault is None


@pytest.mark.parametrize(
    ("name", "shown"), [("bash", "bash"), ("", "unknown"), ("a.b c", "a_b_c"), ("é" * 99, "_" * 64)]
)
def test_names_are_shown_in_the_form_that_endpoints_take(name: str, shown: str) -> None:
    assert valid_tool_name(name) == shown


def test_an_object_goes_back_byte_for_byte() -> None:
    raw = '{ "command" :"ls" }'
    entry = Entry(
        0, 1, 1, 1, EntryKind.TURN, "assistant", "x", tool_calls=(ToolCall("a", "bash", raw),), reasoning="why"
    )
    assert sent(entry, reasoning=False).tool_calls[0].arguments == raw
    assert (sent(entry, reasoning=False).reasoning, sent(entry, reasoning=True).reasoning) == (None, "why")


def test_an_empty_turn_goes_back_with_words_in_it() -> None:
    empty = Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "")
    assert sent(empty, reasoning=False).content == "(no text)"
    refused = Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "", details={"refusal": "I cannot."})
    assert sent(refused, reasoning=False).content == "I cannot."


@given(st.text())
def test_whatever_arguments_are_what_goes_back_is_an_object_that_strict_parsers_take(arguments: str) -> None:
    entry = Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "", tool_calls=(ToolCall("a", "bash", arguments),))
    back = sent(entry, reasoning=False).tool_calls[0].arguments
    assert isinstance(json.loads(back), dict)
    if arguments.isascii():
        back.encode()
