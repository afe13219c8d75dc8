"""The rig of golden exchanges: what it masks, and how its scripted model answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from prchain.core.llm.model import Request
from research.exchanges.__main__ import without_volatile
from research.exchanges.masking import Masking
from research.exchanges.script import CONTENT, HAND_IN, OWN, TASK, TITLE, answer
from tests.trajectories.test_programs import GOOD
from trajectories.programs.spec import parse_program
from trajectories.recording.chat import read_asked

PROSE = "You are the best of all agents, and never tire."


def function(name: str, **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, "description": "What it is for", **parameters}
    return {"type": "function", "function": {"name": name, "description": "Runs it.", "parameters": schema}}


def request(messages: Sequence[Mapping[str, Any]], *tools: Mapping[str, Any]) -> Request:
    asked = read_asked(json.dumps({"messages": messages, **({"tools": tools} if tools else {})}).encode())
    return Request(asked.messages, 9, body=asked.body)


def test_our_words_stay_and_the_makers_are_numbered_the_same_wherever_they_stand() -> None:
    masking = Masking(OWN, ["Today is [A-Z][a-z]+day"])
    text = f"{PROSE}\nToday is Saturday.\n<task>{TASK}</task>"
    assert masking.text(text) == f"[text 1]\nToday is Saturday.\n<task>{TASK}</task>"
    assert masking.text(f"Another one of some length. {PROSE}") == "[text 2]"
    assert masking.text(PROSE) == "[text 1]"
    printed = json.dumps({"returncode": 0, "output": CONTENT})
    assert masking.text(printed) == printed, "our words within JSON"


def test_of_tools_those_that_are_called_stay_without_what_is_said_of_them() -> None:
    tools = [function(name) for name in ("agent", "edit", "glob", "grep", "bash")]
    message = {"role": "user", "content": [{"type": "text", "text": PROSE}, {"type": "image_url"}]}
    body = {"messages": [message, {"role": "assistant", "content": PROSE}], "tools": tools, "seed": 1}
    masked = Masking(OWN, called=frozenset({"bash"})).request(body)
    assert [it["function"]["name"] for it in masked["tools"]] == ["agent", "edit", "bash"]
    assert masked["tools"][0]["function"]["description"].startswith("[text ")
    assert masked["messages"][0]["content"] == [{"type": "text", "text": "[text 1]"}, {"type": "image_url"}]
    assert masked["messages"][1]["content"] == PROSE, "a reply is ours"
    assert masked["seed"] == 1 and masked["tools"][0]["function"]["parameters"]["type"] == "object"


@pytest.mark.parametrize(
    ("last", "names", "calls", "text"),
    [
        ({"role": "user", "content": TASK}, (), 0, TITLE),
        ({"role": "user", "content": TASK}, ("bash",), 2, "I look."),
        ({"role": "tool", "tool_call_id": "c", "content": CONTENT}, ("run_shell_command", "edit"), 1, "It subtracts."),
        ({"role": "tool", "tool_call_id": "c", "content": "MENDED\n"}, ("run_shell_command", "edit"), 0, "Done."),
        ({"role": "tool", "tool_call_id": "c", "content": "MENDED\n"}, ("bash",), 1, "Done."),
    ],
)
def test_it_answers_by_what_was_said_last(last: dict[str, Any], names: Sequence[str], calls: int, text: str) -> None:
    reply = answer(request([last], *map(function, names)))
    assert (reply.text, len(reply.tool_calls)) == (text, calls)
    if text == "Done." and calls:
        assert json.loads(reply.tool_calls[0].arguments) == {"command": HAND_IN}


def test_a_call_has_what_its_tool_needs() -> None:
    tool = function("run_shell_command", required=["command", "is_background"])
    (call, _) = answer(request([{"role": "user", "content": TASK}], tool)).tool_calls
    assert json.loads(call.arguments) == {"command": "ls", "is_background": False}


def test_what_an_agent_is_known_to_change_does_not_count() -> None:
    program = parse_program("toy", GOOD + 'volatile = ["Today is [a-z]*"]\n')
    rows = [{"a": ["Today is monday, fine", 1, None]}]
    assert without_volatile(rows, program) == [{"a": ["*, fine", 1, None]}]
    assert without_volatile(rows, parse_program("toy", GOOD)) == rows
