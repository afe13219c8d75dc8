"""The rig of strengths, on a database that was made by hand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from environments.proofs.proof_rows import ChainProof, StageProof, StoredRuns, write_proof
from environments.suites.testruns import TestRun
from research.strength.__main__ import main
from sql.outcomes import PROVED
from sql.store import Store
from sql.strength import Strength
from tests.environments.stageworld import stage_world


def test_the_rig_counts_worths_and_the_time_that_measuring_added(tmp_path: Path) -> None:
    file = tmp_path / "prchain.db"
    with closing(Store.open(str(file))):
        pass
    nothing = CliRunner().invoke(main, ["--db", str(file)])
    assert nothing.exit_code == 0 and "nothing is measured" in nothing.output
    with stage_world(tmp_path / "world", chains=[(1,)]) as world:
        proof = StageProof(1, PROVED, strength=Strength(0, hidden=("a",), seconds=6.0))
        with world.store.transaction() as tx:
            write_proof(tx, ChainProof(world.chain_id, PROVED, None, (proof,)), "local")
        stored = StoredRuns(world.store, world.chain_id, 1)
        for side, seconds in (("before", 1.0), ("after", 1.0), ("own", 3.0)):
            stored.keep(side, 1, "key", TestRun({}, "", seconds, 0))
        result = CliRunner().invoke(main, ["--db", str(world.store.url.database), "--each"])
    assert result.exit_code == 0, result.output
    assert "shop/till#1" in result.output and "import_only 100.0%" in result.output
    assert "median 1.50" in result.output and "proofs 3.00" in result.output
