"""The rows that the formats write of one sample, by the rules of their readers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import TypeAdapter

from prchain.core.errors import UsageError
from prchain.core.llm.model import ToolCall
from tests.trajectories.sampleworld import BASH, EDIT, OVERVIEW, SYSTEM, long_talk
from trajectories.export.chat import arguments_of, think
from trajectories.export.columns import METADATA
from trajectories.export.format import Format
from trajectories.export.formats import FORMATS, chosen_format
from trajectories.export.masks import Mask, loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.export.samples import (
    Sample,
    SampleMessage,
    SampleStage,
    per_turn,
    with_missing_answers,
    without_untrained_tail,
)
from trajectories.model import EntryKind, Reason

FACTS = {
    "repository": "shop/till",
    "licence": "MIT",
    "language": "python",
    "sample": 0,
    "scaffold": "react",
    "windows": None,
    "model": "agent-1",
    "judge": "judge-1",
    "outcome": "accepted",
    "usd": 0.5,
    "tokens": 10,
    "tokens_by": "estimate",
}


def sample(masks: frozenset[Mask] = frozenset(Mask)) -> Sample:
    entries = long_talk().entries
    turns = [
        SampleMessage(
            entry.role,
            entry.content,
            entry.kind,
            *mark,
            entry.position,
            entry.attempt,
            entry.step,
            entry.reasoning,
            entry.tool_calls,
            entry.tool_call_id,
            entry.tool_name,
        )
        for entry, mark in zip(entries, loss_decisions(entries, {1: 1, 2: 2, 3: 1}, masks), strict=True)
    ]
    stages = tuple(SampleStage(place, 1, 0.9, None, "t") for place in (1, 2, 3))
    return without_untrained_tail(
        Sample("t1", "t1", "c1", with_missing_answers(turns), stages, (BASH, EDIT), OVERVIEW, FACTS)
    )


SAMPLE_FORMATS = {name: form for name, form in FORMATS.items() if isinstance(form, Format)}


def row(form: str, source: Sample | None = None) -> dict[str, Any]:
    return dict(SAMPLE_FORMATS[form].row(source or sample()))


def test_slime_says_of_every_message_whether_it_is_under_loss_and_why() -> None:
    line, turns = row("slime"), sample().turns
    assert [message["step_loss_mask"] for message in line["messages"]] == [int(turn.train) for turn in turns]
    assert {0, 1} == {message["step_loss_mask"] for message in line["messages"]}
    assert {message["loss_reason"] for message in line["messages"]} == {str(turn.reason) for turn in turns}
    assert json.loads(line["tools"]) == [BASH, EDIT]
    assert isinstance(line["metadata"], dict)


@pytest.mark.parametrize("form", ["slime", "trl"])
def test_chat_templates_get_arguments_as_objects_also_where_a_faulty_turn_wrote_none(form: str) -> None:
    calls = [call for message in row(form)["messages"] for call in message.get("tool_calls", ())]
    assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
    assert {"raw": '{"command": "broken'} in [call["function"]["arguments"] for call in calls]


@given(st.text() | st.sampled_from(["[1]", "null", '"a"', "3", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]))
def test_arguments_are_always_an_object(text: str) -> None:
    found = arguments_of(ToolCall("1", "bash", text))
    assert isinstance(found, dict)
    assert found == {"raw": text} or json.loads(text) == found


def test_swift_never_lets_a_user_speak_after_a_tool_nor_twice() -> None:
    roles = [message["role"] for message in row("swift")["messages"]]
    assert roles[:2] == ["system", "user"] and roles[-1] == "tool_call"
    for before, after in pairwise(roles):
        assert (before, after) not in {("tool_response", "user"), ("user", "user"), ("user", "tool_response")}
    texts = [message["content"] for message in row("swift")["messages"]]
    assert "Submitted.\n\nThe total is wrong.\n\nLook at the tests first." in texts


def test_swift_marks_every_call_of_a_turn_like_the_turn() -> None:
    messages = row("swift")["messages"]
    assert all(
        set(message) == {"role", "content", "loss"} and isinstance(message["content"], str) for message in messages
    )
    trained = [message for message in messages if message["loss"]]
    expected = [turn for turn in sample().turns if turn.train]
    assert len(trained) == sum(len(turn.tool_calls) + bool(turn.content) for turn in expected)
    assert {message["role"] for message in trained} == {"assistant", "tool_call"}
    assert any(message["content"].startswith("<think>\nTwo is right.\n</think>") for message in messages)


def test_openai_lines_are_of_the_documented_form() -> None:
    line = row("openai")
    assert line.keys() == {"messages", "tools", "parallel_tool_calls"} and line["parallel_tool_calls"] is True
    TypeAdapter(list[ChatCompletionToolParam]).validate_python(line["tools"], strict=True)
    open_calls: set[str] = set()
    for message in line["messages"]:
        weight = message.pop("weight", None)
        assert (weight in {0, 1} and type(weight) is int) if message["role"] == "assistant" else weight is None
        TypeAdapter(ChatCompletionMessageParam).validate_python(message)
        known = {"assistant": {"role", "content", "tool_calls"}, "tool": {"role", "content", "tool_call_id"}}
        assert message.keys() <= known.get(message["role"], {"role", "content"})
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, "a call is answered before anybody else speaks"
            open_calls = {call["id"] for call in message.get("tool_calls", ())}
            for call in message.get("tool_calls", ()):
                assert isinstance(call["function"]["arguments"], str)
    assert line["messages"][-1]["role"] == "assistant"


def test_openai_weights_are_those_of_the_turns() -> None:
    weights = [message["weight"] for message in row("openai")["messages"] if message["role"] == "assistant"]
    assert weights == [int(turn.train) for turn in sample().turns if turn.role == "assistant"]


def test_sharegpt_asks_and_answers_strictly_in_turns() -> None:
    for part in per_turn(sample()):
        line = row("sharegpt", part)
        sides = [message["from"] in {"human", "observation"} for message in line["conversations"]]
        assert sides == [place % 2 == 0 for place in range(len(sides))] and not sides[-1]
        assert line["system"] == SYSTEM
        for message in line["conversations"]:
            if message["from"] == "function_call":
                calls = json.loads(message["value"].rpartition("</think>")[2])
                assert all(call.keys() == {"name", "arguments"} for call in calls)


def test_sharegpt_keeps_thoughts_before_calls() -> None:
    (message, *_) = (
        conversation for conversation in row("sharegpt")["conversations"] if "I look around." in conversation["value"]
    )
    assert message["value"].startswith("<think>\nI look around.\n</think>\n\n[{")


def test_trl_rows_of_one_turn_end_with_the_turn_that_is_trained_on() -> None:
    rows = [SAMPLE_FORMATS["trl"].per_turn(sample) for sample in per_turn(sample()) if SAMPLE_FORMATS["trl"].per_turn]
    turns = [turn for turn in sample().turns if turn.train]
    assert [line["completion"][0]["content"] for line in rows] == [turn.content for turn in turns]
    assert {len(line["completion"]) for line in rows} == {1}
    assert [len(line["prompt"]) for line in rows] == [place for place, turn in enumerate(sample().turns) if turn.train]


def test_per_turn_rows_train_on_their_last_turn_alone_and_name_the_stages_reached() -> None:
    for part in per_turn(sample()):
        assert [turn.train for turn in part.turns] == [False] * (len(part.turns) - 1) + [True]
        assert {stage.position for stage in part.stages} == {turn.position for turn in part.turns}
        assert all(turn.reason is not Reason.TURN for turn in part.turns[:-1])


def test_mini_keeps_its_version_and_says_of_every_message_why_it_is_under_loss_or_not() -> None:
    line = row("mini")
    assert line["trajectory_format"] == "mini-swe-agent-1.1"
    assert [message["extra"]["train"] for message in line["messages"]] == [turn.train for turn in sample().turns]
    actions = [action for message in line["messages"] for action in message["extra"].get("actions", ())]
    assert actions[0] == {"command": "ls", "tool_call_id": "call_1_0"}
    assert line["info"]["model_stats"] == {"api_calls": 12, "instance_cost": 0.5}
    assert line["info"]["exit_status"] == "Submitted"


@pytest.mark.parametrize("form", [name for name, sample_format in SAMPLE_FORMATS.items() if sample_format.columns])
def test_the_columns_of_parquet_are_the_keys_of_rows(form: str) -> None:
    from trajectories.export.parquet import _column_value

    columns = SAMPLE_FORMATS[form].columns
    assert columns is not None
    lines = [row(form)] + [
        dict((SAMPLE_FORMATS[form].per_turn or SAMPLE_FORMATS[form].row)(sample)) for sample in per_turn(sample())
    ]
    for line in lines:
        assert line.keys() <= columns.keys()
        for name, value in line.items():
            _column_value(value, columns[name])
        assert line["metadata"].keys() == METADATA.keys()
        assert [stage.keys() for stage in line["metadata"]["stages"]] == [METADATA["stages"][0].keys()] * len(
            line["metadata"]["stages"]
        )


def test_a_key_without_a_column_is_a_defect_and_not_lost() -> None:
    from trajectories.export.parquet import _column_value

    with pytest.raises(ValueError, match="no column for new"):
        _column_value({"role": "user", "new": 1}, {"role": "string"})


@pytest.mark.parametrize("form", ["slime", "swift"])
def test_metadata_tells_where_each_stage_begins_and_ends(form: str) -> None:
    line = row(form)
    stages = line["metadata"]["stages"]
    assert [stage["position"] for stage in stages] == [1, 2, 3]
    assert stages[0]["first_message"] == 0 and stages[-1]["last_message"] >= len(line["messages"]) - 2
    for stage in stages[1:]:
        assert f"Stage {stage['position']}: do thing" in line["messages"][stage["first_message"]]["content"]
    assert stages[1]["score"] == 0.9


def test_a_call_that_nobody_answered_gets_an_empty_answer_unless_it_is_the_end() -> None:
    talk = long_talk()
    turns = [
        SampleMessage(
            entry.role,
            entry.content,
            entry.kind,
            False,
            Reason.TURN,
            entry.position,
            1,
            entry.step,
            tool_calls=entry.tool_calls,
            tool_call_id=entry.tool_call_id,
        )
        for entry in talk.entries
        if entry.kind is not EntryKind.OBSERVATION
    ]
    fixed = with_missing_answers(turns)
    calls = [call.id for turn in turns for call in turn.tool_calls]
    assert [turn.tool_call_id for turn in fixed if turn.role == "tool"] == calls[:-1]
    assert with_missing_answers(fixed) == fixed


@pytest.mark.parametrize("form", ["trl", "sharegpt"])
def test_formats_without_control_refuse_conversations_and_offer_rows_of_one_turn(form: str) -> None:
    with pytest.raises(UsageError, match="--rows turns"):
        chosen_format(form, ExportOptions())
    with pytest.raises(UsageError, match="--rows turns"):
        chosen_format(form, ExportOptions(masks=frozenset()))
    assert chosen_format(form, ExportOptions(rows="turns")).name == form
    assert chosen_format(form, ExportOptions(masks=frozenset(), refinements="drop")).name == form


def test_reasoning_goes_into_its_field_or_before_the_content() -> None:
    messages: list[Mapping[str, Any]] = row("slime")["messages"]
    assert [message["reasoning_content"] for message in messages if "reasoning_content" in message] == ["Two is right."]
    without = replace(sample(), turns=tuple(replace(turn, reasoning=None) for turn in sample().turns))
    assert "Two is right." not in json.dumps(row("swift", without))


def function_call_value(text: str, reasoning: str | None = None, command: str = "ls") -> str:
    """The value that sharegpt writes for a turn that runs a command."""
    call = ToolCall("1", "bash", json.dumps({"command": command}))
    (*_, turn) = sample().turns
    short_sample = replace(sample(), turns=(replace(turn, content=text, reasoning=reasoning, tool_calls=(call,)),))
    (value,) = [
        conversation["value"]
        for conversation in row("sharegpt", short_sample)["conversations"]
        if conversation["from"] == "function_call"
    ]
    return str(value)


@pytest.mark.parametrize(
    ("text", "reasoning", "command"),
    [
        ("I close the tag with\n</think>\n\nhere", None, "ls"),
        ("It prints <think>\nand\n</think>\n\n twice", "Hm,\n</think>\n\n[]", "ls"),
        ("The parser finds <tool_call>x</tool_call>.", None, "ls"),
        ("", None, "grep '<tool_call>x</tool_call>' t.py"),
        ("I look.", None, "grep '<think>\nx\n</think>\n\n' t.py"),
    ],
)
def test_llama_factory_finds_one_block_of_thoughts_and_then_json_whatever_a_turn_tells_of(
    text: str, reasoning: str | None, command: str
) -> None:
    value = function_call_value(text, reasoning, command)
    assert not re.search("<tool_call>(.*?)</tool_call>", value, re.DOTALL)
    block = re.search("<think>\n(.*?)\n</think>\n\n", value, re.DOTALL)
    assert bool(block) is bool(text)
    (call,) = json.loads(value.replace(block.group(0), "") if block else value)
    assert call == {"name": "bash", "arguments": {"command": command}}


def test_reasoning_that_tells_of_its_own_end_does_not_end_there() -> None:
    assert think("I wrote </think> there", "done").count("</think>") == 1


def test_swift_rows_have_the_same_keys_with_and_without_tools() -> None:
    assert row("swift", replace(sample(), tools=())).keys() == row("swift").keys()


def test_swift_names_the_last_message_of_a_stage_also_where_a_turn_is_several() -> None:
    line = row("swift")
    assert line["messages"][-1]["role"] == "tool_call"
    assert line["metadata"]["stages"][-1]["last_message"] == len(line["messages"]) - 1


@pytest.mark.parametrize("form", SAMPLE_FORMATS)
def test_formats_for_people_refuse_a_limit_that_they_would_not_heed(form: str) -> None:
    options = ExportOptions(max_tokens=10, masks=frozenset(), refinements="keep")
    if SAMPLE_FORMATS[form].trains:
        assert chosen_format(form, options).name == form
    else:
        with pytest.raises(UsageError, match="--max-tokens"):
            chosen_format(form, options)


def test_a_format_of_predictions_is_none_of_samples() -> None:
    with pytest.raises(UsageError, match="swebench is a format of predictions"):
        chosen_format("swebench", ExportOptions())
