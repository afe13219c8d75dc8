"""The loop of one attempt: what stands around an agent's steps, whoever takes them.

One step is one reply of the model, what its calls did, and one transaction that keeps both. An attempt can be taken up
after any step: everything that the loop goes by follows from the entries, so that a run which was killed asks the same
question again and finds its reply in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any, Protocol, Self

from environments.sandboxes.sandbox import Sandbox
from prchain.errors import ContextTooLong, PrchainError, SandboxError
from prchain.llm.gateway import Answer, Gateway, Question
from prchain.llm.model import Reply, Role, ToolCall
from prchain.llm.prompts import Prompt
from prchain.scrub import clean_text
from prchain.timestamps import now
from trajectories.model import NOTHING_USED, Ending, Entry, EntryKind
from trajectories.options import MAX_TOKENS, RolloutOptions
from trajectories.scaffolds.context import Conversation, Overflow, cut_to, estimate, used_by
from trajectories.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder
from trajectories.scaffolds.taking_up import (
    ENDS,
    end_of,
    is_in_vain,
    last_step,
    turns_in_vain,
    with_end,
    workspace,
)
from trajectories.scaffolds.turns import ParsedReply, named_calls

PURPOSE = "agent"
"""Of the agent's questions, as settings and ledger know it."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What an attempt is made with, whichever scaffold makes it."""

    temperature: float | None = None
    max_tokens: int = MAX_TOKENS
    """Of a reply."""
    context_tokens: int | None = None
    """What the model takes, prompt and reply together; None: nobody knows until the endpoint refuses."""
    overflow: Overflow = "stop"
    observation_chars: int = 10_000
    command_timeout: float = 120.0
    """Seconds."""
    faults_in_a_row: int = 3
    """After so many turns of which nothing could be run an attempt ends."""
    send_reasoning: bool = True
    """Whether the reasoning that an endpoint gave goes back to it; thinking models with tools want that, and some
    refuse a conversation without it."""

    @classmethod
    def of(cls, options: RolloutOptions) -> Self:
        """What the options say of it."""
        own = {field.name for field in fields(cls)} & {field.name for field in fields(options)}
        return cls(**{name: getattr(options, name) for name in own})


USUAL = LoopSettings()


@dataclass(frozen=True, slots=True)
class AgentReply:
    """A reply to the agent's question, its calls in storable form, and the seconds that it took to come."""

    answer: Answer[Reply]
    calls: tuple[ToolCall, ...]
    seconds: float

    @property
    def reply(self) -> Reply:
        """What the model said."""
        return self.answer.value


class Stepper(Protocol):
    """Takes the steps of one attempt."""

    def step(self) -> Ending | None:
        """Take one step: ask (`AttemptLoop.ask`), act, and keep both (`AttemptLoop.keep_step`). How the attempt ends
        with it, if it does; `CONTEXT_LIMIT` where the loop had no reply."""

    def kept(self, entries: Sequence[Entry]) -> None:
        """These entries were stored: a step, or words that were inserted after it."""


