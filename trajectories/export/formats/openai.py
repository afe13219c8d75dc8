"""OpenAI's fine-tuning files: ``weight`` 0 or 1 on assistant messages, arguments as JSON text, tools as a list.

By the API's specification (`FineTuneChatRequestInput`): its keys are ``messages``, ``tools`` and
``parallel_tool_calls`` alone, so stages, verdicts and reasoning are not written.
"""

from __future__ import annotations

from typing import Any

from trajectories.export.chat import as_text
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage


def row(sample: Sample) -> dict[str, Any]:
    """A line of a training file."""
    line: dict[str, Any] = {"messages": [_message(turn) for turn in sample.turns]}
    if sample.tools:
        line["tools"] = [dict(tool) for tool in sample.tools]
        line["parallel_tool_calls"] = any(len(turn.tool_calls) > 1 for turn in sample.turns)
    return line


def _message(turn: SampleMessage) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.tool_call_id or "", "content": turn.content}
    if turn.role != "assistant":
        return {"role": turn.role, "content": turn.content}
    message: dict[str, Any] = {"role": "assistant", "weight": int(turn.train)}
    if turn.tool_calls:
        message["tool_calls"] = [as_text(call) for call in turn.tool_calls]
    if turn.content or not turn.tool_calls:
        message["content"] = turn.content
    return message


FORMAT = Format("openai", row, loss="weight", takes_reasoning=False)
