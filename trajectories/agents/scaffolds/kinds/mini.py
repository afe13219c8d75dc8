"""mini-swe-agent as a second scaffold: its agent, prompts and tool, on our gateway and our sandbox.

Its `DefaultAgent` takes every step. Its model is our gateway, so that ledger, budget and prices hold; its environment
is our sandbox, which ends a command that takes too long, with all that the command has started. Everything around a
step is ours, as for the scaffold ``react``: limits, the context's policies, faults in a row, observers, storing, and
resuming after any step.

It differs from plain mini-swe-agent only where that would lose or spoil stored data. A faulty reply stays in the
conversation, and its calls are answered with mini-swe-agent's words (plain mini-swe-agent drops the reply and sends the
words as a user). The submitting call is answered, and so are the calls after it and those without time left. A reply
that was cut off runs nothing, and neither does a command that no shell takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from prchain.core.errors import UsageError
from prchain.core.llm.model import Reply, ToolCall
from prchain.core.llm.prompts import Prompt, load_prompt
from prchain.core.storable import clean_text
from trajectories.agents.scaffolds.attempt_loop import USUAL, AgentReply, AttemptLoop, LoopSettings, Stepper
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.mini_package import SHOWN_CHARS, MiniPackage, load_package
from trajectories.agents.scaffolds.mini_shell import SYSTEM, ExecutedCommand, Shell
from trajectories.agents.scaffolds.scaffold import ScaffoldKind
from trajectories.agents.scaffolds.taking_up import ended_by
from trajectories.agents.scaffolds.turns import NOT_RUN, ParsedCall, ParsedReply, sent, valid_tool_name
from trajectories.agents.tools.observations import command_details, command_error, is_submission
from trajectories.model import Ending, Entry, EntryKind, TurnFault
from trajectories.options import RolloutOptions

_NO_LIMITS = {"step_limit": 0, "cost_limit": 0.0, "wall_time_limit_seconds": 0, "max_consecutive_format_errors": 0}
"""mini-swe-agent's limits, off: ours hold."""


