"""Proposer and critic: agents that look around in a sandbox and end with a JSON object (P2T, appendix D).

They share the loop of all agents (`trajectories.agents.scaffolds.attempt_loop`). A reply without calls is the answer:
where it does not fit its schema, the agent is told so, `schema_repeats` times; then the round is dropped. Schemas are
not sent with the requests: an endpoint that enforces one lets no tool be called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from environments.sandboxes.sandbox import Sandbox
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.model import Message, Reply
from prchain.core.llm.prompts import Prompt, fenced_texts
from prchain.core.llm.replies import UnfitReply, read_shape
from prchain.core.llm.verdicts import read_verdict
from trajectories.agents.scaffolds.attempt_loop import AttemptLoop, LoopSettings
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.scaffold import AttemptSpec, Recorder
from trajectories.agents.scaffolds.tool_calls import run_calls
from trajectories.agents.scaffolds.turns import NOT_RUN, ParsedCall, ParsedReply, read_turn
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.editor import Editor
from trajectories.agents.tools.tool import Tool, ToolResult, Workspace, schema_of
from trajectories.model import AgentLimits, Ending, Entry, EntryKind

Shape = TypeVar("Shape", bound=BaseModel)

UNFIT = "unfit_answer"
"""`Entry.error` of what answers a reply that does not fit its schema."""

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (Bash(session=True), Editor())}
SCHEMAS = tuple(schema_of(tool) for tool in TOOLS.values())

_NONE_LEFT = "This was not run: no tool calls are left. Answer now with the JSON object alone."
_TAKEN = "The answer was taken."
_SPARE_STEPS = 3
"""Steps beyond one for each tool call and each schema fault: the answer, and calls after the last one."""


@dataclass(frozen=True, slots=True)
class CuratorLimits:
    """What proposer and critic may use in one round."""

    tool_calls: int = 40
    schema_repeats: int = 2

    @property
    def steps(self) -> int:
        """Turns of a round at most."""
        return self.tool_calls + self.schema_repeats + _SPARE_STEPS


@dataclass(frozen=True, slots=True)
class AgentAnswer(Generic[Shape]):
    """How an agent's round ended; `value` is None where it was dropped, and `reason` says why."""

    value: Shape | None
    ending: Ending
    reason: str | None = None


@dataclass(frozen=True)
class CuratorAgent(Generic[Shape]):
    """One kind of agent. `check` raises `UnfitReply` for an answer that fits its schema and is wrong all the same;
    `decides` says that the answer is a verdict (`prchain.core.llm.verdicts`)."""

    gateway: Gateway
    prompt: Prompt
    settings: LoopSettings
    limits: CuratorLimits
    shape: type[Shape]
    check: Callable[[Shape], None]
    decides: bool = False

    def opening(self, **variables: object) -> list[Entry]:
        """The messages that a round begins with. Raises `PromptError`."""
        kinds = {"system": EntryKind.SYSTEM, "user": EntryKind.QUERY}
        messages = self.prompt.render(**variables)
        return [
            Entry(place, 1, 1, 0, kinds[message.role], message.role, message.content)
            for place, message in enumerate(messages)
        ]

    def run(self, sandbox: Sandbox, subject: str, entries: Sequence[Entry], recorder: Recorder) -> AgentAnswer[Shape]:
        """Work until the agent has answered or its round is dropped; goes on after the stored `entries`.

        The sandbox is as after these entries (`replay_calls`). Raises `LlmError`, `SandboxError`, `StoreError`.
        """
        spec = AttemptSpec(subject, 0, 1, 1, entries, AgentLimits(steps=self.limits.steps), stage_used=used_by(entries))
        loop = AttemptLoop(
            self.settings, self.prompt, SCHEMAS, self.gateway, sandbox, spec, recorder, (), self._stepper
        )
        result = loop.run()
        if result.ending is not Ending.SUBMITTED:
            words = {
                Ending.STEP_LIMIT: "it did not answer within its tool calls",
                Ending.FAULTY: "its answers did not fit the schema",
            }
            return AgentAnswer(None, result.ending, result.reason or words.get(result.ending, str(result.ending)))
        answer = next(entry for entry in reversed(loop.entries) if entry.kind is EntryKind.TURN)
        return AgentAnswer(self.read(answer), result.ending)

    def _stepper(self, loop: AttemptLoop) -> _AnswerStepper[Shape]:
        return _AnswerStepper(loop, self)

    def read(self, turn: Entry, before: Sequence[Entry] = ()) -> Shape:
        """The answer that a turn holds; one that was taken is read without the conversation `before` it. Raises
        `UnfitReply`."""
        details = turn.details
        reply = Reply(turn.content, "", str(details.get("finish", "stop")), details.get("refusal"))
        judged = self.decides and before
        value = read_verdict(reply, self.shape, _shown(before)) if judged else read_shape(reply, self.shape)
        self.check(value)
        return value


