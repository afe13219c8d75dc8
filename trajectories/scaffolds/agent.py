"""Our agent: a model that reasons and acts in turns, by calling tools in a sandbox (ReAct).

One step is one reply of the model, what its calls did, and one transaction that keeps both. An attempt can be taken up
after any step: everything that the loop goes by follows from the entries, so that a run which was killed asks the same
question again and finds its reply in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.errors import ContextTooLong, PrchainError, SandboxError, SandboxLimit
from prchain.llm.desk import Answer, Desk, Question
from prchain.llm.model import Reply, Role, ToolCall
from prchain.llm.prompts import Prompt, load_prompt
from prchain.scrub import clean_text
from prchain.timestamps import now
from trajectories.model import NOTHING_USED, Ending, Entry, Kind
from trajectories.scaffolds.context import Conversation, Overflow, cut_to, estimate, used_by
from trajectories.scaffolds.scaffold import Attempt, Observer, Order, Recorder
from trajectories.scaffolds.taking_up import (
    ENDS,
    end_of,
    ended_by,
    ended_words,
    is_in_vain,
    last_step,
    turns_in_vain,
    with_end,
    workspace,
)
from trajectories.scaffolds.tools.tool import Result
from trajectories.scaffolds.tools.toolset import Toolset, ToolsetName, toolset
from trajectories.scaffolds.turns import NOT_RUN, Call, Turn, named_calls, read_turn, shown_name

PURPOSE = "agent"
"""Of the agent's questions, as settings and ledger know it."""

_AFTER_SUBMISSION = "This was not run: the work had been handed in before it."
_AFTER_END = "This was not run: the sandbox had been ended before it."
_OUT_OF_TIME = "This was not run: there is no time left."


class ReactScaffold:
    """The scaffold ``react``; see `trajectories.scaffolds.scaffold.Scaffold`.

    `max_tokens` is a reply's; `context_tokens` is what the model takes, prompt and reply together (None: nobody knows
    until the endpoint refuses). `observation_chars` is in characters, `command_timeout` in seconds. After
    `faults_in_a_row` turns of which nothing could be run an attempt ends. `send_reasoning`: whether the reasoning that
    an endpoint gave goes back to it; thinking models with tools want that, and some refuse a conversation without it.
    """

    name = "react"
    version: str = "1"

    def __init__(
        self,
        *,
        tools: ToolsetName,
        temperature: float | None = None,
        max_tokens: int = 8192,
        context_tokens: int | None = None,
        overflow: Overflow = "stop",
        observation_chars: int = 10_000,
        command_timeout: float = 120.0,
        faults_in_a_row: int = 3,
        send_reasoning: bool = True,
    ) -> None:
        self.toolset: Toolset = toolset(tools)
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.context_tokens = context_tokens
        self.overflow = overflow
        self.observation_chars = observation_chars
        self.command_timeout = command_timeout
        self.faults_in_a_row = faults_in_a_row
        self.send_reasoning = send_reasoning

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `trajectories.scaffolds.scaffold.Scaffold.tools`."""
        return self.toolset.schemas

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `trajectories.scaffolds.scaffold.Scaffold.prompts`."""
        return {prompt.name: prompt.hash for prompt in map(self.prompt, (Kind.SYSTEM, Kind.QUERY, Kind.COMMENT))}

    def prompt(self, kind: Kind) -> Prompt:
        """The prompt that a kind of opening is written with. Raises `PromptError`."""
        name = f"system_{self.toolset.name}" if kind is Kind.SYSTEM else str(kind)
        return load_prompt("trajectories.scaffolds", name)

    def opening(self, kind: Kind, variables: Mapping[str, Any]) -> str:
        """See `trajectories.scaffolds.scaffold.Scaffold.opening`."""
        own = {"timeout": f"{self.command_timeout:g}", "most": f"{self.observation_chars:,}"}
        return self.prompt(kind).render(**{**own, **variables})[0].content

    def attempt(
        self, desk: Desk, sandbox: Sandbox, order: Order, record: Recorder, observers: Sequence[Observer] = ()
    ) -> Attempt:
        """See `trajectories.scaffolds.scaffold.Scaffold.attempt`."""
        return AttemptRun(self, desk, sandbox, order, record, observers).run()