class MiniScaffold(ReactScaffold):
    """The scaffold ``mini``; see `trajectories.agents.scaffolds.scaffold.Scaffold`, and `ReactScaffold` for its
    arguments.

    Raises `UsageError` where mini-swe-agent is not installed, and for settings that its template fixes.
    """

    name = "mini"

    def __init__(self, settings: LoopSettings = USUAL) -> None:
        if settings.observation_chars != SHOWN_CHARS:
            raise UsageError(f"mini-swe-agent shows {SHOWN_CHARS:,} characters of an output, no other number")
        if settings.calls != "native":
            raise UsageError("mini-swe-agent calls its tool as the endpoint has it: leave calls=text out")
        super().__init__("bash", settings)
        self.package: MiniPackage = load_package()
        self.version = f"1 with mini-swe-agent {self.package.version}"

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.tools`."""
        return (self.package.tool,)

    def prompt(self, kind: EntryKind) -> Prompt:
        """See `ReactScaffold.prompt`; mini-swe-agent's own prompts are named as one."""
        return (
            self.package.prompt if kind is EntryKind.SYSTEM else load_prompt("trajectories.agents.scaffolds", str(kind))
        )

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `trajectories.agents.scaffolds.scaffold.Scaffold.opening`.

        A query with the overview is put into mini-swe-agent's task template; a later query needs no template, since the
        conversation already holds it.
        """
        if kind is EntryKind.SYSTEM:
            return self.package.render("system", SYSTEM).strip()
        words = self.prompt(kind).render(**variables)[0].content
        if kind is EntryKind.COMMENT or variables["overview"] is None:
            return words
        return self.package.render("task", {**SYSTEM, "task": words}).strip()

    def stepper(self, loop: AttemptLoop) -> Stepper:
        """See `ReactScaffold.stepper`."""
        return _MiniStepper(loop, self.package)


class _ContextFull(Exception):
    """The next prompt does not fit the context."""


class _MiniStepper:
    """Takes the steps of an attempt by mini-swe-agent's agent.

    Its conversation is made from our entries, so that it is the same when a killed run resumes.
    """

    def __init__(self, loop: AttemptLoop, package: MiniPackage) -> None:
        self._loop = loop
        self._package = package
        self._model = _Model(self)
        self._shell = Shell(loop.workspace, package.environment, self._is_late)
        self._agent = package.agent(
            self._model, self._shell, system_template=package.system, instance_template=package.task, **_NO_LIMITS
        )
        self._agent.messages = [_mini_message(entry) for entry in loop.spec.entries]
        self._agent.n_calls, self._agent.cost = loop.spec.stage_used.steps, loop.spec.stage_used.usd

    def step(self) -> Ending | None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`."""
        self._model.reply = None
        self._shell.begin()
        try:
            messages = self._agent.step()
        except _ContextFull:
            return Ending.CONTEXT_LIMIT
        except self._package.format_error as error:
            return self._after_fault(str(error.messages[0]["content"]))  # type: ignore[attr-defined]
        reply = self._reply()
        turn = self._loop.turn(reply, ParsedReply(tuple(map(ParsedCall, reply.calls))))
        observations = [
            self._observation(call, message["content"], executed)
            for call, message, executed in zip(reply.calls, messages, self._shell.executed, strict=True)
        ]
        worked = any(executed.result or executed.ended for executed in self._shell.executed)
        return self._loop.keep_step(turn, observations, worked=worked, ended=self._shell.ended)

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """See `trajectories.agents.scaffolds.attempt_loop.Stepper`: the stored entries replace mini-swe-agent's own
        messages of the step."""
        count_before = len(self._loop.entries) - len(entries)
        self._agent.messages[count_before:] = [_mini_message(entry) for entry in entries]

    def _is_late(self) -> bool:
        return self._loop.out_of_time(
            self._reply().seconds + sum(executed.seconds for executed in self._shell.executed)
        )

    def _reply(self) -> AgentReply:
        reply = self._model.reply
        assert reply is not None, "a step that ends has asked"
        return reply

    def _after_fault(self, words: str) -> Ending | None:
        """Store a reply of which nothing was run."""
        reply, entry = self._reply(), self._loop.entry
        fault = _fault(reply.reply, reply.calls)
        turn = self._loop.turn(reply, ParsedReply(tuple(ParsedCall(call, fault=fault) for call in reply.calls), fault))
        answers = [
            entry(
                EntryKind.OBSERVATION,
                "tool",
                words,
                tool_call_id=call.id,
                tool_name=valid_tool_name(call.name),
                error=str(fault),
            )
            for call in reply.calls
        ]
        if not answers:
            answers = [entry(EntryKind.OBSERVATION, "user", words, error=str(fault))]
        return self._loop.keep_step(turn, answers, worked=False)

    def _observation(self, call: ToolCall, content: str, executed: ExecutedCommand) -> Entry:
        details: dict[str, Any] = {}
        error: str | None = NOT_RUN
        if executed.ended is not None:
            error, details = executed.ended.name, dict(ended_by(executed.ended))
        elif executed.result is not None:
            details = command_details(executed.result, max(executed.characters - SHOWN_CHARS, 0))
            error = command_error(executed.result)
            if is_submission(executed.result):
                details["submitted"] = True
        return self._loop.entry(
            EntryKind.OBSERVATION,
            "tool",
            content,
            tool_call_id=call.id,
            tool_name=valid_tool_name(call.name),
            error=error,
            details=details,
            seconds=executed.seconds,
        )

    # ---- what mini-swe-agent asks for

    def ask(self) -> AgentReply:
        """The next reply. Raises `_NoRoom`."""
        reply = self._loop.ask()
        if reply is None:
            raise _ContextFull
        return reply

    def actions_of(self, agent_reply: AgentReply) -> list[dict[str, Any]]:
        """The actions of a reply, as mini-swe-agent parses them. Raises its `format_error`."""
        reply, package = agent_reply.reply, self._package
        if reply.refusal or reply.finish in {"length", "content_filter"}:
            self._refuse(reply, "The response is incomplete; nothing of it was executed.")
        calls = [SimpleNamespace(id=call.id, function=call) for call in agent_reply.calls]
        actions: list[dict[str, Any]] = package.parse(
            calls, format_error_template=package.fault, template_kwargs={"finish_reason": reply.finish}
        )
        if not all(_is_command(action["command"]) for action in actions):
            self._refuse(reply, "The 'command' argument must be a string without NUL and lone surrogate characters.")
        return actions

    def _refuse(self, reply: Reply, error: str) -> None:
        """Raise mini-swe-agent's error for a reply that it would run."""
        variables = {
            "error": error,
            "actions": [],
            "has_tool_calls": bool(reply.tool_calls),
            "finish_reason": reply.finish,
        }
        raise self._package.format_error({"role": "user", "content": self._package.render("fault", variables)})

    def observe(
        self, actions: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """The messages with the outputs, in mini-swe-agent's form."""
        return [
            {
                "role": "tool",
                "tool_call_id": action["tool_call_id"],
                "content": self._package.render("observation", {**variables, "output": output}),
            }
            for action, output in zip(actions, outputs, strict=True)
        ]


class _Model:
    """The model that mini-swe-agent gets."""

    def __init__(self, stepper: _MiniStepper) -> None:
        self.config = SimpleNamespace()
        self.reply: AgentReply | None = None
        self._stepper = stepper

    def query(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> dict[str, Any]:
        """The next turn. `messages` are not used: the loop makes the request from the same entries."""
        self.reply = agent_reply = self._stepper.ask()
        reply = agent_reply.reply
        actions = self._stepper.actions_of(agent_reply)
        return {
            "role": "assistant",
            "content": reply.text,
            "extra": {"actions": actions, "cost": agent_reply.answer.cost or 0},
        }

    def format_message(self, **message: Any) -> dict[str, Any]:
        """A message as it is."""
        return message

    def format_observation_messages(
        self,
        message: Mapping[str, Any],
        outputs: Sequence[Mapping[str, Any]],
        template_vars: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """The messages with the outputs."""
        return self._stepper.observe(message["extra"]["actions"], outputs, template_vars or {})

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """None."""
        return {}

    def serialize(self) -> dict[str, Any]:
        """Nothing: our rows keep what there is to keep."""
        return {}


def _is_command(value: Any) -> bool:
    return isinstance(value, str) and clean_text(value) == value


def _fault(reply: Reply, calls: Sequence[ToolCall]) -> TurnFault:
    """Which fault a reply has that cannot be run."""
    if reply.refusal or reply.finish == "content_filter":
        return TurnFault.REFUSAL
    if reply.finish == "length":
        return TurnFault.CUT_OFF
    if not calls:
        return TurnFault.NO_CALL if reply.text.strip() else TurnFault.EMPTY
    return TurnFault.UNKNOWN_TOOL if any(call.name != "bash" for call in calls) else TurnFault.BAD_ARGUMENTS


def _mini_message(entry: Entry) -> dict[str, Any]:
    """An entry as a message in mini-swe-agent's conversation."""
    message = sent(entry, reasoning=False)
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        out["tool_calls"] = [
            {
                "id": tool_call.id,
                "type": "function",
                "function": {"name": tool_call.name, "arguments": tool_call.arguments},
            }
            for tool_call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    return out


def _made(options: RolloutOptions) -> MiniScaffold:
    if options.shell != "plain":
        raise UsageError("mini-swe-agent has a shell of its own: leave shell=swe-agent out")
    return MiniScaffold(LoopSettings.of(options))


SCAFFOLD = ScaffoldKind("mini", "mini-swe-agent with its own tool and prompts", _made)
