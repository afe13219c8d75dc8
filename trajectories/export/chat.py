"""What formats in OpenAI's manner share: the messages of a conversation, tool calls, reasoning, metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from prchain.llm.model import ToolCall
from trajectories.export.json_text import parsed
from trajectories.export.samples import Sample, SampleMessage, SampleStage
from trajectories.export.special_tokens import without_thinking_marks

Json = dict[str, Any]


def arguments_of(call: ToolCall) -> Json:
    """A call's arguments as an object. What is none, as a faulty turn may write it, stands whole under ``raw``; so does
    what strict JSON cannot hold (NaN), or no reader could walk through.

    Chat templates go through the arguments (Qwen3-Coder) or print them as JSON; a text that is no JSON would break
    them, or teach what no tool takes.
    """
    try:
        found = parsed(call.arguments)
    except ValueError:
        return {"raw": call.arguments}
    return found if isinstance(found, dict) else {"raw": call.arguments}


def as_object(call: ToolCall) -> Json:
    """A call with its arguments as an object, as chat templates and TRL's documentation have it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}


def as_text(call: ToolCall) -> Json:
    """A call with its arguments as JSON text, as OpenAI's API has it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def think(reasoning: str, content: str) -> str:
    """Content with the reasoning before it, as Qwen3 and DeepSeek R1 write it. Reasoning that tells of these marks has
    them broken: it would end there for every reader."""
    return f"<think>\n{without_thinking_marks(reasoning.strip())}\n</think>\n\n{content}"


def chat_message(turn: SampleMessage, call: Callable[[ToolCall], Json] = as_object) -> Json:
    """A turn as chat templates take it; reasoning goes where Qwen3's and GLM's look for it."""
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
    """The tools as JSON text: a list in Parquet or in ``datasets`` would fill keys of one tool into another."""
    return json.dumps([dict(tool) for tool in sample.tools], ensure_ascii=False)


def metadata(sample: Sample, places: Sequence[range] | None = None) -> Json:
    """What a row tells of its sample; every row has the same keys with the same types, as Parquet wants it.

    `places` are, of every turn, those of its messages in the row: stages are told by the places of messages. None:
    every turn is one message.
    """
    where = places or [range(place, place + 1) for place in range(len(sample.turns))]
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
        "stages": [{**_stage(sample, stage.position, where), **_verdict(stage)} for stage in sample.stages],
    }


def _verdict(stage: SampleStage) -> Json:
    return {"attempts": stage.attempts, "score": stage.score, "tests": stage.tests, "tree": stage.tree}


def _stage(sample: Sample, position: int, places: Sequence[range]) -> Json:
    inside = [
        place for turn, where in zip(sample.turns, places, strict=True) if turn.position == position for place in where
    ]
    return {"position": position, "first_message": min(inside, default=None), "last_message": max(inside, default=None)}
