"""How many tokens a sample has: by a tokenizer and its chat template, by a tokenizer alone, or by an estimate.

A count says which of the three it is, because a length limit on an estimate guarantees nothing.

A template guarantees nothing either if it leaves texts out. Qwen3's drops the reasoning of earlier turns of a
conversation, but slime renders the messages one at a time and trains on it. Reasoning that a template drops is
therefore added to the count, and the count says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prchain.core.errors import UsageError
from trajectories.export.chat import chat_messages
from trajectories.export.samples import Sample, SampleMessage

if TYPE_CHECKING:
    from trajectories.export.chat_template import ChatTemplate

BYTES_A_TOKEN = 4
"""The same number as in the dry runs of prchain."""

OVERHEAD = 4
"""Tokens around a message without a chat template: ChatML's marks, role and line ends. The same around thoughts."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The count of a sample. `trained` counts the texts under loss, without what the template puts around them."""

    total: int
    trained: int
    by: str
    """How `total` was counted: ``template`` (the rendered conversation), ``template_and_reasoning`` (with the reasoning
    that the template drops), ``texts`` (the texts, and an estimate of the template's tokens) or ``estimate``."""
    texts: tuple[int, ...] = field(default=(), compare=False)
    """Of the texts of each turn, in their order, where a whole sample was counted."""


class Counter(Protocol):
    """Counts tokens."""

    @property
    def method(self) -> str:
        """Its most exact method: ``template``, ``texts`` or ``estimate``, as in `Tokens.by`."""

    @property
    def of_texts(self) -> str:
        """Its method without a template: ``texts`` or ``estimate``."""

    @property
    def description(self) -> str:
        """One line for people: how it was counted."""

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def sample(self, sample: Sample) -> Tokens:
        """Tokens of a whole sample."""


class TokenEstimate:
    """Four bytes a token."""

    method = of_texts = "estimate"
    description = f"estimated by {BYTES_A_TOKEN} bytes a token; give --tokenizer for exact counts"

    def text(self, text: str) -> int:
        return -(-_size(text) // BYTES_A_TOKEN)

    def sample(self, sample: Sample) -> Tokens:
        return _text_tokens(self, sample)


class TokenizerCounter:
    """By a ``tokenizer.json``, with the chat template in its folder."""

    of_texts = "texts"

    def __init__(self, file: Path) -> None:
        """Raises `UsageError` if the file or its chat template cannot be used, or tokenizers is not installed."""
        self._tokenizer = _tokenizer(file)
        self._template = _template_beside(file.parent)
        self.method = "template" if self._template else "texts"
        exact = (
            "and the chat template beside it, with the reasoning that the template drops"
            if self._template
            else f"with {OVERHEAD} tokens around a message: no chat template lies beside it"
        )
        self.description = f"counted by {file.name} {exact}"

    def text(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) if text else 0

    def sample(self, sample: Sample) -> Tokens:
        """Raises `UsageError` where the template refuses the conversation."""
        text_tokens = _text_tokens(self, sample)
        if self._template is None:
            return text_tokens
        rendered_total = self._rendered(self._template, sample)
        thoughts = [self.text(turn.reasoning) for turn in sample.turns if turn.reasoning]
        if thoughts:
            without_reasoning = replace(sample, turns=tuple(replace(turn, reasoning=None) for turn in sample.turns))
            bare_total = self._rendered(self._template, without_reasoning)
            if rendered_total < bare_total + sum(thoughts):
                total = bare_total + sum(thoughts) + OVERHEAD * len(thoughts)
                return replace(text_tokens, total=total, by="template_and_reasoning")
        return replace(text_tokens, total=rendered_total, by="template")

    def _rendered(self, template: ChatTemplate, sample: Sample) -> int:
        return self.text(template(chat_messages(sample), sample.tools))


def counter(tokenizer: Path | None) -> Counter:
    """The counter for a tokenizer's file; an estimate without one."""
    return TokenizerCounter(tokenizer) if tokenizer else TokenEstimate()


def with_tokens(sample: Sample, tokens: Tokens) -> Sample:
    """The sample with its count in its facts."""
    return replace(sample, facts={**sample.facts, "tokens": tokens.total, "tokens_by": tokens.by})


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cumulative_tokens(counts: Counter, sample: Sample) -> Iterator[Tokens]:
    """The count of the sample cut after its first turn, after its second one, ...: of the texts alone, because
    rendering every beginning of a long conversation takes minutes."""
    total = _tool_tokens(counts, sample)
    trained = 0
    for turn in sample.turns:
        tokens = _turn_tokens(counts, turn)
        total += tokens + OVERHEAD
        trained += tokens if turn.train else 0
        yield Tokens(total, trained, counts.of_texts)


def _text_tokens(counts: Counter, sample: Sample) -> Tokens:
    texts = tuple(_turn_tokens(counts, turn) for turn in sample.turns)
    trained = sum(tokens for tokens, turn in zip(texts, sample.turns, strict=True) if turn.train)
    return Tokens(_tool_tokens(counts, sample) + sum(texts) + OVERHEAD * len(texts), trained, counts.of_texts, texts)


def _tool_tokens(counts: Counter, sample: Sample) -> int:
    return counts.text(json.dumps(sample.tools)) if sample.tools else 0


def _turn_tokens(counts: Counter, turn: SampleMessage) -> int:
    return sum(counts.text(text) for text in _texts(turn))


def _texts(turn: SampleMessage) -> list[str]:
    call_texts = [part for call in turn.tool_calls for part in (call.name, call.arguments)]
    return [text for text in (turn.reasoning, turn.content, *call_texts) if text]


def _tokenizer(file: Path) -> Any:
    try:
        package = import_module("tokenizers")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("--tokenizer needs the package tokenizers: install prchain with its extra [tokens]") from error
    if not file.is_file():
        raise UsageError(f"{file} is no file; give the path of a tokenizer.json")
    try:
        tokenizer = package.Tokenizer.from_file(str(file))
    except Exception as error:  # the boundary to tokenizers, which raises nothing narrower
        raise UsageError(f"{file} is no tokenizer.json that tokenizers can read: {str(error)[:200]}") from error
    # A file that was saved during a training run holds that run's truncation and padding.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _template_beside(folder: Path) -> ChatTemplate | None:
    from trajectories.export.chat_template import template_beside  # noqa: PLC0415  Jinja is loaded where it is used

    return template_beside(folder)
