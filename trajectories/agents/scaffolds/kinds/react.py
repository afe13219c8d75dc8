"""Our agent: a model that reasons and acts in turns, by calling tools in a sandbox (ReAct)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.prompts import Prompt, load_prompt
from trajectories.agents.scaffolds import text_calls
from trajectories.agents.scaffolds.attempt_loop import USUAL, AgentReply, AttemptLoop, LoopSettings, Stepper
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, ScaffoldKind
from trajectories.agents.scaffolds.tool_calls import run_calls
from trajectories.agents.scaffolds.turns import ParsedCall, read_turn
from trajectories.agents.tools.tool import ToolResult
from trajectories.agents.tools.toolset import ShellName, Toolset, ToolsetName, toolset
from trajectories.model import Ending, Entry, EntryKind


class ReactScaffold:
    """The scaffold ``react``; see `trajectories.agents.scaffolds.scaffold.Scaffold`."""

    name = "react"
    version: str = "2"

    def __init__(self, tools: ToolsetName, settings: LoopSettings = USUAL, shell: ShellName = "plain") -> None:
        """Raises `UsageError` where the tools have no such shell."""
        self.toolset: Toolset = toolset(tools, shell)
        self.settings = settings
        self._shell = shell

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.tools`."""
        return self.toolset.schemas

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.prompts`."""
        prompts = [self.prompt(kind) for kind in (EntryKind.SYSTEM, EntryKind.QUERY, EntryKind.COMMENT)]
        if self.settings.calls == "text":
            prompts.append(text_calls.prompt())
        if self._shell == "swe-agent":
            prompts.append(_observation())
        return {prompt.name: prompt.hash for prompt in prompts}

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.decided_by`."""
        return {}

    def prompt(self, kind: EntryKind) -> Prompt:
        """The prompt that a kind of opening is written with. Raises `PromptError`."""
        system = f"system_{self.toolset.name}" if self._shell == "plain" else "system_shell"
        name = system if kind is EntryKind.SYSTEM else str(kind)
        return load_prompt("trajectories.agents.scaffolds", name)

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.opening`."""
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
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.attempt`."""
        system = self.prompt(EntryKind.SYSTEM)
        loop = AttemptLoop(self.settings, system, self.tools, gateway, sandbox, spec, record, observers, self.stepper)
        return loop.run()

    def stepper(self, loop: AttemptLoop) -> Stepper:
        """The object that takes the steps of an attempt."""
        how = f" A call is written so:\n\n{text_calls.FORM}" if self.settings.calls == "text" else ""
        return ReactStepper(loop, self.toolset, how, told=self._shell == "swe-agent")


class ReactStepper:
    """Takes the steps of an attempt by the tools of a set."""

    def __init__(self, loop: AttemptLoop, tools: Toolset, how: str = "", *, told: bool = False) -> None:
        """`how` is said to a model whose reply has no call; with `told` what a tool did is put into the words of a
        prompt (`observation`), and of a turn the first call alone is run."""
        self._loop = loop
        self._tools = tools
        self._how = how
        self._told = told

    def step(self) -> Ending | None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`."""
        reply = self._loop.ask()
        return Ending.CONTEXT_LIMIT if reply is None else self.act(reply)

    def act(self, reply: AgentReply) -> Ending | None:
        """Take a step with this reply; returns as `step`."""
        parsed = read_turn(reply.reply, reply.calls, self._tools.tools, self._tools.ending)
        turn = self._loop.turn(reply, parsed)
        if not parsed.calls:
            words = [self._loop.entry(EntryKind.OBSERVATION, "user", parsed.words + self._how, error=str(parsed.fault))]
            return self._loop.keep_step(turn, words, worked=False)
        observations, worked, ended = run_calls(self._loop, parsed.calls, reply.seconds, self._run, alone=self._told)
        return self._loop.keep_step(turn, observations, worked=worked, ended=ended)

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`: it keeps nothing besides the conversation."""

    def _run(self, call: ParsedCall) -> ToolResult:
        if call.tool is None or call.arguments is None:
            return ToolResult(call.words, str(call.fault))
        result = call.tool.run(call.arguments, self._loop.workspace)
        if not self._told:
            return result
        # Like all openings it is of text that is not ours, which a model reads as it is.
        return replace(result, content=_observation().render(observation=result.content)[0].content)


def _observation() -> Prompt:
    return load_prompt("trajectories.agents.scaffolds", "observation")


SCAFFOLD = ScaffoldKind(
    "react", "our own", lambda options: ReactScaffold(options.tools, LoopSettings.of(options), options.shell)
)
