"""Measuring the judge on stages whose tests were proved: against patches of known worth, itself, and stored verdicts.

Patches of known worth are made of each stage's reference (`trajectories.verdicts.variants`). Each is judged in both
orders of the prompt, several times. Nothing but the ledger keeps what was said: a run that was killed walks over the
stored verdicts to where it was.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Literal

from sqlalchemy import and_, select

from environments.stages import ChainStages, open_git, read_chain
from environments.suites.outcomes import PASSED, STATE_BROKEN
from prchain.errors import ChainGone, GitError, LlmError, PrchainError
from prchain.llm.desk import Estimate
from prchain.progress import Progress
from prchain.scrub import scrub_mined
from sql.chosen import selected_ids
from sql.lock import alone
from sql.store import Store, Transaction
from sql.tables import StageTests, TaskStage, Verdict
from trajectories.task import told_query
from trajectories.verdicts.judge import Case, Judge, Judgement
from trajectories.verdicts.variants import Variant, variants

PROVED, READY = "proved", "ready"

Orders = Literal["both", "reference", "candidate"]
"""Which patch stands first in the prompt."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured. `limit` is a number of stages."""

    strategy: str = "reference"
    repository: str | None = None
    limit: int | None = None
    repeats: int = 2
    orders: Orders = "both"
    workers: int = 2


@dataclass(frozen=True, slots=True)
class Trial:
    """One question to the judge."""

    chain_id: str
    position: int
    variant: Variant
    candidate_first: bool
    repeat: int
    case: Case

    @property
    def subject(self) -> str:
        """As the ledger keeps it."""
        return f"calibrate/{self.chain_id}/{self.position}/{self.variant}"


@dataclass(frozen=True, slots=True)
class Result:
    """What the judge said to a trial."""

    chain_id: str
    position: int
    variant: Variant
    candidate_first: bool
    repeat: int
    score: float | None
    error: str | None
    stored: bool


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict of a rollout, as far as the judge can be measured on it.

    `passed` is what the tests said; None where they said nothing.
    """

    score: float | None
    judge_error: str | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a run found. `unread` are chains whose patches cannot be had, each with the reason."""

    results: tuple[Result, ...]
    verdicts: tuple[StoredVerdict, ...]
    stages: int
    unread: tuple[tuple[str, str], ...] = ()
    left: int = 0
    """Stages that it did not get through."""
    stopped: str | None = None
    """Why it ended early."""

    @property
    def done(self) -> bool:
        """Whether every stage was measured."""
        return not self.left and not self.unread


