"""mini-swe-agent's trajectories (``mini-swe-agent-1.1``), a file each, as its inspector shows them.

The inspector looks below a folder for ``*.traj.json``, each one JSON object with ``messages`` (its
``run/utilities/inspector.py``).

A trajectory is written whole, with rejected rounds; prchain's own fields are in ``extra`` of a message and in ``info``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajectories.export.chat import as_text, chat_message, metadata
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage
from trajectories.json_text import parsed
from trajectories.outcomes import KEPT

VERSION = "mini-swe-agent-1.1"

SUFFIX = ".traj.json"
"""By which the inspector finds trajectories."""


def row(sample: Sample) -> dict[str, Any]:
    """The trajectory of a sample, as in ``*.traj.json``."""
    return {
        "info": {
            "model_stats": {
                "instance_cost": sample.facts.get("usd") or 0.0,
                "api_calls": sum(turn.role == "assistant" for turn in sample.turns),
            },
            "config": {
                "agent_type": sample.facts.get("scaffold"),
                "model": {"model_name": sample.facts.get("model")},
                "tools": [dict(tool) for tool in sample.tools],
            },
            "exit_status": "Submitted" if sample.facts.get("outcome") in KEPT else str(sample.facts.get("outcome")),
            "submission": "",
            "prchain": metadata(sample),
        },
        "messages": [_message(turn) for turn in sample.turns],
        "trajectory_format": VERSION,
    }


def _message(turn: SampleMessage) -> dict[str, Any]:
    extra: dict[str, Any] = {
        "train": turn.train,
        "reason": str(turn.reason),
        "kind": str(turn.kind),
        "stage": turn.position,
        "attempt": turn.attempt,
        "step": turn.step,
    }
    if turn.role == "assistant":
        extra["actions"] = [{"command": _command(call.arguments), "tool_call_id": call.id} for call in turn.tool_calls]
    return chat_message(turn, as_text) | {"extra": extra}


def _command(arguments: str) -> str:
    """The command of a ``bash`` call; the unchanged arguments of another tool's call."""
    try:
        found = parsed(arguments)
    except ValueError:
        return arguments
    command = found.get("command") if isinstance(found, dict) and len(found) == 1 else None
    return command if isinstance(command, str) else arguments


def file_name(line: Mapping[str, Any]) -> str:
    """The name of a trajectory's file."""
    return f"{line['info']['prchain']['sample_id']}{SUFFIX}"


FORMAT = Format("mini", row, loss="extra.train", trains=False, file_name=file_name, file_pattern=f"*{SUFFIX}")
