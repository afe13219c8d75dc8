"""Our agent: a model that reasons and acts in turns, by calling tools in a sandbox (ReAct)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.errors import PrchainError, SandboxLimit
from prchain.llm.gateway import Gateway
from prchain.llm.prompts import Prompt, load_prompt
from trajectories.model import Ending, Entry, EntryKind
from trajectories.scaffolds.attempt_loop import USUAL, AttemptLoop, LoopSettings, Stepper
from trajectories.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, ScaffoldKind
from trajectories.scaffolds.taking_up import ended_by, ended_words
from trajectories.scaffolds.tools.tool import ToolResult
from trajectories.scaffolds.tools.toolset import Toolset, ToolsetName, toolset
from trajectories.scaffolds.turns import NOT_RUN, ParsedCall, ParsedReply, read_turn, valid_tool_name

_AFTER_SUBMISSION = "This was not run: the work had been handed in before it."
_AFTER_END = "This was not run: the sandbox had been ended before it."
_OUT_OF_TIME = "This was not run: there is no time left."


class ReactScaffold:
    """The scaffold ``react``; see `trajectories.scaffolds.scaffold.Scaffold`."""

    name = "react"
    version: str = "1"

    def __init__(self, tools: ToolsetName, settings: LoopSettings = USUAL) -> None:
        self.toolset: Toolset = toolset(tools)
        self.settings = settings

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `trajectories.scaffolds.scaffold.Scaffold.tools`."""
        return self.toolset.schemas

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `trajectories.scaffolds.scaffold.Scaffold.prompts`."""
        return {
            prompt.name: prompt.hash
            for prompt in map(self.prompt, (EntryKind.SYSTEM, EntryKind.QUERY, EntryKind.COMMENT))
        }

    def prompt(self, kind: EntryKind) -> Prompt:
        """The prompt that a kind of opening is written with. Raises `PromptError`."""
        name = f"system_{self.toolset.name}" if kind is EntryKind.SYSTEM else str(kind)
        return load_prompt("trajectories.scaffolds", name)

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `trajectories.scaffolds.scaffold.Scaffold.opening`."""
        own = {"timeout": f"{self.settings.command_timeout:g}", "most": f"{self.settings.observation_chars:,}"}
        return self.prompt(kind).render(**{**own, **variables})[0].content

    def attempt(
        self,
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> AttemptResult:
        """See `trajectories.scaffolds.scaffold.Scaffold.attempt`."""
        system = self.prompt(EntryKind.SYSTEM)
        loop = AttemptLoop(self.settings, system, self.tools, gateway, sandbox, spec, record, observers, self.stepper)
        return loop.run()

    def stepper(self, loop: AttemptLoop) -> Stepper:
        """The object that takes the steps of an attempt."""
        return _ReactStepper(loop, self.toolset)


class _ReactStepper:
    """Takes the steps of an attempt by the tools of a set."""

    def __init__(self, loop: AttemptLoop, tools: Toolset) -> None:
        self._loop = loop
        self._tools = tools

    def step(self) -> Ending | None:
        """See `trajectories.scaffolds.attempt_loop.Stepper`."""
        reply = self._loop.ask()
        if reply is None:
            return Ending.CONTEXT_LIMIT
        parsed = read_turn(reply.reply, reply.calls, self._tools.tools, self._tools.ending)
        turn = self._loop.turn(reply, parsed)
        observations, worked, ended = self._observe(parsed, reply.seconds)
        return self._loop.keep_step(turn, observations, worked=worked, ended=ended)

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """See `trajectories.scaffolds.attempt_loop.Stepper`: it keeps nothing besides the conversation."""

    def _observe(self, parsed: ParsedReply, seconds: float) -> tuple[list[Entry], bool, PrchainError | None]:
        """Run a turn's calls in order. Returns the observations (at least one), whether files may have changed, and the
        error that ended the sandbox or None. `seconds` is the duration of the model's reply."""
        if not parsed.calls:
            return [self._loop.entry(EntryKind.OBSERVATION, "user", parsed.words, error=str(parsed.fault))], False, None
        observations: list[Entry] = []
        worked = False
        ended: PrchainError | None = None
        skip_reason: str | None = None
        for call in parsed.calls:
            start_time = perf_counter()
            try:
                result = self._result(call, skip_reason)
            except SandboxLimit as error:
                ended, result = error, ToolResult(ended_words(error), error.name, ended_by(error), worked=True)
            worked = worked or result.worked
            entry = self._loop.entry(
                EntryKind.OBSERVATION,
                "tool",
                result.content,
                tool_call_id=call.call.id,
                tool_name=valid_tool_name(call.call.name),
                error=result.error,
                details={**result.details, **({"submitted": True} if result.submits else {})},
                seconds=perf_counter() - start_time,
                cwd=result.cwd,
            )
            observations.append(entry)
            seconds += entry.seconds
            if result.submits:
                skip_reason = _AFTER_SUBMISSION
            elif ended is not None:
                skip_reason = _AFTER_END
            elif skip_reason is None and self._loop.out_of_time(seconds):
                skip_reason = _OUT_OF_TIME
        return observations, worked, ended

    def _result(self, call: ParsedCall, left_out: str | None) -> ToolResult:
        """The result of a call; with `skip_reason` it is not run."""
        if left_out is not None:
            return ToolResult(left_out, NOT_RUN)
        if call.tool is None or call.arguments is None:
            return ToolResult(call.words, str(call.fault))
        return call.tool.run(call.arguments, self._loop.workspace)


SCAFFOLD = ScaffoldKind("react", "our own", lambda options: ReactScaffold(options.tools, LoopSettings.of(options)))
