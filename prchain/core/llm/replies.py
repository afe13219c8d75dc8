"""Reading a model's reply: hostile text, until it has become a value of the shape that was asked for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from prchain.core.llm.model import Reply
from prchain.core.storable import clean_text

Shape = TypeVar("Shape", bound=BaseModel)

_DEEPEST = 64
"""Levels of nested objects and lists; every requested shape has fewer than ten."""

_MOST_COMPLAINTS = 8
"""So many faults of a reply are told to the model; more would not help it."""

_LONGEST_KEY = 80

_BOUNDS = {"minimum": "from", "maximum": "to"}
"""A schema's names for the bounds of a number, and ours."""

_TOO_DEEP = "Your JSON is nested too deeply. Reply with one flat JSON object."

_NAMED = ("properties", "$defs")
"""Where a schema's keys are names of the shape's own."""

_OBJECT = re.compile(r"\{\s*[\"'}]")
"""How a JSON object begins, or what is meant to be one. Other braces are prose: ``{x}``, LaTeX, code."""

_BRACE = re.compile(r"[{}]")


class UnfitReply(Exception):
    """The reply is not what was asked for; its `words` tell the model what to do about it."""

    def __init__(self, words: str, *, cut_off: bool = False, refused: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.cut_off = cut_off
        self.refused = refused


def read_text(reply: Reply) -> str:
    """The text of a reply to a question that wants prose. Raises `UnfitReply`."""
    _refuse_what_is_no_text(reply)
    text = reply.text.strip()
    if not text:
        raise UnfitReply("Your reply was empty. Answer the question in plain text.")
    return text


def read_shape(reply: Reply, shape: type[Shape]) -> Shape:
    """The value that a reply in JSON holds, checked against `shape` with strict types. Raises `UnfitReply`.

    A Markdown fence or prose around one JSON object is tolerated, and so are keys that nobody asked for: they say
    nothing that is used. Where a shape forbids them (pydantic's ``extra="forbid"``), they are faults. Not a number,
    infinity, keys given twice, and more than one object are not tolerated: what such a reply means would be a guess.
    """
    _refuse_what_is_no_text(reply)
    value = find_object(reply.text)
    properties = closed_schema(shape).get("properties", value)
    extra_keys = [key for key in value if key not in properties]
    doubtful = extra_keys if shape.model_config.get("extra") == "forbid" else _doubtful(extra_keys, value, properties)
    complaints = [f"{key[:_LONGEST_KEY]}: no such key was asked for" for key in doubtful]
    try:
        requested = {key: part for key, part in value.items() if key in properties}
        parsed = shape.model_validate_json(json.dumps(requested), strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        complaints += [f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}" for fault in faults]
    if complaints:
        raise UnfitReply(
            f"Your JSON does not fit the schema: {'; '.join(complaints[:_MOST_COMPLAINTS])}. Reply with the corrected "
            "JSON object alone."
        )
    return parsed


def _doubtful(extra_keys: Iterable[str], value: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    """The extra keys that may stand for a requested one: one is missing, or has nearly the same name."""
    missing = properties.keys() - value.keys()
    names = {_folded(name) for name in properties}
    return [key for key in extra_keys if missing or _folded(key) in names]


def _folded(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold()


def find_object(text: str) -> dict[str, Any]:
    """The one JSON object of a text, whatever prose is around it. Raises `UnfitReply`.

    An object inside something broken is not taken for the answer: it may be any part of it.
    """
    start, end = place_of_object(text)
    value: dict[str, Any] = _clean(_decode(text[:end], start)[0])
    return value


def place_of_object(text: str) -> tuple[int, int]:
    """Where the one JSON object of a text begins and ends; raises as `find_object`.

    An empty one beside it is what people write of code (``it returns {}``).
    """
    found: list[tuple[int, int]] = []
    empty: list[tuple[int, int]] = []
    start = text.find("{")
    while start >= 0 and len(found) < 2:
        is_object = _OBJECT.match(text, start) is not None
        value, end = _decode(text, start) if is_object else ({}, _end_of_prose(text, start))
        if is_object:
            (found if value else empty).append((start, end))
        start = text.find("{", end)
    found = found or empty
    if len(found) != 1:
        count = "more than one JSON object" if found else "no JSON object"
        raise UnfitReply(f"Your reply holds {count}. Reply with exactly one, and nothing else.")
    return found[0]


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    """The object that begins at `start`, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise UnfitReply(_TOO_DEEP) from None
    except ValueError as error:
        fault = " ".join(str(error).split())[:120]
        raise UnfitReply(f"Your reply is no valid JSON ({fault}). Reply with one JSON object alone.") from None
    assert isinstance(value, dict)
    if _is_deep(value):
        raise UnfitReply(_TOO_DEEP)
    return value, end


def _is_deep(value: Any) -> bool:
    """Whether a value is nested more than `_DEEPEST` levels; by level, since recursion is what has to be spared."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for node in level
            if isinstance(node, (dict, list))
            for item in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return any(isinstance(node, (dict, list)) for node in level)


def _end_of_prose(text: str, start: int) -> int:
    """Where a group of braces ends that is no JSON."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    raise UnfitReply("Your reply is no valid JSON (a brace is never closed). Reply with one JSON object alone.")


@lru_cache(maxsize=64)  # shapes of taxonomies are made as they are needed
def closed_schema(shape: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a shape in the form that strict structured output wants.

    Every object lists all its properties as required and takes no others, and nothing has a default: see OpenAI's
    guide "Structured model outputs", supported schemas.
    """
    schema = _close(shape.model_json_schema())
    assert isinstance(schema, dict)
    return schema


def in_words(schema: Mapping[str, Any]) -> str:
    """What to tell a model whose endpoint does not enforce schemas."""
    return (
        "Reply with one JSON object and nothing else: no prose, no Markdown fence. It must satisfy this JSON schema:\n"
        + json.dumps(schema, ensure_ascii=False, sort_keys=True)
    )


def keys_in_words(schema: Mapping[str, Any]) -> str:
    """The keys of a schema's object with their types, in one sentence: what each question for an object ends with.

    An endpoint may take ``response_format`` and do nothing about it.
    """
    keys = ", ".join(f'"{name}" ({_type_of(part, schema)})' for name, part in schema.get("properties", {}).items())
    return f"Reply with one JSON object alone{', which has the keys ' if keys else ''}{keys}."


def _type_of(part: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in part:
        part = schema.get("$defs", {}).get(str(part["$ref"]).rpartition("/")[2], {})
    if "anyOf" in part:
        return " or ".join(_type_of(option, schema) for option in part["anyOf"])
    if "enum" in part:
        return " or ".join(json.dumps(value) for value in part["enum"])
    if isinstance(part.get("items"), Mapping):
        return f"array of {_type_of(part['items'], schema)}"
    bounds = [f"{words} {part[name]:g}" for name, words in _BOUNDS.items() if name in part]
    return " ".join([str(part.get("type", "value")), *bounds])


def _refuse_what_is_no_text(reply: Reply) -> None:
    if reply.refusal or reply.finish == "content_filter":
        raise UnfitReply("You did not answer. Answer the question, in the form that was asked for.", refused=True)
    if reply.finish == "length":
        raise UnfitReply("Your reply was cut off at its length limit. Answer again, more briefly.", cut_off=True)
    if reply.tool_calls:
        raise UnfitReply("There are no tools here. Answer in text, in the form that was asked for.")


def _close(node: Any) -> Any:
    if isinstance(node, list):
        return [_close(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {
        key: {name: _close(part) for name, part in value.items()} if key in _NAMED else _close(value)
        for key, value in node.items()
        if key != "default"
    }
    properties = closed.get("properties")
    if closed.get("type") == "object" and isinstance(properties, dict):
        closed |= {"required": list(properties), "additionalProperties": False}
    return closed


def _clean(value: Any) -> Any:
    """The value without the characters that no database takes, which JSON can smuggle in as escapes."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {clean_text(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return unique


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is out of range")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
