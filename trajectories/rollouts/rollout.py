"""One sample of one chain, from ids to rows: the unit of work of every engine that runs rollouts.

`roll` keeps its state in the database alone: it can be killed at any step and called again, here or on another machine
with the same database, mirrors and trees.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import count as count_from
from itertools import takewhile
from pathlib import Path
from random import random
from time import sleep

from environments.backend import Backend
from environments.checkouts.carry import Carry
from environments.images.stage_image import StageImage
from environments.sandboxes.sandbox import ResourceLimits
from environments.workplace import Workplace
from prchain.core.console.terminal import counted
from prchain.core.errors import PrchainError, PromptError, SandboxLost, StoreError, StoreInUse, TextsChanged, UsageError
from prchain.core.git.trees import TreeStore
from prchain.core.leaks import Finding, check
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.pauses import full_jitter
from prchain.core.llm.prompts import load_prompt
from prchain.core.runs import DEFECT, LONGEST_REASON, Tell, defect_words
from prchain.core.secrets.scrub import redact, scrub_mined
from sql.lock import exclusive_lock
from sql.store import Store, Transaction
from sql.tables import Trajectory, TrajectoryMessage
from trajectories.agents.observers.failures import observer_errors
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.scaffolds.context import used_by
from trajectories.agents.scaffolds.scaffold import ObserverKind, SampledKind, Scaffold
from trajectories.identity import Identity, Parent, digest, subject
from trajectories.model import Entry, EntryKind
from trajectories.options import OnFail, RolloutOptions
from trajectories.outcomes import (
    ACCEPTED,
    ACCEPTED_PREFIX,
    DONE_EARLY,
    FINAL,
    NOT_REACHED,
    RUNNING,
    STOPPED,
    SUPERSEDED,
    accepted_prefix,
    is_passing,
    outcome_of,
)
from trajectories.rollouts.branch import shared
from trajectories.rollouts.chain_context import ChainContext, ImageProvider, MakeSuite, MakeWorkplace, stage_suite
from trajectories.rollouts.prefix import PURPOSE as PREFIX
from trajectories.rollouts.prefix import prefix_overview
from trajectories.rollouts.stage import StageRun
from trajectories.rollouts.standing import StandingTrajectories, find, read_rows
from trajectories.rollouts.state import RolloutContext, RolloutState
from trajectories.rows import (
    StageRow,
    begin_trajectory,
    count_try,
    end_trajectory,
    read_entries,
    read_outcome,
    read_stages,
    read_verdicts,
    write_entries,
    write_stage,
    write_verdict,
)
from trajectories.task import TaskTexts, read_task, read_texts
from trajectories.verdicts.auditor import AUDITOR, Auditor
from trajectories.verdicts.judge import JUDGE, VERDICTS, Judge

log = logging.getLogger(__name__)

COMMAND = "prchain rollouts run"


def _pause(tries: int) -> None:
    sleep(full_jitter(tries, random))


@dataclass(frozen=True)
class RunContext:
    """What rollouts of one run have in common; used by several threads.

    `provider` gives stages their images. `retries` is how often in a row a rollout is tried again after a machine
    failed (a stored step resets the count); `pause` waits after the given number of failures. `make_workplace` and
    `make_suite` are seams for tests.
    """

    store: Store
    gateway: Gateway
    provider: ImageProvider
    backend: Backend
    scaffold: Scaffold
    options: RolloutOptions
    mirrors: Path
    data_dir: Path
    observers: Sequence[ObserverKind] = ()
    limits: ResourceLimits | None = None
    """Of every sandbox."""
    retries: int = 4
    pause: Callable[[int], None] = _pause
    secrets: tuple[str, ...] = ()
    """Texts that a stored reason must not hold."""
    tell: Tell = lambda words: None
    """Reports the progress of a rollout to people."""
    make_workplace: MakeWorkplace | None = None
    make_suite: MakeSuite = stage_suite
    readers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Purposes of the calls that the scaffold makes besides the agent's, and how they are sampled where the settings
    do not say."""

    stages: int | None = None
    """Only so many stages are worked on, from the first; the others end as not reached. It decides the trajectory.
    None: all."""

    @property
    def judge_model(self) -> str | None:
        """The name of the judge's model; None where the gate has no judge."""
        return self.gateway.model_name(JUDGE) if self.options.asks_judge else None

    @property
    def purposes(self) -> tuple[str, ...]:
        """The purposes of the calls that rollouts make, for `Gateway.check`."""
        observing = (purpose for observer in self.observers for purpose in observer.purposes)
        judging = (JUDGE,) if self.options.asks_judge else ()
        auditing = (AUDITOR,) if self.options.asks_auditor else ()
        return tuple(dict.fromkeys((AGENT, PREFIX, *judging, *auditing, *observing, *self.readers)))

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """Name to hash of every prompt that a rollout may use, except `PREFIX`."""
        judge: Mapping[str, str] = Judge(self.gateway).prompts if self.options.asks_judge else {}
        auditor: Mapping[str, str] = Auditor(self.gateway).prompts if self.options.asks_auditor else {}
        observing = {
            f"{observer.name}/{name}": hash_ for observer in self.observers for name, hash_ in observer.prompts.items()
        }
        return {**self.scaffold.prompts, **judge, **auditor, **observing}

    @cached_property
    def _usual_sampling(self) -> Mapping[str, Mapping[str, float]]:
        usual = dict(self.readers)
        for observer in self.observers:
            if isinstance(observer, SampledKind):
                with observer_errors(observer.name):
                    own = {purpose: observer.sampling[purpose] for purpose in observer.purposes}
                usual |= own
        return usual

    @cached_property
    def _tools(self) -> str:
        return digest([dict(tool) for tool in self.scaffold.tools])

    def identity(self, texts: TaskTexts, chain_id: str, sample: int, parent: Parent | None = None) -> Identity:
        """The identity of a rollout of the chain with these texts."""
        options, observers = self.options, self.observers
        # Only a chain that can be cut to an accepted prefix has its overview written anew.
        cut = len(texts.queries) > options.min_length and (self.stages is None or self.stages >= options.min_length)
        purposes = [purpose for purpose in self.purposes if purpose != AGENT and (purpose != PREFIX or cut)]
        agent = self.gateway.resolved(
            AGENT, temperature=options.temperature, top_p=options.top_p, max_tokens=options.max_tokens
        )
        prefix = load_prompt("trajectories.rollouts", PREFIX)
        return Identity(
            chain_id,
            sample,
            parent,
            models={
                AGENT: agent,
                **{
                    purpose: self.gateway.resolved(purpose, usual=self._usual_sampling.get(purpose, {}))
                    for purpose in purposes
                },
            },
            scaffold=self.scaffold.name,
            observers=tuple({"name": observer.name, "settings": dict(observer.settings)} for observer in observers),
            options=options.chosen,
            curation={
                **self.scaffold.decided_by(chain_id),
                **({} if self.stages is None else {"stages": self.stages}),
            },
            task=texts.hash,
            proof=texts.proof if options.runs_tests else None,
            prompts={**self.prompts, **({prefix.name: prefix.hash} if cut else {})},
            tools=self._tools,
            versions={
                "scaffold": self.scaffold.version,
                "verdicts": VERDICTS,
                **{f"observer {observer.name}": observer.version for observer in observers},
            },
        )

    def find(
        self, tx: Transaction, chain_id: str, sample: int, parent: Parent | None = None
    ) -> tuple[Identity, StandingTrajectories]:
        """The identity of a rollout, and the stored trajectories beside it. Raises `ChainGone`, `NoTask`."""
        texts = read_texts(tx, self.options.interface, chain_id)
        if chain_id not in texts:
            read_task(tx, chain_id, self.options.interface)  # raises with the reason
        identity = self.identity(texts[chain_id], chain_id, sample, parent)
        return identity, find(identity, read_rows(tx, texts).get(chain_id, ()))


