"""Requests to models and their replies as values, and the protocol of every kind of model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from prchain.core.llm.token_ids import ReplyTokens

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
    reasoning: str | None = None
    """Of an assistant's message: the reasoning that goes back with it, ``reasoning_content`` of compatible endpoints.

    DeepSeek's thinking mode refuses a conversation with calls of tools that leaves it out, also where it is empty; see
    its API guide, "Thinking Mode".
    """


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that is sent to a model, and what it is for."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply has to satisfy; None for free text."""
    schema_name: str = "reply"
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools in OpenAI's form: ``{"type": "function", "function": {...}}``."""
    purpose: str = ""
    """What the request is for, as the ledger keeps it. A script reads it; it is never sent."""
    subject: str = ""
    """As `purpose`."""
    body: Mapping[str, Any] | None = None
    """The body of ``/chat/completions`` that a program of others wrote: it is sent in place of messages, schema and
    tools. Model and length of the reply, and temperature and top_p that are set, stand in place of its own."""
    token_ids: bool = False
    """Whether the reply is to have its token ids and log-probabilities, where the endpoint gives them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a call used, as the endpoint counted them; None where it does not say."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    """Of `tokens_in`, those read from the endpoint's cache."""
    tokens_out: int | None = None
    """Reasoning included."""
    tokens_written: int | None = None
    """Of `tokens_in`, those newly written to the endpoint's cache, for which some providers ask more."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a model."""

    text: str
    model: str
    finish: str = "stop"
    """``stop``, ``length``, ``tool_calls``, ``content_filter`` or what else the endpoint says; what it says for
    ``length`` and ``content_filter`` is called so by the gateway (`prchain.core.llm.finishes`)."""
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    tokens: ReplyTokens | None = None

    def to_json(self) -> str:
        """The reply as ASCII JSON, for the ledger; `from_json` gives an equal reply."""
        fields = asdict(replace(self, tokens=None))
        del fields["tokens"]
        return json.dumps(fields if self.tokens is None else fields | {"tokens": self.tokens.to_text()})

    @classmethod
    def from_json(cls, text: str) -> Reply:
        """A reply from what `to_json` wrote."""
        fields = json.loads(text)
        calls = tuple(ToolCall(**call) for call in fields.pop("tool_calls"))
        tokens = ReplyTokens.from_text(fields["tokens"]) if "tokens" in fields else None
        return cls(**fields | {"tool_calls": calls, "usage": Usage(**fields["usage"]), "tokens": tokens})


class Model(Protocol):
    """Something that answers requests: an endpoint, or a script."""

    @property
    def name(self) -> str:
        """The model's name, as the ledger keeps it."""

    def complete(self, request: Request) -> Reply:
        """Answer one request with one paid call at most.

        Raises `LlmError`, whose `billed` says whether the call may have been paid for. What else ends it costs nothing
        before `prchain.core.llm.sending.mark_sent` was called, which whoever sends does right before.
        """
