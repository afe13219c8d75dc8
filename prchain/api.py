"""What a database of prchain holds, for programs: repositories, chains, tasks and samples as typed values.

    import prchain.api

    with prchain.api.open("data/prchain.db") as database:
        for sample in database.samples():
            print(sample.id, sample.trained)

It only reads: a database that a run is writing to can be opened at the same time. This module is stable; everything
else in the packages may change with any version. `docs/api.md` has an example.

This module is above the stages, as `prchain.cli` does, and loads them when it is called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from chains.tasks.record import TaskRecord
    from prchain.core.settings import Settings
    from sql.store import Store, Transaction
    from sql.strength import Strength
    from trajectories.export.samples import Sample

__all__ = [
    "Chain",
    "ChainStage",
    "Database",
    "Proof",
    "ProvedStage",
    "Repository",
    "StageVerdict",
    "Trajectory",
    "messages",
    "open",
]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that was mined."""

    name: str
    """``OWNER/NAME``"""
    host: str
    pull_requests: int
    landed: int
    """Pull requests that were merged into it, in whatever way."""


@dataclass(frozen=True, slots=True)
class ChainStage:
    """One stage of a chain: the work of one pull request."""

    position: int
    """1 is the first."""
    number: int
    """Of the pull request."""
    subject: str
    base_sha: str
    """B_t: the commit that the work begins on."""
    landed_sha: str
    """M_t: B_t with the reference patch."""
    landed_at: str
    """UTC, ISO 8601."""
    relation: str | None
    """To the stage before: why it follows; None for the first."""
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Chain:
    """Pull requests that build on each other, in the order in which they landed."""

    id: str
    repository: str
    score: float
    """The sum of the confidences of its links."""
    language: str | None
    licence: str | None
    """SPDX id at the last stage."""
    task: str | None
    """The outcome of its task, ``ready`` where an agent can be given it; None where no task was written."""
    stages: tuple[ChainStage, ...]