def roll(context: RunContext, chain_id: str, sample: int, *, parent: Parent | None = None) -> str:
    """Work through a chain until the trajectory has an outcome, and return its id; at once where it has a final one.

    `parent` is a stored trajectory of the chain and the last step that both share. An outcome that is not in
    `trajectories.outcomes.FINAL` is an error's name or `DEFECT`; calling again resumes. Unfinished trajectories under
    other prompts, tools or texts end as `SUPERSEDED`. Raises `StoreInUse` where another process works on it,
    `ChainGone`, `RolloutError` for a chain or a step that can have no trajectory, `StoreError`, and errors of settings
    and prompts.
    """
    store = context.store
    with store.reading() as tx:
        identity, existing = context.find(tx, chain_id, sample, parent)
    name = existing.id
    with exclusive_lock(store, f"rollout-{name}", COMMAND):
        with store.reading() as tx:
            if read_outcome(tx, name) in FINAL:
                return name
            task = read_task(tx, chain_id, context.options.interface)
            current, existing = context.find(tx, chain_id, sample, parent)
            state = shared(tx, identity, context.options, context.scaffold) if parent else RolloutState()
        if (current, existing.id) != (identity, name):
            raise TextsChanged(f"the task of chain {chain_id} was written anew meanwhile; run again")
        _supersede(context, name, existing)
        _begin(context, name, identity, state)
        tries = last_count = losses = 0
        while True:
            try:
                if context.options.needs_tests:
                    task.require_tests()
                chain_context = ChainContext(
                    task,
                    mirrors=context.mirrors,
                    data_dir=context.data_dir,
                    provider=context.provider,
                    make_workplace=context.make_workplace or _workplace_maker(context, name),
                    make_suite=context.make_suite,
                )
                _Rollout(context, name, sample, chain_context, losses, parent).run()
                return name
            except StoreError:
                raise
            except (UsageError, PromptError) as error:
                leave(context, name, error.name, str(error))
                raise
            except PrchainError as error:
                with store.reading() as tx:
                    message_count = tx.count(TrajectoryMessage, trajectory_id=name)
                tries, losses, last_count = (
                    (tries, losses, last_count) if message_count == last_count else (0, 0, message_count)
                )
                tries += 1
                losses = losses + 1 if isinstance(error, SandboxLost) else 0
                if not is_passing(error) or tries > context.retries:
                    leave(context, name, error.name, str(error))
                    return name
                with store.transaction() as tx:
                    count_try(tx, name)
                log.warning("trajectory %s: %s, try %d of %d", name[:12], error.name, tries, context.retries)
                context.pause(tries)
            except Exception as error:  # the boundary: an error without a name is our defect, and is stored as one
                leave(context, name, DEFECT, defect_words(error))
                return name


