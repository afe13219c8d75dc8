"""What OpenAI-like formats share: the messages of a conversation, tool calls, reasoning, metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from prchain.core.llm.model import ToolCall
from prchain.core.llm.special_tokens import without_thinking_marks
from trajectories.export.samples import Sample, SampleMessage, SampleStage
from trajectories.json_text import parsed

Json = dict[str, Any]


def arguments_of(call: ToolCall) -> Json:
    """A call's arguments as an object. Arguments that are not one (a faulty turn may write them), that strict JSON
    cannot hold (NaN) or that are nested too deeply are a text under ``raw``.

    Chat templates iterate over the arguments (Qwen3-Coder) or print them as JSON; a text that is not JSON would break
    them, or teach arguments that no tool takes.
    """
    try:
        found = parsed(call.arguments)
    except ValueError:
        return {"raw": call.arguments}
    return found if isinstance(found, dict) else {"raw": call.arguments}


def as_object(call: ToolCall) -> Json:
    """A call with its arguments as an object, as in chat templates and TRL's documentation."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}


def as_text(call: ToolCall) -> Json:
    """A call with its arguments as JSON text, as in OpenAI's API."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def think(reasoning: str, content: str) -> str:
    """Content with the reasoning before it, as Qwen3 and DeepSeek R1 write it. These marks are broken within the
    reasoning: every reader would end it there."""
    return f"<think>\n{without_thinking_marks(reasoning.strip())}\n</think>\n\n{content}"


def chat_message(turn: SampleMessage, call: Callable[[ToolCall], Json] = as_object) -> Json:
    """A turn as chat templates take it; reasoning is in the field that Qwen3's and GLM's read."""
    message: Json = {"role": turn.role, "content": turn.content}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [call(tool_call) for tool_call in turn.tool_calls]
    if turn.role == "tool":
        message["tool_call_id"] = turn.tool_call_id or ""
        if turn.name:
            message["name"] = turn.name
    return message


def chat_messages(sample: Sample) -> list[Json]:
    """The conversation of a sample as chat templates take it."""
    return [chat_message(turn) for turn in sample.turns]


def tools_text(sample: Sample) -> str:
    """The tools as JSON text: in a list, Parquet and ``datasets`` would add the keys of one tool to another."""
    return json.dumps([dict(tool) for tool in sample.tools], ensure_ascii=False)


def metadata(sample: Sample, places: Sequence[range] | None = None) -> Json:
    """A row's metadata on its sample; every row has the same keys with the same types, as Parquet needs.

    `places` has for every turn the indices of its messages in the row; a stage is given by indices of messages. None:
    every turn is one message.
    """
    message_ranges = places or [range(place, place + 1) for place in range(len(sample.turns))]
    return {
        "source_name": "prchain",
        "sample_id": sample.id,
        "trajectory_id": sample.trajectory_id,
        "chain_id": sample.chain_id,
        **dict(sample.facts),
        "tool_calls": sample.tool_calls,
        "turns_under_loss": sample.trained,
        "elided_turns": sample.elided_turns,
        "broken_marks": sample.broken_marks,
        "stages": [{**_stage(sample, stage.position, message_ranges), **_verdict(stage)} for stage in sample.stages],
    }


def _verdict(stage: SampleStage) -> Json:
    return {name: getattr(stage, name) for name in ("attempts", "score", "tests", "proof", "safeguard", "tree")}


def _stage(sample: Sample, position: int, message_ranges: Sequence[range]) -> Json:
    indices = [
        index
        for turn, message_range in zip(sample.turns, message_ranges, strict=True)
        if turn.position == position
        for index in message_range
    ]
    return {
        "position": position,
        "first_message": min(indices, default=None),
        "last_message": max(indices, default=None),
    }