@dataclass(frozen=True, slots=True)
class ProvedStage:
    """What the proof of a stage came to."""

    position: int
    number: int
    outcome: str
    """``proved``, or why not: `docs/outcomes.md`."""
    reason: str | None
    f2p: tuple[str, ...]
    """Tests that fail before the reference patch and pass after it."""
    p2p: tuple[str, ...]
    """Tests that pass on both sides."""
    image: str | None
    worth: str | None
    """``not_measured``, ``import_only``, ``unknown``, ``weak`` or ``strong``; None where it is not proved."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What `prchain environments validate` found of a chain."""

    chain: str
    repository: str
    outcome: str
    reason: str | None
    backend: str
    stages: tuple[ProvedStage, ...]


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """The verdict on one attempt at a stage."""

    position: int
    attempt: int
    accepted: bool | None
    """None where it could not be decided."""
    score: float | None
    """The judge's."""
    tests: str | None
    """What the hidden tests said: `docs/outcomes.md`."""
    comment: str | None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An agent's run over a chain, with the verdicts on it; or one without a chain (outcome ``imported`` or
    ``recorded``)."""

    id: str
    chain: str | None
    """None of one of others."""
    repository: str | None
    """None of one of others that does not tell."""
    sample: int
    scaffold: str
    model: str
    outcome: str
    reason: str | None
    accepted: int
    """Stages."""
    steps: int
    tokens_in: int
    tokens_out: int
    usd: float | None
    """None where a price is not known."""
    verdicts: tuple[StageVerdict, ...]


class Database:
    """A database that is open for reading; a context manager that closes it. Made by `open`.

    An iterator sees one state of the database from its first item to its last.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()

    def repositories(self) -> Iterator[Repository]:
        """The repositories that were mined, by name. Raises `StoreError`."""
        from sql import tables

        with self._store.reading() as tx:
            rows = list(tx.rows(tables.Repository, "id", "owner", "name", "host"))
            for id_, owner, name, host in sorted(rows, key=lambda row: f"{row[1]}/{row[2]}".lower()):
                all_, landed = (
                    tx.count(tables.PullRequest, repository_id=id_, **of) for of in ({}, {"outcome": "landed"})
                )
                yield Repository(f"{owner}/{name}", host, all_, landed)

    def chains(self, *, strategy: str = "last", repository: str | None = None) -> Iterator[Chain]:
        """The chains that a strategy chooses, by repository and id.

        `strategy` is one of those of `prchain chains build`, or ``last`` for the one it was last run with; `repository`
        (``OWNER/NAME``) limits them to one repository. Raises `UsageError` for one that was not mined, `StoreError`.
        """
        from chains.chain_report import find_chains
        from sql import tables

        columns = ("position", "number", "subject", "base_sha", "landed_sha", "landed_at", "relation", "confidence")
        rows = find_chains(self._store, strategy, repository=repository)
        with self._store.reading() as tx:
            for row in sorted(rows, key=lambda row: (row.repository.lower(), row.id)):
                stages = tuple(ChainStage(*stage) for stage in tx.rows(tables.ChainStage, *columns, chain_id=row.id))
                yield Chain(
                    row.id,
                    row.repository,
                    row.score,
                    row.language or None,
                    row.licence,
                    row.task,
                    stages,
                )

    def tasks(self, *, strategy: str = "last", proved: bool = False) -> Iterator[TaskRecord]:
        """The tasks that are ready, of the chains that a strategy chooses: what `prchain tasks export` writes.

        `proved` takes those alone of which every stage has proved tests. Patches are read from the git repositories
        that were mined, so these must be there. Raises `GitError` where one is not, and `StoreError`.
        """
        from chains.tasks.export import TaskExportOptions, records

        found = records(self._store, self._settings.mirrors_dir, TaskExportOptions(strategy))
        return (task for task in found if not proved or all(stage.tests for stage in task.stages))

    def proofs(self, *, repository: str | None = None) -> Iterator[Proof]:
        """The proofs of all chains that were validated, by repository and id; `repository` (``OWNER/NAME``) limits
        them. Raises `UsageError` for one that was not mined, `StoreError`."""
        from sql import tables
        from sql.strength import read_strengths

        with self._store.reading() as tx:
            chains = self._repositories_of_chains(tx, repository)
            rows = {row[0]: row for row in tx.rows(tables.Validation, "chain_id", "outcome", "reason", "backend")}
            strengths = read_strengths(tx)
            for chain in sorted(rows.keys() & chains.keys(), key=lambda name: (chains[name].lower(), name)):
                stages = tuple(_proved_stages(tx, chain, strengths.get(chain, {})))
                _, outcome, reason, backend = rows[chain]
                yield Proof(chain, chains[chain], outcome, reason, backend, stages)

    def trajectories(
        self, *, outcomes: Collection[str] | None = None, repository: str | None = None, model: str | None = None
    ) -> Iterator[Trajectory]:
        """The trajectories by id, with their verdicts; filters as of `samples`, but None are all outcomes.

        Raises `UsageError` for a value that no trajectory has, and `StoreError`.
        """
        from sql import tables
        from trajectories.export.wanted import check_requested

        columns = (
            *("id", "chain_id", "sample", "scaffold", "model", "outcome", "reason", "accepted", "steps"),
            *("tokens_in", "tokens_out", "usd"),
        )
        names = ("position", "attempt", "accepted", "score", "tests", "comment")
        with self._store.reading() as tx:
            check_requested(tx, outcomes=frozenset(outcomes or ()), repository=repository, model=model)
            chains = self._repositories_of_chains(tx, repository)
            rows = {row[0]: dict(zip(columns, row, strict=True)) for row in tx.rows(tables.Trajectory, *columns)}
            told = {row[0]: row[1] for row in tx.rows(tables.ImportedTrajectory, "trajectory_id", "repository")}
            for id_, row in sorted(rows.items()):
                chain = row.pop("chain_id")
                of = chains.get(chain) if chain else told.get(id_)
                wanted = chain in chains if chain else repository in (None, of)
                if not wanted or (outcomes is not None and row["outcome"] not in outcomes):
                    continue
                if model in (None, row["model"]):
                    verdicts = tuple(StageVerdict(*one) for one in tx.rows(tables.Verdict, *names, trajectory_id=id_))
                    yield Trajectory(chain=chain, repository=of, verdicts=verdicts, **row)

    @staticmethod
    def _repositories_of_chains(tx: Transaction, repository: str | None) -> dict[str, str]:
        """Chain to the name of its repository, of one or of all."""
        from sql import tables
        from sql.chosen import repository_ids

        names = {id_: f"{owner}/{name}" for id_, owner, name in tx.rows(tables.Repository, "id", "owner", "name")}
        wanted = names.keys() if repository is None else repository_ids(tx, repository)
        return {chain: names[of] for chain, of in tx.rows(tables.Chain, "id", "repository_id") if of in wanted}

    def samples(
        self, *, outcomes: Collection[str] | None = None, repository: str | None = None, model: str | None = None
    ) -> Iterator[Sample]:
        """The samples that `prchain export` writes, before they are put into a format: scrubbed, without duplicates,
        each turn with whether it is under loss and why.

        `outcomes` of trajectories (None: those accepted whole or in part), `repository` and `model` filter the samples.
        Raises `UsageError` for a value that no trajectory has, and `StoreError`.
        """
        from trajectories.export.formats import chosen_format
        from trajectories.export.options import ExportOptions
        from trajectories.export.selection import SampleSelection
        from trajectories.export.wanted import check_requested
        from trajectories.outcomes import KEPT

        options = ExportOptions(frozenset(KEPT if outcomes is None else outcomes), repository, model)
        with self._store.reading() as tx:
            check_requested(tx, outcomes=options.outcomes, repository=repository, model=model)
            selection = SampleSelection(tx, chosen_format("openai", options), options, self._settings.secrets)
            for chosen in selection.samples():
                yield from (selected_sample.sample for selected_sample in chosen)


