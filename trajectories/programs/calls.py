"""What an agent program asks during one attempt: each request is a step, with the tree that it was asked on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from prchain.core.llm.model import Message, Reply
from prchain.core.timestamps import now
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.model import NOTHING_USED, AgentUsage, Ending, Entry, EntryKind
from trajectories.options import MAX_TOKENS
from trajectories.programs.entries import Noticed, attempt_entries
from trajectories.programs.guidance import Advised, Forwarded, ProgramObservers, with_words
from trajectories.recording.asked import AskedRequest, AskedRequests, Connected
from trajectories.recording.chat import AskedChat
from trajectories.recording.conversation import Answered, Branch, Clean, RecordedConversations
from trajectories.recording.exchanges import SentRequest, holds_nothing

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
    observers: ProgramObservers = field(default_factory=lambda: ProgramObservers(()))
    earlier: Sequence[Entry] = ()
    """What was said in the session before this attempt."""
    used: AgentUsage = NOTHING_USED
    """By all that was answered, also beside the conversation that ends the attempt."""
    under_way: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    over: Ending | None = None
    """The limit, or the observer, that ends the attempt."""
    reason: str | None = None
    """The observer's."""
    failure: BaseException | None = None
    """What ends it and is no fault of the agent's."""
    last: Branch | None = None
    """The conversation that the last reply belongs to; of those with tools, if any has some: an agent may have a title
    made while it works, and without them."""
    last_asked: float = field(default_factory=monotonic)
    last_request: Sequence[Message] = ()
    """The messages of the request before that."""
    noticed: Noticed = field(default_factory=Noticed)
    _answered: float = field(default_factory=monotonic)
    _newest_tree: str | None = None
    _asked: AskedRequests = field(default_factory=AskedRequests, repr=False)
    _taken: set[tuple[str, int]] = field(default_factory=set, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.conversations = RecordedConversations(self.clean, self.volatile)
        if self.earlier:
            self.conversations.know(self.earlier)

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.gateway.model_name(self.settings.purpose)

    def answer(self, asked: AskedChat, connected: Connected, *, again: bool) -> tuple[Reply, AskedRequest]:
        """See `trajectories.recording.recorder.ProgramRecorder.answer`. Raises `PrchainError`."""
        with self._lock:
            took = self._begin(asked)
            request = self._asked.begin(asked.digest, connected, again=again)
            self.under_way += 1
        try:
            return self._answer(asked, request, took), request
        except BaseException as error:
            self._asked.failed(request, connected)
            if not isinstance(error, _FOR_THE_AGENT) and self.over is None:
                self._fail(error)  # a defect of ours is none of the agent's, either
            raise

    def _answer(self, asked: AskedChat, request: AskedRequest, took: float) -> Reply:
        try:
            advised = self._advised(asked)
            forwarded = with_words(asked, self._words(asked, advised))
            body = forwarded.asked.body
            answer = self.gateway.forward(
                self._question(forwarded.asked),
                body,
                request.ordinal,
                token_ids=partial(holds_nothing, body, self.clean),
            )
        finally:
            with self._lock:
                self.under_way -= 1
                self.last_asked = self._answered = monotonic()
        with self._lock:
            if (request.digest, request.ordinal) not in self._taken:
                self._taken.add((request.digest, request.ordinal))
                answered = Answered(answer.reply, answer.cost, round(answer.seconds, 3), now())
                self._keep(asked, forwarded, answered, advised.words, took)
        return answer.value

    def _begin(self, asked: AskedChat) -> float:
        """Before a request is answered: whether there is room for another step, and what the last one has changed.
        Returns the seconds that the agent took since it had a reply, where it waits for none."""
        took = 0.0 if self.under_way else round(monotonic() - self._answered, 3)
        self.last_asked = monotonic()
        if self.failure is not None or self.over is not None:
            raise BudgetExceeded("the attempt is over")
        try:
            self.look()
        except PrchainError as error:
            self._fail(error)
            raise
        spec = self.spec
        used = self.used + AgentUsage(seconds=took, calls=self.conversations.results(asked.messages))
        stage, chain = spec.stage_used + used, spec.chain_used + used
        over = stage.over(spec.stage_limits) or chain.over(spec.chain_limits)
        if over is not None:
            self._hear_last(asked, (), took)
            self.over = over
            raise BudgetExceeded(f"the attempt is over: {over}")
        return took

    def _advised(self, asked: AskedChat) -> Advised:
        """What observers say before this request is answered. Raises `BudgetExceeded` where one ends the attempt."""
        if not self.observers.observers:
            return Advised()
        spec = self.spec
        with self._lock:
            foreseen = self.conversations.foreseen(asked.messages, asked.tools)
            own = attempt_entries(foreseen, spec.entries[-1], self.noticed, self.conversations.earlier)
        try:
            advised = self.observers.advised(asked, [*spec.entries[:-1], *own], spec.position, spec.attempt)
        except PrchainError as error:
            self._fail(error)
            raise BudgetExceeded("the attempt is over") from None
        if advised.stop:
            with self._lock:
                self._hear_last(asked, advised.words, 0.0)
                self.over, self.reason = Ending.STOPPED, advised.reason
            raise BudgetExceeded("the attempt is over: an observer ended it")
        return advised

    def _words(self, asked: AskedChat, advised: Advised) -> Mapping[int, Sequence[Entry]]:
        with self._lock:
            known = self.conversations.words(asked.messages)
        last = len(asked.messages) - 1
        return known | ({last: advised.words} if advised.words and last not in known else {})

    def _hear_last(self, asked: AskedChat, words: Sequence[Entry], took: float) -> None:
        """Keep what a request says that is not answered any more, where it goes on from the last reply."""
        last = self.last
        if last is not None and self.conversations.goes_on(last, asked.messages):
            self._take(asked, None, words, took)
            self.last_request = asked.messages

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

    def _keep(
        self,
        asked: AskedChat,
        forwarded: Forwarded,
        answered: Answered,
        words: Sequence[Entry],
        took: float,
    ) -> None:
        branch = self._take(asked, answered, words, took, forwarded)
        if self.last is None or asked.tools or not self.last.tools:  # a title may come after all else
            self.last, self.last_request = branch, asked.messages
        if forwarded.details:
            turn = branch.entries[-1]
            branch.entries[-1] = replace(turn, details={**turn.details, **forwarded.details})
        self.used += used_by(branch.entries[-1:])
        self.tell(f"step {self.spec.stage_used.steps + self.used.steps}")

    def _take(
        self,
        asked: AskedChat,
        answered: Answered | None,
        words: Sequence[Entry],
        took: float,
        forwarded: Forwarded | None = None,
    ) -> Branch:
        # What is told anew, in place of what was known, was counted when it came.
        calls = self.conversations.results(asked.messages)
        sent = None if forwarded is None else SentRequest(forwarded.asked.body, forwarded.words)
        branch, first = self.conversations.take(asked.messages, asked.tools, answered, sent, words)
        heard = [it for it in branch.entries[first:] if it.kind is not EntryKind.TURN and "copied" not in it.details]
        if heard:
            self.used += AgentUsage(seconds=took, calls=calls)
            self.noticed.seconds[branch.number, heard[0].ordinal] = took
            if self._newest_tree is not None:
                self.noticed.trees[branch.number, heard[-1].ordinal] = self._newest_tree
        return branch

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self.failure = self.failure or error

    def fail(self, name: str) -> None:
        """Count a request that got no reply."""
        with self._lock:
            self.failed[name] += 1


def tools_of(branch: Branch) -> list[Mapping[str, Any]]:
    """The tools of the conversation's last request."""
    return [dict(tool) for tool in branch.tools]