class AttemptRun:
    """One attempt under way. What another agent does in a step of its own stands in place of `_next_step`."""

    def __init__(
        self,
        scaffold: ReactScaffold,
        desk: Desk,
        sandbox: Sandbox,
        order: Order,
        record: Recorder,
        observers: Sequence[Observer],
    ) -> None:
        self._scaffold = scaffold
        self._desk = desk
        self._order = order
        self._record = record
        self._observers = observers
        self._prompt = scaffold.prompt(Kind.SYSTEM)
        self._talk = Conversation(
            order.entries, position=order.position, tools=scaffold.tools, reasoning=scaffold.send_reasoning
        )
        self._place = workspace(sandbox, order, timeout=scaffold.command_timeout, most=scaffold.observation_chars)
        self._step = max((entry.step for entry in order.entries), default=0)
        self._ordinal = order.entries[-1].ordinal + 1 if order.entries else 0
        self._in_vain = turns_in_vain(order)
        self._used = NOTHING_USED
        self._reason: str | None = None

    def run(self) -> Attempt:
        if self._order.stage_limits.usd is not None or self._order.chain_limits.usd is not None:
            self._desk.require_price(PURPOSE, "a limit in USD")
        ending = self._take_up()
        while ending is None:
            ending = self._limit() or self._next_step()
        return Attempt(ending, self._used, self._reason)

    def _take_up(self) -> Ending | None:
        """What follows from the step that the entries end with, where that is one of this attempt."""
        last = self._order.entries[-1] if self._order.entries else None
        if last is None or (last.position, last.attempt) != (self._order.position, self._order.attempt):
            return None
        if last.kind is Kind.TURN:
            raise ValueError(f"the turn of step {last.step} stands without its observations: steps are stored whole")
        if last.kind is Kind.OBSERVATION:
            observations = last_step(self._order.entries)
            if (ended := end_of(observations)) is not None:
                raise ended
            return self._after_step(observations)
        if last.kind is Kind.GUIDANCE and last.details.get("stop"):
            self._reason = last.details.get("reason")
            return Ending.STOPPED
        return None

    def _limit(self) -> Ending | None:
        order = self._order
        stage, chain = order.stage_used + self._used, order.chain_used + self._used
        return stage.over(order.stage_limits) or chain.over(order.chain_limits)

    def out_of_time(self, seconds: float) -> bool:
        """Whether a limit of time is reached in the middle of a step that has taken so many seconds."""
        order, used = self._order, self._used.seconds + seconds
        pairs = ((order.stage_used, order.stage_limits), (order.chain_used, order.chain_limits))
        return any(most.seconds is not None and before.seconds + used >= most.seconds for before, most in pairs)

    def _next_step(self) -> Ending | None:
        began = perf_counter()
        answer = self._ask()
        if answer is None:
            return Ending.CONTEXT_LIMIT
        self._step += 1
        return self._act(answer, waited(answer, began))

    # ---- asking

    def _ask(self) -> Answer[Reply] | None:
        """The next reply; None where the conversation does not fit the context."""
        scaffold, talk = self._scaffold, self._talk
        elides = scaffold.overflow == "elide"
        if scaffold.context_tokens is not None:
            room = max(scaffold.context_tokens - scaffold.max_tokens, 0)
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
        scaffold, order = self._scaffold, self._order
        question = Question(
            purpose=PURPOSE,
            subject=order.subject,
            prompt=self._prompt,
            messages=self._talk.messages(),
            max_tokens=scaffold.max_tokens,
            temperature=scaffold.temperature,
            sample=order.sample,
            attempt=order.attempt,
        )
        return self._desk.complete(question, scaffold.tools)

    # ---- acting

    def _act(self, answer: Answer[Reply], seconds: float) -> Ending | None:
        """Do what a reply asks for, and keep all of it in one transaction."""
        reply, own = answer.value, self._scaffold.toolset
        calls = named_calls(reply, self._step)
        read = read_turn(reply, calls, own.tools, own.ending)
        turn = self._turn(answer, calls, read, seconds)
        observations, worked, ended = self._observe(read, seconds)
        return self._keep_step(turn, observations, worked=worked, ended=ended)

    def _turn(self, answer: Answer[Reply], calls: tuple[ToolCall, ...], read: Turn, seconds: float) -> Entry:
        """The entry of a reply; `seconds` is what it took to come."""
        reply = answer.value
        return self._entry(
            Kind.TURN,
            "assistant",
            reply.text,
            reasoning=None if reply.reasoning is None else clean_text(reply.reasoning),
            tool_calls=calls,
            error=None if read.fault is None else str(read.fault),
            details=self._details(reply, read),
            tokens_in=reply.usage.tokens_in,
            tokens_cached=reply.usage.tokens_cached,
            tokens_out=reply.usage.tokens_out,
            usd=answer.cost,
            seconds=seconds,
        )

    def _keep_step(
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

    def _details(self, reply: Reply, read: Turn) -> dict[str, Any]:
        details: dict[str, Any] = {"finish": reply.finish, "model": reply.model, **self._talk.record()}
        if reply.refusal:
            details["refusal"] = clean_text(reply.refusal)
        if reply.usage.tokens_in is None or reply.usage.tokens_out is None:
            details["estimate"] = estimate(self._talk.size(), reply)
        if read.fault is not None:
            details["ran"] = sum(call.fault is None for call in read.calls)
        return details

    def _observe(self, read: Turn, seconds: float) -> tuple[list[Entry], bool, PrchainError | None]:
        """Run a turn's calls in order: their observations, one at least, whether files may have changed, and what ended
        the sandbox, if anything did. `seconds` is what the turn took to come."""
        if not read.calls:
            return [self._entry(Kind.OBSERVATION, "user", read.words, error=str(read.fault))], False, None
        out: list[Entry] = []
        worked = False
        ended: PrchainError | None = None
        left_out: str | None = None
        for call in read.calls:
            began = perf_counter()
            try:
                result = self._result(call, left_out)
            except SandboxLimit as error:
                ended, result = error, Result(ended_words(error), error.name, ended_by(error), worked=True)
            worked = worked or result.worked
            entry = self._entry(
                Kind.OBSERVATION,
                "tool",
                result.content,
                tool_call_id=call.call.id,
                tool_name=shown_name(call.call.name),
                error=result.error,
                details={**result.details, **({"submitted": True} if result.submits else {})},
                seconds=perf_counter() - began,
                cwd=result.cwd,
            )
            out.append(entry)
            seconds += entry.seconds
            if result.submits:
                left_out = _AFTER_SUBMISSION
            elif ended is not None:
                left_out = _AFTER_END
            elif left_out is None and self.out_of_time(seconds):
                left_out = _OUT_OF_TIME
        return out, worked, ended

    def _result(self, call: Call, left_out: str | None) -> Result:
        """What comes of a call; `left_out` says why it is not run, if so."""
        if left_out is not None:
            return Result(left_out, NOT_RUN)
        if call.tool is None or call.arguments is None:
            return Result(call.words, str(call.fault))
        return call.tool.run(call.arguments, self._place)

    def _entry(self, kind: Kind, role: Role, content: str, **fields: Any) -> Entry:
        order = self._order
        self._ordinal += 1
        return Entry(
            ordinal=self._ordinal - 1,
            position=order.position,
            attempt=order.attempt,
            step=self._step,
            kind=kind,
            role=role,
            content=clean_text(content),
            at=now(),
            **fields,
        )

    def _keep(self, entries: Sequence[Entry]) -> None:
        self._record.add(entries)
        for entry in entries:
            self._talk.add(entry)
        self._used += used_by(entries)

    # ---- after a step

    def _after_step(self, observations: Sequence[Entry]) -> Ending | None:
        """Ask the observers, and tell how the attempt ends after its last step, if it does.

        Words that an observer has for an agent whose attempt ends are not inserted: nobody would answer them.
        """
        ending = None
        if any(entry.details.get("submitted") for entry in observations):
            ending = Ending.SUBMITTED
        elif self._in_vain >= self._scaffold.faults_in_a_row:
            ending = Ending.FAULTY
            self._reason = f"nothing could be run of {self._in_vain} turns in a row; the last: {observations[-1].error}"
        words: list[Entry] = []
        for observer in self._observers:
            advice = observer(self._talk.entries)
            if advice is None:
                continue
            if advice.guidance and ending in {None, Ending.STOPPED}:
                words.append(self._entry(Kind.GUIDANCE, "user", advice.guidance, details=dict(advice.details)))
            if advice.stop:
                ending, self._reason = Ending.STOPPED, advice.reason
        if words and ending is Ending.STOPPED:
            # Observers are not asked again about a step that their words follow: the last of these tells of the end.
            stops = {"stop": True, "reason": self._reason}
            words[-1] = replace(words[-1], details={**words[-1].details, **stops})
        if words:
            self._keep(words)
        return ending


def waited(answer: Answer[Reply], began: float) -> float:
    """How long a reply took to come that was asked for at `began`, or when an earlier run asked for it."""
    return max(perf_counter() - began, answer.seconds)
