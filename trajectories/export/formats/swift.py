"""ms-swift: its own roles ``tool_call`` and ``tool_response``, contents as text, ``loss`` on every message.

By ms-swift's code (`swift/template/base.py`, `swift/loss_scale/base.py`, 4.6.0). Its encoder pairs what is asked with
what is answered, so two things must not stand in a row: two questions, and a tool's answer before a user's words. It
would pair the rest of the conversation wrongly, without a word. User's words after a tool's answer (a verdict, the next
stage's query) are therefore the end of that answer here.
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
    places: list[range] = []
    for turn in sample.turns:
        before = messages[-1] if messages else None
        if turn.role == "user" and before is not None and before["role"] in {"tool_response", "user"}:
            places.append(range(len(messages) - 1, len(messages)))
            before["content"] = f"{before['content']}\n\n{turn.content}" if before["content"] else turn.content
            continue
        first = len(messages)
        messages += _messages(turn)
        places.append(range(first, len(messages)))
    return {
        "messages": messages,
        "tools": tools_text(sample) if sample.tools else None,
        "metadata": metadata(sample, places),
    }


def _messages(turn: SampleMessage) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [{"role": "tool_response", "content": turn.content, "loss": False}]
    content = think(turn.reasoning, turn.content) if turn.reasoning else turn.content
    # Of several calls in a row only the first one's loss counts, and it is the same for all calls of a turn.
    calls = [
        {
            "role": "tool_call",
            "content": json.dumps({"name": call.name, "arguments": arguments_of(call)}, ensure_ascii=False),
            "loss": turn.train,
        }
        for call in turn.tool_calls
    ]
    said = [{"role": turn.role, "content": content, "loss": turn.train}]
    return [*(said if content or not calls else []), *calls]


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
