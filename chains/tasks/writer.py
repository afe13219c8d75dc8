"""Writes one chain's task, from its repository and from the draft of an earlier run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from chains.tasks.context import StageContext, read_chain
from chains.tasks.model import (
    CHAIN_REJECTED,
    FINAL,
    NOT_REACHED,
    OVERVIEW_REJECTED,
    QUERY_REJECTED,
    LocatedFinding,
    StageQuery,
    TaskChain,
    TaskDraft,
)
from chains.tasks.query import ROUND, CheckedText, QueryConstructor, all_findings
from chains.tasks.screening import ChainScreener
from prchain.core.code.needs import full_query, interface_of
from prchain.core.errors import GitError, LlmError
from prchain.core.git import GitRepository, open_mined
from prchain.core.llm.gateway import CostEstimate
from prchain.core.runs import Tell
from prchain.core.secrets.scrub import scrub_mined
from sql.outcomes import READY
from sql.store import Store


class TaskWriter:
    """Writes drafts of tasks; stores only the replies of models. Safe for several threads.

    With an screener, nothing is written for a chain that it finds not worth a task.
    """

    def __init__(
        self, store: Store, constructor: QueryConstructor, mirrors: Path, screener: ChainScreener | None = None
    ) -> None:
        self._store = store
        self._constructor = constructor
        self._screener = screener
        self._mirrors = mirrors
        self._repositories: dict[int, GitRepository] = {}
        self._lock = threading.Lock()

    @property
    def model(self) -> str:
        """The name of the model that writes queries."""
        return self._constructor.model

    @property
    def prompts(self) -> Mapping[str, str]:
        """Each prompt's name and hash."""
        return self._constructor.prompts | (self._screener.prompts if self._screener else {})

    def estimates(self, chain: TaskChain, earlier: TaskDraft | None, *, screened: bool = False) -> list[CostEstimate]:
        """What the calls for a task cost if every text is clean; `screened` as in `draft`. Raises `GitError`,
        `ChainGone`."""
        earlier = _reopened(earlier) if screened else earlier
        contexts = read_chain(self._store, self._repository(chain), chain)
        kept = _ready_stages(earlier)
        starts = {
            stage.position: _stage_start(earlier, stage.position)
            for stage in chain.stages
            if stage.position not in kept
        }
        start = _start(earlier.attempts if earlier else 0)
        written = list(self._constructor.estimates(chain, contexts, starts, start))
        if self._screener is None or kept or screened:
            return written
        return [self._screener.estimate(chain, contexts, start // ROUND), *written]

    def draft(
        self,
        chain: TaskChain,
        earlier: TaskDraft | None,
        tell: Tell = lambda words: None,
        *,
        screened: bool = False,
    ) -> TaskDraft:
        """The task of a chain; ready stages of `earlier` are kept. `tell` takes what is being written. `screened` says
        that the screener has found it worth one.

        Raises `StoreError`, `PromptError`, and `ChainGone`; a failure of git or of a model is the draft's outcome.
        """
        try:
            contexts = read_chain(self._store, self._repository(chain), chain)
        except GitError as error:
            unreached = tuple(StageQuery(stage.position, NOT_REACHED) for stage in chain.stages)
            return TaskDraft(chain.id, error.name, scrub_mined(str(error)), stages=unreached)
        earlier = _reopened(earlier) if screened else earlier
        if not screened and (rejected := self._rejected(chain, contexts, earlier, tell)) is not None:
            return rejected
        stages: list[StageQuery] = []
        for context in contexts:
            if stages and stages[-1].outcome != READY:
                stages.append(_unreached(context))
            else:
                written = [
                    full_query(stage.query or "", interface_of(read.needs))
                    for stage, read in zip(stages, contexts, strict=False)
                ]
                stages.append(self._stage(chain, contexts, context.stage.position, earlier, written, tell))
        failed = next((stage for stage in stages if stage.outcome not in {READY, NOT_REACHED}), None)
        if failed is not None:
            reason = f"stage {failed.position}: {failed.reason or failed.outcome}"
            # The round is kept: the next run has to find the reply of the screener that let this one through.
            start = _start(earlier.attempts if earlier else 0)
            return TaskDraft(chain.id, failed.outcome, reason, attempts=start, stages=tuple(stages))
        return self._overview(chain, contexts, stages, earlier, tell)

    def _rejected(
        self, chain: TaskChain, contexts: Sequence[StageContext], earlier: TaskDraft | None, tell: Tell
    ) -> TaskDraft | None:
        """The draft of a chain that the screener finds not worth a task. A chain of which a stage is ready was screened
        before."""
        if self._screener is None or _ready_stages(earlier):
            return None
        start = _start(earlier.attempts if earlier else 0)
        unreached = tuple(replace(_unreached(it), attempts=_stage_start(earlier, it.stage.position)) for it in contexts)
        draft = TaskDraft(chain.id, CHAIN_REJECTED, attempts=start, stages=unreached)
        tell("screening")
        try:
            faults = self._screener.screen(chain, contexts, start // ROUND).faults(self._screener.least_worth)
        except LlmError as error:
            reason = scrub_mined(f"screening: {error}")
            return replace(draft, outcome=error.name, reason=reason, attempts=_next_start(error, start))
        # The next round, begun with --retry, asks anew.
        return replace(draft, reason="; ".join(faults), attempts=start + ROUND) if faults else None

    def _stage(
        self,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        position: int,
        earlier: TaskDraft | None,
        written: Sequence[str],
        tell: Tell,
    ) -> StageQuery:
        kept = _ready_stages(earlier).get(position)
        if kept is not None:
            return kept
        context = contexts[position - 1]
        start = _stage_start(earlier, position)
        result = replace(_unreached(context), attempts=start)

        def tell_stage(words: str) -> None:
            tell(f"stage {position} of {len(contexts)}, {words}")

        try:
            tell_stage("plan")
            plan = self._constructor.plan(chain, context, start // ROUND)
            result = replace(result, plan=plan)
            checked = self._constructor.query(chain, contexts, position, plan, written, start, tell_stage)
        except LlmError as error:
            return replace(
                result, outcome=error.name, reason=scrub_mined(str(error)), attempts=_next_start(error, start)
            )
        return replace(
            result,
            outcome=READY if checked.clean else QUERY_REJECTED,
            reason=None if checked.clean else _reason(checked),
            query=checked.text,
            findings=all_findings(context, checked),
            attempts=checked.attempts,
            refused=checked.refused,
        )

    def _overview(
        self,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        stages: list[StageQuery],
        earlier: TaskDraft | None,
        tell: Tell,
    ) -> TaskDraft:
        start = _start(earlier.attempts if earlier else 0)
        draft = TaskDraft(chain.id, READY, stages=tuple(stages), attempts=start)
        try:
            checked = self._constructor.overview(chain, contexts, [stage.query or "" for stage in stages], start, tell)
        except LlmError as error:
            reason = scrub_mined(f"overview: {error}")
            return replace(draft, outcome=error.name, reason=reason, attempts=_next_start(error, start))
        return replace(
            draft,
            outcome=READY if checked.clean else OVERVIEW_REJECTED,
            reason=None if checked.clean else f"overview: {_reason(checked)}",
            overview=checked.text,
            findings=tuple(LocatedFinding("overview", finding).row() for finding in checked.findings),
            attempts=checked.attempts,
            refused=checked.refused,
        )

    def _repository(self, chain: TaskChain) -> GitRepository:
        with self._lock:
            if chain.repository_id not in self._repositories:
                opened = open_mined(chain.location, self._mirrors, chain.host, chain.full_name)
                self._repositories[chain.repository_id] = opened
            return self._repositories[chain.repository_id]


def _next_start(error: LlmError, start: int) -> int:
    """The attempts that are used up after an error: the whole round where another run would get the same error."""
    return start + ROUND if error.name in FINAL else start


def _ready_stages(earlier: TaskDraft | None) -> dict[int, StageQuery]:
    """The ready stages of an earlier run; their queries are kept, whatever the outcome of the others."""
    return {stage.position: stage for stage in earlier.stages if stage.outcome == READY} if earlier else {}


def _start(attempts: int) -> int:
    """The first attempt of the round that begins, or that was interrupted; see `chains.tasks.query.ROUND`."""
    return attempts - attempts % ROUND


def _reopened(earlier: TaskDraft | None) -> TaskDraft | None:
    """The draft of a chain that was rejected when it was screened, back in the round of that screening."""
    return replace(earlier, attempts=max(_start(earlier.attempts) - ROUND, 0)) if earlier else None


def _stage_start(earlier: TaskDraft | None, position: int) -> int:
    before = [stage.attempts for stage in earlier.stages if stage.position == position] if earlier else []
    return _start(before[0] if before else 0)


def _unreached(context: StageContext) -> StageQuery:
    return StageQuery(context.stage.position, NOT_REACHED, needs=context.needs, files=context.files)


def _reason(checked: CheckedText) -> str:
    """A summary of the findings in a rejected text: who rejected it, and how often for what."""
    kinds = Counter(finding.kind for finding in checked.findings if finding.severity == "leak")
    return f"{checked.refused[-1]}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
