"""What is said to a model and what it says: values, and the protocol that every kind of model satisfies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool as the model wrote it; `arguments` is the raw text, which may be no JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Of a tool's message: the call that it answers."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that is sent to a model."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply has to satisfy; None for free text."""
    schema_name: str = "reply"
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools in OpenAI's form: ``{"type": "function", "function": {...}}``."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a call used, as the endpoint counted them; None where it does not say."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a model."""

    text: str
    model: str
    finish: str = "stop"
    """``stop``, ``length``, ``tool_calls``, ``content_filter`` or what else the endpoint says."""
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    """Something that answers requests: an endpoint, or a script."""

    @property
    def name(self) -> str:
        """The model's name, as the ledger keeps it."""

    def complete(self, request: Request) -> Reply:
        """Answer one request with one paid call at most; raises `LLMError`."""
