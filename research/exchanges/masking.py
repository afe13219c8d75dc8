"""Requests without the prose of those who made the agent: pure.

A golden file tells how an agent speaks, not what its makers tell their model. So of each text our own words stay (the
task, the files, what we replied, what the agent is known to change), and each piece of prose between them becomes
``[text N]``, as does each description in a declaration of a tool: the same piece has the same number wherever it
stands, so that requests can be compared as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHORT = 3
"""Words of a piece that stays: quotes, tags, names of fields."""

_WORD = re.compile(r"[^\W\d_]+")

MOST_TOOLS = 3
"""Declarations that are kept, those of tools that were called among them."""


@dataclass
class Masking:
    """Of one agent's exchanges. `own` are our words; `volatile` are patterns of what the agent changes."""

    own: Sequence[str]
    volatile: Sequence[str] = ()
    called: frozenset[str] = frozenset()
    """The tools that are called."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = [re.escape(form) for text in sorted(self.own, key=len, reverse=True) for form in _forms(text)]
        self._kept = re.compile("|".join([*words, *(f"(?:{pattern})" for pattern in self.volatile)]))

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request, masked."""
        masked = {**body, "messages": [self._message(message) for message in body["messages"]]}
        if "tools" in body:
            masked["tools"] = [self._described(tool) for tool in self._chosen(body["tools"])]
        return masked

    def text(self, text: str) -> str:
        """The text, with numbers in place of what is not ours."""
        found, at = "", 0
        for match in self._kept.finditer(text):
            if match[0]:
                found += self._piece(text[at : match.start()]) + match[0]
                at = match.end()
        return found + self._piece(text[at:])

    def _piece(self, piece: str) -> str:
        core = piece.strip()
        if len(_WORD.findall(core)) <= SHORT:
            return piece
        before = len(piece) - len(piece.lstrip())
        return piece[:before] + self._number(core) + piece[before + len(core) :]

    def _number(self, text: str) -> str:
        return f"[text {self._numbers.setdefault(text, len(self._numbers) + 1)}]"

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if message["role"] == "assistant" or content is None:
            return dict(message)
        if isinstance(content, str):
            return {**message, "content": self.text(content)}
        parts = [{**part, "text": self.text(part["text"])} if "text" in part else dict(part) for part in content]
        return {**message, "content": parts}

    def _chosen(self, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        used = [tool for tool in tools if tool["function"]["name"] in self.called]
        rest = [tool for tool in tools if tool not in used]
        return [tool for tool in tools if tool in used or tool in rest[: max(MOST_TOOLS - len(used), 0)]]

    def _described(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: self._number(item) if name == "description" and isinstance(item, str) else self._described(item)
                for name, item in value.items()
            }
        return [self._described(item) for item in value] if isinstance(value, list) else value


def _forms(text: str) -> Iterable[str]:
    """The text, and as it stands within a text of JSON."""
    return dict.fromkeys((text, json.dumps(text)[1:-1]))
