"""The one fake model of the tests: it says what a function says, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from prchain.llm.model import Reply, Request, Usage

Answer = Callable[[Request], Any]
"""A reply; or its text; or what its JSON says; or an error, which is raised."""


@dataclass
class FakeModel:
    """A model in this process; see `prchain.llm.model.Model`. What `answer` raises comes through as it is."""

    answer: Answer
    name: str = "fake"
    asked: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def complete(self, request: Request) -> Reply:
        """See `prchain.llm.model.Model`."""
        with self._lock:
            self.asked.append(request)
        said = self.answer(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        return Reply(said if isinstance(said, str) else json.dumps(said), self.name, usage=Usage(100, 0, 10))

    def count(self, purpose: str) -> int:
        """How many requests of a purpose it was sent."""
        return sum(request.purpose == purpose for request in self.asked)

    def prompts(self, purpose: str) -> list[str]:
        """Everything that each request of a purpose said."""
        return ["\n".join(message.content for message in one.messages) for one in self.asked if one.purpose == purpose]
