"""The chain of two steps that CI lets Harbor's own oracle run: it has drift, and each step its own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prchain.core.git.trees import TreeStore
from research.harbor.small import WHICH, chain, environments
from tests.trajectories.harborbox import HarborBox
from tests.trajectories.harborworld import BASE, NEW_TEST
from tests.trajectories.test_harbor_folder import SCHEMA, configuration, faults
from trajectories.export.tasks.harbor.chain_image import ARCHIVES
from trajectories.export.tasks.harbor.folder import files_of


def test_the_chain_has_two_steps_with_drift_between_them(tmp_path: Path) -> None:
    trees = TreeStore.open(tmp_path / "own.git")
    files = files_of(chain(trees))
    assert list(faults(configuration(files), SCHEMA)) == []
    first, second = (json.loads(files[f"steps/{step}/tests/stage.json"]) for step in (1, 2))
    assert trees.tree_of(first["landed"]) != trees.tree_of(second["base"])
    assert "steps/2/workdir/setup.sh" in files and "steps/1/workdir/setup.sh" not in files
    assert first["classes"]["f2p"] != second["classes"]["f2p"] and second["earlier_f2p"] == [NEW_TEST]
    assert first["image_tree"] == second["image_tree"] == trees.tree_of(first["base"])


@pytest.mark.usefixtures("bubblewrap")
def test_its_oracle_gets_all_in_both_steps_and_what_is_not_done_less(tmp_path: Path) -> None:
    """As Harbor runs them, without Harbor: `.ci/run` has it where a Python 3.12 and Compose are there."""
    trees = TreeStore.open(tmp_path / "own.git")
    box = HarborBox(tmp_path, files_of(chain(trees)))
    image = box.lay_image(trees, BASE)
    for path, content in environments().items():
        place = image / path[1:]
        place.parent.mkdir(mode=0o700 if path.startswith(ARCHIVES) else 0o755, exist_ok=True)
        place.write_bytes(content)
    for rewards, said in box.oracle(["1", "2"], "oracle"):
        assert rewards == {"reward": 1.0, "f2p": 1.0, "p2p": 1.0, "earlier": 1.0}, said
    assert (tmp_path / "oracle" / WHICH[1:]).read_text() == "second\n", "the agent's container is switched, too"
    assert (tmp_path / "oracle-2" / WHICH[1:]).read_text() == "second\n"
    assert (tmp_path / "oracle-1" / WHICH[1:]).read_text() == "first\n"
    (skipped,) = box.oracle(["2"], "second alone")
    assert skipped.rewards is not None and skipped.rewards["reward"] == skipped.rewards["earlier"] == 0.0, skipped.said
