"""Failures that are tried again by themselves, for what they hung on is another now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from environments.images.image_settings import BuildSettings
from environments.images.provide import Provider
from environments.images.tried_again import hangs_on
from environments.proofs.proof_rows import ChainProof, StageProof, write_proof
from environments.proofs.validations import ValidateRun, ValidationChoice
from environments.report import BuildHelp, print_validations
from prchain.core.errors import BuildFailed
from sql.tables import BuiltImage, ReferenceRun
from tests.environments.stageworld import NAME, StageWorld, stage_world


@pytest.mark.parametrize(
    "change", [{"ca_bundle": b"x"}, {"base_image": "b"}, {"variables": {"A": "1"}}, {"timeout": 9}]
)
def test_a_build_hangs_on_its_settings_and_on_the_recipe(tmp_path: Path, change: dict[str, object]) -> None:
    settings = BuildSettings("a")
    known = hangs_on(settings, tmp_path, "o/n", "python")
    assert known == hangs_on(replace(settings, secrets=("x",)), tmp_path / "none", "o/n", "python")
    assert hangs_on(replace(settings, **change), tmp_path, "o/n", "python") != known  # type: ignore[arg-type]
    (tmp_path / "o--n.toml").write_text('extras = ["test"]')
    assert hangs_on(settings, tmp_path, "o/n", "python") != known


def pending(world: StageWorld, **options: float) -> int:
    return len(ValidateRun(world.store, world.prover(**options), ValidationChoice()).pending()[0])


def test_a_failed_build_is_tried_again_where_settings_or_recipe_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with stage_world(tmp_path, chains=[(1,)]) as world:
        provider, plan = world.provider(), world.workplace().provided.plan

        def fails(*_: object, **__: object) -> None:
            provider._record_failure(plan, failure, 0)
            raise failure

        failure = BuildFailed("the step x failed", step="x")
        monkeypatch.setattr(Provider, "provide", fails)
        run = ValidateRun(world.store, world.prover(), ValidationChoice())
        assert run.run().outcomes == {"build_failed": 1}
        assert world.rows(BuiltImage, "name") == [(plan.image,)] and world.stages()[0].image == plan.image
        assert pending(world) == 0
        print_validations(run.run(), BuildHelp(tmp_path, tmp_path, repaired=False))
        assert capsys.readouterr().out.splitlines()[0] == "nothing new to do; 1 done before (1 build_failed)"
        (tmp_path / "recipes" / f"{NAME.replace('/', '--')}.toml").write_text("rank = 2")
        assert pending(world) == 1


def test_tests_that_were_out_of_time_are_run_again_where_they_may_take_longer(tmp_path: Path) -> None:
    with stage_world(tmp_path, chains=[(1,)]) as world:
        stage = StageProof(1, "tests_unusable")
        row = {"chain_id": world.chain_id, "position": 1, "side": "after", "ordinal": 1, "key": "k", "statuses": {}}
        row |= {"timed_out": True, "complete": False, "notes": [], "tampered": [], "tail": "", "seconds": 9.95}
        with world.store.transaction() as tx:
            tx.upsert(ReferenceRun, [{**row, "ran_at": "2026-01-01T00:00:00Z"}])
            write_proof(tx, ChainProof(world.chain_id, "tests_unusable", "x", (stage,)), "local")
        assert [pending(world, test_timeout=seconds) for seconds in (5.0, 10.0, 20.0)] == [0, 0, 1]
