"""A tokenizer's chat template, rendered as transformers renders it: an untrusted program, in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from prchain.core.errors import UsageError

_SPECIALS = ("bos_token", "eos_token", "pad_token", "unk_token")


class _Generation(Extension):
    """``{% generation %}`` around the model's words, as in transformers and TRL: its content is printed."""

    tags = {"generation"}  # noqa: RUF012  as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class ChatTemplate:
    """Jinja in a sandbox; blocks are trimmed, ``tojson`` escapes nothing."""

    def __init__(self, source: str, specials: Mapping[str, str]) -> None:
        """`specials` are the tokenizer's names for special tokens. Raises `UsageError` if `source` is no template."""
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: "2000-01-01"  # a date's length hardly changes
        self._specials = specials
        try:
            self._compiled = environment.from_string(source)
        except Exception as error:  # the boundary to an untrusted template: Jinja raises its own errors and Python's
            raise UsageError(f"the chat template beside the tokenizer cannot be read: {_error_text(error)}") from error

    def __call__(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
        """The conversation as one text. Raises `UsageError` where the template refuses it."""
        try:
            return self._compiled.render(
                messages=messages, tools=list(tools) or None, add_generation_prompt=False, **self._specials
            )
        except Exception as error:  # the boundary to an untrusted template, which may raise any exception
            raise UsageError(
                f"the chat template beside the tokenizer refuses a conversation: {_error_text(error)}"
            ) from error


def template_beside(folder: Path) -> ChatTemplate | None:
    """The template in ``chat_template.jinja`` or ``tokenizer_config.json``, found as transformers finds it; None if
    there is none. Raises `UsageError`."""
    specials: dict[str, str] = {}
    source: str | None = None
    config, alone = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    try:
        if config.is_file():
            stored = json.loads(config.read_text(encoding="utf-8"))
            for name in _SPECIALS:
                token = stored.get(name)
                specials[name] = str(token.get("content", "") if isinstance(token, dict) else token or "")
            if not alone.is_file():
                source = _default(stored.get("chat_template"))
        if alone.is_file():
            source = alone.read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"the tokenizer's settings in {folder} cannot be read: {_error_text(error)}") from error
    return ChatTemplate(source, specials) if source else None


def _default(stored: Any) -> str | None:
    """The template in a tokenizer's settings: a text, or of several the one named ``default``. Raises `ValueError`."""
    if isinstance(stored, list):
        stored = {template["name"]: template["template"] for template in stored}
    if isinstance(stored, dict):
        if "default" not in stored:
            raise ValueError("it names several chat templates, and none of them default")
        stored = stored["default"]
    if stored is not None and not isinstance(stored, str):
        raise ValueError(f"its chat template is no text but a {type(stored).__name__}")
    return stored


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> str:
    raise TemplateError(message)


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
