"""The proved stages of a database, ready to be graded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.proofs.proof_rows import StageProof, read_stages, validations
from environments.stages import Stage, open_git, open_trees, read_chain, stage_patches
from environments.workplace import StageSuite, Workplace
from prchain.core.settings import Settings
from sql.outcomes import PROVED
from sql.store import Store


@dataclass(frozen=True, slots=True)
class ProvedStage:
    """A stage with its proof and suite. `sources` are the Python files of its reference's source."""

    repository: str
    chain: str
    stage: Stage
    proof: StageProof
    suite: StageSuite
    sources: list[str]


def proved_stages(settings: Settings, only: str, timeout: float) -> Iterator[ProvedStage]:
    """Those of the chains whose ids begin with `only`, with `timeout` seconds for a run. Raises `PrchainError`."""
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        provider = resources.enter_context(closing(Provider(settings, store=store)))
        with store.reading() as tx:
            found = {name: it.backend for name, it in validations(tx).items()}
            proofs = {name: read_stages(tx, name) for name in found if name.startswith(only)}
        for name, proved in proofs.items():
            with store.reading() as tx:
                chain = read_chain(tx, name)
            git = open_git(chain, settings.mirrors_dir)
            trees = open_trees(chain, git, settings.data_dir)
            patches = tuple(stage_patches(git, trees, chain.stages))
            with BACKENDS.named(found[name]).of(settings).connected() as backend:
                for stage, proof in zip(chain.stages, proved, strict=True):
                    if proof.outcome != PROVED:
                        continue
                    provided = provider.provide(chain.repository, trees, git, stage)
                    workplace = Workplace(provided, trees, backend=backend, test_timeout=timeout)
                    suite = StageSuite.of(workplace, stage, patches, files=proof.files, baseline=proof.baseline)
                    sources = [path for path in patches[stage.position - 1].source if path.endswith(".py")]
                    yield ProvedStage(chain.repository, name, stage, proof, suite, sources)
