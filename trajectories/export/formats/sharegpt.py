"""ShareGPT as LLaMA-Factory reads it: ``conversations`` of ``from`` and ``value``, strictly in turns.

By LLaMA-Factory's code (`src/llamafactory/data/converter.py`, `formatter.py`): what is asked (``human``,
``observation``) and what is said (``gpt``, ``function_call``) must alternate, else the row is skipped with a warning; a
``function_call`` holds JSON, and before it nothing but thoughts in ``<think>``. No message can be left out of the loss:
per-turn rows with ``mask_history: true`` train on their last turn alone.
"""

from __future__ import annotations

import json
from typing import Any

from trajectories.export.formats.chat import arguments_of, metadata, think, tools_text
from trajectories.export.formats.columns import METADATA
from trajectories.export.formats.model import Format
from trajectories.export.samples import Sample, Turn

_ASKED = ("human", "observation")


def row(sample: Sample) -> dict[str, Any]:
    """A line; questions in a row become one, and between two answers stands an empty question."""
    system = ""
    out: list[dict[str, str]] = []
    starts: list[int] = []
    for turn in sample.turns:
        if turn.role == "system":
            system = f"{system}\n\n{turn.content}" if system else turn.content
            starts.append(0)
            continue
        message = _message(turn)
        asked = message["from"] in _ASKED
        if out and asked and out[-1]["from"] in _ASKED:
            out[-1]["value"] += f"\n\n{message['value']}"
        else:
            if out and not asked and out[-1]["from"] not in _ASKED:
                out.append({"from": "human", "value": ""})
            out.append(message)
        starts.append(len(out) - 1)
    return {
        "conversations": out,
        "system": system,
        "tools": tools_text(sample) if sample.tools else "",
        "metadata": metadata(sample, starts),
    }


def _message(turn: Turn) -> dict[str, str]:
    if turn.role == "tool":
        return {"from": "observation", "value": turn.content}
    if turn.role != "assistant":
        return {"from": "human", "value": turn.content}
    if not turn.tool_calls:
        return {"from": "gpt", "value": think(turn.reasoning, turn.content) if turn.reasoning else turn.content}
    calls = [{"name": call.name, "arguments": arguments_of(call)} for call in turn.tool_calls]
    value = json.dumps(calls, ensure_ascii=False)
    thoughts = "\n\n".join(part for part in (turn.reasoning, turn.content) if part)
    return {"from": "function_call", "value": think(thoughts, value) if thoughts else value}


SHAREGPT = Format(
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
