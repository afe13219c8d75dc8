"""Parquet columns that several formats share. A column is a type's name, a dict (struct) or a list of one (list)."""

from __future__ import annotations

from typing import Any

TOOL_CALLS: list[dict[str, Any]] = [
    {"id": "string", "type": "string", "function": {"name": "string", "arguments": "string"}}
]
"""Arguments are JSON text: in a struct, a call would get the keys of every other tool, with null."""

METADATA: dict[str, Any] = {
    "source_name": "string",
    "sample_id": "string",
    "trajectory_id": "string",
    "chain_id": "string",
    "repository": "string",
    "licence": "string",
    "language": "string",
    "sample": "int64",
    "scaffold": "string",
    "windows": "string",
    "model": "string",
    "judge": "string",
    "outcome": "string",
    "usd": "float64",
    "tokens": "int64",
    "tokens_by": "string",
    "tool_calls": "int64",
    "turns_under_loss": "int64",
    "elided_turns": "int64",
    "broken_marks": "int64",
    "stages": [
        {
            "position": "int64",
            "first_message": "int64",
            "last_message": "int64",
            "attempts": "int64",
            "score": "float64",
            "tests": "string",
            "proof": "string",
            "safeguard": "string",
            "tree": "string",
        }
    ],
}
