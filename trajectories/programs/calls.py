"""What an agent program asks during one attempt: each request is a step, with the tree that it was asked on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from prchain.core.errors import (
    BudgetExceeded,
    ContextTooLong,
    EndpointRefused,
    PrchainError,
    RequestUnfit,
)
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.model import Reply
from prchain.core.timestamps import now
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.model import NOTHING_USED, AgentUsage, Ending
from trajectories.options import MAX_TOKENS
from trajectories.recording.asked import AskedRequest, AskedRequests, Connected
from trajectories.recording.chat import AskedChat
from trajectories.recording.conversation import Answered, Branch, Clean, RecordedConversations
from trajectories.recording.exchanges import holds_nothing

_FOR_THE_AGENT = (RequestUnfit, ContextTooLong, EndpointRefused)
"""Failures that the agent is told of and may do something about; any other ends the attempt as a failure of ours."""


@dataclass
class AttemptCalls:
    """Answers the requests of one attempt; safe for several threads, since an agent may ask several things at once.

    `tree` takes the sandbox's tree where it has changed. What a kill cut off is asked again in the same words, and
    answered from the ledger.
    """

    gateway: Gateway
    settings: LoopSettings
    spec: AttemptSpec
    tree: Callable[[], str | None]
    clean: Clean
    secrets: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    """Patterns of what the agent changes in what was said before."""
    tell: Callable[[str], None] = lambda words: None
    used: AgentUsage = NOTHING_USED
    """By all that was answered, also beside the conversation that ends the attempt."""
    under_way: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    over: Ending | None = None
    """The limit that ends the attempt."""
    failure: PrchainError | None = None
    """What ends it and is no fault of the agent's."""
    last: Branch | None = None
    """The conversation that the last reply belongs to; of those with tools, if any has some: an agent may have a title
    made while it works, and without them."""
    last_asked: float = field(default_factory=monotonic)
    trees: dict[tuple[int, int], str] = field(default_factory=dict)
    """See `trajectories.programs.entries.attempt_entries`."""
    _newest_tree: str | None = None
    _asked: AskedRequests = field(default_factory=AskedRequests, repr=False)
    _taken: set[tuple[str, int]] = field(default_factory=set, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.conversations = RecordedConversations(self.clean, self.volatile)

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.gateway.model_name(self.settings.purpose)

    def answer(self, asked: AskedChat, connected: Connected, *, again: bool) -> tuple[Reply, AskedRequest]:
        """See `trajectories.recording.recorder.ProgramRecorder.answer`. Raises `PrchainError`."""
        with self._lock:
            self._begin()
            request = self._asked.begin(asked.digest, connected, again=again)
            self.under_way += 1
        try:
            return self._answered(asked, request), request
        except BaseException:
            self._asked.failed(request, connected)
            raise

    def _answered(self, asked: AskedChat, request: AskedRequest) -> Reply:
        try:
            answer = self.gateway.forward(
                self._question(asked),
                asked.body,
                request.ordinal,
                token_ids=partial(holds_nothing, asked.body, self.clean),
            )
        except _FOR_THE_AGENT:
            raise
        except PrchainError as error:
            self._fail(error)
            raise
        finally:
            with self._lock:
                self.under_way -= 1
                self.last_asked = monotonic()
        with self._lock:
            if (request.digest, request.ordinal) not in self._taken:
                self._taken.add((request.digest, request.ordinal))
                self._keep(asked, Answered(answer.reply, answer.cost, round(answer.seconds, 3), now()))
        return answer.value

    def _begin(self) -> None:
        """Before a request is answered: whether there is room for another step, and what the last one has changed."""
        self.last_asked = monotonic()
        if self.failure is not None or self.over is not None:
            raise BudgetExceeded("the attempt is over")
        try:
            self.look()
        except PrchainError as error:
            self._fail(error)
            raise
        spec = self.spec
        stage, chain = spec.stage_used + self.used, spec.chain_used + self.used
        self.over = stage.over(spec.stage_limits) or chain.over(spec.chain_limits)
        if self.over is not None:
            raise BudgetExceeded(f"the attempt is over: {self.over}")

    def look(self) -> str | None:
        """The newest tree that differs from the attempt's first, as it is now. Raises `SandboxError`, `GitError`."""
        with self._lock:
            self._newest_tree = self.tree() or self._newest_tree
            return self._newest_tree

    def _question(self, asked: AskedChat) -> Question:
        settings, spec = self.settings, self.spec
        return Question(
            purpose=settings.purpose,
            subject=spec.subject,
            prompt=None,
            messages=asked.messages,
            max_tokens=None if settings.max_tokens == MAX_TOKENS else settings.max_tokens,
            temperature=settings.temperature,
            sample=spec.sample,
            attempt=spec.attempt,
            top_p=settings.top_p,
            context_tokens=settings.context_tokens,
        )

    def _keep(self, asked: AskedChat, answered: Answered) -> None:
        branch, first = self.conversations.take(asked.messages, asked.tools, answered, asked.body)
        heard = branch.entries[first:-1]
        if heard and self._newest_tree is not None:
            self.trees[branch.number, heard[-1].ordinal] = self._newest_tree
        if asked.tools or not (self.last and self.last.tools):
            self.last = branch
        self.used += used_by(branch.entries[-1:])
        self.tell(f"step {self.spec.stage_used.steps + self.used.steps}")

    def _fail(self, error: PrchainError) -> None:
        with self._lock:
            self.failure = self.failure or error

    def fail(self, name: str) -> None:
        """Count a request that got no reply."""
        with self._lock:
            self.failed[name] += 1


def tools_of(branch: Branch) -> list[Mapping[str, Any]]:
    """The tools of the conversation's last request."""
    return [dict(tool) for tool in branch.tools]
