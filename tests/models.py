"""The fake model of the tests: replies by a function, and keeps its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from prchain.core.llm.model import Reply, Request, Usage

Answer = Callable[[Request], Any]
"""From a request to a reply, its text, the value of its JSON, or an error, which is raised."""


@dataclass
class FakeModel:
    """A model in this process; see `prchain.core.llm.model.Model`. An error that `answer` raises is not caught."""

    answer: Answer
    name: str = "fake"
    asked: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def complete(self, request: Request) -> Reply:
        """See `prchain.core.llm.model.Model`."""
        with self._lock:
            self.asked.append(request)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer), self.name, usage=Usage(100, 0, 10))

    def count(self, purpose: str) -> int:
        """The number of requests of a purpose."""
        return sum(request.purpose == purpose for request in self.asked)

    def prompts(self, purpose: str) -> list[str]:
        """The whole text of each request of a purpose."""
        return [
            "\n".join(message.content for message in request.messages)
            for request in self.asked
            if request.purpose == purpose
        ]
