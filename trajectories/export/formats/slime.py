"""slime, and any trainer that passes ``messages`` and ``tools`` to a chat template.

By slime's own code (`slime/utils/mask_utils.py`, `slime/utils/data.py`, read at 624b824): loss falls on assistant
messages whose ``step_loss_mask`` is 1; tools may be JSON text; metadata must be an object. EVERY message has
``step_loss_mask``, because Parquet fills a missing key with null, and null is not 1: all turns would be masked. Loss
types ``qwen``, ``qwen3`` and ``qwen3_5`` use it; ``distill_qwen`` always trains on the last message alone. ``qwen3_5``
searches the rendered text for the assistant's turns, so no text may hold the marks of a turn
(`prchain.core.llm.special_tokens`).
"""

from __future__ import annotations

from typing import Any

from trajectories.export.chat import chat_message, metadata, tools_text
from trajectories.export.columns import METADATA, TOOL_CALLS
from trajectories.export.format import Format
from trajectories.export.samples import Sample
from trajectories.export.turn_tokens import token_sequence


def row(sample: Sample) -> dict[str, Any]:
    """A line for slime: ``--input-key messages --tool-key tools``, without ``--apply-chat-template``."""
    messages = [
        chat_message(turn) | {"step_loss_mask": int(turn.train), "loss_reason": str(turn.reason)}
        for turn in sample.turns
    ]
    return {
        "messages": messages,
        "tools": tools_text(sample),
        "metadata": metadata(sample),
        **_tokens(sample),
    }


def _tokens(sample: Sample) -> dict[str, Any]:
    """The fields of slime's own samples (`slime/utils/types.py`), where the endpoint gave the tokens and each prompt
    goes on from what was before: what was sampled, token by token."""
    found = token_sequence(sample.turns)
    if found is None:
        return {}
    return {
        "tokens": list(found.ids),
        "response_length": len(found.mask),
        "loss_mask": list(found.mask),
        "rollout_log_probs": list(found.logprobs),
    }


FORMAT = Format(
    "slime",
    row,
    loss="step_loss_mask",
    tells_tokens=True,
    columns={
        "messages": [
            {
                "role": "string",
                "content": "string",
                "reasoning_content": "string",
                "tool_calls": TOOL_CALLS,
                "tool_call_id": "string",
                "name": "string",
                "step_loss_mask": "int64",
                "loss_reason": "string",
            }
        ],
        "tools": "string",
        "metadata": METADATA,
    },
)
