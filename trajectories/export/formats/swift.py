"""ms-swift: its own roles ``tool_call`` and ``tool_response``, contents as text, ``loss`` on every message.

By ms-swift's code (`swift/template/base.py`, `swift/loss_scale/base.py`, 4.6.0). Its encoder pairs questions with
answers, so neither two questions nor a tool's answer and a user's message may follow each other: it would pair the rest
of the conversation wrongly, without a warning. A user's message after a tool's answer (a verdict, the next stage's
query) is therefore appended to that answer.
"""

from __future__ import annotations

import json
from typing import Any

from trajectories.export.chat import arguments_of, metadata, think, tools_text
from trajectories.export.columns import METADATA
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage


def row(sample: Sample) -> dict[str, Any]:
    """A line for ``swift sft --dataset FILE``."""
    messages: list[dict[str, Any]] = []
    message_ranges: list[range] = []
    for turn in sample.turns:
        previous = messages[-1] if messages else None
        if turn.role == "user" and previous is not None and previous["role"] in {"tool_response", "user"}:
            message_ranges.append(range(len(messages) - 1, len(messages)))
            previous["content"] = f"{previous['content']}\n\n{turn.content}" if previous["content"] else turn.content
            continue
        first = len(messages)
        messages += _messages(turn)
        message_ranges.append(range(first, len(messages)))
    return {
        "messages": messages,
        "tools": tools_text(sample) if sample.tools else None,
        "metadata": metadata(sample, message_ranges),
    }


def _messages(turn: SampleMessage) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [{"role": "tool_response", "content": turn.content, "loss": False}]
    content = think(turn.reasoning, turn.content) if turn.reasoning else turn.content
    # Of consecutive calls only the first one's loss counts; it is the same for all calls of a turn.
    calls = [
        {
            "role": "tool_call",
            "content": json.dumps({"name": call.name, "arguments": arguments_of(call)}, ensure_ascii=False),
            "loss": turn.train,
        }
        for call in turn.tool_calls
    ]
    text_messages = [{"role": turn.role, "content": content, "loss": turn.train}]
    return [*(text_messages if content or not calls else []), *calls]


FORMAT = Format(
    "swift",
    row,
    loss="loss",
    inline_reasoning=True,
    columns={
        "messages": [{"role": "string", "content": "string", "loss": "bool"}],
        "tools": "string",
        "metadata": METADATA,
    },
)
