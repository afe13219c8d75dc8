"""What a scaffold is: the way in which a model works in a sandbox.

Each module of `trajectories.agents.scaffolds.kinds` holds one. An agent program of others, which runs unchanged in the
sandbox and is recorded at its endpoint, is one of `trajectories.programs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from trajectories.model import NO_LIMITS, NOTHING_USED, AgentLimits, AgentUsage, Ending, Entry, EntryKind
from trajectories.options import RolloutOptions

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import LaidFolder, Sandbox
    from prchain.core.git.trees import TreeStore
    from prchain.core.leaks.finding import Finding
    from prchain.core.llm.gateway import Gateway
    from sql.store import Transaction
    from trajectories.branches import BranchRow


class CopyTrees(Protocol):
    """The trees of a copy of the stage's sandbox."""

    def take(self) -> str:
        """The tree as it is now, as those of the stage's steps are taken."""

    def kept(self, snapshot: str) -> None:
        """Say that the copy was kept as this snapshot, as it was at the last tree."""


class StageCopies(Protocol):
    """Follows copies of the stage's sandbox."""

    def track(self, sandbox: Sandbox, snapshot: str | None) -> CopyTrees:
        """Of a copy that nobody has used yet; what is known of `snapshot`, which it is as, is not read again."""

    def forget(self, snapshot: str) -> None:
        """Forget what is known of a snapshot."""


@dataclass(frozen=True, slots=True)
class StageAccess:
    """What a scaffold may use of the stage, besides the conversation, where it works in copies of the sandbox."""

    chain_id: str
    start: str
    """S_t."""
    query: str
    """As the agent reads it."""
    trees: TreeStore
    copies: StageCopies
    tell: Callable[[str], None] = lambda words: None
    """Reports progress to people."""


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """One attempt that a scaffold makes.

    `entries` is the conversation so far. It ends with the query or comment that opens the attempt; or, where a run was
    killed or a rollout begins at a stored step, in the middle of the attempt: then the sandbox is as after that step,
    and the scaffold resumes there.
    """

    subject: str
    """The trajectory's id and the stage, in the ledger's form."""
    sample: int
    position: int
    attempt: int
    entries: Sequence[Entry]
    stage_limits: AgentLimits = NO_LIMITS
    chain_limits: AgentLimits = NO_LIMITS
    stage_used: AgentUsage = NOTHING_USED
    """Usage of earlier steps of this stage."""
    chain_used: AgentUsage = NOTHING_USED
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every command."""
    stage: StageAccess | None = None
    """None where trees are not tracked."""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended. Its entries were handed to `Recorder.add` as they came."""

    ending: Ending
    used: AgentUsage
    reason: str | None = None
    outcome: str | None = None
    """The stage's outcome, where the scaffold itself gives the attempt up: then no verdict is asked for."""


Record = Callable[["Transaction"], None]
"""Writes an observer's rows within the caller's transaction; called with the same rows again after a kill."""


class Recorder(Protocol):
    """Keeps a step's entries: one transaction a step, written before the next step begins."""

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        """Store the entries of one step (an assistant turn and its observations), or inserted ones, and in the same
        transaction what observers keep of their own; there may be nothing but that. Raises `StoreError`."""

    def tree(self) -> str | None:
        """The sandbox's tree if it has changed since the last call, else None; None too where trees are not tracked."""

    def restored(self, tree: str) -> None:
        """The sandbox went back to a snapshot, and holds `tree` now; the entries that are added next name it."""


@runtime_checkable
class RetellingRecorder(Recorder, Protocol):
    """A recorder that keeps a whole attempt at once, whose words are known only when it is over."""

    def retell(
        self,
        entries: Sequence[Entry],
        tools: Sequence[Mapping[str, Any]],
        records: Sequence[Record] = (),
        *,
        branches: Sequence[BranchRow] = (),
    ) -> None:
        """Store the entries of an attempt, of which the first stands in place of the last one so far, the tools that
        its model was told of, what observers keep of their own, and what was asked beside it. Raises `StoreError`."""