class AttemptLoop:
    """One attempt under way; `stepper` makes who takes its steps."""

    def __init__(
        self,
        settings: LoopSettings,
        prompt: Prompt,
        tools: Sequence[Mapping[str, Any]],
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer],
        stepper: Callable[[AttemptLoop], Stepper],
    ) -> None:
        """`prompt` is the one that the ledger names with the agent's calls."""
        self.spec = spec
        self.workspace = workspace(sandbox, spec, timeout=settings.command_timeout, most=settings.observation_chars)
        """Where commands of its steps run."""
        self.number = max((entry.step for entry in spec.entries), default=0)
        """Of the step that is under way, or was last."""
        self._settings = settings
        self._prompt = prompt
        self._tools = tools
        self._gateway = gateway
        self._record = record
        self._observers = observers
        self._talk = Conversation(spec.entries, position=spec.position, tools=tools, reasoning=settings.send_reasoning)
        self._ordinal = spec.entries[-1].ordinal + 1 if spec.entries else 0
        self._in_vain = turns_in_vain(spec)
        self._used = NOTHING_USED
        self._reason: str | None = None
        self._stepper = stepper(self)

    @property
    def entries(self) -> Sequence[Entry]:
        """The conversation so far."""
        return self._talk.entries

    def run(self) -> AttemptResult:
        """Let the agent work until it submits or a limit ends it. Raises as `Scaffold.attempt`."""
        if self.spec.stage_limits.usd is not None or self.spec.chain_limits.usd is not None:
            self._gateway.require_price(PURPOSE, "a limit in USD")
        ending = self._take_up()
        while ending is None:
            ending = self._limit() or self._stepper.step()
        return AttemptResult(ending, self._used, self._reason)

    # ---- what a stepper uses

    def ask(self) -> AgentReply | None:
        """The next reply, whose step begins with it; None where the conversation does not fit the context."""
        began = perf_counter()
        answer = self._ask()
        if answer is None:
            return None
        self.number += 1
        # One that an earlier run asked for took as long as it took then.
        seconds = max(perf_counter() - began, answer.seconds)
        return AgentReply(answer, named_calls(answer.value, self.number), seconds)

    def entry(self, kind: EntryKind, role: Role, content: str, **fields: Any) -> Entry:
        """An entry of this attempt, numbered after the one before."""
        spec = self.spec
        self._ordinal += 1
        return Entry(
            ordinal=self._ordinal - 1,
            position=spec.position,
            attempt=spec.attempt,
            step=self.number,
            kind=kind,
            role=role,
            content=clean_text(content),
            at=now(),
            **fields,
        )

    def turn(self, said: AgentReply, read: ParsedReply) -> Entry:
        """The entry of a reply; `read` tells its fault, and what of it can be run."""
        reply = said.reply
        return self.entry(
            EntryKind.TURN,
            "assistant",
            reply.text,
            reasoning=None if reply.reasoning is None else clean_text(reply.reasoning),
            tool_calls=said.calls,
            error=None if read.fault is None else str(read.fault),
            details=self._details(reply, read),
            tokens_in=reply.usage.tokens_in,
            tokens_cached=reply.usage.tokens_cached,
            tokens_out=reply.usage.tokens_out,
            usd=said.answer.cost,
            seconds=said.seconds,
        )

    def keep_step(
        self, turn: Entry, observations: list[Entry], *, worked: bool, ended: PrchainError | None = None
    ) -> Ending | None:
        """Keep a step; `worked` says whether files may have changed. Raises `ended` once it is kept: what ended the
        sandbox, where its last observation tells of that."""
        if worked:
            try:
                observations[-1] = replace(observations[-1], tree=self._record.tree())
            except (*ENDS, SandboxError) as error:
                # A sandbox that was ended has no tree to give.
                if ended is None:
                    if not isinstance(error, ENDS):
                        raise
                    ended = error
                    observations[-1] = with_end(observations[-1], error)
        self._in_vain = self._in_vain + 1 if is_in_vain(turn) else 0
        self._keep([turn, *observations])
        if ended is not None:
            raise ended
        return self._after_step(observations)

    def out_of_time(self, seconds: float) -> bool:
        """Whether a limit of time is reached in the middle of a step that has taken so many seconds."""
        spec, used = self.spec, self._used.seconds + seconds
        pairs = ((spec.stage_used, spec.stage_limits), (spec.chain_used, spec.chain_limits))
        return any(most.seconds is not None and before.seconds + used >= most.seconds for before, most in pairs)

    # ---- asking

    def _ask(self) -> Answer[Reply] | None:
        """The next reply; None where the conversation does not fit the context."""
        settings, talk = self._settings, self._talk
        elides = settings.overflow == "elide"
        if settings.context_tokens is not None:
            room = max(settings.context_tokens - settings.max_tokens, 0)
            if elides and talk.size().tokens > room:
                talk.elide(cut_to(room))
            if talk.size().tokens > room:
                self._reason = f"the next prompt has {talk.size()}, and there is room for {room:,}"
                return None
        try:
            return self._complete()
        except ContextTooLong as error:
            refused = error
        if elides and talk.elide(cut_to(talk.size().tokens)):
            try:
                return self._complete()
            except ContextTooLong as error:
                refused = error
        self._reason = f"the endpoint does not take the next prompt ({talk.size()}): {refused}"
        return None

    def _complete(self) -> Answer[Reply]:
        settings, spec = self._settings, self.spec
        question = Question(
            purpose=PURPOSE,
            subject=spec.subject,
            prompt=self._prompt,
            messages=self._talk.messages(),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            sample=spec.sample,
            attempt=spec.attempt,
        )
        return self._gateway.complete(question, self._tools)

    # ---- around a step

    def _take_up(self) -> Ending | None:
        """What follows from the step that the entries end with, where that is one of this attempt."""
        last = self.spec.entries[-1] if self.spec.entries else None
        if last is None or (last.position, last.attempt) != (self.spec.position, self.spec.attempt):
            return None
        if last.kind is EntryKind.TURN:
            raise ValueError(f"the turn of step {last.step} stands without its observations: steps are stored whole")
        if last.kind is EntryKind.OBSERVATION:
            observations = last_step(self.spec.entries)
            if (ended := end_of(observations)) is not None:
                raise ended
            return self._after_step(observations)
        if last.kind is EntryKind.GUIDANCE and last.details.get("stop"):
            self._reason = last.details.get("reason")
            return Ending.STOPPED
        return None

    def _limit(self) -> Ending | None:
        spec = self.spec
        stage, chain = spec.stage_used + self._used, spec.chain_used + self._used
        return stage.over(spec.stage_limits) or chain.over(spec.chain_limits)

    def _details(self, reply: Reply, read: ParsedReply) -> dict[str, Any]:
        details: dict[str, Any] = {"finish": reply.finish, "model": reply.model, **self._talk.record()}
        if reply.refusal:
            details["refusal"] = clean_text(reply.refusal)
        if reply.usage.tokens_in is None or reply.usage.tokens_out is None:
            details["estimate"] = estimate(self._talk.size(), reply)
        if read.fault is not None:
            details["ran"] = sum(call.fault is None for call in read.calls)
        return details

    def _keep(self, entries: Sequence[Entry]) -> None:
        self._record.add(entries)
        for entry in entries:
            self._talk.add(entry)
        self._used += used_by(entries)
        self._stepper.kept(entries)

    def _after_step(self, observations: Sequence[Entry]) -> Ending | None:
        """Ask the observers, and tell how the attempt ends after its last step, if it does.

        Words that an observer has for an agent whose attempt ends are not inserted: nobody would answer them.
        """
        ending = None
        if any(entry.details.get("submitted") for entry in observations):
            ending = Ending.SUBMITTED
        elif self._in_vain >= self._settings.faults_in_a_row:
            ending = Ending.FAULTY
            self._reason = f"nothing could be run of {self._in_vain} turns in a row; the last: {observations[-1].error}"
        words: list[Entry] = []
        for observer in self._observers:
            advice = observer(self._talk.entries)
            if advice is None:
                continue
            if advice.guidance and ending in {None, Ending.STOPPED}:
                words.append(self.entry(EntryKind.GUIDANCE, "user", advice.guidance, details=dict(advice.details)))
            if advice.stop:
                ending, self._reason = Ending.STOPPED, advice.reason
        if words and ending is Ending.STOPPED:
            # Observers are not asked again about a step that their words follow: the last of these tells of the end.
            stops = {"stop": True, "reason": self._reason}
            words[-1] = replace(words[-1], details={**words[-1].details, **stops})
        if words:
            self._keep(words)
        return ending
