"""The recommended action: one call of the agent's tools, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trajectories.agents.scaffolds.turns import read_object

_NAME = re.compile(r"[`\"'\s]*([A-Za-z_][\w-]*)[`\"']*\s*[:(]?\s*")

_LONGEST = 4_000
"""Characters."""


def tool_lines(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a model is told of the agent's tools (in OpenAI's form): name, description and parameters, a line each."""
    lines = []
    for tool in tools:
        about = tool.get("function", {})
        schema = json.dumps(about.get("parameters", {}).get("properties", {}), ensure_ascii=False, sort_keys=True)
        description = " ".join(str(about.get("description", "")).split())
        lines.append(f"{about.get('name')}: {description} Parameters: {schema}")
    return lines


def agents_call(action: str, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """The action as a call of one of the tools, ``name {arguments}``; None where it is none.

    Arguments are a JSON object with the required parameters and no unknown ones. For a tool with a single required
    parameter, which is a text, plain words stand for its value (``bash pytest -q``); for one with two, of which the
    first is a choice, the choice and the rest (``str_replace_editor view /r/a.py``, as in SWE-PRM's listing 6).
    """
    text = action.strip().removeprefix("```").removesuffix("```").strip()
    named = _NAME.match(text)
    if named is None or len(text) > _LONGEST:
        return None
    about = {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool}.get(named.group(1))
    if about is None:
        return None
    rest = text[named.end() :].strip().strip("`").strip()
    parameters = about.get("parameters", {})
    properties, required = parameters.get("properties", {}), list(parameters.get("required", ()))
    arguments = read_object(rest)
    if isinstance(arguments, str):
        words = None if rest.startswith("{") else _in_words(rest, required, properties)
        if words is None:
            return None
        arguments = words
    if set(required) - arguments.keys() or arguments.keys() - properties.keys():
        return None
    if any(properties[name].get("type") == "string" and not isinstance(it, str) for name, it in arguments.items()):
        return None
    return f"{named.group(1)} {json.dumps(arguments, ensure_ascii=False)}"


def _in_words(text: str, required: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments that plain words stand for."""
    about = [properties.get(name, {}) for name in required]
    if any(it.get("type") != "string" for it in about):
        return None
    if len(required) == 1:
        return {required[0]: text}
    first, _, rest = text.partition(" ")
    if len(required) == 2 and first in about[0].get("enum", ()) and len(rest.split()) == 1:
        return {required[0]: first, required[1]: rest.strip()}
    return None
