"""TRL's SFTTrainer: ``messages``, or ``prompt`` and ``completion`` in per-turn rows; tools as JSON text.

By TRL's code (`trl/trainer/sft_trainer.py`): no message can be masked, but a row of prompt and completion trains on the
completion alone. ``assistant_only_loss`` on conversations trains on each assistant message.
"""

from __future__ import annotations

from typing import Any

from trajectories.export.chat import chat_messages, metadata, tools_text
from trajectories.export.columns import METADATA, TOOL_CALLS
from trajectories.export.format import Format
from trajectories.export.samples import Sample

_MESSAGE = {
    "role": "string",
    "content": "string",
    "reasoning_content": "string",
    "tool_calls": TOOL_CALLS,
    "tool_call_id": "string",
    "name": "string",
}


def row(sample: Sample) -> dict[str, Any]:
    """A conversation, for ``assistant_only_loss=True``."""
    return {"messages": chat_messages(sample), **_rest(sample)}


def per_turn(sample: Sample) -> dict[str, Any]:
    """A prompt, and the turn under loss as its completion."""
    messages = chat_messages(sample)
    return {"prompt": messages[:-1], "completion": messages[-1:], **_rest(sample)}


def _rest(sample: Sample) -> dict[str, Any]:
    return {"tools": tools_text(sample), "metadata": metadata(sample)}


FORMAT = Format(
    "trl",
    row,
    loss=None,
    per_turn=per_turn,
    turns_hint="completion_only_loss, TRL's default for them, does the rest",
    columns={
        "messages": [_MESSAGE],
        "prompt": [_MESSAGE],
        "completion": [_MESSAGE],
        "tools": "string",
        "metadata": METADATA,
    },
)
