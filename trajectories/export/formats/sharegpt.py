"""ShareGPT as LLaMA-Factory reads it: ``conversations`` of ``from`` and ``value``, strictly in turns.

By LLaMA-Factory's code (`src/llamafactory/data/converter.py`, `formatter.py`): questions (``human``, ``observation``)
and answers (``gpt``, ``function_call``) must alternate, else the row is skipped with a warning. A ``function_call``
holds JSON, and before it only thoughts in ``<think>``; a second end of thoughts or a ``<tool_call>`` anywhere in it
aborts preprocessing. No message can be masked: per-turn rows with ``mask_history: true`` train on their last turn
alone.
"""

from __future__ import annotations

import json
from typing import Any

from trajectories.export.chat import arguments_of, metadata, think, tools_text
from trajectories.export.columns import METADATA
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage

_QUESTION_ROLES = ("human", "observation")


def row(sample: Sample) -> dict[str, Any]:
    """A line; consecutive questions are joined, and an empty question goes between two answers."""
    system = ""
    conversations: list[dict[str, str]] = []
    message_ranges: list[range] = []
    for turn in sample.turns:
        if turn.role == "system":
            system = f"{system}\n\n{turn.content}" if system else turn.content
            message_ranges.append(range(1))
            continue
        message = _message(turn)
        is_question = message["from"] in _QUESTION_ROLES
        if conversations and is_question and conversations[-1]["from"] in _QUESTION_ROLES:
            conversations[-1]["value"] += f"\n\n{message['value']}"
        else:
            if conversations and not is_question and conversations[-1]["from"] not in _QUESTION_ROLES:
                conversations.append({"from": "human", "value": ""})
            conversations.append(message)
        message_ranges.append(range(len(conversations) - 1, len(conversations)))
    return {
        "conversations": conversations,
        "system": system,
        "tools": tools_text(sample) if sample.tools else "",
        "metadata": metadata(sample, message_ranges),
    }


def _message(turn: SampleMessage) -> dict[str, str]:
    if turn.role == "tool":
        return {"from": "observation", "value": turn.content}
    if turn.role != "assistant":
        return {"from": "human", "value": turn.content}
    if not turn.tool_calls:
        return {"from": "gpt", "value": think(turn.reasoning, turn.content) if turn.reasoning else turn.content}
    calls = [{"name": call.name, "arguments": arguments_of(call)} for call in turn.tool_calls]
    # A JSON escape, so that the reader's regular expressions for thoughts and calls match nothing in the arguments.
    value = json.dumps(calls, ensure_ascii=False).replace("<", "\\u003c")
    thoughts = "\n\n".join(part.strip() for part in (turn.reasoning or "", turn.content) if part.strip())
    return {"from": "function_call", "value": think(thoughts, value) if thoughts else value}


FORMAT = Format(
    "sharegpt",
    row,
    loss=None,
    inline_reasoning=True,
    turns_hint="train with mask_history: true",
    columns={
        "conversations": [{"from": "string", "value": "string"}],
        "system": "string",
        "tools": "string",
        "metadata": METADATA,
    },
)
