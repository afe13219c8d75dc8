"""Answers what a program asks, and keeps it: each answer is in the ledger before the program has it, and in the
trajectory after that."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from prchain.core.llm.gateway import Answer, Gateway, Question
from prchain.core.llm.model import Reply
from prchain.core.secrets.scrub import redact_mined
from prchain.core.timestamps import now
from trajectories.recording.asked import AskedRequest, AskedRequests, Connected
from trajectories.recording.chat import AskedChat
from trajectories.recording.conversation import Answered, Branch, RecordedConversations
from trajectories.recording.exchanges import holds_nothing

PURPOSE = "agent"
"""Whose settings say which model answers, as for our own agents."""


@dataclass
class ProgramRecorder:
    """One run of a program. Safe for several threads, since a program may ask several things at once.

    `run` names it in the ledger; `keep` is called with a conversation and the ordinal of its first new entry, by one
    thread at a time; `secrets` are the user's.
    """

    gateway: Gateway
    run: str
    keep: Callable[[Branch, int], None]
    secrets: tuple[str, ...] = ()
    found_secrets: Counter[str] = field(default_factory=Counter)
    """What looked like a secret and was replaced in what is kept."""
    under_way: int = 0
    """Requests that are being answered."""
    failed: Counter[str] = field(default_factory=Counter)
    """Requests that got no reply, by the failure's name."""
    _asked: AskedRequests = field(default_factory=AskedRequests, repr=False)
    _taken: dict[tuple[str, int], Branch] = field(default_factory=dict, repr=False)
    _kept: dict[int, int] = field(default_factory=dict, repr=False)
    """Number of a conversation to how many of its entries are kept."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._clean = partial(redact_mined, secrets=self.secrets)
        self.conversations = RecordedConversations(partial(self._clean, counts=self.found_secrets))

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.gateway.model_name(PURPOSE)

    def answer(self, asked: AskedChat, connected: Connected, *, again: bool) -> tuple[Reply, AskedRequest]:
        """The reply, and the request that it answers (`trajectories.recording.asked`). Raises `LlmError` and
        `StoreError`."""
        request = self._asked.begin(asked.digest, connected, again=again)
        with self._lock:
            self.under_way += 1
        question = Question(PURPOSE, f"record/{self.run}", None, asked.messages)
        try:
            answer = self.gateway.forward(
                question, asked.body, request.ordinal, token_ids=partial(holds_nothing, asked.body, self._clean)
            )
            with self._lock:
                if (branch := self._taken.get((asked.digest, request.ordinal))) is None:
                    branch, _ = self.conversations.take(asked.messages, asked.tools, _answered(answer))
                    self._taken[asked.digest, request.ordinal] = branch
                self._keep_rest(branch)
        except BaseException:
            self._asked.failed(request, connected)
            raise
        finally:
            with self._lock:
                self.under_way -= 1
        return answer.value, request

    def _keep_rest(self, branch: Branch) -> None:
        """Keep what is not kept yet of a conversation, also what an earlier try could not."""
        kept = self._kept.get(branch.number, 0)
        if kept < len(branch.entries):
            self.keep(branch, kept)
            self._kept[branch.number] = len(branch.entries)

    def fail(self, name: str) -> None:
        """Count a request that got no reply."""
        with self._lock:
            self.failed[name] += 1


def _answered(answer: Answer[Reply]) -> Answered:
    return Answered(answer.reply, answer.cost, round(answer.seconds, 3), now())
