"""Tells a request that is sent once more from one that is asked once more: both have the same words.

A client sends again what it has no answer to: because the connection broke, or because it did not wait any longer and
closed it. So a request gets the reply of an earlier one where it says that it is sent again (the header of OpenAI's
SDKs), or where an equal one was answered to nobody: its connection is closed, and the answer was not written before. An
equal request while the first one still waits on an open connection, or after its answer was written, is another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

Connected = Callable[[], bool]
"""Whether who asked still waits."""


@dataclass(slots=True)
class AskedRequest:
    """A request that gets a reply of its own, however often it is sent."""

    digest: str
    ordinal: int
    """Which of the requests with these words."""
    delivered: bool = False
    """Whether its answer was written to somebody."""
    _waiting: list[Connected] = field(default_factory=list)

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody has its answer, and nobody waits for it."""
        return not self.delivered and not any(connected() for connected in self._waiting)


class AskedRequests:
    """All that a program asked. Safe for several threads."""

    def __init__(self) -> None:
        self._asked: dict[str, list[AskedRequest]] = {}
        self._lock = threading.Lock()

    def begin(self, digest: str, connected: Connected, *, again: bool) -> AskedRequest:
        """The request that has come; `again`: the client says that it sends it once more."""
        with self._lock:
            same = self._asked.setdefault(digest, [])
            found = next((it for it in same if it.is_abandoned), None)
            if found is None and again and same:
                found = same[-1]
            if found is None:
                found = AskedRequest(digest, len(same))
                same.append(found)
            found._waiting.append(connected)
            return found

    def failed(self, asked: AskedRequest, connected: Connected) -> None:
        """There is no reply for who asked so: the next one may ask it again."""
        with self._lock:
            asked._waiting.remove(connected)
