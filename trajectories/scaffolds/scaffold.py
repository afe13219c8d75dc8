"""What a scaffold is: the way in which a model works in a sandbox.

One module of `trajectories.scaffolds.kinds` holds one. An agent program that runs unchanged in the container, and is
recorded at its endpoint, would be another. It needs two things that are not here: a process in the sandbox whose output
is read as it comes (`Sandbox.exec` returns when a command has ended), and a way for it to a model, since a sandbox has
no network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from environments.sandboxes.sandbox import Sandbox
from prchain.llm.gateway import Gateway
from trajectories.model import NO_LIMITS, NOTHING_USED, AgentLimits, AgentUsage, Ending, Entry, EntryKind
from trajectories.options import RolloutOptions


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """What a scaffold is told of the attempt that it is to make.

    `entries` is the conversation so far; it may end in the middle of the attempt, where a run was killed or a rollout
    begins at a stored step: the sandbox then is as after its last step, and the scaffold goes on from there. What opens
    the attempt (query, comment) is its last entry otherwise.
    """

    subject: str
    """The trajectory's id and the stage, as the ledger keeps it."""
    sample: int
    position: int
    attempt: int
    entries: Sequence[Entry]
    stage_limits: AgentLimits = NO_LIMITS
    chain_limits: AgentLimits = NO_LIMITS
    stage_used: AgentUsage = NOTHING_USED
    """What earlier steps of this stage used."""
    chain_used: AgentUsage = NOTHING_USED
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every command."""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended. Its entries were handed to `Recorder.add` as they came."""

    ending: Ending
    used: AgentUsage
    reason: str | None = None


class Recorder(Protocol):
    """Keeps a step's entries: one transaction a step, written before the next step begins."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Store the entries of one step (an assistant turn and its observations), or inserted ones. `StoreError`."""

    def tree(self) -> str | None:
        """The sandbox's tree, where it is not that of the last call; None where nothing changed, or nobody tracks."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What an observer wants after a step: words to insert as a user's turn, and whether the run ends."""

    guidance: str | None = None
    stop: bool = False
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values that are stored with the inserted turn (`Entry.details`)."""


Observer = Callable[[Sequence[Entry]], Advice | None]
"""Called after each step of one attempt with the whole conversation so far, the step's entries last.

It must not keep the sequence, and its advice must follow from the entries and its settings alone: when a killed run
takes up a step after which nothing was inserted yet, an observer made anew is asked about it again. What it asks a
model is in the ledger then. Raises `LlmError`, which ends the attempt as one of the agent's would.
"""


@dataclass(frozen=True, slots=True)
class ObservedAttempt:
    """The attempt that an observer is made for, and what it may use."""

    gateway: Gateway
    """Where it asks models. Its questions name `subject`, `sample` and `attempt`, so that they are found again, and
    count as the trajectory's cost."""
    subject: str
    """The trajectory's id and the stage, as the ledger keeps it."""
    sample: int
    position: int
    attempt: int
    overview: str
    query: str
    """Of the stage, as the agent reads it."""
    tools: Sequence[Mapping[str, Any]] = ()
    """What the agent's model is told of its tools, in OpenAI's form."""


@runtime_checkable
class ObserverKind(Protocol):
    """A kind of observer under fixed settings: makes one for each attempt. Safe for several threads."""

    @property
    def name(self) -> str:
        """As identities keep it."""

    @property
    def version(self) -> str:
        """Raised when it comes to other advice on the same entries."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings that its advice depends on, as JSON values. One that is added later is left out where it has the
        value that held before, so that no id changes."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt name to hash, of every prompt that it uses."""

    @property
    def purposes(self) -> Sequence[str]:
        """Of its calls to models; none for one that asks none."""

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        """Purpose to calls, tokens in and tokens out, about, in a stage of so many steps: for a dry run."""

    def observe(self, attempt: ObservedAttempt) -> Observer:
        """An observer for one attempt."""


class Scaffold(Protocol):
    """One kind of agent, under fixed options. Safe for several threads: all that changes is in the arguments."""

    @property
    def name(self) -> str:
        """As trajectories keep it."""

    @property
    def version(self) -> str:
        """Raised when the same replies come to another conversation."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """What the model is told of its tools, in OpenAI's form."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt name to hash, of every prompt that it uses."""

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """The words of a system message, a query (with or without the overview) or a comment.

        Variables: ``repository``, ``overview`` (None after stage 1), ``query``, ``position``, ``stages``, ``workdir``,
        ``comment``, ``attempt``. Raises `PromptError`.
        """

    def attempt(
        self,
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> AttemptResult:
        """Work until the agent submits or a limit ends it. Raises `LlmError`, `SandboxError`, `StoreError`."""


@dataclass(frozen=True, slots=True)
class ScaffoldKind:
    """One of the scaffolds that there are."""

    name: str
    """In options and stored rows."""
    help: str
    """What it is, in few words."""
    make: Callable[[RolloutOptions], Scaffold]
    """Raises `UsageError` for options that it does not take, and where something that it needs is not installed."""
