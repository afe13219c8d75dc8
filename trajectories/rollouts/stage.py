"""One stage of a rollout: the state it starts from, attempts at it, and the verdict on each.

The next action follows from the rows of the trajectory alone. So a stage that was killed at any point resumes where
its rows end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from environments.checkouts.carry import Carry
from environments.checkouts.checkout import place_repository
from environments.checkouts.tracking import TrackedTree, Tracker
from environments.sandboxes.sandbox import Sandbox
from environments.suites.outcomes import Grade
from prchain.core.errors import (
    ExtractionFailed,
    PlacementFailed,
    PrchainError,
    RefreshFailed,
    SandboxLimit,
    SandboxLost,
)
from prchain.core.git.output import path_text
from prchain.core.leaks import Finding
from prchain.core.waiting import waiting_for
from trajectories.agents.observers.attempt import AttemptObserver
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.scaffold import AttemptSpec, LaysFolders, ObservedAttempt, Observer, StageAccess
from trajectories.agents.steps.conversation import transcript
from trajectories.audit.suspected import suspicions_of_trees
from trajectories.identity import subject
from trajectories.model import AgentUsage, Ending, Entry, EntryKind
from trajectories.options import Gate, OnFail
from trajectories.outcomes import (
    ACCEPTED,
    DONE_EARLY,
    OF_THE_STATE,
    REJECTED,
    RUNNING,
    SANDBOX_KILLED,
    STATE_BROKEN,
    STOPPED,
    SUSPECTED,
    UNSCORED,
)
from trajectories.rollouts.chain_context import StageWorkplace
from trajectories.rollouts.copies import TrackedCopies
from trajectories.rollouts.hidden_tests import HiddenTests
from trajectories.rollouts.recorder import ReportingRecorder, StoreRecorder
from trajectories.rollouts.state import RolloutContext, RolloutState
from trajectories.rows import (
    StageRow,
    VerdictRow,
    conflict_row,
    drop_entries,
    drop_windows,
    write_entries,
    write_stage,
    write_verdict,
)
from trajectories.task import StageTask
from trajectories.verdicts.auditor import Audit
from trajectories.verdicts.comments import AgentComment, comment_for_agent
from trajectories.verdicts.gates import audited, decide
from trajectories.verdicts.hidden import CommentCheck
from trajectories.verdicts.judge import Judgement
from trajectories.verdicts.judged_patch import judged_patch
from trajectories.verdicts.results import results_text

_KEPT_VARIABLES = ("overview", "query", "workdir", "earlier", "briefing")
"""Variables of a query's text that are stored in its details, besides places in the chain."""

_MOST_LOSSES = 3
"""After so many lost sandboxes in a row at one step, each of which was made ready, the step itself is the cause; so is
the agent's work, where hidden tests end theirs."""


