"""The run that proves chains: several at once, each stored whole when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from environments.backends import BACKENDS
from environments.images.images import list_images
from environments.images.provide import Provider
from environments.images.repair import PURPOSE
from environments.proofs.foresight import UNREADABLE
from environments.proofs.proof import UNPROVED
from environments.proofs.proof_rows import (
    ChainProof,
    StoredValidation,
    ended_too_soon,
    failed_builds,
    forget,
    read_proof,
    run_counts,
    stage_images,
    unmeasured,
    validations,
)
from environments.proofs.validate import MEASURED, ChainProver, ValidateOptions
from prchain.core.console.progress import SILENT, Progress
from prchain.core.console.terminal import counted, tally
from prchain.core.errors import PrchainError
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.chosen import ChainChoice, ChainUnit, find_chain, selected_ids
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.outcomes import PROVED
from sql.store import Store, Transaction


@dataclass(frozen=True)
class ValidationChoice(ChainChoice):
    """Which chains a run is about, and what it does with those that have ended. A chain that is named may have been
    chosen by any strategy."""

    retry: bool = False
    """Begin anew with chains that ended with a failure."""
    renew: bool = False
    """Prove all of them once more, with the current images and recipes. A test run that would be the same is not made
    again."""
    chain_ids: tuple[str, ...] | None = None
    """These chains, in this order, whatever chose them; None: by the other fields."""


@dataclass(frozen=True, slots=True)
class ProofUnit(ChainUnit):
    """The proof of one chain; `validated_at` is when it had ended before, None where it had not."""

    validated_at: str | None = None


@dataclass(frozen=True, slots=True)
class ValidateReport(RunResult[Any]):
    """What a run did; `detail` of a unit that ended is its `ChainProof`."""

    before: Mapping[str, int] = field(default_factory=dict)
    """Outcome to number of chains that had ended before."""

    @property
    def standing(self) -> int:
        """Chains that had ended before."""
        return sum(self.before.values())

    @property
    def good(self) -> int:
        """Chains of which no stage failed, now or before."""
        return sum(counts.get(name, 0) for counts in (self.outcomes, self.before) for name in (PROVED, UNPROVED))

    @property
    def proofs(self) -> tuple[ChainProof, ...]:
        """Of the chains that ended, in the order in which they did."""
        return tuple(result.detail for result in self.results if result.detail is not None)

    @property
    def failed(self) -> tuple[UnitResult[Any], ...]:
        """Chains without an outcome: what ended the work on them is not their fault."""
        return tuple(result for result in self.results if result.detail is None)

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome to number of chains that ended."""
        return dict(sorted(Counter(proof.outcome for proof in self.proofs).items()))

    @property
    def done(self) -> bool:
        """Whether every chain has an outcome."""
        return not self.failed and not self.left


@contextmanager
def open_run(
    settings: Settings,
    options: ValidateOptions,
    choice: ValidationChoice,
    *,
    repair: bool = False,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[ValidateRun]:
    """What a run, or a worker of one, needs. With `repair` a model mends recipes that do not build, for `budget_usd` at
    most; workers that are given the same `ledger_run` share it.

    Raises `UsageError`, `SettingsError`, `StoreError`, `EngineUnavailable`.
    """
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store.open(settings.db, create=False)))
        gateway: Gateway | None = None
        if repair:
            gateway = stack.enter_context(
                open_gateway(settings, store, (PURPOSE,), budget_usd=budget_usd, run=ledger_run)
            )
        images = BACKENDS.named(options.backend).needs_image
        provider = stack.enter_context(closing(Provider(settings, images=images, store=store, gateway=gateway)))
        provider.renew = choice.renew
        image_names = {image.name for image in list_images(provider.engine())} if options.stage_images else None
        prover = ChainProver(store, provider, settings, options)
        yield ValidateRun(store, prover, choice, progress=progress, images=image_names, secrets=settings.secrets)


