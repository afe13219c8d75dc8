"""The texts of a trajectory's messages, made safe to publish in a training file."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import Any

from prchain.core.llm.channels import Said
from prchain.core.llm.model import ToolCall
from prchain.core.llm.special_tokens import without_special_tokens
from prchain.core.llm.thoughts import joined, separated
from prchain.core.secrets.scrub import Counts, scrub_mined
from trajectories.agents.scaffolds.turns import valid_tool_name
from trajectories.export.samples import SampleMessage
from trajectories.json_text import parsed
from trajectories.model import Entry, Reason


class Scrubber:
    """Removes addresses, credentials and invisible characters from texts, and breaks special tokens."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = secrets
        self._broken = 0
        self._replaced: Counts = Counter()

    def text(self, text: str) -> str:
        """The text, safe to export."""
        clean = scrub_mined(text, self._secrets, self._replaced)
        safe = without_special_tokens(clean)
        self._broken += safe != clean
        return safe

    def _is_safe(self, text: str) -> bool:
        """Whether a text stays as it is. What it holds is counted where its parts are scrubbed."""
        return without_special_tokens(scrub_mined(text, self._secrets)) == text

    def turn(
        self, entry: Entry, train: bool, reason: Reason, *, reasoning: bool, copied: bool = False
    ) -> SampleMessage:
        """The message of an entry; `reasoning` says whether its reasoning stays, `copied` is the message's.

        Thoughts in the content of an assistant, of before they were told apart when they came, are reasoning too.
        """
        broken_before, self._replaced = self._broken, Counter()
        said = Said(entry.content, "")
        if entry.role == "assistant":
            said = separated(entry.content, cut=entry.details.get("finish") == "length")
        content = self.text(said.content)
        thoughts = self.text(joined(entry.reasoning or "", said.thoughts)) if reasoning else ""
        calls = tuple(
            ToolCall(self._id(call.id), self._name(call.name), self._arguments(call.arguments))
            for call in entry.tool_calls
        )
        return SampleMessage(
            entry.role,
            content,
            entry.kind,
            train,
            reason,
            entry.position,
            entry.attempt,
            entry.step,
            thoughts or None,
            calls,
            self._id(entry.tool_call_id) if entry.tool_call_id is not None else None,
            self._name(entry.tool_name) if entry.tool_name is not None else None,
            elided=bool(entry.details.get("dropped")),
            broken_marks=self._broken - broken_before,
            replaced=self._replaced,
            fault=entry.error,
            copied=copied,
            tokens_in=entry.tokens_in,
            tokens_cached=entry.tokens_cached,
            tokens_out=entry.tokens_out,
            usd=entry.usd,
            seconds=entry.seconds,
            at=entry.at,
        )

    def _name(self, name: str) -> str:
        """A tool's name in the form that endpoints and trainers take; a name that a model made up may be any text."""
        return valid_tool_name(self.text(name))

    def _id(self, name: str) -> str:
        """A call's id. An id that must be scrubbed becomes a digest, because the answer to the call has the same id."""
        return (
            name
            if self._is_safe(name)
            else f"call_{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
        )

    def _arguments(self, arguments: str) -> str:
        """Arguments with each of their texts scrubbed; scrubbing the JSON would miss texts behind escapes.

        They stay as the model wrote them if nothing was scrubbed, neither in the values nor in the text, which holds
        both values of a repeated key. Empty arguments become an empty object, as the agent's tools read them.
        """
        if not arguments.strip():
            return "{}"
        try:
            found = parsed(arguments)
        except ValueError:
            return self.text(arguments)
        clean = self.value(found)
        unchanged = clean == found and self._is_safe(arguments)
        return arguments if unchanged else json.dumps(clean, ensure_ascii=False)

    def value(self, value: Any) -> Any:
        """A JSON value with each of its texts scrubbed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value