class StageRun:
    """Works on one stage until it has an outcome. `agent_tree` is A_{t-1}; None where the stage needs none."""

    def __init__(self, rollout: RolloutContext, state: RolloutState, stage: StageTask, agent_tree: str | None) -> None:
        self._rollout = rollout
        self._state = state
        self._stage = stage
        self._agent_tree = agent_tree
        self._position = stage.position
        self._started = False
        self._tracker: Tracker | None = None
        self._placed: TrackedTree | None = None
        """What is known of the sandbox before the agent has used it."""
        self._resources = ExitStack()
        self._tests = HiddenTests(rollout, stage)

    def run(self) -> StageRow:
        """The stage's row, with an outcome. Raises errors that the agent did not cause: `LlmError`, `SandboxError`
        except limits, `ImageError`, `RefreshFailed`, `GitError`, `StoreError`."""
        with self._resources:
            if self._position not in self._state.stages and (final_row := self._begin()):
                return final_row
            while True:
                row = self._row
                attempt = self._state.attempts(self._position) + 1
                if len(row.endings) < attempt and (final_row := self._attempt(attempt)):
                    return final_row
                if final_row := self._judge(attempt):
                    return final_row

    @property
    def _row(self) -> StageRow:
        return self._state.stages[self._position]

    @cached_property
    def _sandbox(self) -> Sandbox:
        """The agent's sandbox, perhaps not started yet."""
        scaffold = self._rollout.scaffold
        laid = scaffold.laid if isinstance(scaffold, LaysFolders) else ()
        sandbox = self._rollout.chain_context.workplace(self._stage).sandbox(laid)
        self._resources.callback(sandbox.close)
        return sandbox

    # ---- the beginning

    def _begin(self) -> StageRow | None:
        """Write the stage's row and its opening entries. Returns the final row where no attempt is possible."""
        rollout, options = self._rollout, self._rollout.options
        start_time = time.monotonic()
        rollout.tell(f"{self._label(1)}: laying out the files")
        if options.needs_tests:
            rollout.chain_context.require_proof(self._stage)
        try:
            stage_state = rollout.chain_context.state(self._position, self._agent_tree, options.carry)
        except PrchainError as error:
            if error.name not in OF_THE_STATE:
                raise
            return self._keep(StageRow(self._position, error.name, str(error)))
        row = StageRow(
            self._position,
            RUNNING,
            start_tree=stage_state.tree,
            end_tree=stage_state.tree,
            conflicts=tuple(conflict_row(conflict) for conflict in stage_state.conflicts),
            reset_tests=tuple(path_text(path) for path in stage_state.test_paths_reset),
        )
        check = self._tests.check(stage_state.tree)
        if check is not None:
            row = replace(row, check=asdict(check))
        if check is not None and check.state_broken:
            reason = "none of the stage's tests runs on the state that the stages before left"
            return self._keep(replace(row, outcome=STATE_BROKEN, reason=reason, seconds=time.monotonic() - start_time))
        if check is not None and options.gate.voices is Gate.TESTS and self._tests.ask_nothing(check):
            reason = "every F2P test of the stage passes on the state that the stages before left"
            return self._keep(replace(row, outcome=DONE_EARLY, reason=reason, seconds=time.monotonic() - start_time))
        opening = self._opening()
        self._keep(row, opening)
        return None

    def _opening(self) -> list[Entry]:
        """The query's entry; before the first query, also the system message."""
        rollout = self._rollout
        new = not self._state.entries
        told = new or rollout.options.context == "stage"
        overview = (rollout.chain_context.task.overview or None) if told else None  # an imported task has none
        variables = self._variables(overview=overview, briefing=self._briefing(again=told))
        system = [(EntryKind.SYSTEM, "system")] if new else []
        opening: list[Entry] = []
        for kind, role in [*system, (EntryKind.QUERY, "user")]:
            if not (content := rollout.scaffold.opening(kind, variables)):
                continue
            details = {name: variables[name] for name in _KEPT_VARIABLES} if kind is EntryKind.QUERY else {}
            opening.append(self._entry(kind, role, content, 1, len(opening), details=details))
        return opening

    def _variables(self, **changed: Any) -> dict[str, Any]:
        task = self._rollout.chain_context.task
        return {
            "repository": task.chain.repository,
            "overview": None,
            "query": self._stage.query,
            "position": self._position,
            "stages": len(task.stages),
            "workdir": self._sandbox.config.workdir,
            "comment": None,
            "attempt": 1,
            "earlier": self._earlier,
            "briefing": None,
            **changed,
        }

    def _briefing(self, *, again: bool) -> dict[str, Any] | None:
        """What the agent is told of its environment, with `tried`: whether tests were run like this. None where a stage
        before told it the same, unless it is to be told `again`."""
        try:
            with waiting_for("the sandbox"):
                self._sandbox.start()
            found = self._rollout.chain_context.briefing(self._stage, self._sandbox)
        except SandboxLimit as error:
            raise PlacementFailed(f"the sandbox is too small to ask for a version: {error}") from error
        told = [entry.details.get("briefing") for entry in self._state.entries if entry.kind is EntryKind.QUERY]
        last: Mapping[str, Any] = next((briefing for briefing in reversed(told) if briefing is not None), {})
        briefing = {**asdict(found), "tried": self._stage.tests is not None}
        return None if not again and last == {**briefing, "tried": last.get("tried")} else briefing

    @property
    def _earlier(self) -> str:
        """Whose work on the earlier stages S_t holds; see `environments.checkouts.state.Carry`."""
        before, options = self._state.stages.get(self._position - 1), self._rollout.options
        if options.carry is Carry.AGENT and before is not None and before.outcome not in (ACCEPTED, DONE_EARLY):
            return Carry.REFERENCE if options.on_fail is OnFail.REFERENCE else Carry.AGENT
        return options.carry

    def _entry(self, kind: EntryKind, role: Any, content: str, attempt: int, after: int = 0, **fields: Any) -> Entry:
        last = self._state.entries[-1] if self._state.entries else None
        ordinal = (last.ordinal + 1 if last else 0) + after
        return Entry(ordinal, self._position, attempt, last.step if last else 0, kind, role, content, **fields)

    # ---- an attempt

    def _attempt(self, attempt: int) -> StageRow | None:
        """Let the agent work. Returns the final row where the attempt ended the stage."""
        rollout, state = self._rollout, self._state
        workplace = rollout.chain_context.workplace(self._stage)
        start = self._row.start_tree
        assert start is not None
        rollout.tell(f"{self._label(attempt)}: starting the sandbox")
        try:
            restored = self._prepare_sandbox(workplace, attempt)
        except RefreshFailed as error:
            if start == rollout.chain_context.trees.tree_of(self._stage.stage.base):
                raise
            return self._end(STATE_BROKEN, f"the state that the stages before left cannot be made ready: {error}")
        try:
            spec = AttemptSpec(
                subject(rollout.trajectory, self._position),
                rollout.sample,
                self._position,
                attempt,
                self._conversation(),
                rollout.options.stage_limits,
                rollout.options.chain_limits,
                used_by(state.of(self._position)),
                used_by(state.entries),
                stage=self._access(workplace, start, attempt),
            )
            recorder = StoreRecorder(
                rollout.store,
                rollout.trajectory,
                state.entries,
                tree_now=self._tree_now(workplace, start),
                last_tree=state.tree(self._position),
                first_details=restored,
                track_anew=self._track_anew,
            )
            rollout.tell(f"{self._label(attempt)}: the agent")
            # Stored entries count, also where the attempt is interrupted.
            state.entries = recorder.entries
            reporting_recorder = ReportingRecorder(
                recorder, lambda step: rollout.tell(f"{self._label(attempt)}, step {step}")
            )
            result = rollout.scaffold.attempt(
                rollout.gateway, self._sandbox, spec, reporting_recorder, self._observers(spec)
            )
            tree = workplace.extract(self._sandbox, start_tree=start, rules_from=self._stage.stage.base).tree
        except (SandboxLimit, ExtractionFailed) as error:
            return self._end(error.name, str(error), endings=(*self._row.endings, error.name))
        except SandboxLost as error:
            if rollout.losses < _MOST_LOSSES:
                raise
            reason = f"{rollout.losses + 1} sandboxes ended at the same step: {error}"
            return self._end(SANDBOX_KILLED, reason, endings=(*self._row.endings, SANDBOX_KILLED))
        endings = (*self._row.endings, str(result.ending))
        if result.outcome is not None:
            return self._end(result.outcome, result.reason, endings=endings, end_tree=tree)
        if result.ending is Ending.STOPPED:
            return self._end(STOPPED, result.reason, endings=endings, end_tree=tree)
        self._keep(replace(self._row, endings=endings, end_tree=tree, attempts=attempt))
        return None

    def _observers(self, spec: AttemptSpec) -> list[Observer]:
        rollout = self._rollout
        observed = ObservedAttempt(
            rollout.gateway,
            spec.subject,
            spec.sample,
            spec.position,
            spec.attempt,
            rollout.chain_context.task.overview,
            self._stage.query,
            rollout.scaffold.tools,
            self._leaks,
        )
        return [AttemptObserver(kind, observed) for kind in rollout.observers]

    def _leaks(self, text: str, entries: Sequence[Entry]) -> list[Finding]:
        """What the leak check says of an observer's words. What the agent has read is no secret."""
        rollout, stage = self._rollout, self._row
        hidden, read = rollout.chain_context.hidden, self._read_texts
        found = CommentCheck(hidden, self._position, told=read)(text)
        if found and stage.start_tree is not None:
            # Costly, and mostly not needed.
            patch = rollout.chain_context.trees.patch_text(stage.start_tree, self._state.tree(self._position))
            seen = [*read, *(entry.content for entry in entries if entry.kind is EntryKind.OBSERVATION)]
            found = CommentCheck(hidden, self._position, agent_patch=patch, told=seen)(text)
        return found

    @property
    def _read_texts(self) -> list[str]:
        """The overview, the queries and the comments that the agent has read."""
        task = self._rollout.chain_context.task
        texts = [task.overview, *(stage.query for stage in task.stages[: self._position])]
        return texts + [verdict.shown for verdict in self._state.verdicts.values() if verdict.shown]

    def _label(self, attempt: int) -> str:
        return f"stage {self._position} of {len(self._rollout.chain_context.task.stages)}, attempt {attempt}"

    def _conversation(self) -> tuple[Entry, ...]:
        """The entries that the agent sees."""
        entries = self._state.entries
        if self._rollout.options.context == "chain":
            return tuple(entries)
        return tuple(entry for entry in entries if entry.position == self._position or entry.kind is EntryKind.SYSTEM)

    def _prepare_sandbox(self, workplace: StageWorkplace, attempt: int) -> Mapping[str, Any]:
        """Make the agent's sandbox ready. Returns details (``restored``) where it is made anew in mid-stage."""
        if self._started:
            return {}
        rollout, state, start = self._rollout, self._state, self._row.start_tree
        assert start is not None
        if not rollout.options.track_steps:
            self._drop_unfinished(attempt)
        worked = any(entry.kind is EntryKind.TURN for entry in state.of(self._position))
        tree = self._tree_before(attempt)
        history = rollout.chain_context.history(self._stage.stage, rollout.options.history)
        restored: dict[str, Any] = {"tree": tree}
        self._sandbox.start()
        try:
            workplace.place(self._sandbox, tree, history=history, begun_from=start if tree != start else None)
        except SandboxLimit as error:
            raise PlacementFailed(f"the sandbox is too small for the stage's tree: {error}") from error
        except RefreshFailed:
            if tree == start:
                raise
            # The agent was in the middle of its work: it has to mend what does not build yet.
            place_repository(self._sandbox, rollout.chain_context.trees, start, history=history)
            restored["refreshed"] = False
        self._track_anew()
        if self._tracker is not None and "refreshed" not in restored:
            self._tracker.begin_placed(tree)
            self._placed = self._tracker.known()
        self._started = True
        return {"restored": restored} if worked else {}

    def _tree_before(self, attempt: int) -> str:
        """The tree to resume from: that of the last step, or the one that the attempt began with."""
        if self._rollout.options.track_steps:
            return self._state.tree(self._position)
        before = self._state.verdicts.get((self._position, attempt - 1))
        return before.tree if before else str(self._row.start_tree)

    def _drop_unfinished(self, attempt: int) -> None:
        """Drop the entries of an interrupted attempt: without trees it begins again. The ledger keeps its calls."""
        state = self._state
        opened = [entry for entry in state.of(self._position) if entry.kind in (EntryKind.QUERY, EntryKind.COMMENT)]
        first = opened[-1].ordinal + 1
        with self._rollout.store.transaction() as tx:
            drop_entries(tx, self._rollout.trajectory, first)
            drop_windows(tx, self._rollout.trajectory, self._position, attempt)
        state.entries = [entry for entry in state.entries if entry.ordinal < first]

    def _track_anew(self) -> None:
        if self._rollout.options.track_steps:
            self._tracker = self._tracker_of(self._sandbox)

    def _tracker_of(self, sandbox: Sandbox) -> Tracker:
        trees, start = self._rollout.chain_context.trees, str(self._row.start_tree)
        return Tracker(sandbox, trees, start_tree=start, ignore_rules_from=self._stage.stage.base)

    def _tree_now(self, workplace: StageWorkplace, start: str) -> Callable[[], str] | None:
        if self._tracker is None:
            return None

        def tree_now() -> str:
            assert self._tracker is not None
            return workplace.without_refresh_outputs(self._tracker.take(), start)

        return tree_now

    def _access(self, workplace: StageWorkplace, start: str, attempt: int) -> StageAccess | None:
        rollout = self._rollout
        if not rollout.options.track_steps:
            return None

        placed, self._placed = self._placed, None  # of the first attempt: the next ones find what that did

        def counted(tree: str) -> str:
            return workplace.without_refresh_outputs(tree, start)

        return StageAccess(
            rollout.chain_context.task.chain.id,
            start,
            self._stage.query,
            rollout.chain_context.trees,
            TrackedCopies(self._tracker_of, counted, placed),
            lambda words: rollout.tell(f"{self._label(attempt)}: {words}"),
        )

    # ---- the verdict

    def _judge(self, attempt: int) -> StageRow | None:
        """Write the verdict on an attempt, and either the stage's end or the comment that opens the next attempt."""
        rollout, row, stage = self._rollout, self._row, self._stage
        options = rollout.options
        start_time = time.monotonic()
        tree, start = str(row.end_tree), str(row.start_tree)
        rollout.tell(f"{self._label(attempt)}: hidden tests")
        try:
            graded = self._tests.grade(tree, row.check, attempt)
        except SandboxLost as error:
            if rollout.losses < _MOST_LOSSES:
                raise
            words = f"the tests of its work ended their sandboxes in {rollout.losses + 1} tries: {error}"
            return self._end(SANDBOX_KILLED, words)
        trees = rollout.chain_context.trees
        patch = trees.patch_text(start, tree)
        judgement: Judgement | None = None
        rollout.tell(f"{self._label(attempt)}: the verdict")
        if rollout.judge is not None and options.asks_judge:
            judgement = rollout.judge.judge(
                subject=subject(rollout.trajectory, self._position),
                sample=rollout.sample,
                attempt=attempt,
                query=stage.query,
                reference_patch=rollout.chain_context.reference_patch(stage.stage),
                agent_patch=judged_patch(trees, start, tree),
                results=results_text(graded) if options.judge_sees == "tests" else None,
            )
        decision = decide(options.gate, options.threshold, judgement, graded)
        audit = Audit()
        if options.gate.audits and decision.accepted:
            found = self._suspicions(tree)
            audit = Audit() if found else self._audit(tree, attempt)
            decision = audited(decision, [*found, *filter(None, [audit.found])], audit.error)
        verdict = VerdictRow(
            self._position,
            attempt,
            tree,
            decision.accepted,
            str(options.gate),
            score=judgement.score if judgement else None,
            comment=judgement.comment if judgement else None,
            judge_error=judgement.error if judgement else None,
            judge_sees=None if judgement is None else "tests" if judgement.saw_tests else "patches",
            tests=graded.outcome if graded else None,
            grade=asdict(graded) if graded else {},
            usd=_sum(judgement.usd if judgement else 0.0, audit.usd),
        )
        retry = decision.accepted is False and row.endings[-1] == Ending.SUBMITTED and attempt <= options.refinements
        if not retry or self._limit_reached():
            verdict = replace(verdict, seconds=time.monotonic() - start_time)
            outcome = {True: ACCEPTED, False: REJECTED, None: UNSCORED}[decision.accepted]
            outcome = SUSPECTED if decision.suspected else outcome
            ending = "" if row.endings[-1] == Ending.SUBMITTED else f", ended by {row.endings[-1]}"
            reason = None if decision.accepted else f"attempt {attempt}{ending}: {decision.reason}"
            return self._end(outcome, reason, verdict=verdict)
        comment = self._comment(judgement, graded, attempt, patch)
        verdict = replace(
            verdict,
            shown=comment.text,
            findings=tuple(asdict(finding) for finding in comment.findings),
            usd=_sum(verdict.usd, comment.usd),
            seconds=time.monotonic() - start_time,
        )
        content = rollout.scaffold.opening(
            EntryKind.COMMENT, self._variables(comment=comment.text, attempt=attempt + 1)
        )
        opening = [self._entry(EntryKind.COMMENT, "user", content, attempt + 1, details={"comment": comment.text})]
        self._keep(row, opening, verdict)
        return None

    def _suspicions(self, tree: str) -> list[str]:
        """What the audit says of the agent's work, that on earlier stages included, which B_t has in the developers'
        words. What their own source does, before or after, is none."""
        stage, trees = self._stage.stage, self._rollout.chain_context.trees
        found = suspicions_of_trees(trees, stage.base, tree, asked=self._stage.query, sources=(stage.landed,))
        return list(map(str, found))

    def _audit(self, tree: str, attempt: int) -> Audit:
        """What the auditor, if one is asked, says of the attempt's own work."""
        rollout, start = self._rollout, str(self._row.start_tree)
        if rollout.auditor is None:
            return Audit()
        rollout.tell(f"{self._label(attempt)}: the audit")
        work = [it for it in self._state.of(self._position) if it.kind in (EntryKind.TURN, EntryKind.OBSERVATION)]
        return rollout.auditor.audit(
            subject=subject(rollout.trajectory, self._position),
            sample=rollout.sample,
            attempt=attempt,
            query=self._stage.query,
            patch=judged_patch(rollout.chain_context.trees, start, tree),
            record=transcript(work),
        )

    def _comment(self, judgement: Judgement | None, graded: Grade | None, attempt: int, patch: bytes) -> AgentComment:
        rollout = self._rollout
        return comment_for_agent(
            rollout.gateway,
            judgement,
            graded,
            CommentCheck(rollout.chain_context.hidden, self._position, agent_patch=patch, told=self._read_texts),
            gate=rollout.options.gate,
            threshold=rollout.options.threshold,
            query=self._stage.query,
            subject=subject(rollout.trajectory, self._position),
            sample=rollout.sample,
            attempt=attempt,
        )

    def _limit_reached(self) -> bool:
        options = self._rollout.options
        stage, chain = used_by(self._state.of(self._position)), used_by(self._state.entries)
        return stage.over(options.stage_limits) is not None or chain.over(options.chain_limits) is not None

    # ---- rows

    def _end(self, outcome: str, reason: str | None, *, verdict: VerdictRow | None = None, **fields: Any) -> StageRow:
        """Write the stage's final row."""
        row = replace(self._row, outcome=outcome, reason=reason, **fields)
        row = replace(row, attempts=max(row.attempts, len(row.endings)))
        if "end_tree" not in fields and verdict is None:
            row = replace(row, end_tree=self._state.tree(self._position))
        return self._keep(row, verdict=verdict)

    def _keep(self, row: StageRow, entries: Sequence[Entry] = (), verdict: VerdictRow | None = None) -> StageRow:
        """Write the row with its entries and verdict in one transaction."""
        state = self._state
        verdicts = [verdict for (position, _), verdict in state.verdicts.items() if position == row.position]
        verdicts += [verdict] if verdict else []
        used: AgentUsage = used_by(state.of(row.position))
        seconds = max(row.seconds, used.seconds + sum(verdict.seconds for verdict in verdicts))
        row = replace(row, steps=used.steps, seconds=seconds)
        with self._rollout.store.transaction() as tx:
            write_stage(tx, self._rollout.trajectory, row)
            write_entries(tx, self._rollout.trajectory, entries)
            if verdict is not None:
                write_verdict(tx, self._rollout.trajectory, verdict)
        state.stages[row.position] = row
        state.entries.extend(entries)
        if verdict is not None:
            state.verdicts[row.position, verdict.attempt] = verdict
        return row


def _sum(one: float | None, other: float | None) -> float | None:
    """Of two costs; None where one is not known."""
    return None if one is None or other is None else one + other
