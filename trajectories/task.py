"""Tasks as a rollout needs them: the texts that the agent reads, and each stage's proved tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from environments.proofs.proof_rows import StageProof, StoredRun, read_runs, read_stages
from environments.stages import ChainStages, Stage, read_chain
from environments.suites.baseline import RunnerBaseline
from environments.suites.outcomes import ClassifiedTests
from environments.suites.testlogs import Status
from prchain.core.code.needs import Interface, Need, full_query, interface_of, parse_needs
from prchain.core.errors import NoTask, NotValidated, TestsUnproved
from sql.json_text import as_stored
from sql.outcomes import PROVED, READY
from sql.store import Transaction
from sql.tables import StageTests, Task, TaskStage
from trajectories.identity import digest


@dataclass(frozen=True, slots=True)
class ProvedTests:
    """The tests of a stage as a validation found them (`sql.tables.StageTests`)."""

    classes: ClassifiedTests
    files: tuple[str, ...]
    baseline: RunnerBaseline
    before: tuple[Mapping[str, Status], ...]
    """The runs on B_t plus overlay."""
    image: str | None = None
    """The image they were proved in; None where there was no image."""


@dataclass(frozen=True, slots=True)
class StageTask:
    """One stage of a task."""

    stage: Stage
    query: str
    """As the agent reads it; it holds the interface where the options say so."""
    interface: tuple[Need, ...]
    """What the agent is told of what hidden tests need."""
    tests: ProvedTests | None
    """None where no tests were proved."""
    validated: str | None
    """The outcome of the stage's validation; None where there was none."""

    @property
    def position(self) -> int:
        """1 is the first."""
        return self.stage.position


@dataclass(frozen=True, slots=True)
class RolloutTask:
    """A chain's task."""

    chain: ChainStages
    overview: str
    stages: tuple[StageTask, ...]

    def earlier_f2p(self, position: int) -> set[str]:
        """The F2P tests of the stages before a position."""
        earlier = (stage.tests for stage in self.stages[: position - 1])
        return {test for tests in earlier if tests for test in tests.classes.f2p}

    def require_tests(self) -> None:
        """Check that every stage has proved tests for a gate. Raises `NotValidated`, `TestsUnproved`."""
        for stage in self.stages:
            if stage.validated is None:
                raise NotValidated(
                    f"the gate needs tests, and chain {self.chain.id} was not validated; run "
                    "`prchain environments validate` first, or choose --gate judge"
                )
            if stage.tests is None:
                raise TestsUnproved(
                    f"the gate needs tests, and those of stage {stage.position} are {stage.validated}; "
                    "choose --gate judge for this chain"
                )


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """The part of a task that decides a rollout: the texts that the agent reads, and a hash of the proved tests."""

    overview: str
    queries: tuple[str, ...]
    """As the agent reads them."""
    proof: str | None
    """Hash of the proved tests of all stages; None where a stage has none."""

    @property
    def hash(self) -> str:
        """Of the texts."""
        return digest((self.overview, *self.queries))


def read_texts(tx: Transaction, interface: Interface = "appended", chain_id: str | None = None) -> dict[str, TaskTexts]:
    """Chain id to the texts of its task, for every chain whose task is ready; or for one chain."""
    condition = {} if chain_id is None else {"chain_id": chain_id}
    queries: dict[str, list[tuple[int, str]]] = {}
    for chain, position, query, needs in tx.rows(TaskStage, "chain_id", "position", "query", "interface", **condition):
        told = interface_of(parse_needs(needs), interface)
        queries.setdefault(chain, []).append((position, full_query(query or "", told)))
    proofs: dict[str, list[list[Any]]] = {}
    columns = ("chain_id", "position", "outcome", "files", "classes", "tampered")
    # The hash is of what is stored, letter by letter.
    stored = select(*as_stored(getattr(StageTests, name) for name in columns))
    if chain_id is not None:
        stored = stored.where(StageTests.chain_id == chain_id)
    for chain, *values in tx.connection.execute(stored):
        proofs.setdefault(chain, []).append(values)
    task_texts = {}
    for chain, overview in tx.rows(Task, "chain_id", "overview", outcome=READY, **condition):
        tests = sorted(proofs.get(chain, ()))
        proved = len(tests) == len(queries.get(chain, ())) and all(row[1] == PROVED for row in tests)
        texts = tuple(text for _, text in sorted(queries.get(chain, ())))
        task_texts[str(chain)] = TaskTexts(str(overview or ""), texts, digest(tests) if proved else None)
    return task_texts


def read_overview(tx: Transaction, chain_id: str) -> str | None:
    """The overview of a chain's task, ready or not; None where there is none."""
    return next((overview for (overview,) in tx.rows(Task, "overview", chain_id=chain_id)), None)


def read_task(tx: Transaction, chain_id: str, interface: Interface = "appended") -> RolloutTask:
    """The task of a chain. Raises `ChainGone`, `NoTask`."""
    chain = read_chain(tx, chain_id)
    task_row = next(iter(tx.rows(Task, "outcome", "overview", chain_id=chain_id)), None)
    if task_row is None or task_row[0] != READY or task_row[1] is None:
        problem = "has no task" if task_row is None else f"has a task that is not ready ({task_row[0]})"
        raise NoTask(f"chain {chain_id} {problem}; run `prchain tasks build`")
    queries = {row[0]: row[1:] for row in tx.rows(TaskStage, "position", "query", "interface", chain_id=chain_id)}
    proofs = {proof.position: proof for proof in read_stages(tx, chain_id)}
    runs = list(read_runs(tx, chain_id, side="before"))
    stages = []
    for stage in chain.stages:
        query, needs = queries.get(stage.position, (None, ()))
        if not query:
            raise NoTask(f"chain {chain_id} has no query for stage {stage.position}; run `prchain tasks build`")
        told = interface_of(parse_needs(needs), interface)
        proof = proofs.get(stage.position)
        tests = None if proof is None else _proved(proof, runs)
        stages.append(StageTask(stage, full_query(query, told), told, tests, None if proof is None else proof.outcome))
    return RolloutTask(chain, task_row[1], tuple(stages))


def _proved(proof: StageProof, runs: Sequence[StoredRun]) -> ProvedTests | None:
    if proof.outcome != PROVED:
        return None
    before = tuple(stored.run.statuses for stored in runs if stored.position == proof.position)
    return ProvedTests(proof.classes, proof.files, proof.baseline, before, proof.image)
