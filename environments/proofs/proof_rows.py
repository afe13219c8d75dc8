"""Validations in the database: what is stored of test runs, stages and chains, and what is left to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, delete, select, update

from environments.images.stage_image import BUILT
from environments.proofs.proof import TESTS_UNUSABLE
from environments.proofs.published import PublishedLists
from environments.suites.baseline import RunnerBaseline
from environments.suites.outcomes import ClassifiedTests
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import BuildFailed, ChainGone
from prchain.core.timestamps import now
from sql.outcomes import PROVED
from sql.store import Store, Transaction
from sql.strength import Strength
from sql.tables import BuiltImage, Chain, ReferenceRun, StageTests, Validation

_RUN = (
    "position",
    "side",
    "ordinal",
    "key",
    "statuses",
    "exit_code",
    "timed_out",
    "complete",
    "infra",
    "notes",
    "tampered",
    "baseline",
    "tail",
    "seconds",
)
_STAGE = (
    "position",
    "outcome",
    "reason",
    "image",
    "recipe",
    "runner",
    "command",
    "files",
    "classes",
    "removed",
    "tampered",
    "baseline",
    "stage_image",
    "strength",
    "seconds",
)


_NEARLY = 0.99
"""Of a time limit: what took so much of it had all of it."""
BUILD_FAILED = BuildFailed("").name


@dataclass(frozen=True, slots=True)
class StageProof:
    """A row of `sql.tables.StageTests`, as values."""

    position: int
    outcome: str
    reason: str | None = None
    image: str | None = None
    recipe: str | None = None
    runner: str | None = None
    command: str | None = None
    files: tuple[str, ...] = ()
    classes: ClassifiedTests = field(default_factory=ClassifiedTests)
    removed: tuple[str, ...] = ()
    baseline: RunnerBaseline = field(default_factory=RunnerBaseline)
    stage_image: str | None = None
    strength: Strength | None = None
    """What the proof is worth; None where nobody has measured it."""
    seconds: float = 0.0
    publisher: str = ""
    """What became of the image that its publisher names, in this run; no row holds it."""
    neighbour: str = ""
    """In words, where its image was built for a neighbour, in this run; no row holds it."""
    tail: str = ""
    """The end of the log of the run on M_t that decided, in this run; no row of a stage holds it."""


@dataclass(frozen=True, slots=True)
class ChainProof:
    """How a chain ended, with its stages in order."""

    chain_id: str
    outcome: str
    reason: str | None = None
    stages: tuple[StageProof, ...] = ()
    seconds: float = 0.0
    published: PublishedLists | None = None
    """Of a proved import: where its publisher's lists differ."""


@dataclass(frozen=True, slots=True)
class StoredValidation:
    """A row of `sql.tables.Validation`: how a chain's validation ended, where, and when."""

    chain_id: str
    outcome: str
    reason: str | None
    backend: str
    seconds: float
    validated_at: str


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A row of `sql.tables.ReferenceRun`."""

    position: int
    side: str
    ordinal: int
    key: str
    run: TestRun


def validations(tx: Transaction, chain_id: str | None = None) -> dict[str, StoredValidation]:
    """Every chain that was validated; or one of them."""
    filters = {} if chain_id is None else {"chain_id": chain_id}
    return {found.chain_id: found for found in tx.read(StoredValidation, Validation, **filters)}


def failed_builds(tx: Transaction) -> dict[str, tuple[str, str, str]]:
    """Chain to the repository, the recipe and what else (`environments.images.tried_again`) the build hung on that
    ended it; without those of which it is not known."""
    columns = (StageTests.chain_id, BuiltImage.repository, BuiltImage.recipe, BuiltImage.reason)
    query = select(*columns).join(BuiltImage, BuiltImage.name == StageTests.image)
    found: dict[str, tuple[str, str, str]] = {}
    for chain, repository, recipe, reason in tx.connection.execute(query.where(BuiltImage.outcome == BUILD_FAILED)):
        if isinstance(reason, Mapping) and reason.get("hangs_on"):
            found[chain] = (repository, recipe, reason["hangs_on"])
    return found


def ended_too_soon(tx: Transaction, timeout: float) -> set[str]:
    """The chains of which a stage's tests were out of time in less than `timeout` seconds."""
    query = (
        select(ReferenceRun.chain_id)
        .join(
            StageTests,
            and_(StageTests.chain_id == ReferenceRun.chain_id, StageTests.position == ReferenceRun.position),
        )
        .where(
            StageTests.outcome == TESTS_UNUSABLE,
            ReferenceRun.timed_out.is_(True),
            ReferenceRun.seconds < _NEARLY * timeout,
        )
    )
    return set(tx.connection.execute(query).scalars())


