"""How many tokens a sample has: by a tokenizer and its chat template, by a tokenizer alone, or by an estimate.

A count says which of the three it is, because a length limit on an estimate is no promise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from prchain.errors import UsageError
from trajectories.export.formats.chat import chat_messages
from trajectories.export.samples import Sample, Turn

BYTES_A_TOKEN = 4
"""What the dry runs of prchain count with, too."""

OVERHEAD = 4
"""Tokens around a message where no chat template tells: ChatML's marks, role and line ends."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The count of a sample. `trained` are those of the texts under loss, without what the template puts around."""

    total: int
    trained: int


class Counter(Protocol):
    """Counts tokens."""

    @property
    def method(self) -> str:
        """``template`` (exact), ``texts`` (texts exact, the template's own tokens estimated) or ``estimate``."""

    @property
    def description(self) -> str:
        """One line for people: how it was counted."""

    def text(self, text: str) -> int:
        """Tokens of a text alone."""

    def sample(self, sample: Sample) -> Tokens:
        """Tokens of a whole sample."""


class Estimate:
    """Four bytes a token."""

    method = "estimate"
    description = f"estimated by {BYTES_A_TOKEN} bytes a token; give --tokenizer for exact counts"

    def text(self, text: str) -> int:
        return -(-_size(text) // BYTES_A_TOKEN)

    def sample(self, sample: Sample) -> Tokens:
        return _summed(self, sample)


class TokenizerCounter:
    """By a ``tokenizer.json``, with the chat template that lies beside it."""

    def __init__(self, file: Path) -> None:
        """Raises `UsageError` where the file, or what lies beside it, cannot be used or tokenizers is not installed."""
        self._tokenizer = _tokenizer(file)
        self._template = _template(file.parent)
        self.method = "template" if self._template else "texts"
        exact = "and the chat template beside it" if self._template else (
            f"with {OVERHEAD} tokens around a message: no chat template lies beside it"
        )  # fmt: skip
        self.description = f"counted by {file.name} {exact}"

    def text(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) if text else 0

    def sample(self, sample: Sample) -> Tokens:
        """Raises `UsageError` where the template refuses the conversation."""
        counted = _summed(self, sample)
        if self._template is None:
            return counted
        rendered = self._template(chat_messages(sample), sample.tools)
        return Tokens(self.text(rendered), counted.trained)


def counter(tokenizer: Path | None) -> Counter:
    """The counter for a tokenizer's file; an estimate without one."""
    return TokenizerCounter(tokenizer) if tokenizer else Estimate()


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _summed(counts: Counter, sample: Sample) -> Tokens:
    total = counts.text(json.dumps(sample.tools)) if sample.tools else 0
    trained = 0
    for turn in sample.turns:
        tokens = sum(counts.text(text) for text in _texts(turn))
        total += tokens + OVERHEAD
        trained += tokens if turn.train else 0
    return Tokens(total, trained)


def _texts(turn: Turn) -> list[str]:
    called = [part for call in turn.tool_calls for part in (call.name, call.arguments)]
    return [text for text in (turn.reasoning, turn.content, *called) if text]


def _tokenizer(file: Path) -> Any:
    try:
        package = import_module("tokenizers")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("--tokenizer needs the package tokenizers: install prchain with its extra [tokens]") from error
    if not file.is_file():
        raise UsageError(f"{file} is no file; give the path of a tokenizer.json")
    try:
        return package.Tokenizer.from_file(str(file))
    except Exception as error:  # the boundary to tokenizers, which raises nothing narrower
        raise UsageError(f"{file} is no tokenizer.json that tokenizers can read: {str(error)[:200]}") from error


class _Template:
    """A chat template as transformers renders it: Jinja in a sandbox, blocks trimmed, ``tojson`` without escapes."""

    def __init__(self, source: str, specials: Mapping[str, str]) -> None:
        from jinja2 import TemplateError  # noqa: PLC0415
        from jinja2.ext import loopcontrols  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

        def refuse(message: str) -> str:
            raise TemplateError(message)

        def tojson(value: Any, indent: int | None = None, **_: Any) -> str:
            return json.dumps(value, ensure_ascii=False, indent=indent)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = tojson
        environment.globals["raise_exception"] = refuse
        environment.globals["strftime_now"] = lambda form: "2000-01-01"  # a date's length hardly changes
        self._errors = (TemplateError, TypeError, ValueError, KeyError, AttributeError)
        self._specials = specials
        try:
            self._compiled = environment.from_string(source)
        except TemplateError as error:
            raise UsageError(f"the chat template beside the tokenizer cannot be read: {error}") from error

    def __call__(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
        try:
            return self._compiled.render(
                messages=messages, tools=list(tools) or None, add_generation_prompt=False, **self._specials
            )
        except self._errors as error:
            raise UsageError(f"the chat template beside the tokenizer refuses a conversation: {error}") from error


def _template(folder: Path) -> _Template | None:
    """The template of ``chat_template.jinja`` or ``tokenizer_config.json``, as transformers looks for it."""
    specials: dict[str, str] = {}
    source: str | None = None
    try:
        config = folder / "tokenizer_config.json"
        if config.is_file():
            stored = json.loads(config.read_text(encoding="utf-8"))
            for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
                token = stored.get(name)
                specials[name] = str(token.get("content", "") if isinstance(token, dict) else token or "")
            found = stored.get("chat_template")
            if isinstance(found, list):  # named templates
                found = next((one["template"] for one in found if one.get("name") == "default"), None)
            source = found
        if (folder / "chat_template.jinja").is_file():
            source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"the tokenizer's settings in {folder} cannot be read: {error}") from error
    return _Template(source, specials) if source else None
