"""What is known of chains before anything is built for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.images.provide import Provider
from environments.proofs.foresight import NO_TEST_FILE, whole_patches
from environments.proofs.proof import UNPROVED
from environments.proofs.validations import ValidateRun, ValidationChoice
from prchain.core.console.progress import SILENT
from prchain.core.errors import IncompleteRepository
from prchain.core.git.repository import GitRepository
from tests.environments.stageworld import Changes, StageWorld, stage_world

NO_TESTS: dict[int, Changes] = {
    1: {"till/prices.py": "def halved(price):\n    return price // 2\n", "tests/data.txt": "4 2\n"}
}


class Told(type(SILENT)):  # type: ignore[misc]
    """A progress that keeps what its tasks end with."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def done(self, message: str = "") -> None:
        self.words.append(message)


def test_a_stage_without_a_test_file_ends_without_an_image_and_before_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def provide(*_: object, **__: object) -> None:
        raise AssertionError("an image was asked for")

    with stage_world(tmp_path, NO_TESTS, chains=[(3,), (1,)]) as world:
        monkeypatch.setattr(Provider, "provide", provide)
        told = Told()
        run = ValidateRun(world.store, world.prover(), ValidationChoice(), progress=told)
        assert [unit.chain_id for unit in run.sifted(run.pending()[0])] == [world.chain_ids[1], world.chain_ids[0]]
        assert told.words == [f"1 of 2 chains need no image: 1 {NO_TEST_FILE}"]
        assert world.prover().prove(world.chain_ids[1]).outcome == UNPROVED


def test_a_tree_whose_files_the_mirror_lacks_is_known_before_an_image_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage_world(tmp_path, chains=[(1,)]) as world:
        lacks(world, monkeypatch)
        with pytest.raises(IncompleteRepository, match="2 files are missing"):
            whole_patches(world.git(), world.trees(), world.chain.stages)
        assert world.prover().foreseen(world.chain_id) == "incomplete_repository"
        assert world.prover().prove(world.chain_id).outcome == "incomplete_repository"


@pytest.mark.parametrize("error", [RecursionError("deep"), UnicodeError("bad"), TypeError("5")])
def test_a_chain_whose_plan_meets_a_defect_is_left_to_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    with stage_world(tmp_path, chains=[(1,)]) as world:
        monkeypatch.setattr(Provider, "runner", fails)
        run = ValidateRun(world.store, world.prover(), ValidationChoice())
        assert [unit.chain_id for unit in run.sifted(run.pending()[0])] == [world.chain_id]


def lacks(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GitRepository, "missing", lambda self, objects: set(list(objects)[:2]))
