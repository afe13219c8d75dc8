"""A small repository with three pull requests that build on each other, mined, with tests for the host's unittest.

The chains are those of `CHAIN`; what each pull request changes can be replaced, so that a test makes the failure that
it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.proofs.proof_rows import StageProof, read_stages
from environments.proofs.validate import ChainProver, ValidateOptions
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import SandboxConfig
from environments.stages import ChainStages, StagePatch, open_git, open_trees, read_chain, stage_patches
from environments.suites.runners import unittest
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import EngineUnavailable, SandboxLost
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.settings import Settings
from sql.store import Store
from sql.tables import Base, Chain, ChainStage, Landing, Repository, Selection
from tests.miner.gitworld import Content, World
from tests.miner.minedworld import mined_store

NAME = "shop/till"
CHAIN = (1, 2, 3)

RECIPE = """\
name = "plain"
language = "shell"
rank = 1
detects = ["till/*.py"]
manifests = ["deps.txt"]
runner = "unittest"
refresh = ["mkdir -p made; echo fresh > made/by-refresh; echo version > 'a [b]*'"]
"""

Changes = dict[str | bytes, Content]


def test_file(module: str, **bodies: str) -> str:
    """The text of a test file with one method for each body; ``this`` in a body is the module."""
    methods = "".join(f"    def test_{name}(self):\n        {body}\n" for name, body in bodies.items())
    return f"import unittest\n\nfrom till import {module} as this\n\n\nclass Case(unittest.TestCase):\n{methods}"


test_file.__test__ = False  # type: ignore[attr-defined]

START: Changes = {
    "README.md": "# till\n",
    "deps.txt": "none\n",
    "till/__init__.py": "",
    "till/cart.py": "def total(items):\n    return sum(items)\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": test_file("cart", empty="self.assertEqual(this.total([]), 0)"),
}
PRICES = "def halved(amount):\n    return amount / 2\n"
CHANGES: dict[int, Changes] = {
    1: {
        "till/prices.py": PRICES,
        "tests/test_prices.py": test_file("prices", halved="self.assertEqual(this.halved(4), 2)"),
    },
    2: {
        "till/cart.py": "from till.prices import halved\n\n\ndef total(items, sale=False):\n"
        "    return halved(sum(items)) if sale else sum(items)\n",
        "tests/test_cart.py": test_file(
            "cart",
            empty="self.assertEqual(this.total([]), 0)",
            sale="self.assertEqual(this.total([2, 4], sale=True), 3)",
        ),
    },
    3: {
        "till/receipt.py": "from till.cart import total\n\n\ndef line(items):\n    return f'{total(items)}'\n",
        "tests/test_receipt.py": test_file("receipt", line="self.assertEqual(this.line([1, 2]), '3')"),
    },
}


def try_no_duels(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Have proofs try no duels, as where nobody knows how to make the tests of a runner false, or
    to mask them: these are five runs a stage, beside the two that a proof needs."""
    set_attribute(unittest, "RUNNER", replace(unittest.RUNNER, falsify=None, mask=None))


def bubblewrap_works() -> bool:
    """Whether bubblewrap can make namespaces here."""
    try:
        with LocalSandbox(SandboxConfig(None)) as sandbox:
            return sandbox.exec("true").exit_code == 0
    except (EngineUnavailable, SandboxLost):
        return False


