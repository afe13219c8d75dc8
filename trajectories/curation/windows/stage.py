"""One curated stage: windows of candidates, of each of which the first steps are committed, until the agent hands its
work in (P2T, section 4.2 and appendix G, algorithm 1, lines 8 to 35).

What comes next follows from stored rows alone: a window's row when it begins, each candidate with all that it came to,
and the choice. A killed run makes the candidate again that it was at, from stored replies, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from environments.sandboxes.sandbox import Sandbox
from prchain.core.llm.gateway import Gateway
from sql.store import Store
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, StageAccess
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.graphs.nodes import ActionTool
from trajectories.curation.windows.candidates import (
    GOES_ON,
    WindowCandidate,
    committable,
    first_steps,
    standings,
)
from trajectories.curation.windows.checkpoints import Checkpoints
from trajectories.curation.windows.making import CandidateMaker, WindowBeginning
from trajectories.curation.windows.options import WindowOptions
from trajectories.curation.windows.progress import Standing, open_nodes, window_start
from trajectories.curation.windows.rows import (
    StoredWindow,
    WindowKey,
    begin_window,
    decide_window,
    read_candidates,
    read_windows,
    write_candidate,
)
from trajectories.curation.windows.selection import FloorRule, HowChosen, choose
from trajectories.model import NOTHING_USED, Ending
from trajectories.outcomes import UNFINISHED


@dataclass(frozen=True)
class StageGraph:
    """The process graph of the stage that is worked on."""

    id: str
    graph: ProcessGraph


class CuratedStage:
    """Works on one stage. `record` and `sandbox` are those of the rollout; the sandbox is as after the last entry of
    `spec`."""

    def __init__(
        self,
        store: Store,
        gateway: Gateway,
        agent: ReactScaffold,
        options: WindowOptions,
        process: StageGraph,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> None:
        assert spec.stage is not None
        self._store = store
        self._options = options
        self._process = process
        self._graph = process.graph
        self._spec = spec
        self._access: StageAccess = spec.stage
        self._record = record
        self._trajectory = spec.subject.partition("/")[0]
        self._entries = list(spec.entries)
        self._used = NOTHING_USED
        own = (entry.tree for entry in reversed(self._entries) if entry.position == spec.position)
        tree = next(filter(None, own), self._access.start)
        self._checkpoints = Checkpoints(sandbox, self._access.trees, tree, self._access.copies.forget)
        self._maker = CandidateMaker(
            gateway, agent, options, process.graph, self._checkpoints, spec, sandbox.config.workdir, observers
        )

    def run(self) -> AttemptResult:
        """Work until the agent submits or a limit ends it. Raises as `Scaffold.attempt`."""
        window, standing, number, ended = self._resume()
        while ended is None:
            if window is None:
                ended = self._limit()
                if ended is not None:
                    break
                window = self._begin(number, standing)
            candidates = self._candidates(window)
            window = self._decided(window, candidates)
            chosen = candidates[window.chosen or 0]
            standing = self._commit(window, chosen)
            ended = self._end(window, chosen)
            window, number = None, number + 1
        return replace(ended, used=self._used)

    def _limit(self) -> AttemptResult | None:
        """The result where a limit is reached."""
        spec, used = self._spec, self._used
        limit = (spec.stage_used + used).over(spec.stage_limits) or (spec.chain_used + used).over(spec.chain_limits)
        return None if limit is None else self._unfinished(limit, f"{limit} before the work was handed in")

    def _end(self, window: StoredWindow, chosen: WindowCandidate) -> AttemptResult | None:
        """The result where the stage ends with what a window committed."""
        if any(step.submits for step in chosen.steps[: window.committed]):
            return AttemptResult(Ending.SUBMITTED, self._used)
        if chosen.outcome not in GOES_ON and window.committed >= self._committable(chosen):
            ending = Ending(chosen.outcome) if chosen.outcome in list(Ending) else Ending.FAULTY
            reason = chosen.reason or chosen.outcome
            return self._unfinished(
                ending, f"no candidate of window {window.key.number} goes on; the chosen one: {reason}"
            )
        return None

    def _unfinished(self, ending: Ending, reason: str) -> AttemptResult:
        return AttemptResult(ending, self._used, reason, UNFINISHED)

    # ---- where it stands

    def _resume(self) -> tuple[StoredWindow | None, Standing, int, AttemptResult | None]:
        """The window to go on with, None for a new one; the standing at its start; its number; and the result where
        the last window has ended the stage."""
        with self._store.reading() as tx:
            windows = read_windows(tx, self._trajectory, self._spec.position)
        if not windows:
            told = frozenset(node.name for node in self._graph.nodes if node.action.tool is ActionTool.VIEW_PROBLEM)
            return None, window_start(self._graph, Standing(waiting=told)), 1, None
        last = windows[-1]
        if last.chosen is None or self._last_step < last.step + last.committed:
            return last, last.standing, last.key.number, None
        with self._store.reading() as tx:
            chosen = next(it for it in read_candidates(tx, last.key) if it.number == last.chosen)
        return None, self._standing_after(last, chosen), last.key.number + 1, self._end(last, chosen)

    @property
    def _last_step(self) -> int:
        return max((entry.step for entry in self._entries), default=0)

    def _standing_after(self, window: StoredWindow, chosen: WindowCandidate) -> Standing:
        """The standing at the start of the next window."""
        steps = chosen.steps[: window.committed]
        places, _ = standings(self._graph, window.standing, steps, chosen.established, self._options.premature)
        return window_start(self._graph, places[-1])

    def _begin(self, number: int, standing: Standing) -> StoredWindow:
        frontier = tuple(node.name for node in self._graph.nodes if node.name in open_nodes(self._graph, standing))
        window = StoredWindow(
            WindowKey(self._trajectory, self._spec.position, number),
            self._process.id,
            self._last_step,
            frontier,
            standing,
            FloorRule(self._options.floor, self._options.floor_unit, len(frontier)).height,
        )
        with self._store.transaction() as tx:
            begin_window(tx, window)
        return window

    # ---- the candidates

    def _candidates(self, window: StoredWindow) -> dict[int, WindowCandidate]:
        """All candidates of a window; those that are stored are not made again."""
        with self._store.reading() as tx:
            made = {candidate.number: candidate for candidate in read_candidates(tx, window.key)}
        start = WindowBeginning(window, tuple(self._entries), self._steps_left)
        scored = self._options.scores(window.frontier)
        seeds = self._options.seeds if scored else 1
        for number in range(seeds):
            if number not in made:
                self._tell(window, f"seed {number + 1} of {seeds}")
                made[number] = self._kept(window, partial(self._maker.seed, start, number))
        for number in range(seeds, seeds * (1 + self._options.variants)) if scored else ():
            if number not in made:
                self._tell(window, f"variant of seed {number % seeds + 1}")
                made[number] = self._kept(window, partial(self._maker.variant, start, number, made))
        return made

    def _kept(self, window: StoredWindow, make: Callable[[], WindowCandidate]) -> WindowCandidate:
        start_time = monotonic()
        candidate = make()
        candidate = replace(candidate, seconds=monotonic() - start_time)
        with self._store.transaction() as tx:
            write_candidate(tx, window.key, candidate)
            for record in candidate.records:
                record(tx)
        return candidate

    # ---- the choice and the commit

    def _decided(self, window: StoredWindow, candidates: dict[int, WindowCandidate]) -> StoredWindow:
        """The window with its choice, which is stored."""
        if window.chosen is not None:
            return window
        pool = committable(list(candidates.values()))
        scored = self._options.scores(window.frontier)
        if not scored:
            chosen, how = pool[0].scored, HowChosen.PLAIN
        else:
            rule = FloorRule(self._options.floor, self._options.floor_unit, len(window.frontier))
            key = f"{self._trajectory}/{self._spec.position}/{window.key.number}"
            chosen, how = choose([it.scored for it in pool], rule, self._options.commit, key)
        candidate = candidates[chosen.number]
        count = self._committable(candidate)
        if scored:
            count = min(self._options.stride, count)
        leftovers = candidate.leftovers[count - 1] if count else 0
        decided = replace(
            window,
            chosen=chosen.number,
            how=str(how),
            committed=count,
            leftovers=leftovers if self._checkpoints.moves(candidate, count) else 0,
            seconds=sum(it.seconds for it in candidates.values()),
        )
        with self._store.transaction() as tx:
            decide_window(tx, decided)
        return decided

    def _committable(self, candidate: WindowCandidate) -> int:
        """The number of its steps that can be committed: one that ended the sandbox is not among them."""
        steps = len(candidate.steps)
        return steps if candidate.outcome in GOES_ON or candidate.outcome in list(Ending) else max(steps - 1, 0)

    def _commit(self, window: StoredWindow, chosen: WindowCandidate) -> Standing:
        """Bring the sandbox to the last committed step, and store the steps. Returns the next window's standing."""
        entries = first_steps(chosen, window.committed)
        self._record.restored(self._checkpoints.go_to(chosen, window.committed))
        self._record.add(entries)
        self._entries += entries
        self._used += used_by(entries)
        return self._standing_after(window, chosen)

    # ---- small things

    @property
    def _steps_left(self) -> int:
        """Steps of a candidate of this window."""
        most = self._spec.stage_limits.steps
        used = self._spec.stage_used.steps + self._used.steps
        left = self._options.window if most is None else most - used
        return max(min(self._options.window, left), 1)

    def _tell(self, window: StoredWindow, words: str) -> None:
        self._access.tell(f"window {window.key.number}, {words}")
