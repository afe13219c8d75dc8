"""A model that answers from a file: for tests, for the demo, and for a dry run that costs nothing.

The script is JSON Lines. A line answers the first question that it fits and no other line has answered:

    {"purpose": "query", "subject": "5f0c:1", "contains": "add a parser", "reply": {"query": "..."}}

``purpose``, ``subject`` and ``contains`` (a text that stands in one of the messages, or a list of such) narrow what it
fits; without them it fits everything. ``reply`` is a text, or an object that is written as JSON. ``tool_calls`` is a
list of ``{"name": ..., "arguments": object or text}``, ``finish`` and ``refusal`` are what an endpoint would say,
``usage`` is ``{"in": n, "cached": n, "out": n}``, or ``"estimate"``: by four bytes a token. With ``"repeat": true`` a
line answers as often as it is asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prchain.core.errors import ScriptExhausted, ScriptUnknown, SettingsError
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.wire import serialised

NAME = "scripted"

_HEAD = 80

_BYTES_PER_TOKEN = 4
"""As in the estimates of `prchain.core.llm.gateway`."""


class _Usage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tokens_in: int | None = Field(default=None, alias="in", ge=0)
    tokens_cached: int | None = Field(default=None, alias="cached", ge=0)
    tokens_out: int | None = Field(default=None, alias="out", ge=0)


class _ToolCall(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    arguments: str | dict[str, Any] = "{}"
    id: str | None = None


class ScriptedReply(BaseModel):
    """One line of a script; see the module."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reply: str | dict[str, Any] = ""
    purpose: str | None = None
    subject: str | None = None
    contains: str | list[str] | None = None
    tool_calls: list[_ToolCall] = []
    finish: str | None = None
    refusal: str | None = None
    usage: _Usage | Literal["estimate"] = _Usage()
    repeat: bool = False

    def fits(self, request: Request) -> bool:
        """Whether the line answers this request."""
        return (
            self.purpose in {None, request.purpose}
            and self.subject in {None, request.subject}
            and all(any(text in message.content for message in request.messages) for text in self._texts)
        )

    @property
    def _texts(self) -> list[str]:
        return [] if self.contains is None else [self.contains] if isinstance(self.contains, str) else self.contains

    def as_reply(self, request: Request) -> Reply:
        """The reply to a request that the line stands for."""
        calls = tuple(
            ToolCall(
                call.id or f"call_{number}",
                call.name,
                call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
            )
            for number, call in enumerate(self.tool_calls, 1)
        )
        text = self.reply if isinstance(self.reply, str) else json.dumps(self.reply, ensure_ascii=False)
        return Reply(
            text=text,
            model=NAME,
            finish=self.finish or ("tool_calls" if calls else "stop"),
            refusal=self.refusal,
            tool_calls=calls,
            usage=_estimated(request, text, calls)
            if self.usage == "estimate"
            else Usage(self.usage.tokens_in, self.usage.tokens_cached, self.usage.tokens_out),
        )


class ScriptedModel:
    """Answers from lines; see the module. Safe for several threads."""

    name = NAME

    def __init__(self, lines: Iterable[ScriptedReply | Mapping[str, Any]]) -> None:
        self._lines = [
            line if isinstance(line, ScriptedReply) else ScriptedReply.model_validate(line) for line in lines
        ]
        self._used: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> ScriptedModel:
        """Read a script. Raises `SettingsError`, which names file and line."""
        try:
            texts = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the script {path} cannot be read: {type(error).__name__}") from None
        lines = []
        for number, text in enumerate(texts, 1):
            if not text.strip():
                continue
            try:
                lines.append(ScriptedReply.model_validate_json(text))
            except ValidationError as error:
                fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
                where = ".".join(map(str, fault["loc"]))
                raise SettingsError(f"the script {path}, line {number}: {where} {fault['msg']}") from None
        return cls(lines)

    @property
    def unused(self) -> int:
        """How many lines have answered nothing yet."""
        return len(self._lines) - len(self._used)

    def complete(self, request: Request) -> Reply:
        """Answer from the first line that fits; raises `ScriptExhausted` or `ScriptUnknown`."""
        with self._lock:
            fitting = [i for i, line in enumerate(self._lines) if line.fits(request)]
            for i in fitting:
                if i not in self._used or self._lines[i].repeat:
                    self._used.add(i)
                    return self._lines[i].as_reply(request)
        question_words = f"{request.purpose or 'a question'} of {request.subject or 'nothing'}: {_head(request)}"
        if fitting:
            raise ScriptExhausted(f"the script has answered this as often as it can; asked again was {question_words}")
        raise ScriptUnknown(f"the script has no line for {question_words}")


def _estimated(request: Request, text: str, calls: Iterable[ToolCall]) -> Usage:
    replied = "".join([text, *(call.name + call.arguments for call in calls)])
    sizes = (len(serialised(request, NAME)), len(replied.encode("utf-8", "replace")))
    tokens_in, tokens_out = (-(-size // _BYTES_PER_TOKEN) for size in sizes)
    return Usage(tokens_in, None, tokens_out)


def _head(request: Request) -> str:
    words = " ".join(request.messages[-1].content.split()) if request.messages else ""
    return f'"{words[:_HEAD]}{"..." if len(words) > _HEAD else ""}"'