@dataclass
class StageWorld:
    """The repository in a database, with a chain."""

    folder: Path
    store: Store
    world: World
    chain_ids: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return Settings(
            db=str(self.store.url.database),
            data_dir=self.folder / "data",
            environments_recipes_dir=self.folder / "recipes",
        )

    @property
    def chain_id(self) -> str:
        return self.chain_ids[0]

    @property
    def chain(self) -> ChainStages:
        with self.store.reading() as tx:
            return read_chain(tx, self.chain_id)

    def rows(self, table: type[Base], *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns, **equals)]

    def stages(self, chain_id: str | None = None) -> tuple[StageProof, ...]:
        with self.store.reading() as tx:
            return read_stages(tx, chain_id or self.chain_id)

    def git(self) -> GitRepository:
        return open_git(self.chain, self.settings.mirrors_dir)

    def trees(self) -> TreeStore:
        return open_trees(self.chain, self.git(), self.settings.data_dir)

    def patches(self) -> tuple[StagePatch, ...]:
        return tuple(stage_patches(self.git(), self.trees(), self.chain.stages))

    def provider(self, backend: str = "local") -> Provider:
        return Provider(self.settings, images=BACKENDS[backend].needs_image, store=self.store)

    def workplace(self, position: int = 1, backend: str = "local", **fields: Any) -> Workplace:
        stage, trees = self.chain.stages[position - 1], self.trees()
        provided = self.provider(backend).provide(NAME, trees, self.git(), stage)
        return Workplace(provided, trees, backend=BACKENDS[backend], test_timeout=60, **fields)

    def suite(self, position: int = 1) -> StageSuite:
        """The suite of a stage that was proved."""
        stage, proof = self.chain.stages[position - 1], self.stages()[position - 1]
        workplace = self.workplace(position)
        return StageSuite.of(workplace, stage, self.patches(), files=proof.files, baseline=proof.baseline)

    def prover(self, **options: Any) -> ChainProver:
        values: dict[str, Any] = {"backend": "local", "runs": 2, "test_timeout": 60.0, **options}
        return ChainProver(self.store, self.provider(values["backend"]), self.settings, ValidateOptions(**values))

    def add_chain(self, numbers: Sequence[int], *, strategy: str = "reference", score: float = 1.0) -> str:
        """Write the rows of a chain, as `prchain chains build` does, and return its id."""
        columns = ("number", "branch", "base_sha", "landed_sha", "landed_at", "subject")
        landed = {row[0]: row for row in self.rows(Landing, *columns)}
        repository_id = int(self.rows(Repository, "id")[0][0])
        id_ = f"{len(self.chain_ids):x}{''.join(map(str, numbers))}".ljust(16, "0")
        stages = [
            {
                **dict(zip(columns, landed[number], strict=True)),
                "chain_id": id_,
                "position": place,
                "repository_id": repository_id,
                "source_files": 1,
                "source_lines": 2,
                "test_files": 1,
                "test_lines": 2,
                "relation": None,
                "confidence": None,
                "signs": None,
            }
            for place, number in enumerate(numbers, 1)
        ]
        with self.store.transaction() as tx:
            tx.upsert(
                Chain,
                [
                    {
                        "id": id_,
                        "repository_id": repository_id,
                        "length": len(numbers),
                        "licence": "MIT",
                        "language": "python",
                    }
                ],
            )
            tx.upsert(ChainStage, stages)
            tx.upsert(
                Selection,
                [
                    {
                        "strategy": strategy,
                        "chain_id": id_,
                        "score": score,
                        "outcome": "selected",
                        "reason": None,
                        "selected_at": "2026-01-01T00:00:00Z",
                    }
                ],
            )
        self.chain_ids.append(id_)
        return id_


@contextmanager
def stage_world(
    folder: Path,
    changes: Mapping[int, Changes] | None = None,
    *,
    start: Changes | None = None,
    between: Mapping[int, Changes] | None = None,
    recipe: str = RECIPE,
    chains: Sequence[Sequence[int]] = (CHAIN,),
    duels: bool = False,
) -> Iterator[StageWorld]:
    """The world with these chains. `changes` replace what a pull request changes, `start` adds to the first commit, and
    `between` is pushed right before a pull request is opened. Without `duels` proofs try none (`try_no_duels`)."""
    world = World(folder / "till.git")
    world.commit("main", {**START, **(start or {})}, "start")
    for number in CHAIN:
        if between and number in between:
            world.commit("main", between[number], f"push {number}")
        head = world.propose(number, {**CHANGES, **(changes or {})}[number])
        world.squash("main", head, f"Work {number} (#{number})\n\nFollow-up to #{number - 1}.")
    world.save()
    (folder / "recipes").mkdir()
    (folder / "recipes" / "plain.toml").write_text(recipe)
    store = mined_store(folder, world, NAME)
    chain_world = StageWorld(folder, store, world)
    for numbers in chains:
        chain_world.add_chain(numbers)
    with pytest.MonkeyPatch.context() as patch, closing(store):
        if not duels:
            try_no_duels(patch.setattr)
        yield chain_world
