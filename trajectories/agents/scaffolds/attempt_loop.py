"""The loop of one attempt, shared by all scaffolds: limits, context, faults, observers and storing around each step.

One step is one reply of the model, the results of its calls, and one transaction that stores both. An attempt can be
resumed after any step: the loop's state follows from the entries, so that a run that was killed asks the same question
again and finds its reply in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Any, Literal, Protocol, Self

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import ContextTooLong, PrchainError, SandboxError
from prchain.core.llm.gateway import Answer, Gateway, Question
from prchain.core.llm.model import Reply, Role, ToolCall
from prchain.core.llm.prompts import Prompt
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from trajectories.agents.scaffolds.context import Conversation, Overflow, cut_to, estimate, used_by
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Record, Recorder
from trajectories.agents.scaffolds.taking_up import (
    ENDS,
    end_of,
    fruitless_turns,
    is_fruitless,
    last_step,
    with_end,
    workspace,
)
from trajectories.agents.scaffolds.text_calls import on_the_wire, read
from trajectories.agents.scaffolds.turns import ParsedReply, decoded_twice, named_calls
from trajectories.model import NOTHING_USED, Ending, Entry, EntryKind
from trajectories.options import MAX_TOKENS, RolloutOptions

PURPOSE = "agent"
"""The purpose of the agent's questions, in settings and ledger."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The settings of an attempt that all scaffolds share."""

    temperature: float | None = None
    max_tokens: int = MAX_TOKENS
    """Of a reply."""
    context_tokens: int | None = None
    """Size of the model's context, prompt and reply together; None: unknown until the endpoint refuses."""
    overflow: Overflow = "stop"
    observation_chars: int = 10_000
    command_timeout: float = 120.0
    """Seconds."""
    faults_in_a_row: int = 3
    """The attempt ends after so many turns in a row of which nothing could be run."""
    top_p: float | None = None
    calls: Literal["native", "text"] = "native"
    """Whether calls are the endpoint's, or stand in texts (`trajectories.agents.scaffolds.text_calls`)."""
    purpose: str = PURPOSE
    """Of the questions, in settings and ledger."""
    send_reasoning: bool = True
    """Whether reasoning is sent back to the endpoint; thinking models with tools want that, and some refuse a
    conversation without it."""

    @classmethod
    def of(cls, options: RolloutOptions) -> Self:
        """The settings from the options of a rollout."""
        own = {field.name for field in fields(cls)} & {field.name for field in fields(options)}
        return cls(**{name: getattr(options, name) for name in own})


USUAL = LoopSettings()


@dataclass(frozen=True, slots=True)
class AgentReply:
    """A reply to the agent's question, its calls in storable form, and its duration in seconds."""

    answer: Answer[Reply]
    calls: tuple[ToolCall, ...]
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)
    """What its turn keeps besides."""

    @property
    def reply(self) -> Reply:
        """What the model said."""
        return self.answer.value


class Stepper(Protocol):
    """Takes the steps of one attempt."""

    def step(self) -> Ending | None:
        """Take one step: ask (`AttemptLoop.ask`), act, and store both (`AttemptLoop.keep_step`). Returns the ending
        where the attempt ends with this step; `CONTEXT_LIMIT` where the loop had no reply."""

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """Called after these entries were stored: a step, or guidance after it."""


