"""What an endpoint's message says and what it thinks, wherever they stand: in fields, in parts of the content, in text.

Fields and parts are those of the wires that call themselves compatible: ``reasoning_content`` (DeepSeek's API guide,
"Thinking Mode"; LiteLLM), ``reasoning`` (vLLM, "Reasoning Outputs"; Groq; OpenRouter), ``reasoning_details``
(OpenRouter's guide "Reasoning Tokens": ``reasoning.text``, ``reasoning.summary``, ``reasoning.encrypted``),
``thinking`` (Ollama), ``thinking_blocks`` (LiteLLM, of Anthropic's blocks), ``reasoning_text`` (GitHub Copilot), and
contents that are lists of parts: Mistral's ``thinking``, whose text is a list again, Databricks' ``reasoning`` with a
``summary``, Anthropic's ``thinking`` and ``redacted_thinking``. What is encrypted or signed is no text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prchain.core.llm.channels import Said
from prchain.core.llm.thoughts import joined, separated

_FIELDS = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
)
"""Fields of a message with its thoughts. Endpoints give the same thoughts in several of them: the first counts."""

_SAID = frozenset({"text", "output_text", None})
_THOUGHT = ("thinking", "reasoning", "thought", "summary")
"""How the types of parts begin that are thoughts."""

_TEXT_KEYS = ("text", "thinking", "reasoning", "content", "summary", "reasoning_text", "reasoning_content")
"""Where a part has its text."""

_DEEPEST = 6
"""Levels of parts in parts."""


def said_in(message: Mapping[str, Any], *, cut: bool = False) -> Said:
    """What a message says and thinks; `cut` as for `prchain.core.llm.thoughts.separated`.

    The message is what an endpoint answered: any field may have any type, and one that has an odd one says nothing.
    """
    told = next(filter(str.strip, (_text_of(message.get(name)) for name in _FIELDS)), "")
    text, thought = _content(message.get("content"))
    parsed = bool(told or thought)
    said = separated(text, cut=cut, parsed=parsed)
    return Said(said.content, joined(told, thought, said.thoughts) if thought or said.thoughts else told)


def _content(value: Any) -> tuple[str, str]:
    """The text and the thoughts of a content: a text, or a list of parts."""
    if not isinstance(value, list):
        return (value if isinstance(value, str) else ""), ""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in value:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = part.get("type")
            if isinstance(kind, str) and (kind.startswith(_THOUGHT) or (kind in _SAID and part.get("thought") is True)):
                thoughts.append(_text_of(part))
            elif kind in _SAID:
                texts.append(_text_of(part.get("text")))
    return "".join(texts), "".join(thoughts)


def _text_of(value: Any, depth: int = 0) -> str:
    """The text of a field or a part, whatever holds it."""
    if isinstance(value, str):
        return value
    if depth == _DEEPEST:
        return ""
    if isinstance(value, list):
        return "".join(_text_of(part, depth + 1) for part in value)
    if isinstance(value, dict):
        return next(filter(None, (_text_of(value.get(key), depth + 1) for key in _TEXT_KEYS)), "")
    return ""