def _workplace_maker(context: RunContext, name: str) -> MakeWorkplace:
    options = context.options

    def make(provided: StageImage, trees: TreeStore) -> Workplace:
        return Workplace(
            provided,
            trees,
            backend=context.backend,
            limits=context.limits,
            test_timeout=options.test_timeout,
            labels={"prchain.trajectory": name},
            base=provided.base,
        )

    return make


def _begin(context: RunContext, name: str, identity: Identity, state: RolloutState) -> None:
    options, scaffold, parent = context.options, context.scaffold, identity.parent
    row = {
        "id": name,
        "chain_id": identity.chain,
        "sample": identity.sample,
        "parent_id": parent[0] if parent else None,
        "parent_step": parent[1] if parent else None,
        "scaffold": scaffold.name,
        "model": context.gateway.model_name(AGENT),
        "judge": context.judge_model,
        "options": asdict(options),
        "options_hash": options.hash(),
        "prompts": identity.prompts,
        "tools": [dict(tool) for tool in scaffold.tools],
        "decided_by": identity.row(),
    }
    with context.store.transaction() as tx:
        new = read_outcome(tx, name) is None
        begin_trajectory(tx, row)
        if new:
            for stage in state.stages.values():
                write_stage(tx, name, stage)
            write_entries(tx, name, state.entries)
            for verdict in state.verdicts.values():
                write_verdict(tx, name, verdict)