def _proved_stages(tx: Transaction, chain: str, strengths: Mapping[int, Strength | None]) -> Iterator[ProvedStage]:
    from sql import tables
    from sql.strength import Worth

    numbers = dict(map(tuple, tx.rows(tables.ChainStage, "position", "number", chain_id=chain)))
    columns = ("position", "outcome", "reason", "classes", "image")
    for position, outcome, reason, classes, image in tx.rows(tables.StageTests, *columns, chain_id=chain):
        f2p, p2p = (tuple(classes.get(kind, ())) for kind in ("f2p", "p2p"))
        strength = strengths.get(position)
        worth = str(strength.worth if strength else Worth.NOT_MEASURED) if position in strengths else None
        yield ProvedStage(position, numbers[position], outcome, reason, f2p, p2p, image, worth)


def messages(sample: Sample) -> dict[str, Any]:
    """A sample as trainers read it, in OpenAI's form: ``messages`` with ``weight`` 0 or 1 on an assistant's, ``tools``.
    The other forms, and what can be masked, are options of `prchain export`."""
    from trajectories.export.formats.openai import row

    return row(sample)


def open(database: str | Path | None = None, *, data_dir: str | Path | None = None) -> Database:
    """Open a database for reading: a SQLAlchemy URL or a SQLite file's path; None: the one of the settings.

    `data_dir` is where mirrors were put, as the setting of that name. What is not given is read as by the commands:
    from prchain.toml of the current folder, the environment, the defaults. Raises `SettingsError`, and `StoreError` for
    a database that is not there, is no database of prchain, or is of another version.
    """
    from prchain.core.settings import Settings
    from sql.store import Store

    url = None if database is None else str(database)
    settings = Settings.load(db=url, data_dir=None if data_dir is None else Path(data_dir))
    return Database(Store.open_for_reading(settings.db), settings)
