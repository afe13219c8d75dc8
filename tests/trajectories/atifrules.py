"""The rules of ATIF-v1.8, as Harbor 0.26.0 checks them (`harbor/models/trajectories`), and that a text is UTF-8.

Harbor needs Python 3.12 and hundreds of megabytes of packages, so tests check what it would by these few lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

TEXT, NUMBER, COUNT, OBJECT, LIST, TRUTH = str, int | float, int, dict, list, bool

ROOT = (
    {"schema_version": TEXT, "agent": OBJECT, "steps": LIST},
    {
        **dict.fromkeys(("session_id", "trajectory_id", "notes", "continued_trajectory_ref"), TEXT),
        **dict.fromkeys(("final_metrics", "extra"), OBJECT),
        "subagent_trajectories": LIST,
    },
)
AGENT = {"name": TEXT, "version": TEXT}, {"model_name": TEXT, "tool_definitions": LIST, "extra": OBJECT}
STEP = (
    {"step_id": COUNT, "source": TEXT, "message": TEXT},
    {
        "timestamp": TEXT,
        "observation": OBJECT,
        "is_copied_context": TRUTH,
        "llm_call_count": COUNT,
        "extra": OBJECT,
    },
)
OF_AGENTS = {
    "model_name": TEXT,
    "reasoning_effort": str | int | float,
    "reasoning_content": TEXT,
    "tool_calls": LIST,
    "metrics": OBJECT,
}
CALL = {"tool_call_id": TEXT, "function_name": TEXT, "arguments": OBJECT}, {"extra": OBJECT}
RESULT: tuple[dict[str, Any], dict[str, Any]] = (
    {},
    {"source_call_id": TEXT, "content": TEXT, "subagent_trajectory_ref": LIST, "extra": OBJECT},
)
METRICS: tuple[dict[str, Any], dict[str, Any]] = (
    {},
    {
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens"), COUNT),
        "cost_usd": NUMBER,
        **dict.fromkeys(("prompt_token_ids", "completion_token_ids", "logprobs"), LIST),
        "extra": OBJECT,
    },
)
FINAL: tuple[dict[str, Any], dict[str, Any]] = (
    {},
    {
        **dict.fromkeys(("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"), COUNT),
        "total_cost_usd": NUMBER,
        "total_steps": COUNT,
        "extra": OBJECT,
    },
)


def broken_rules(document: Any) -> list[str]:
    """What Harbor, or a reader of strict JSON, would refuse of a document."""
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError) as error:
        return [str(error)]
    return list(_broken(document))


def _broken(document: Any) -> Iterator[str]:
    if faults := list(_keys("root", document, *ROOT)):
        yield from faults
        return
    if document["schema_version"] not in [f"ATIF-v1.{minor}" for minor in range(9)]:
        yield "schema_version"
    yield from _keys("agent", document["agent"], *AGENT)
    yield from _keys("final_metrics", document.get("final_metrics", {}), *FINAL)
    if not document["steps"]:
        yield "no steps"
    for number, step in enumerate(document["steps"], 1):
        yield from _step(number, step)


def _step(number: int, step: Any) -> Iterator[str]:
    where = f"step {number}"
    of_agent = isinstance(step, dict) and step.get("source") == "agent"
    needed, allowed = STEP
    if faults := list(_keys(where, step, needed, allowed | (OF_AGENTS if of_agent else {}))):
        yield from faults
        return
    if step["step_id"] != number:
        yield f"{where}: step_id is {step['step_id']}"
    if step["source"] not in {"system", "user", "agent"}:
        yield f"{where}: source"
    if "timestamp" in step and not _holds(datetime.fromisoformat, step["timestamp"]):
        yield f"{where}: timestamp"
    if step.get("llm_call_count") == 0 and {"metrics", "reasoning_content"} & set(step):
        yield f"{where}: metrics of no call"
    yield from _keys(f"{where}: metrics", step.get("metrics", {}), *METRICS)
    for call in step.get("tool_calls", []):
        yield from _keys(f"{where}: call", call, *CALL)
    calls = {call.get("tool_call_id") for call in step.get("tool_calls", [])}
    yield from _keys(f"{where}: observation", step.get("observation", {"results": []}), {"results": LIST}, {})
    for result in step.get("observation", {}).get("results", []):
        yield from _keys(f"{where}: result", result, *RESULT)
        if "source_call_id" in result and result["source_call_id"] not in calls:
            yield f"{where}: source_call_id of another step"


def _keys(where: str, value: Any, needed: Mapping[str, Any], allowed: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is no object"
        return
    kinds = {**allowed, **needed}
    yield from (f"{where}: no {name}" for name in needed if name not in value)
    yield from (f"{where}: unknown key {name}" for name in value if name not in kinds)
    yield from (
        f"{where}: {name} is a {type(value[name]).__name__}"
        for name, kind in kinds.items()
        if name in value
        and (
            not isinstance(value[name], kind)
            or (kind is not TRUTH and value[name] in (True, False) and isinstance(value[name], bool))
        )
    )


def _holds(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True
