"""One curated stage: windows of candidates, of each of which the first steps are committed, until the agent hands its
work in (P2T, section 4.2 and appendix G, algorithm 1, lines 8 to 35).

What comes next follows from stored rows alone: a window's row when it begins, each candidate with all that it came to,
and the choice. A killed run makes the candidate again that it was at, from stored replies, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import monotonic
from typing import Any, TypeVar

from environments.checkouts.checkout import move_tree
from environments.sandboxes.sandbox import Sandbox
from prchain.errors import SandboxError, SandboxLost
from prchain.llm.gateway import Gateway
from prchain.llm.model import Reply, ToolCall, Usage
from sql.store import Store
from trajectories.curation.graph import ProcessGraph, defined_names_at
from trajectories.curation.nodes import ActionTool
from trajectories.curation.surfaced import Surfaced
from trajectories.curation.windows.candidates import (
    DROPPED,
    GOES_ON,
    MALFORMED,
    NO_PLACE,
    NO_REPLY,
    UNGROUNDED,
    WindowCandidate,
    committable,
    length_of,
    standings,
)
from trajectories.curation.windows.establishing import EstablishedNode, LlmVerifier, Verifier
from trajectories.curation.windows.grounding import RewriteFault, Shown, form_faults, observed, unshown
from trajectories.curation.windows.judging import ClaimJudge, LlmClaimJudge
from trajectories.curation.windows.options import Pick, WindowOptions
from trajectories.curation.windows.progress import Standing, StepProgress, open_nodes, window_start
from trajectories.curation.windows.rewriting import Curator, Place, ScoredSeed, pick_by_rule
from trajectories.curation.windows.rolling import Continuation, Roller
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
from trajectories.curation.windows.steps import steps_of, transcript
from trajectories.model import NOTHING_USED, Ending, Entry, EntryKind
from trajectories.outcomes import SANDBOX_KILLED, UNFINISHED
from trajectories.scaffolds.context import used_by
from trajectories.scaffolds.kinds.react import ReactScaffold
from trajectories.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, StageAccess
from trajectories.scaffolds.turns import named_calls, read_turn

T = TypeVar("T")

_MOST_LOSSES = 3
"""After so many lost copies of the sandbox in a row, the candidate's steps are what ends them."""


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
        self._agent = agent
        self._options = options
        self._process = process
        self._graph = process.graph
        self._sandbox = sandbox
        self._spec = spec
        self._access: StageAccess = spec.stage
        self._record = record
        self._roots = (sandbox.config.workdir,)
        self._trajectory = spec.subject.partition("/")[0]
        self._roller = Roller(gateway, agent, spec, observers)
        self._curator = Curator(gateway, agent.tools, sample=spec.sample)
        self._judge: ClaimJudge = LlmClaimJudge(gateway, sample=spec.sample)
        self._verifier: Verifier = LlmVerifier(gateway, options.est, sample=spec.sample, roots=self._roots)
        self._entries = list(spec.entries)
        self._used = NOTHING_USED
        self._base: str | None = None
        """The snapshot of the sandbox as it is after the last entry, once it was taken."""
        self._snapshots: dict[int, dict[int, str | None]] = {}
        """Of this window: number of a candidate to the snapshots after its steps."""

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

    @property
    def _tree(self) -> str:
        """The tree after the last entry."""
        own = (entry.tree for entry in reversed(self._entries) if entry.position == self._spec.position)
        return next(filter(None, own), self._access.start)

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
        seeds = 1 if window.plain else self._options.seeds
        for number in range(seeds):
            if number not in made:
                self._tell(window, f"seed {number + 1} of {seeds}")
                made[number] = self._kept(window, partial(self._seed, window, number))
        for number in range(seeds, 2 * seeds) if not window.plain else ():
            if number not in made:
                self._tell(window, f"variant of seed {number - seeds + 1}")
                made[number] = self._kept(window, partial(self._variant, window, number, made))
        return made

    def _kept(self, window: StoredWindow, make: Callable[[], WindowCandidate]) -> WindowCandidate:
        start_time = monotonic()
        candidate = make()
        candidate = replace(candidate, seconds=monotonic() - start_time)
        with self._store.transaction() as tx:
            write_candidate(tx, window.key, candidate)
        return candidate

    def _seed(self, window: StoredWindow, number: int) -> WindowCandidate:
        """A blinded continuation."""
        subject = self._subject(window, number)
        steps = self._steps_left

        def roll(branch: Sandbox) -> Continuation:
            return self._roller.roll(
                branch, self._entries, subject, steps, tree=self._tree, snapshot=self._base_snapshot()
            )

        rolled = self._in_branch(self._base_snapshot, roll)
        return self._scored(window, WindowCandidate(number, number, rolled.outcome, rolled.reason), rolled, ())

    def _variant(self, window: StoredWindow, number: int, made: dict[int, WindowCandidate]) -> WindowCandidate:
        """A seed with one rewritten step, and the blinded agent's steps after it."""
        seed = made[number - self._options.seeds]
        subject = self._subject(window, number)
        variant = WindowCandidate(number, seed.number, NO_PLACE)
        tried = {
            (other.place, other.target)
            for other in made.values()
            if other.outcome in DROPPED and other.place is not None and other.target is not None
        }
        place, usd, reason = self._picked(window, seed, subject, tried)
        if place is None:
            return replace(variant, usd=usd, reason=reason)
        at, target = place
        variant = replace(variant, place=at, target=target)
        step = seed.steps[at]
        own = _before(seed.entries, step.number)
        before = [*self._entries, *own]
        node = next(node for node in self._graph.nodes if node.name == target)
        rewrite = self._curator.rewrite(subject, self._access.query, before, step, node)
        usd = _sum(usd, rewrite.usd)
        if rewrite.reply is None:
            return replace(variant, outcome=NO_REPLY, reason=rewrite.reason, usd=usd)
        # The curator's thoughts are its own: they may speak of the target.
        reply = replace(rewrite.reply, reasoning=None, usage=Usage())
        calls = named_calls(reply, step.number)
        text = {"text": reply.text, "calls": [{"name": it.name, "arguments": it.arguments} for it in calls]}
        variant = replace(variant, rewrite=text)
        outcome, faults, cost = self._examined(subject, before, reply, calls, seed, at)
        usd = _sum(usd, cost)
        if faults:
            words = "; ".join(f"{fault.rule}: {fault.words}" for fault in faults)
            return replace(
                variant,
                outcome=outcome,
                reason=words,
                faults=tuple(faults),
                grounded=False if outcome == UNGROUNDED else None,
                usd=usd,
            )
        details = {"curated": {"window": window.key.number, "candidate": number}}

        def begin() -> str:
            return self._checkpoint(seed, seed.steps[at - 1].number) if at else self._base_snapshot()

        def roll(branch: Sandbox) -> Continuation:
            return self._roller.roll(
                branch,
                before,
                subject,
                self._steps_left - at,
                tree=_tree_after(own, self._tree),
                snapshot=begin(),
                given=reply,
                details=details,
            )

        rolled = self._in_branch(begin, roll)
        grounded = True if self._options.ground else None
        variant = replace(variant, outcome=rolled.outcome, reason=rolled.reason, grounded=grounded, usd=usd)
        shared = Continuation(
            (*own, *rolled.entries),
            rolled.outcome,
            rolled.reason,
            {**self._snapshots.get(seed.number, {}), **rolled.snapshots},
            {**dict(zip((it.number for it in seed.steps[:at]), seed.leftovers, strict=False)), **rolled.leftovers},
        )
        known = tuple(it for it in seed.established if it.step < step.number)
        return self._scored(window, variant, shared, known, at)

    def _picked(
        self, window: StoredWindow, seed: WindowCandidate, subject: str, tried: set[Place]
    ) -> tuple[Place | None, float | None, str | None]:
        """The step and the node of a variant, what the choice cost, and why there is none."""
        steps = seed.steps
        if not steps:
            return None, 0.0, "the seed has no step"
        places, progress = standings(self._graph, window.standing, steps, seed.established, self._options.premature)
        scored = ScoredSeed(steps, places, progress)
        query = self._access.query
        if self._options.pick is Pick.MODEL:
            return self._curator.pick(subject, query, self._entries, scored, self._graph, tried)

        def shown_before(at: int) -> Surfaced:
            return self._observed([*self._entries, *_before(seed.entries, steps[at].number)])

        place = pick_by_rule(self._graph, scored, tried, shown_before, self._roots)
        return place, 0.0, None if place else "no step without progress has a node to go for"

    def _examined(
        self,
        subject: str,
        before: Sequence[Entry],
        reply: Reply,
        calls: tuple[ToolCall, ...],
        seed: WindowCandidate,
        at: int,
    ) -> tuple[str, list[RewriteFault], float | None]:
        """What is wrong with a rewritten step, by code and then by the judge; and what the judge cost."""
        toolset = self._agent.toolset
        parsed = read_turn(reply, calls, toolset.tools, toolset.ending)
        if parsed.fault is not None and not parsed.calls:
            return MALFORMED, [RewriteFault("C5", f"it is no step: {parsed.fault}")], 0.0
        faults = form_faults(reply.text, parsed.calls, seed.steps[at])
        if faults:
            return MALFORMED, faults, 0.0
        if not self._options.ground:
            return UNGROUNDED, [], 0.0
        shown = self._observed(before)
        access = self._access

        def defined(words: Any) -> set[str]:
            return defined_names_at(access.trees, access.start, words)

        faults = unshown(reply.text, parsed.calls, shown, defined, self._roots)
        if faults:
            return UNGROUNDED, faults, 0.0
        entry = Entry(
            0, self._spec.position, 1, seed.steps[at].number, EntryKind.TURN, "assistant", reply.text, tool_calls=calls
        )
        verdict = self._judge.judge(subject, access.query, before, transcript([entry]))
        return UNGROUNDED, list(verdict.faults), verdict.usd

    def _observed(self, entries: Sequence[Entry]) -> Shown:
        return observed(self._access.query, entries, self._roots)

    def _scored(
        self,
        window: StoredWindow,
        candidate: WindowCandidate,
        rolled: Continuation,
        known: tuple[EstablishedNode, ...],
        given: int | None = None,
    ) -> WindowCandidate:
        """The candidate with what its steps established and came to. `known` is what is found already of the steps
        before the one with the number `given`."""
        steps = steps_of(rolled.entries)
        found = list(known)
        notes: list[str] = []
        calls = 0
        fresh = steps if given is None else steps[given:]
        usd = candidate.usd
        for step in fresh:
            usd = _sum(usd, step.turn.usd)
        if not window.plain:
            subject = self._subject(window, candidate.number)
            for step in fresh:
                places, _ = standings(self._graph, window.standing, steps, found, self._options.premature)
                seen = places[steps.index(step)].seen
                asked = [node for node in self._graph.nodes if node.name not in seen]
                if not asked:
                    break
                before = [*self._entries, *_before(rolled.entries, step.number)]
                findings = self._verifier.established(subject, self._access.query, before, step, asked)
                found += findings.established
                notes += findings.notes
                calls += findings.calls
                usd = _sum(usd, findings.usd)
        progress: Sequence[StepProgress] = ()
        if not window.plain:
            _, progress = standings(self._graph, window.standing, steps, found, self._options.premature)
        self._snapshots[candidate.number] = dict(rolled.snapshots)
        return replace(
            candidate,
            entries=rolled.entries,
            progress=tuple(progress),
            established=tuple(found),
            effectiveness=sum(step.progress for step in progress),
            length=length_of(steps, self._options.length),
            tree=_tree_after(rolled.entries, self._tree),
            notes=tuple(notes),
            verifier_calls=calls,
            leftovers=tuple(rolled.leftovers.get(step.number, 0) for step in steps),
            usd=usd,
        )

    # ---- the choice and the commit

    def _decided(self, window: StoredWindow, candidates: dict[int, WindowCandidate]) -> StoredWindow:
        """The window with its choice, which is stored."""
        if window.chosen is not None:
            return window
        pool = committable(list(candidates.values()))
        if window.plain:
            chosen, how = pool[0].scored, HowChosen.PLAIN
        else:
            rule = FloorRule(self._options.floor, self._options.floor_unit, len(window.frontier))
            key = f"{self._trajectory}/{self._spec.position}/{window.key.number}"
            chosen, how = choose([it.scored for it in pool], rule, self._options.commit, key)
        candidate = candidates[chosen.number]
        count = self._committable(candidate)
        if not window.plain:
            count = min(self._options.stride, count)
        leftovers = candidate.leftovers[count - 1] if count else 0
        decided = replace(
            window,
            chosen=chosen.number,
            how=str(how),
            committed=count,
            leftovers=leftovers if self._moves(candidate, count) else 0,
            seconds=sum(it.seconds for it in candidates.values()),
        )
        with self._store.transaction() as tx:
            decide_window(tx, decided)
        return decided

    def _committable(self, candidate: WindowCandidate) -> int:
        """The number of its steps that can be committed: one that ended the sandbox is not among them."""
        steps = len(candidate.steps)
        return steps if candidate.outcome in GOES_ON or candidate.outcome in list(Ending) else max(steps - 1, 0)

    def _moves(self, candidate: WindowCandidate, count: int) -> bool:
        """Whether the sandbox has to go to another snapshot to be as after so many steps."""
        if not count:
            return False
        snapshots = self._snapshots.get(candidate.number)
        if snapshots is None:
            return _tree_after(_first_steps(candidate, count), self._tree) != self._tree
        return snapshots.get(candidate.steps[count - 1].number) != self._base

    def _commit(self, window: StoredWindow, chosen: WindowCandidate) -> Standing:
        """Bring the sandbox to the last committed step, and store the steps. Returns the next window's standing."""
        entries = _first_steps(chosen, window.committed)
        tree = _tree_after(entries, self._tree)
        if self._moves(chosen, window.committed):
            snapshot = self._checkpoint(chosen, chosen.steps[window.committed - 1].number)
            self._sandbox.restore(snapshot)
            kept: str | None = snapshot
        else:
            kept = self._base
        self._record.restored(tree)
        self._record.add(entries)
        self._entries += entries
        self._used += used_by(entries)
        self._forget(keep=kept)
        self._base = kept
        return self._standing_after(window, chosen)

    def _forget(self, keep: str | None) -> None:
        """Remove the snapshots of this window but the one that the next begins with."""
        names = {name for snapshots in self._snapshots.values() for name in snapshots.values()} | {self._base}
        for name in sorted(filter(None, names - {keep})):
            with suppress(SandboxError):
                self._sandbox.forget(name)
        self._snapshots = {}

    # ---- sandboxes

    def _base_snapshot(self) -> str:
        """The snapshot of the sandbox as it is at the window's start."""
        if self._base is None:
            self._base = self._sandbox.snapshot()
        return self._base

    def _checkpoint(self, candidate: WindowCandidate, step: int) -> str:
        """A snapshot that is as after a step of a candidate. Where an earlier process made the candidate, it is made
        anew from the step's tree: what lies outside of it is as at the window's start."""
        known = self._snapshots.get(candidate.number, {})
        if (snapshot := known.get(step)) is not None:
            return snapshot
        entries = [entry for entry in candidate.entries if entry.step <= step]
        tree = _tree_after(entries, self._tree)
        if tree == self._tree:
            return self._base_snapshot()
        with self._sandbox.branch(self._base_snapshot()) as branch:
            move_tree(branch, self._access.trees, self._tree, tree)
            snapshot = branch.snapshot()
        self._snapshots.setdefault(candidate.number, {})[step] = snapshot
        return snapshot

    def _in_branch(self, begin: Callable[[], str], roll: Callable[[Sandbox], Continuation]) -> Continuation:
        """What a continuation comes to in a copy of the sandbox. Copies that are lost are made again, for some time."""
        for _ in range(_MOST_LOSSES):
            with self._sandbox.branch(begin()) as branch:
                try:
                    return roll(branch)
                except SandboxLost as error:
                    lost = error
        return Continuation((), SANDBOX_KILLED, f"{_MOST_LOSSES} sandboxes ended at the same step: {lost}")

    # ---- small things

    @cached_property
    def _most_steps(self) -> int | None:
        return self._spec.stage_limits.steps

    @property
    def _steps_left(self) -> int:
        """Steps of a candidate of this window."""
        used = self._spec.stage_used.steps + self._used.steps
        left = self._options.window if self._most_steps is None else self._most_steps - used
        return max(min(self._options.window, left), 1)

    def _subject(self, window: StoredWindow, number: int) -> str:
        return f"{self._spec.subject}/{window.key.number}/{number}"

    def _tell(self, window: StoredWindow, words: str) -> None:
        self._access.tell(f"window {window.key.number}, {words}")


def _before(entries: Sequence[Entry], step: int) -> list[Entry]:
    """The entries before a step."""
    return [entry for entry in entries if entry.step < step]


def _first_steps(candidate: WindowCandidate, count: int) -> list[Entry]:
    """The entries of a candidate's first steps."""
    steps = candidate.steps
    if count >= len(steps):
        return list(candidate.entries)
    return _before(candidate.entries, steps[count].number)


def _tree_after(entries: Sequence[Entry], before: str) -> str:
    """The tree after entries."""
    return next((entry.tree for entry in reversed(entries) if entry.tree), before)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