def _supersede(context: RunContext, name: str, existing: StandingTrajectories) -> None:
    """End unfinished trajectories under other texts: to resume them would mix both texts. One without messages is
    deleted."""
    store = context.store
    for outdated in existing.outdated:
        if outdated.stored.final or outdated.stored.outcome == SUPERSEDED:
            continue
        try:
            with exclusive_lock(store, f"rollout-{outdated.stored.id}", COMMAND):
                with store.reading() as tx:
                    outcome = read_outcome(tx, outdated.stored.id)
                    has_messages = tx.count(TrajectoryMessage, trajectory_id=outdated.stored.id) > 0
                if outcome in FINAL:
                    continue
                if has_messages:
                    reason = f"begun with other {', '.join(outdated.fields)}; {name} takes its place"
                    leave(context, outdated.stored.id, SUPERSEDED, reason)
                    continue
                with store.transaction() as tx:
                    tx.delete(Trajectory, id=outdated.stored.id)
        except StoreInUse:
            continue  # another process works on it, with the texts it began with


def leave(context: RunContext, name: str, outcome: str, reason: str | None) -> None:
    """Write an outcome that no stage caused; the trajectory's rows stay for the next run."""
    stored_reason = None if reason is None else scrub_mined(redact(reason, context.secrets))[:LONGEST_REASON]
    with context.store.transaction() as tx:
        accepted = accepted_prefix([stage.outcome for stage in read_stages(tx, name)])
        end_trajectory(tx, name, outcome, reason=stored_reason, accepted=accepted, overview=None)