class AttemptLoop:
    """One running attempt; `stepper` makes the object that takes its steps."""

    def __init__(
        self,
        settings: LoopSettings,
        prompt: Prompt,
        tools: Sequence[Mapping[str, Any]],
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        recorder: Recorder,
        observers: Sequence[Observer],
        stepper: Callable[[AttemptLoop], Stepper],
    ) -> None:
        """`prompt` is the prompt that the ledger stores with the agent's calls."""
        self.spec = spec
        self.workspace = workspace(sandbox, spec, timeout=settings.command_timeout, most=settings.observation_chars)
        """Where commands of its steps run."""
        self.number = max((entry.step for entry in spec.entries), default=0)
        """Number of the current or the last step."""
        self._settings = settings
        self._prompt = prompt
        self._tools = tools
        self._gateway = gateway
        self._recorder = recorder
        self._observers = observers
        self._conversation = Conversation(
            spec.entries, position=spec.position, tools=tools, reasoning=settings.send_reasoning
        )
        self._ordinal = spec.entries[-1].ordinal + 1 if spec.entries else 0
        self._fruitless_turns = fruitless_turns(spec)
        self._used = NOTHING_USED
        self._reason: str | None = None
        self.advice_usd: float | None = 0.0
        """What the observers' questions cost so far; None where that is not known."""
        self._stepper = stepper(self)

    @property
    def entries(self) -> Sequence[Entry]:
        """The conversation so far."""
        return self._conversation.entries

    def run(self) -> AttemptResult:
        """Let the agent work until it submits or a limit ends it. Raises as `Scaffold.attempt`."""
        if self.spec.stage_limits.usd is not None or self.spec.chain_limits.usd is not None:
            self._gateway.require_price(self._settings.purpose, "a limit in USD")
        try:
            ending = self._take_up()
            while ending is None:
                ending = self._limit() or self._stepper.step()
        finally:
            self.workspace.close()
        return AttemptResult(ending, self._used, self._reason)

    # ---- what a stepper uses

    def ask(self) -> AgentReply | None:
        """The next reply, which begins a new step; None where the conversation does not fit the context."""
        start_time = perf_counter()
        answer = self._ask()
        if answer is None:
            return None
        self.number += 1
        # A reply from the ledger has the duration of the first call.
        seconds = max(perf_counter() - start_time, answer.seconds)
        return AgentReply(answer, named_calls(answer.value, self.number), seconds)

    def given(self, reply: Reply, details: Mapping[str, Any]) -> AgentReply:
        """A reply that the agent was not asked for, which begins a new step; its turn keeps the details."""
        self.number += 1
        return AgentReply(Answer(reply, reply, 0.0, True, 0.0), named_calls(reply, self.number), 0.0, details)

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

    def turn(self, agent_reply: AgentReply, parsed: ParsedReply) -> Entry:
        """The entry of a reply; `parsed` holds its fault, and the calls that can be run."""
        reply = agent_reply.reply
        return self.entry(
            EntryKind.TURN,
            "assistant",
            reply.text,
            reasoning=None if reply.reasoning is None else clean_text(reply.reasoning),
            tool_calls=agent_reply.calls,
            error=None if parsed.fault is None else str(parsed.fault),
            details={**self._details(agent_reply, parsed), **agent_reply.details},
            tokens_in=reply.usage.tokens_in,
            tokens_cached=reply.usage.tokens_cached,
            tokens_out=reply.usage.tokens_out,
            usd=agent_reply.answer.cost,
            seconds=agent_reply.seconds,
        )

    def keep_step(
        self, turn: Entry, observations: list[Entry], *, worked: bool, ended: PrchainError | None = None
    ) -> Ending | None:
        """Store a step; `worked` says whether files may have changed. `ended` is the error that ended the sandbox,
        which the last observation mentions; it is raised after the step is stored."""
        if worked:
            try:
                observations[-1] = replace(observations[-1], tree=self._recorder.tree())
            except (*ENDS, SandboxError) as error:
                # An ended sandbox has no tree.
                if ended is None:
                    if not isinstance(error, ENDS):
                        raise
                    ended = error
                    observations[-1] = with_end(observations[-1], error)
        self._fruitless_turns = self._fruitless_turns + 1 if is_fruitless(turn) else 0
        self._keep([turn, *observations])
        if ended is not None:
            raise ended
        return self._after_step(observations)

    def out_of_time(self, seconds: float) -> bool:
        """Whether a time limit is reached in the middle of a step that has taken `seconds` so far."""
        spec, used = self.spec, self._used.seconds + seconds
        pairs = ((spec.stage_used, spec.stage_limits), (spec.chain_used, spec.chain_limits))
        return any(most.seconds is not None and before.seconds + used >= most.seconds for before, most in pairs)

    # ---- asking

    def _ask(self) -> Answer[Reply] | None:
        """The next reply; None where the conversation does not fit the context."""
        settings, conversation = self._settings, self._conversation
        elides = settings.overflow == "elide"
        if elides and (room := self._room()) is not None and conversation.size().tokens > room:
            conversation.elide(cut_to(room))
        if self._is_full():
            return None
        while True:
            try:
                return self._complete()
            except ContextTooLong as error:
                refused = error
            if not (elides and conversation.elide(cut_to(conversation.size().tokens))):
                break
        self._reason = f"the endpoint does not take the next prompt ({conversation.size()}): {refused}"
        return None

    def _is_full(self) -> bool:
        """Whether the next prompt does not fit the context, as far as that is known before the endpoint refuses."""
        size, room = self._conversation.size(), self._room()
        if room is None or size.tokens <= room:
            return False
        self._reason = f"the next prompt has {size}, and there is room for {room:,}"
        return True

    def _room(self) -> int | None:
        """Tokens that a prompt may have; None where the context's size is not known."""
        settings = self._settings
        return None if settings.context_tokens is None else max(settings.context_tokens - settings.max_tokens, 0)

    def _complete(self) -> Answer[Reply]:
        settings, spec = self._settings, self.spec
        question = Question(
            purpose=settings.purpose,
            subject=spec.subject,
            prompt=self._prompt,
            messages=self._conversation.messages(),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            sample=spec.sample,
            attempt=spec.attempt,
            top_p=settings.top_p,
            prompt_tokens=self._conversation.size().tokens,
            context_tokens=settings.context_tokens,
        )
        if settings.calls == "native":
            return self._gateway.complete(question, self._tools)
        question = replace(question, messages=on_the_wire(question.messages, self._tools))
        answer = self._gateway.complete(question)
        return replace(answer, value=read(answer.value, self._tools))

    # ---- around a step

    def _take_up(self) -> Ending | None:
        """Resume after the last stored step of this attempt, if any. Returns the ending where it ended there."""
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

    def _details(self, agent_reply: AgentReply, parsed: ParsedReply) -> dict[str, Any]:
        reply = agent_reply.reply
        details: dict[str, Any] = {"finish": reply.finish, "model": reply.model, **self._conversation.record()}
        if reply.refusal:
            details["refusal"] = clean_text(reply.refusal)
        if twice := decoded_twice(reply, agent_reply.calls):
            details["decoded_twice"] = twice
        if reply.usage.tokens_in is None or reply.usage.tokens_out is None:
            details["estimate"] = estimate(self._conversation.size(), reply)
        if parsed.fault is not None:
            details["ran"] = sum(call.fault is None for call in parsed.calls)
        return details

    def _keep(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        self._recorder.add(entries, records)
        for entry in entries:
            self._conversation.add(entry)
        self._used += used_by(entries)
        self._stepper.entries_stored(entries)

    def _after_step(self, observations: Sequence[Entry]) -> Ending | None:
        """Ask the observers. Returns the ending where the attempt ends after this step.

        They are not asked where the step, or a limit, has ended the attempt: no turn would answer them.
        """
        ending: Ending | None = None
        if any(entry.details.get("submitted") for entry in observations):
            ending = Ending.SUBMITTED
        elif self._fruitless_turns >= self._settings.faults_in_a_row:
            ending = Ending.FAULTY
            self._reason = (
                f"nothing could be run of {self._fruitless_turns} turns in a row; the last: {observations[-1].error}"
            )
        elif (limit := self._limit()) is not None:
            ending = limit
        elif self._settings.overflow == "stop" and self._is_full():
            ending = Ending.CONTEXT_LIMIT
        if ending is not None:
            return ending
        guidance: list[Entry] = []
        records: list[Record] = []
        for observer in self._observers:
            advice = observer(self._conversation.entries)
            if advice is None:
                continue
            self.advice_usd = None if self.advice_usd is None or advice.usd is None else self.advice_usd + advice.usd
            if advice.record is not None:
                records.append(advice.record)
            if advice.guidance:
                guidance.append(self.entry(EntryKind.GUIDANCE, "user", advice.guidance, details=dict(advice.details)))
            if advice.stop:
                ending, self._reason = Ending.STOPPED, advice.reason
        if guidance and ending is Ending.STOPPED:
            # Observers are not asked again about a step that guidance follows: the last guidance stores the ending.
            ending_details = {"stop": True, "reason": self._reason}
            guidance[-1] = replace(guidance[-1], details={**guidance[-1].details, **ending_details})
        if guidance or records:
            self._keep(guidance, records)
        return ending