class ValidateRun:
    """Proves the chains that were chosen and have no outcome for the backend yet (`prchain.core.runs.Work`).

    A chain that was proved with fewer runs a side than are requested now gets the missing ones. `images` are the
    names of the engine's images, which only a run with stage images looks at: a checkout that is gone is made again.
    """

    title = "chains"

    def __init__(
        self,
        store: Store,
        prover: ChainProver,
        choice: ValidationChoice,
        *,
        progress: Progress = SILENT,
        images: Collection[str] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.prover = prover
        self._store = store
        self._choice = choice
        self._progress = progress
        self._images = images
        self._secrets = secrets

    def pending(self) -> tuple[list[ProofUnit], dict[str, int]]:
        """The chains to prove, best first, and the outcomes of those that have ended. Raises `UsageError`."""
        choice = self._choice
        with self._store.reading() as tx:
            if choice.chain_ids is not None:
                chain_ids = list(choice.chain_ids)
            elif choice.chain is not None:
                chain_ids = [find_chain(tx, choice.chain)]
            else:
                chain_ids = selected_ids(tx, choice.strategy, choice.repository, choice.limit)
            ended = validations(tx)
            standing = self._standing(tx, ended) - self._unmeasured(tx, ended)
        pending_ids = set(chain_ids) if choice.renew else set(chain_ids) - standing
        if choice.retry:
            pending_ids |= {
                chain_id for chain_id in chain_ids if chain_id in ended and ended[chain_id].outcome != PROVED
            }
        units = [
            ProofUnit(chain_id, ended[chain_id].validated_at if chain_id in ended else None)
            for chain_id in chain_ids
            if chain_id in pending_ids
        ]
        before = Counter(ended[chain_id].outcome for chain_id in chain_ids if chain_id not in pending_ids)
        return units, dict(sorted(before.items()))

    def run(self, workers: int = 1) -> ValidateReport:
        """Prove what is left. Raises as `prchain.core.runs.run_units`."""
        units, before = self.pending()
        ended = run_units(
            self,
            self.sifted(units) if units else units,
            workers=workers,
            progress=self._progress,
            secrets=self._secrets,
        )
        return ValidateReport(ended.results, ended.left, ended.stopped, before)

    def sifted(self, units: list[ProofUnit]) -> list[ProofUnit]:
        """The units in order, after those for which nothing need be built, of which it tells how many and why."""
        task = self._progress.task("looking at what git tells of chains", len(units))
        told: dict[str, str] = {}
        for unit in units:
            with suppress(PrchainError, *UNREADABLE):  # the unit itself ends with it
                if words := self.prover.foreseen(unit.chain_id):
                    told[unit.chain_id] = words
            task.advance()
        why = f": {tally(dict(sorted(Counter(told.values()).items())))}" if told else ""
        task.done(f"{len(told):,} of {counted(len(units), 'chain')} need no image{why}")
        return sorted(units, key=lambda unit: unit.chain_id not in told)

    def holding(self, unit: ProofUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self._store, f"proof-{unit.chain_id}", "prchain environments validate")

    def work_on(self, unit: ProofUnit, tell: Tell) -> UnitResult[ProofUnit]:
        """See `Work`."""
        with self._store.reading() as tx:
            ended = validations(tx, unit.chain_id)
            current = ended.get(unit.chain_id)
            stands = unit.chain_id in self._standing(tx, ended)
            is_unmeasured = unit.chain_id in self._unmeasured(tx, ended)
            if current is not None and current.validated_at != unit.validated_at and stands and not is_unmeasured:
                proof = read_proof(tx, unit.chain_id)
                return UnitResult(unit, proof.outcome, "another run has ended it meanwhile", proof)
        again = self._choice.renew or (self._choice.retry and current is not None and current.outcome != PROVED)
        if stands and is_unmeasured and not again:
            proof = self.prover.measure(unit.chain_id, tell)
            return UnitResult(unit, proof.outcome, proof.reason, proof)
        if self._choice.retry and current is not None and current.outcome != PROVED:
            with self._store.transaction() as tx:
                forget(tx, [unit.chain_id])
        proof = self.prover.prove(unit.chain_id, tell, anew=self._choice.renew)
        return UnitResult(unit, proof.outcome, proof.reason, proof)

    def failed(self, unit: ProofUnit, outcome: str, reason: str) -> UnitResult[ProofUnit]:
        """See `Work`; nothing is stored of the chain but the test runs that were made."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`: what repairs cost."""
        return self.prover.provider.spending()

    def _standing(self, tx: Transaction, ended: dict[str, StoredValidation]) -> set[str]:
        """The chains whose stored outcome this run would find again: those that hung on another time limit, or on other
        settings or recipes of builds, are not."""
        options, provider = self.prover.options, self.prover.provider
        again = ended_too_soon(tx, options.test_timeout)
        for chain_id, (repository, recipe, hung_on) in failed_builds(tx).items():
            if hung_on != provider.hangs_on(repository, recipe):
                again.add(chain_id)
        checkouts = stage_images(tx) if self._images is not None else {}
        counts = run_counts(tx)
        return {
            chain_id
            for chain_id, validation in ended.items()
            if validation.backend == options.backend
            and (validation.outcome == PROVED or chain_id not in again)
            and (validation.outcome != PROVED or counts.get(chain_id, options.runs) >= options.runs)
            and all(image in (self._images or ()) for image in checkouts.get(chain_id, ()))
        }

    def _unmeasured(self, tx: Transaction, ended: dict[str, StoredValidation]) -> set[str]:
        """The chains whose proofs this run is to measure."""
        if not self.prover.options.strength:
            return set()
        return {chain_id for chain_id in unmeasured(tx) if chain_id in ended and ended[chain_id].outcome in MEASURED}