class Calibrator:
    """Measures a judge."""

    def __init__(self, store: Store, judge: Judge, *, mirrors: Path, progress: Progress, options: Options) -> None:
        self._store = store
        self._judge = judge
        self._mirrors = mirrors
        self._progress = progress
        self._options = options
        self._stop = threading.Event()

    def estimate(self) -> tuple[int, Estimate, tuple[tuple[str, str], ...]]:
        """How many stages a run would measure, what it would cost at most, and the chains that cannot be read.

        Nothing is asked. Raises `PrchainError`.
        """
        stages = self._stages()
        shown = self._progress.task("estimating", len(stages))
        total, unread = Estimate(), dict[str, str]()
        for chain_id, position in stages:
            try:
                asked = (self._judge.estimate(one.case, subject=one.subject, sample=one.repeat)
                         for one in self._trials(chain_id, position))  # fmt: skip
                total = reduce(add, asked, total)
            except (ChainGone, GitError) as error:
                unread[chain_id] = _said(error)
            shown.advance()
        shown.done()
        return len(stages), total, tuple(unread.items())

    def run(self) -> Calibration:
        """Ask what is not stored yet. An endpoint that fails, or a spent budget, ends the run early.

        Raises `StoreInUse` where another run is at work on the database, and `StoreError`.
        """
        with alone(self._store, "judge", "prchain judge calibrate"):
            return self._run()

    def _run(self) -> Calibration:
        stages = self._stages()
        shown = self._progress.task("judging", len(stages))
        found: dict[tuple[str, int], list[Result]] = {}
        unread: dict[str, str] = {}
        stopped: str | None = None
        pool = ThreadPoolExecutor(max_workers=max(1, min(self._options.workers, len(stages))))
        futures = {pool.submit(self._measure, *stage): stage for stage in stages}
        try:
            for future in as_completed(futures):
                try:
                    results = future.result()
                except (ChainGone, GitError) as error:
                    unread[futures[future][0]] = _said(error)
                    continue
                except LlmError as error:
                    stopped = stopped or _said(error)
                    self._stop.set()
                    continue
                if results is not None:
                    found[futures[future]] = results
                    shown.advance()
        finally:
            self._stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        shown.done(f"{len(found):,} of {len(stages):,} stages")
        with self._store.reading() as tx:
            verdicts = tuple(stored_verdicts(tx))
        gone = sum(chain_id in unread for chain_id, _ in stages)
        return Calibration(
            tuple(one for stage in stages for one in found.get(stage, ())), verdicts, len(found),
            tuple(sorted(unread.items())), len(stages) - len(found) - gone, stopped,
        )  # fmt: skip

    def _measure(self, chain_id: str, position: int) -> list[Result] | None:
        """A stage's results, all of them; None where the run ends before."""
        results: list[Result] = []
        if self._stop.is_set():
            return None
        for one in self._trials(chain_id, position):
            if self._stop.is_set():
                return None
            results.append(_result(one, self._ask(one)))
        return results

    def _ask(self, trial: Trial) -> Judgement:
        case = trial.case
        return self._judge.judge(
            subject=trial.subject, sample=trial.repeat, attempt=0, query=case.query,
            reference_patch=case.reference_patch, agent_patch=case.agent_patch,
            candidate_first=case.candidate_first,
        )  # fmt: skip

    def _stages(self) -> list[tuple[str, int]]:
        with self._store.reading() as tx:
            chains = selected_ids(tx, self._options.strategy, self._options.repository)
            return proved_stages(tx, chains)[: self._options.limit]

    def _trials(self, chain_id: str, position: int) -> Iterator[Trial]:
        """Every question about a stage. An empty patch is judged without one, so once is enough."""
        with self._store.reading() as tx:
            chain = read_chain(tx, chain_id)
            query = _query(tx, chain, position)
        git = open_git(chain, self._mirrors)
        reference = b""
        for variant, patch in variants(git, chain.stages, position):
            reference = patch if variant is Variant.REFERENCE else reference
            orders = {"both": (False, True), "reference": (False,), "candidate": (True,)}[self._options.orders]
            for candidate_first in orders if patch.strip() else orders[:1]:
                for repeat in range(self._options.repeats if patch.strip() else 1):
                    case = Case(query, reference, patch, candidate_first)
                    yield Trial(chain_id, position, variant, candidate_first, repeat, case)


def proved_stages(tx: Transaction, chains: Iterable[str]) -> list[tuple[str, int]]:
    """The stages, of these chains in their order, whose tests were proved and that have a query."""
    query = (
        select(StageTests.chain_id, StageTests.position)
        .join(
            TaskStage,
            and_(TaskStage.chain_id == StageTests.chain_id, TaskStage.position == StageTests.position),
        )
        .where(StageTests.outcome == PROVED, TaskStage.outcome == READY)
        .order_by(StageTests.chain_id, StageTests.position)
    )
    found: dict[str, list[int]] = {}
    for chain_id, position in tx.connection.execute(query):
        found.setdefault(chain_id, []).append(position)
    return [(chain_id, position) for chain_id in chains for position in found.get(chain_id, ())]


def stored_verdicts(tx: Transaction) -> Iterator[StoredVerdict]:
    """The verdicts of rollouts that the judge was asked for."""
    for score, error, tests in tx.rows(Verdict, "score", "judge_error", "tests"):
        if score is not None or error is not None:
            passed = None if tests in {None, STATE_BROKEN} else tests == PASSED
            yield StoredVerdict(score, error, passed)


def _query(tx: Transaction, chain: ChainStages, position: int) -> str:
    """The query as an agent reads it."""
    [(query, names)] = tx.rows(TaskStage, "query", "interface", chain_id=chain.id, position=position)
    return told_query(str(query), json.loads(names))


def _result(trial: Trial, judgement: Judgement) -> Result:
    return Result(
        trial.chain_id, trial.position, trial.variant, trial.candidate_first, trial.repeat, judgement.score,
        judgement.error, judgement.stored,
    )  # fmt: skip


def _said(error: PrchainError) -> str:
    return scrub_mined(f"{error.name}: {error}")