class _Rollout:
    """One running trajectory, resumed from its rows."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        sample: int,
        chain_context: ChainContext,
        losses: int,
        parent: Parent | None = None,
    ) -> None:
        self._context = context
        self._name = name
        self._sample = sample
        self._parent = parent
        self._chain_context = chain_context
        options = context.options
        judge = Judge(context.gateway, sees_tests=options.judge_sees == "tests") if options.asks_judge else None
        self._rollout = RolloutContext(
            name,
            sample,
            context.store,
            context.gateway,
            chain_context,
            context.scaffold,
            judge,
            context.options,
            context.observers,
            losses,
            context.tell,
            Auditor(context.gateway) if options.asks_auditor else None,
        )
        with context.store.reading() as tx:
            self._state = RolloutState(
                read_entries(tx, name),
                {stage.position: stage for stage in read_stages(tx, name)},
                {(verdict.position, verdict.attempt): verdict for verdict in read_verdicts(tx, name)},
            )

    def run(self) -> None:
        """Work on the stages without an outcome, then write the trajectory's outcome."""
        task, state, options = self._chain_context.task, self._state, self._context.options
        for stage in task.stages:
            row = state.stages.get(stage.position)
            if row is None or row.outcome == RUNNING:
                if row is None and (obstacle := self._obstacle(stage.position)):
                    self._mark_not_reached(stage.position, obstacle)
                    break
                row = StageRun(self._rollout, state, stage, self._tree_before(stage.position)).run()
            is_over = row.outcome in {STOPPED, NOT_REACHED} or options.on_fail is OnFail.STOP
            if row.outcome not in {ACCEPTED, DONE_EARLY} and is_over:
                break
        reached = max(state.stages, default=0)
        for stage in task.stages[reached:]:
            self._mark_not_reached(stage.position, None)
        self._finish()

    def _obstacle(self, position: int) -> str | None:
        """Why a stage cannot begin though the stages before it are over; None where it can."""
        most = self._context.stages
        if most is not None and position > most:
            return f"only the first {counted(most, 'stage')} of the chain was to be worked on"
        ending = used_by(self._state.entries).over(self._context.options.chain_limits)
        if ending is not None:
            return f"{ending} of the chain"
        carried = self._context.options.carry is Carry.AGENT
        if position > 1 and carried and self._tree_before(position) is None:
            return "the stage before left no tree"
        return None

    def _mark_not_reached(self, position: int, reason: str | None) -> None:
        row = StageRow(position, NOT_REACHED, reason)
        with self._context.store.transaction() as tx:
            write_stage(tx, self._name, row)
        self._state.stages[position] = row

    def _tree_before(self, position: int) -> str | None:
        """A_{t-1}: the agent's tree, or the developers' commit where the options say so."""
        if position == 1:
            return None
        before = self._state.stages[position - 1]
        if before.outcome not in {ACCEPTED, DONE_EARLY} and self._context.options.on_fail is OnFail.REFERENCE:
            return self._chain_context.task.chain.stages[position - 2].landed
        return before.end_tree

    def _finish(self) -> None:
        context, state, task = self._context, self._state, self._chain_context.task
        rows = [state.stages[stage.position] for stage in task.stages]
        outcome, accepted = outcome_of(
            [row.outcome for row in rows],
            length=len(rows),
            min_length=context.options.min_length,
            shared=self._shared_stages(),
        )
        failed = next((row for row in rows if row.outcome not in {ACCEPTED, DONE_EARLY}), None)
        failed = failed or next((row for row in rows[accepted:]), None)
        reason: str | None = None
        if failed is not None:
            reason = f"stage {failed.position}: {failed.outcome}: {failed.reason or 'no reason given'}"
        overview: str = task.overview
        retold: list[Entry] = []
        if outcome == ACCEPTED_PREFIX:
            about = subject(self._name, 0)
            overview, why = prefix_overview(
                context.gateway, task, accepted, self._findings, subject=about, sample=self._sample
            )
            reason = f"{reason}; {why}" if why else reason
            retold = self._retold(accepted, overview)
        with context.store.transaction() as tx:
            write_entries(tx, self._name, retold)
            end_trajectory(tx, self._name, outcome, reason=reason, accepted=accepted, overview=overview)

    def _shared_stages(self) -> int:
        """How many stages, from the first, were over and accepted where this trajectory branched off its parent."""
        if self._parent is None:
            return 0
        parent, step = self._parent
        with self._context.store.reading() as tx:
            accepted = {stage.position for stage in read_stages(tx, parent) if stage.outcome == ACCEPTED}
        own = {entry.position for entry in self._state.entries if entry.step > step}
        reached = {entry.position for entry in self._state.entries}
        shared = takewhile(lambda position: position in (accepted & reached) - own, count_from(1))
        return sum(1 for _ in shared)

    def _retold(self, count: int, overview: str) -> list[Entry]:
        """The first `count` queries, each with a second text (``retold``) as for a chain of only these stages; the text
        that the agent read stays."""
        retold = []
        for entry in self._state.entries:
            if entry.kind is EntryKind.QUERY and entry.position <= count:
                details = entry.details
                variables = {
                    "repository": self._chain_context.task.chain.repository,
                    "query": details["query"],
                    "comment": None,
                    "overview": overview if details["overview"] else None,
                    "position": entry.position,
                    "stages": count,
                    "workdir": details["workdir"],
                    "earlier": details["earlier"],
                    "briefing": details.get("briefing"),
                    "attempt": 1,
                }
                words = self._rollout.scaffold.opening(EntryKind.QUERY, variables)
                retold.append(replace(entry, details={**details, "retold": words}))
        return retold

    def _findings(self, text: str) -> list[Finding]:
        hidden = self._chain_context.hidden
        facts = [stage.facts for stage in hidden.stages]
        return check(text, facts, 0, kind="overview", paths_at_base=hidden.stages[0].base_paths)