def run_counts(tx: Transaction) -> dict[str, int]:
    """Chain to the smallest number of runs a side that a proved stage of it has, of those that have any."""
    keys: dict[tuple[str, int], list[str]] = {}
    columns = (ReferenceRun.chain_id, ReferenceRun.position, ReferenceRun.key)
    query = (
        select(*columns)
        .join(
            StageTests,
            and_(StageTests.chain_id == ReferenceRun.chain_id, StageTests.position == ReferenceRun.position),
        )
        .where(ReferenceRun.side == "before", StageTests.outcome == PROVED)
        .order_by(ReferenceRun.ordinal)
    )
    for chain, position, key in tx.connection.execute(query):
        keys.setdefault((str(chain), int(position)), []).append(str(key))
    found: dict[str, int] = {}
    for (chain, _), stored in keys.items():
        # Runs under another key than the first are left over from another image or another set of files.
        found[chain] = min(found.get(chain, len(stored)), stored.count(stored[0]))
    return found


def stage_images(tx: Transaction) -> dict[str, list[str | None]]:
    """Chain to the stage images of its proved stages; None where there is none."""
    found: dict[str, list[str | None]] = {}
    for chain_id, image in tx.rows(StageTests, "chain_id", "stage_image", outcome=PROVED):
        found.setdefault(str(chain_id), []).append(image)
    return found


def needed_images(tx: Transaction) -> set[str]:
    """Every image that a validated stage runs its tests in, and every image of a stage's checkout."""
    return {str(name) for row in tx.rows(StageTests, "image", "stage_image") for name in row if name}


def own_images(tx: Transaction) -> set[str]:
    """Every image that this database knows: those that were built or looked for, and those of stages."""
    return needed_images(tx) | {str(name) for (name,) in tx.rows(BuiltImage, "name")}


def write_stage_image(tx: Transaction, name: str, repository: str, recipe: str, seconds: float) -> None:
    """Note that the image of a stage's checkout is this database's; the stage's own row goes with its chain."""
    row: dict[str, Any] = {
        "name": name,
        "repository": repository,
        "recipe": recipe,
        "outcome": BUILT,
        "reason": None,
        "notes": [],
        "as_of": None,
        "size_bytes": None,
        "seconds": seconds,
        "repairs": 0,
        "built_at": now(),
    }
    tx.upsert(BuiltImage, [row])


def forget_images(tx: Transaction, names: Collection[str]) -> None:
    """Remove the rows of images that are gone."""
    for name in names:
        tx.delete(BuiltImage, name=name)


def forget(tx: Transaction, chain_ids: Collection[str]) -> None:
    """Remove what was found of chains, so that they are validated from the beginning."""
    for chain_id in chain_ids:
        for table in (Validation, StageTests, ReferenceRun):
            tx.delete(table, chain_id=chain_id)


def read_stages(tx: Transaction, chain_id: str) -> tuple[StageProof, ...]:
    """What is known of each stage's tests, in order; empty for a chain that was not validated."""
    return tuple(_stage(row) for row in tx.rows(StageTests, *_STAGE, chain_id=chain_id))


def read_proof(tx: Transaction, chain_id: str) -> ChainProof:
    """The proof of a chain that was validated, as it is stored."""
    [found] = tx.read(StoredValidation, Validation, chain_id=chain_id)
    return ChainProof(chain_id, found.outcome, found.reason, read_stages(tx, chain_id), found.seconds)


def read_runs(tx: Transaction, chain_id: str, **equals: Any) -> Iterator[StoredRun]:
    """The stored runs of a chain, by stage, side and ordinal; `equals` are columns with a value."""
    for row in tx.rows(ReferenceRun, *_RUN, chain_id=chain_id, **equals):
        yield _run(dict(zip(_RUN, row, strict=True)))


def _stage(row: Sequence[Any]) -> StageProof:
    known = dict(zip(_STAGE, row, strict=True))
    for name in ("files", "removed"):
        known[name] = tuple(known[name])
    known["baseline"] = RunnerBaseline.from_row(known.pop("tampered"), known["baseline"])
    known["strength"] = Strength.from_row(known["strength"]) if known["strength"] else None
    classes = {name: tuple(tests) for name, tests in known["classes"].items()}
    return StageProof(**{**known, "classes": ClassifiedTests(**classes)})


