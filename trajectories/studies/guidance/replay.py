"""Reading the windows of stored trajectories, as a process reward model would have read them while the agent ran.

Nothing is inserted. A window that was read before with the same settings, model and prompt is not asked about again;
a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from sqlalchemy import select

from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.store import Store
from sql.tables import PrmWindow, Trajectory
from trajectories.agents.guidance.observer import found_by_code
from trajectories.agents.guidance.reading import WindowFinding, estimate_window, prompt_of, read_window, render
from trajectories.agents.guidance.rows import WindowPlace, WindowRow, write_window
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import PURPOSE, SAMPLING, PrmSettings
from trajectories.agents.guidance.window import StepWindow, stage_entries
from trajectories.agents.steps.foreign import as_ours
from trajectories.identity import LENGTH, subject
from trajectories.model import Entry, EntryKind
from trajectories.rows import find_trajectory, read_entries, stored_trajectory

COMMAND = "prchain prm replay"

READ = "read"
"""The outcome of a trajectory all of whose windows were read."""

REPLAY = "replay"
"""Why the guidance of a replay is not sent."""


@dataclass(frozen=True, slots=True)
class ReplayUnit:
    """One trajectory (`prchain.core.runs.Unit`)."""

    trajectory: str

    @property
    def key(self) -> str:
        """Its id."""
        return self.trajectory

    @property
    def group(self) -> str:
        """Its id: nothing is shared."""
        return self.trajectory


@dataclass(frozen=True, slots=True)
class ReplayReport(RunResult[ReplayUnit]):
    """What a run did; `detail` of each unit is the number of windows that were read now."""

    @property
    def failed(self) -> tuple[UnitResult[ReplayUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome != READ)

    @property
    def done(self) -> bool:
        """Whether every trajectory was read."""
        return not self.left and not self.failed


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """Which trajectories are read: one, by the beginning of its id; or those with an outcome; or all that are over."""

    trajectory: str | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class _StoredWork:
    """A trajectory that is read. What detectors find of a step follows from what stands up to it, so they look at the
    whole once, and not anew for each window."""

    entries: list[Entry]
    tools: Sequence[Mapping[str, Any]]
    settings: PrmSettings
    anew: bool
    """Whether each stage was a conversation of its own."""

    @cached_property
    def found(self) -> list[WindowFinding]:
        """What detectors find in all of it."""
        entries = list(as_ours(self.entries))
        if not self.anew:
            return found_by_code(self.settings, entries, 0)
        stages = (stage_entries(entries, position) for position in sorted({it.position for it in entries}))
        return [finding for own in stages for finding in found_by_code(self.settings, own, 0)]

    def found_in(self, window: StepWindow) -> list[WindowFinding]:
        """What they find at the steps of a window."""
        return [it for it in self.found if it.step is not None and window.first <= it.step <= window.last]


@dataclass(frozen=True)
class _UnreadWindow:
    """A window without a reading."""

    work: _StoredWork
    place: WindowPlace
    window: StepWindow
    question: Question


class ReplayRun:
    """Reads stored trajectories (`prchain.core.runs.Work`). `purpose` is that whose model answers."""

    title = "trajectories"

    def __init__(
        self,
        store: Store,
        gateway: Gateway,
        settings: PrmSettings,
        choice: ReplayChoice,
        *,
        purpose: str = PURPOSE,
        progress: Progress = SILENT,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.gateway = gateway
        self.settings = settings
        self.purpose = purpose
        self.store = store
        self._choice = choice
        self._progress = progress
        self._secrets = secrets
        self._prompt = prompt_of(settings)
        decided = {
            "settings": settings.decided,
            "model": dict(gateway.resolved(purpose, usual=SAMPLING)),
            "prompt": self._prompt.hash,
        }
        self.id = sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:LENGTH]
        """The replay's: settings, model and prompt."""

    def units(self) -> tuple[ReplayUnit, ...]:
        """The chosen trajectories, whether or not their windows have been read. Raises `UsageError`."""
        choice = self._choice
        with self.store.reading() as tx:
            if choice.trajectory is not None:
                return (ReplayUnit(find_trajectory(tx, choice.trajectory)),)
            query = select(Trajectory.id).where(Trajectory.steps > 0, Trajectory.outcome != "running")
            if choice.outcome is not None:
                query = query.where(Trajectory.outcome == choice.outcome)
            found = tuple(ReplayUnit(str(row[0])) for row in tx.connection.execute(query.order_by(Trajectory.id)))
        if not found:
            of = "" if choice.outcome is None else f" with the outcome {choice.outcome!r}"
            raise UsageError(f"there is no trajectory{of} to read; `prchain rollouts list` shows what there is")
        return found

    def estimate(self) -> tuple[int, CostEstimate]:
        """How many windows are not read yet, and what they cost at most. Asks nothing."""
        windows, total = 0, CostEstimate()
        for unit in self.units():
            for unread in self._unread(unit.trajectory):
                windows += 1
                total += estimate_window(self.gateway, self.settings, unread.question)
        return windows, total

    def run(self, workers: int = 2) -> ReplayReport:
        """Read them all. Raises as `prchain.core.runs.run_units`."""
        result = run_units(self, self.units(), workers=workers, progress=self._progress, secrets=self._secrets)
        return ReplayReport(result.results, result.left, result.stopped)

    def holding(self, unit: ReplayUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self.store, f"replay-{self.id}-{unit.trajectory}", COMMAND)

    def work_on(self, unit: ReplayUnit, tell: Tell) -> UnitResult[ReplayUnit]:
        """See `Work`. Each reading is stored before the next question."""
        count = 0
        for unread in self._unread(unit.trajectory):
            work, window = unread.work, unread.window
            tell(f"stage {unread.place.position}, step {unread.place.last}")
            reading = read_window(self.gateway, self.settings, unread.question, window, work.tools)
            reading = replace(reading, findings=(*reading.findings, *work.found_in(window)))
            row = WindowRow(
                unread.place,
                window,
                self.settings,
                self.gateway.model_name(self.purpose),
                self._prompt.hash,
                reading,
                sent=False,
                why_not=reading.fault or REPLAY,
            )
            with self.store.transaction() as tx:
                write_window(tx, row)
            count += 1
        return UnitResult(unit, READ, detail=count)

    def failed(self, unit: ReplayUnit, outcome: str, reason: str) -> UnitResult[ReplayUnit]:
        """See `Work`: there is no row of it."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.gateway.spending()

    def _unread(self, trajectory: str) -> Iterator[_UnreadWindow]:
        """The windows without a reading."""
        with self.store.reading() as tx:
            entries = read_entries(tx, trajectory)
            row = stored_trajectory(tx, trajectory)
            known = {row[0] for row in tx.rows(PrmWindow, "id", trajectory_id=trajectory, replay=self.id)}
        anew = row.options.get("context") == "stage"
        work = _StoredWork(entries, row.tools, self.settings, anew)
        overview = next((entry.details["overview"] for entry in entries if entry.details.get("overview")), None)
        for position in sorted({entry.position for entry in entries}):
            own = stage_entries(entries, position)
            query = next((entry for entry in own if entry.kind is EntryKind.QUERY), None)
            if query is None:
                continue
            for place, window in self._windows(trajectory, own, work):
                if place.id not in known:
                    text = str(query.details.get("query") or query.content)
                    messages = render(self.settings, overview, text, window, work.tools)
                    question = Question(
                        self.purpose, place.subject, self._prompt, messages, sample=row.sample, attempt=place.attempt
                    )
                    yield _UnreadWindow(work, place, window, question)

    def _windows(
        self, trajectory: str, own: list[Entry], work: _StoredWork
    ) -> Iterator[tuple[WindowPlace, StepWindow]]:
        chosen = self.settings

        def fired() -> frozenset[int]:
            return frozenset(finding.step or 0 for finding in work.found)

        # The stage is over: its last step is its last attempt's, too.
        end = max(entry.step for entry in own)
        for last in asked_after(own, chosen.schedule, chosen.every, fired):
            window = StepWindow.of(own, chosen.window, last)
            if last == end or window is None:
                continue
            turn = window.steps[-1].turn
            where = f"replay/{subject(trajectory, turn.position)}"
            yield WindowPlace(trajectory, turn.position, turn.attempt, where, last, self.id), window


@contextmanager
def open_replay(
    settings: Settings,
    prm: PrmSettings,
    choice: ReplayChoice,
    *,
    purpose: str = PURPOSE,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
) -> Iterator[ReplayRun]:
    """Open a run. Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`."""
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        gateway = resources.enter_context(open_gateway(settings, store, (purpose,), budget_usd=budget_usd))
        yield ReplayRun(store, gateway, prm, choice, purpose=purpose, progress=progress, secrets=settings.secrets)
