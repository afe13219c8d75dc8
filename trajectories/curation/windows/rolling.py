"""Continuations of a conversation in a copy of its sandbox: the blinded agent, for some steps, perhaps after one step
that somebody else wrote (P2T, appendix F)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import ExtractionFailed, SandboxLimit
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.model import Reply
from trajectories.agents.observers.attempt import observers_under
from trajectories.agents.scaffolds.attempt_loop import AttemptLoop, Stepper
from trajectories.agents.scaffolds.kinds.react import ReactScaffold, ReactStepper
from trajectories.agents.scaffolds.scaffold import Advice, AttemptSpec, CopyTrees, Observer, Record
from trajectories.curation.windows.candidates import OPEN
from trajectories.model import NO_LIMITS, NOTHING_USED, AgentLimits, Ending, Entry, EntryKind


@dataclass(frozen=True, slots=True)
class Continuation:
    """What came of it. `snapshots` and `leftovers` have one item a step: the snapshot after it (None where files are as
    before the first step), and the background processes that run then."""

    entries: tuple[Entry, ...]
    outcome: str
    reason: str | None = None
    snapshots: Mapping[int, str | None] = field(default_factory=dict)
    """By the number of the step."""
    leftovers: Mapping[int, int] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    """What observers keep of their own."""
    advice_usd: float | None = 0.0
    """What the observers' questions cost; None where that is not known."""


class BranchRecorder:
    """The recorder of a continuation, in memory. A snapshot is taken after each step that may have written, and after
    no other: it costs more than the step."""

    def __init__(self, sandbox: Sandbox, trees: CopyTrees, last_tree: str, snapshot: str | None) -> None:
        self.entries: list[Entry] = []
        self.snapshots: dict[int, str | None] = {}
        self.leftovers: dict[int, int] = {}
        self.records: list[Record] = []
        self._sandbox = sandbox
        self._trees = trees
        self._last_tree = last_tree
        self._snapshot = snapshot
        self._leftovers = 0

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        """See `Recorder`."""
        self.entries.extend(entries)
        self.records.extend(records)
        if entries:
            self.snapshots[entries[-1].step] = self._snapshot
            self.leftovers[entries[-1].step] = self._leftovers

    def tree(self) -> str | None:
        """See `Recorder`."""
        tree = self._trees.take()
        self._leftovers = self._sandbox.leftovers()
        self._snapshot = self._sandbox.snapshot()
        self._trees.kept(self._snapshot)
        if tree == self._last_tree:
            return None
        self._last_tree = tree
        return tree

    def restored(self, tree: str) -> None:
        """See `Recorder`: a continuation goes nowhere back to."""
        self._last_tree = tree


class _AfterGiven:
    """Takes a given step first, then the agent's own."""

    def __init__(self, inner: ReactStepper, loop: AttemptLoop, reply: Reply, details: Mapping[str, Any]) -> None:
        self._inner = inner
        self._loop = loop
        self._given: tuple[Reply, Mapping[str, Any]] | None = (reply, details)

    def step(self) -> Ending | None:
        """See `Stepper`."""
        if self._given is None:
            return self._inner.step()
        (reply, details), self._given = self._given, None
        return self._inner.act(self._loop.given(reply, details))

    def entries_stored(self, entries: Sequence[Entry]) -> None:
        """See `Stepper`."""


@dataclass(frozen=True)
class Roller:
    """Continues one stage's conversation."""

    gateway: Gateway
    agent: ReactScaffold
    spec: AttemptSpec
    observers: Sequence[Observer] = ()

    def roll(
        self,
        sandbox: Sandbox,
        before: Sequence[Entry],
        subject: str,
        steps: int,
        *,
        tree: str,
        snapshot: str | None = None,
        given: Reply | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Continuation:
        """So many steps after the conversation `before`, or fewer where the agent's work ends. The sandbox holds
        `tree`, and is as `snapshot`, if that is named. With `given` that reply is the first step.

        Raises `LlmError`, `SandboxLost`, `EngineUnavailable`.
        """
        access = self.spec.stage
        assert access is not None
        spec = replace(
            self.spec,
            subject=subject,
            entries=tuple(before),
            stage_limits=AgentLimits(steps=steps),
            chain_limits=NO_LIMITS,
            stage_used=NOTHING_USED,
            chain_used=NOTHING_USED,
        )
        try:
            trees = access.copies.track(sandbox, snapshot)
        except (SandboxLimit, ExtractionFailed) as error:
            return Continuation((), error.name, str(error))
        recorder = BranchRecorder(sandbox, trees, tree, snapshot)

        observers = observers_under(self.observers, subject)
        if given is not None:
            observers = _not_asked_at(observers, max((it.step for it in before), default=0))

        def stepper(loop: AttemptLoop) -> Stepper:
            inner = ReactStepper(loop, self.agent.toolset)
            return inner if given is None else _AfterGiven(inner, loop, given, details or {})

        loop = AttemptLoop(
            self.agent.settings,
            self.agent.prompt(EntryKind.SYSTEM),
            self.agent.tools,
            self.gateway,
            sandbox,
            spec,
            recorder,
            observers,
            stepper,
        )
        try:
            result = loop.run()
        except (SandboxLimit, ExtractionFailed) as error:
            outcome: str = error.name
            reason: str | None = str(error)
        else:
            # The only limit of the loop is the number of its steps.
            outcome = OPEN if result.ending is Ending.STEP_LIMIT else str(result.ending)
            reason = result.reason
        return Continuation(
            tuple(recorder.entries),
            outcome,
            reason,
            recorder.snapshots,
            recorder.leftovers,
            tuple(recorder.records),
            loop.advice_usd,
        )


def _not_asked_at(observers: Sequence[Observer], step: int) -> list[Observer]:
    """The observers, silent after that step: the next one was written without their words."""

    def silent(observer: Observer) -> Observer:
        def advise(entries: Sequence[Entry]) -> Advice | None:
            return None if entries[-1].step == step else observer(entries)

        return advise

    return [silent(observer) for observer in observers]