def write_proof(tx: Transaction, proof: ChainProof, backend: str) -> None:
    """Write a chain's validation with its stages in the place of what was there. Raises `ChainGone`."""
    require_chain(tx, proof.chain_id)
    row = {
        "chain_id": proof.chain_id,
        "outcome": proof.outcome,
        "reason": proof.reason,
        "backend": backend,
        "seconds": proof.seconds,
        "validated_at": now(),
    }
    tx.upsert(Validation, [row])
    tx.connection.execute(delete(StageTests).where(StageTests.chain_id == proof.chain_id))
    if proof.stages:
        tx.upsert(StageTests, _stage_rows(proof))


def _stage_rows(proof: ChainProof) -> Iterator[dict[str, Any]]:
    for stage in proof.stages:
        yield {
            **{name: getattr(stage, name) for name in _STAGE if name != "tampered"},
            "chain_id": proof.chain_id,
            "files": stage.files,
            "classes": dataclasses.asdict(stage.classes),
            "removed": stage.removed,
            "tampered": stage.baseline.replaced,
            "baseline": stage.baseline.row(),
            "strength": stage.strength.row() if stage.strength else None,
        }


def write_strength(tx: Transaction, chain_id: str, position: int, strength: Strength) -> None:
    """Write what the proof of one stage is worth, and nothing else of it."""
    where = (StageTests.chain_id == chain_id, StageTests.position == position)
    tx.connection.execute(update(StageTests).where(*where).values(strength=strength.row()))


def unmeasured(tx: Transaction) -> set[str]:
    """The chains with a proved stage whose strength nobody has measured."""
    return {str(chain) for (chain,) in tx.rows(StageTests, "chain_id", outcome=PROVED, strength=None)}


def require_chain(tx: Transaction, chain_id: str) -> None:
    """Make sure, in the transaction that writes of a chain, that it is still there. Raises `ChainGone`."""
    if tx.connection.execute(select(Chain.id).where(Chain.id == chain_id).with_for_update(read=True)).first() is None:
        raise ChainGone("`prchain chains build` chose anew, and the chain is gone")


class StoredRuns:
    """The runs of one stage that are in the database: read by key, and written as each one ends."""

    def __init__(self, store: Store, chain_id: str, position: int) -> None:
        self._store = store
        self._chain_id = chain_id
        self._position = position

    def find(self, side: str, ordinal: int, key: str) -> TestRun | None:
        """The stored run, where it is of this key."""
        with self._store.reading() as tx:
            found = next(read_runs(tx, self._chain_id, position=self._position, side=side, ordinal=ordinal), None)
        return found.run if found and found.key == key else None

    def all(self, side: str) -> list[TestRun]:
        """All stored runs of a side, in order. On B_t, those under another key than the first are of another day."""
        with self._store.reading() as tx:
            found = list(read_runs(tx, self._chain_id, position=self._position, side=side))
        return [stored.run for stored in found if side != "before" or stored.key == found[0].key]

    def keep(self, side: str, ordinal: int, key: str, run: TestRun) -> None:
        """Store a run in the place of one of another key. Raises `ChainGone`."""
        row = {
            "chain_id": self._chain_id,
            "position": self._position,
            "side": side,
            "ordinal": ordinal,
            "key": key,
            "statuses": run.statuses,
            "exit_code": run.exit_code,
            "timed_out": run.timed_out,
            "complete": run.complete,
            "infra": run.infra,
            "notes": run.notes,
            "tampered": run.observed.replaced,
            "baseline": run.observed.row(),
            "tail": run.tail.replace("\0", " "),  # which PostgreSQL takes in no text
            "seconds": run.seconds,
            "ran_at": now(),
        }
        with self._store.transaction() as tx:
            require_chain(tx, self._chain_id)
            tx.upsert(ReferenceRun, [row])


def _run(known: dict[str, Any]) -> StoredRun:
    place = {name: known.pop(name) for name in ("position", "side", "ordinal", "key")}
    known["statuses"] = {test: Status(status) for test, status in known["statuses"].items()}
    known["notes"] = tuple(known["notes"])
    known["observed"] = RunnerBaseline.from_row(known.pop("tampered"), known.pop("baseline"))
    return StoredRun(**place, run=TestRun(**known))
