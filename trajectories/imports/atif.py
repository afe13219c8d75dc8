"""ATIF, Harbor's Agent Trajectory Interchange Format, as trajectories of ours: pure, from JSON to values.

By Harbor 0.26.0 (`harbor/models/trajectories`), whose classes read versions 1.0 to 1.8 alike: later versions added
keys, and changed none. What these classes refuse is refused here, but for keys that they do not know, which are passed
over.

What prchain wrote (`trajectories.export.formats.atif`) gets its stages, rounds, kinds of messages, faults, verdicts
and loss flags back, out of ``extra``. Of any other document all is one round of one stage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from prchain.core.storable import clean_text
from trajectories.imports.document import ForeignTrajectory
from trajectories.imports.nodes import JsonNode
from trajectories.imports.steps import Clean, StepReader, cleaned
from trajectories.imports.told import FOREIGN, PROGRAM, amount_of, places_of, stages_of, text_of, told_of, whole_of

MARK = "ATIF-"
"""What the version of each of its documents begins with."""

_VERSION = re.compile(r"ATIF-v1\.[0-8]")
_REPOSITORY = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}")
_LONGEST_NAME = 255
_TWICE = "mini-swe-agent"
"""Harbor writes what this agent says into message and reasoning alike."""


def is_atif(value: Any) -> bool:
    """Whether a JSON value says that it is such a document."""
    return isinstance(value, dict) and str(value.get("schema_version")).startswith(MARK)


def read_atif(value: Any, clean: Clean) -> ForeignTrajectory:
    """The trajectory of a document. Raises `BadDocument`."""
    root = JsonNode.of(value, "")
    version = root.text("schema_version")
    if not _VERSION.fullmatch(version):
        raise root.bad("schema_version", f"is {version[:40]!r}; known are ATIF-v1.0 to ATIF-v1.8")
    agent = root.node("agent")
    if agent is None:
        raise root.bad("agent", "is missing")
    name, agent_version = agent.text("name"), agent.text("version")
    steps = list(root.nodes("steps", "step"))
    if not steps:
        raise root.bad("steps", "holds no step")
    places = places_of(steps) if agent.extra().get("program") == PROGRAM else None
    reader = StepReader(clean, name == _TWICE, ours=places is not None)
    for number, step in enumerate(steps, 1):
        reader.take(number, step, places[number - 1] if places else FOREIGN)
    left_out = reader.left_out
    left_out["subagents"] += len(root.items("subagent_trajectories"))
    left_out["continuations"] += root.known_text("continued_trajectory_ref") is not None
    extra = root.extra()
    tools = [cleaned(tool, clean) for tool in agent.items("tool_definitions") if _is_tool(tool)]
    left_out["tools"] += len(agent.items("tool_definitions")) - len(tools)
    stages, verdicts = stages_of(reader.entries, extra if places else {}, left_out)
    final = root.node("final_metrics") or JsonNode({}, "final_metrics")

    def short(text: str | None, most: int = _LONGEST_NAME) -> str | None:
        return clean_text(clean(text))[:most] if text else None

    return ForeignTrajectory(
        content=content_hash(value),
        form=version,
        agent=short(name) or "",
        agent_version=short(agent_version) or "",
        entries=tuple(reader.entries),
        stages=stages,
        verdicts=verdicts,
        model=short(agent.known_text("model_name") or reader.model),
        judge=short(text_of(extra, "judge")) if places else None,
        session=short(root.known_text("session_id")),
        document=short(root.known_text("trajectory_id")),
        source=short(_source(extra)),
        licence=short(text_of(extra, "licence") or text_of(extra, "license"), 64),
        repository=_repository(extra),
        tools=tuple(tools),
        overview=clean(told) if places and (told := text_of(extra, "overview")) else None,
        sample=whole_of(extra.get("sample"), 0) if places else 0,
        usd=amount_of(extra, "usd") if places else (final.number("total_cost_usd") or reader.usd),
        tokens_in=reader.tokens("tokens_in"),
        tokens_out=reader.tokens("tokens_out"),
        told=told_of(extra, short) if places else {},
        left_out=+left_out,
    )


def content_hash(value: Any) -> str:
    """The hash of a JSON value, whatever the order of its keys."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _source(extra: Mapping[str, Any]) -> str | None:
    imported = extra.get("imported")
    told = imported if isinstance(imported, dict) else {}
    return text_of(extra, "source") or text_of(told, "source")


def _repository(extra: Mapping[str, Any]) -> str | None:
    name = text_of(extra, "repository")
    return name if name and _REPOSITORY.fullmatch(name) else None


def _is_tool(tool: Any) -> bool:
    """Whether it has OpenAI's form, which all formats of exports take."""
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type") != "function":
        return False
    kinds = {"name": str, "description": str, "parameters": dict}
    return "name" in function and all(isinstance(function[it], kinds[it]) for it in kinds if it in function)
