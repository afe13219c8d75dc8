"""Names of canaries, beside those of the repository's other tests."""

from __future__ import annotations

from pathlib import Path

from environments.workplace import StageSuite
from tests.environments.stageworld import Changes, stage_world, test_file

INHERITED = {f"test_{first}_{second}" for first in ("sign", "load") for second in ("key", "bytes", "file")}


def test_no_canary_has_the_name_of_another_file_s_test_which_a_class_could_inherit(tmp_path: Path) -> None:
    """In the place of an inherited test a canary took that one out of the run: tests of itsdangerous were flaky."""
    bodies = {name.removeprefix("test_"): "self.fail()" for name in sorted(INHERITED)}
    start: Changes = {"tests/test_signer.py": test_file("cart", **bodies)}
    names = set()
    with stage_world(tmp_path, start=start, chains=((1,),)) as world:
        suite = StageSuite.of(world.workplace(), world.chain.stages[0], world.patches())
        assert suite.files == ("tests/test_prices.py",)
        for _ in range(15):
            names |= {it.name for it in suite.planted(suite.landed, None).canaries}
    assert names and not names & INHERITED