class _AnswerStepper(Generic[Shape]):
    """Takes the steps of a round: calls of tools, as long as some are left, or the answer."""

    def __init__(self, loop: AttemptLoop, agent: CuratorAgent[Shape]) -> None:
        self._loop = loop
        self._agent = agent
        self._calls = sum(entry.kind is EntryKind.OBSERVATION and entry.role == "tool" for entry in loop.entries)
        self._unfit = sum(entry.error == UNFIT for entry in loop.entries)

    def step(self) -> Ending | None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`."""
        if self._unfit > self._agent.limits.schema_repeats:
            return Ending.FAULTY
        reply = self._loop.ask()
        if reply is None:
            return Ending.CONTEXT_LIMIT
        parsed = read_turn(reply.reply, reply.calls, TOOLS, "answer with the JSON object")
        if parsed.calls:
            turn = self._loop.turn(reply, parsed)
            observations, worked, ended = run_calls(self._loop, parsed.calls, reply.seconds, self._run)
            return self._loop.keep_step(turn, observations, worked=worked, ended=ended)
        turn = self._loop.turn(reply, ParsedReply(()))
        try:
            self._agent.read(turn, self._loop.entries)
        except UnfitReply as fault:
            self._unfit += 1
            observation = self._loop.entry(EntryKind.OBSERVATION, "user", fault.words, error=UNFIT)
            return self._loop.keep_step(turn, [observation], worked=False)
        observation = self._loop.entry(EntryKind.OBSERVATION, "user", _TAKEN, details={"submitted": True})
        return self._loop.keep_step(turn, [observation], worked=False)

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`."""

    def _run(self, call: ParsedCall) -> ToolResult:
        if self._calls >= self._agent.limits.tool_calls:
            return ToolResult(_NONE_LEFT, NOT_RUN)
        self._calls += 1
        if call.tool is None or call.arguments is None:
            return ToolResult(call.words, str(call.fault))
        return call.tool.run(call.arguments, self._loop.workspace)


def _shown(entries: Sequence[Entry]) -> list[str]:
    """The texts of others in a conversation: those that its prompt fences, and what tools printed."""
    prompt = [Message(entry.role, entry.content) for entry in entries if entry.role in {"system", "user"}]
    return [*fenced_texts(prompt), *(entry.content for entry in entries if entry.role == "tool")]


def replay_calls(sandbox: Sandbox, entries: Sequence[Entry], settings: LoopSettings) -> None:
    """Run the tool calls of stored entries again, so that a new sandbox is as it was after them. Raises
    `SandboxError`."""
    workspace = Workspace(sandbox, timeout=settings.command_timeout, most=settings.observation_chars)
    not_run = {entry.tool_call_id for entry in entries if entry.error == NOT_RUN}
    for entry in entries:
        if entry.kind is not EntryKind.TURN or not entry.tool_calls:
            continue
        reply = Reply(entry.content, "", str(entry.details.get("finish", "stop")), tool_calls=entry.tool_calls)
        for call in read_turn(reply, entry.tool_calls, TOOLS, "").calls:
            if call.tool is not None and call.arguments is not None and call.call.id not in not_run:
                call.tool.run(call.arguments, workspace)