@dataclass(frozen=True, slots=True)
class Advice:
    """An observer's answer after a step: text to insert as a user's turn, and whether the run ends.

    ``"keep": "last"`` in `details` leaves earlier guidance of the same observer out of later requests.
    """

    guidance: str | None = None
    stop: bool = False
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values that are stored with the inserted turn (`Entry.details`)."""
    record: Record | None = None
    """Writes the observer's own rows, if it has any."""
    usd: float | None = 0.0
    """What its questions cost when they were paid for; None where that is not known."""


Observer = Callable[[Sequence[Entry]], Advice | None]
"""Called after each step of one attempt with the whole conversation so far, the step's entries last.

It must not keep the sequence, and its advice must follow from the entries and its settings alone: when a killed run
resumes after a step without guidance, a new observer is asked about that step again. Its calls to models are in the
ledger then. Raises `LlmError`, which ends the attempt like an error of the agent's own call.
"""


@dataclass(frozen=True, slots=True)
class ObservedAttempt:
    """The attempt that an observer watches, and the gateway that it may use."""

    gateway: Gateway
    """For its calls to models. Its questions carry `subject`, `sample` and `attempt`, so that they are found again in
    the ledger, and count as the trajectory's cost."""
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
    leaks: Callable[[str, Sequence[Entry]], Sequence[Finding]] = lambda text, entries: ()
    """What the leak check says of words for the agent, after these entries. An observer stores it, and
    does not act on it: its advice must not depend on the reference."""


@runtime_checkable
class ObserverKind(Protocol):
    """A kind of observer under fixed settings: makes one for each attempt. Safe for several threads."""

    @property
    def name(self) -> str:
        """As identities keep it."""

    @property
    def version(self) -> str:
        """Increased when the same entries give other advice."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings that its advice depends on, as JSON values. A setting that is added later is left out where it
        has the old behaviour's value, so that no id changes."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt name to hash, of every prompt that it uses."""

    @property
    def purposes(self) -> Sequence[str]:
        """Purposes of its calls to models; empty where it makes none."""

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        """Purpose to estimated calls, tokens in and tokens out in a stage of `steps` steps: for a dry run."""

    def observe(self, attempt: ObservedAttempt) -> Observer:
        """An observer for one attempt."""


@runtime_checkable
class SampledKind(Protocol):
    """A kind of observer that says how its questions are sampled."""

    @property
    def sampling(self) -> Mapping[str, Mapping[str, float]]:
        """Purpose to ``temperature``, ``top_p`` and ``max_tokens`` where the settings of the purpose do not say."""


@runtime_checkable
class LaysFolders(Protocol):
    """A scaffold whose sandboxes see folders of ours."""

    @property
    def laid(self) -> Sequence[LaidFolder]:
        """Which, and where."""


class Scaffold(Protocol):
    """One kind of agent, under fixed options. Safe for several threads: it keeps no state of an attempt."""

    @property
    def name(self) -> str:
        """As trajectories keep it."""

    @property
    def version(self) -> str:
        """Increased when the same replies give another conversation."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """What the model is told of its tools, in OpenAI's form."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt name to hash, of every prompt that it uses."""

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """What its conversations depend on besides options, prompts and tools, of one chain, as JSON values; empty
        for most scaffolds."""

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """The text of a system message, a query (with or without the overview) or a comment; empty for a system message
        that is not ours.

        Variables: ``repository``, ``overview`` (None after stage 1), ``query``, ``position``, ``stages``, ``workdir``,
        ``comment``, ``attempt``, ``earlier`` (`environments.checkouts.state.Carry`), ``briefing`` (the fields of
        `environments.briefing.Briefing` and ``tried``; None where it was told before). Raises `PromptError`.
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
    """An available scaffold, for the catalogue."""

    name: str
    """In options and stored rows."""
    help: str
    """A short description."""
    make: Callable[[RolloutOptions], Scaffold]
    """Raises `UsageError` for options that it does not take, and where something that it needs is not installed."""
