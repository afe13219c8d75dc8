"""The run that proves chains: several at once, each stored whole when it ends.

One run works on a database at a time: two would make the same test runs.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from environments.images.provide import Backend
from environments.proofs.proof import PROVED
from environments.proofs.proof_rows import ChainProof, forget, stage_images, validations
from environments.proofs.reference_runs import Tell
from environments.proofs.validate import ChainProver
from prchain.errors import (
    BudgetExceeded,
    EngineUnavailable,
    PrchainError,
    StoreError,
    UsageError,
)
from prchain.progress import Progress, Task
from prchain.scrub import scrub_mined
from sql.chosen import find_chain, selected_ids
from sql.lock import alone
from sql.store import Store

DEFECT = "defect"
"""A failure without a name: a defect of ours. It is told, and nothing is stored of the chain."""

_LONGEST_REASON = 500

_ENDS_ALL = (EngineUnavailable, BudgetExceeded)
"""After these every other chain would fail alike."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which chains a run is about, and how many at once."""

    strategy: str = "reference"
    repository: str | None = None
    limit: int | None = None
    chain: str | None = None
    """One chain, by the beginning of its id, whatever chose it."""
    workers: int = 1
    retry: bool = False
    """Begin anew with chains that ended with a failure."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A chain of which nothing is known: what ended the work on it is no fault of its own."""

    chain_id: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class ValidateReport:
    """What a run did."""

    proofs: tuple[ChainProof, ...]
    """Chains that ended, in the order in which they did."""
    standing: int
    """Chains that had ended before."""
    stopped: tuple[Stopped, ...]
    left: int
    """Chains that it did not get to."""

    @property
    def counts(self) -> dict[str, int]:
        """Outcome to number of chains, of this run."""
        return dict(sorted(Counter(one.outcome for one in self.proofs).items()))

    @property
    def done(self) -> bool:
        """Whether every chain has an outcome."""
        return not self.stopped and not self.left


class ValidateRun:
    """Proves the chains that were chosen and have no outcome for the backend yet.

    `images` are the names of the engine's images, which only a run with stage images looks at: a checkout that is gone
    is made again.
    """

    def __init__(
        self, store: Store, prover: ChainProver, *, backend: Backend, progress: Progress, choice: Choice,
        images: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._prover = prover
        self._backend = backend
        self._progress = progress
        self._choice = choice
        self._images = images
        self._stop = threading.Event()
        self._under_way = UnderWay()

    def run(self) -> ValidateReport:
        """Prove what is left. Raises `UsageError` for a wrong choice or recipe, `StoreInUse`, `StoreError`."""
        with alone(self._store, "validate", "prchain environments validate"):
            todo, standing = self._pending()
            shown = self._progress.task("chains", len(todo))
            proofs: list[ChainProof] = []
            stopped: list[Stopped] = []
            pool = ThreadPoolExecutor(max_workers=max(1, min(self._choice.workers, len(todo))))
            futures = [pool.submit(self._unless_stopped, chain_id, shown) for chain_id in todo]
            try:
                for future in as_completed(futures):
                    ended = future.result()
                    if isinstance(ended, ChainProof):
                        proofs.append(ended)
                    elif ended is not None:
                        stopped.append(ended)
                    if ended is not None:
                        shown.advance()
            finally:
                # Whoever interrupts, or a database that fails, need not wait for the tests under way.
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
            shown.done(f"{len(proofs):,} of {len(todo):,} ended")
        left = len(todo) - len(proofs) - len(stopped)
        return ValidateReport(tuple(proofs), standing, tuple(stopped), left)

    def _pending(self) -> tuple[list[str], int]:
        """The chains to prove, best first, and how many have ended; with `retry` those not proved begin anew."""
        choice = self._choice
        with self._store.reading() as tx:
            if choice.chain is not None:
                wanted = [find_chain(tx, choice.chain)]
            else:
                wanted = selected_ids(tx, choice.strategy, choice.repository, choice.limit)
            ended = validations(tx)
            checkouts = stage_images(tx) if self._images is not None else {}
        if choice.retry:
            failed = [one for one in wanted if one in ended and ended[one][0] != PROVED]
            with self._store.transaction() as tx:
                forget(tx, failed)
            ended = {one: value for one, value in ended.items() if one not in failed}
        stands = {
            one
            for one in wanted
            if one in ended
            and ended[one][1] == self._backend
            and all(image in (self._images or ()) for image in checkouts.get(one, ()))
        }
        return [one for one in wanted if one not in stands], len(stands)

    def _unless_stopped(self, chain_id: str, shown: Task) -> ChainProof | Stopped | None:
        """Prove a chain: the boundary at which a failure that shows on one chain is kept from ending all others."""
        if self._stop.is_set():
            return None
        tell = self._under_way.teller(chain_id, shown)
        try:
            return self._prover.prove(chain_id, tell)
        except _ENDS_ALL as error:
            self._stop.set()
            return Stopped(chain_id, error.name, str(error))
        except (UsageError, StoreError):
            raise
        except PrchainError as error:
            return Stopped(chain_id, error.name, scrub_mined(str(error)))
        except Exception as error:  # what has no name is a defect of ours: told, not hidden
            said = " ".join(traceback.format_exception_only(error)[-1].split())
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{scrub_mined(said)[:_LONGEST_REASON]} ({Path(place.filename).name}:{place.lineno})"
            return Stopped(chain_id, DEFECT, reason)
        finally:
            self._under_way.ended(chain_id, shown)


class UnderWay:
    """What is being done for each chain that is worked on, as one note: a chain that hangs stays in sight."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._lock = threading.Lock()

    def teller(self, chain_id: str, shown: Task) -> Tell:
        """Takes what is being done for a chain."""

        def tell(words: str) -> None:
            with self._lock:
                self._words[chain_id] = words
                self._show(shown)

        return tell

    def ended(self, chain_id: str, shown: Task) -> None:
        """Nothing more is being done for a chain."""
        with self._lock:
            self._words.pop(chain_id, None)
            self._show(shown)

    def _show(self, shown: Task) -> None:
        shown.update(note="; ".join(f"{chain_id}: {words}" for chain_id, words in self._words.items()))
