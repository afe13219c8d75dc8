"""ShareGPT as LLaMA-Factory reads it: ``conversations`` of ``from`` and ``value``, strictly in turns.

By LLaMA-Factory's code (`src/llamafactory/data/converter.py`, `formatter.py`): what is asked (``human``,
``observation``) and what is said (``gpt``, ``function_call``) must alternate, else the row is skipped with a warning; a
``function_call`` holds JSON, and before it nothing but thoughts in ``<think>``; where a second end of thoughts or a
``<tool_call>`` stands anywhere in it, preprocessing is aborted. No message can be left out of the loss: per-turn rows
with ``mask_history: true`` train on their last turn alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

from trajectories.export.chat import arguments_of, metadata, think, tools_text
from trajectories.export.columns import METADATA
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage

_ASKED = ("human", "observation")
_OWN_THOUGHTS = re.compile(r"\s*<think>(?P<thoughts>.*?)</think>", re.DOTALL)
"""How a content begins whose reasoning nobody took out of it."""


def row(sample: Sample) -> dict[str, Any]:
    """A line; questions in a row become one, and between two answers stands an empty question."""
    system = ""
    out: list[dict[str, str]] = []
    places: list[range] = []
    for turn in sample.turns:
        if turn.role == "system":
            system = f"{system}\n\n{turn.content}" if system else turn.content
            places.append(range(1))
            continue
        message = _message(turn)
        asked = message["from"] in _ASKED
        if out and asked and out[-1]["from"] in _ASKED:
            out[-1]["value"] += f"\n\n{message['value']}"
        else:
            if out and not asked and out[-1]["from"] not in _ASKED:
                out.append({"from": "human", "value": ""})
            out.append(message)
        places.append(range(len(out) - 1, len(out)))
    return {
        "conversations": out,
        "system": system,
        "tools": tools_text(sample) if sample.tools else "",
        "metadata": metadata(sample, places),
    }


def _message(turn: SampleMessage) -> dict[str, str]:
    if turn.role == "tool":
        return {"from": "observation", "value": turn.content}
    if turn.role != "assistant":
        return {"from": "human", "value": turn.content}
    if not turn.tool_calls:
        return {"from": "gpt", "value": think(turn.reasoning, turn.content) if turn.reasoning else turn.content}
    calls = [{"name": call.name, "arguments": arguments_of(call)} for call in turn.tool_calls]
    # The escape is JSON's own: the reader's expressions for thoughts and calls then find none in the arguments.
    value = json.dumps(calls, ensure_ascii=False).replace("<", "\\u003c")
    own = _OWN_THOUGHTS.match(turn.content)
    said = (own["thoughts"], turn.content[own.end() :]) if own else (turn.content,)
    thoughts = "\n\n".join(part.strip() for part in (turn.reasoning or "", *said) if part.strip())
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
