"""The exported grader: it grades what an agent left as we do, and is told nothing by the agent."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from environments.suites.outcomes import PASSED, ClassifiedTests, Grade, StateCheck, grade
from environments.suites.testlogs import Status
from prchain.core.errors import ExtractionFailed
from tests.trajectories.harborworld import BASE, LANDED, Files, StageWorld, lay, stage_world, tree_of
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.export import GRADER
from trajectories.export.tasks.harbor.inside import collect
from trajectories.export.tasks.harbor.inside.fingerprint import fingerprint
from trajectories.export.tasks.harbor.inside.grade import agents_tree, graded
from trajectories.export.tasks.harbor.inside.rewards import ctrf, rewards
from trajectories.export.tasks.harbor.inside.said import StageSaid
from trajectories.export.tasks.harbor.inside.work_tree import read_changes


@pytest.fixture
def world(tmp_path: Path) -> StageWorld:
    return stage_world(tmp_path)


def grade_of(world: StageWorld, archive: Path | None = None) -> Grade:
    tree = agents_tree(world.store, world.said, archive or world.folder / "no archive")
    return graded(world.store, world.said, tree, world.user)


def test_the_reference_passes_and_nothing_done_does_not(world: StageWorld) -> None:
    assert grade_of(world).outcome == "f2p_failed"
    shutil.rmtree(world.folder)
    lay(world.folder, {"area.py": LANDED["area.py"], "tests/__init__.py": "", ".gitignore": "*.log\n"})
    assert grade_of(world).outcome == PASSED


CHEATS: dict[str, Files] = {
    "a conftest": {"conftest.py": "import os\nos._exit(0)\n", "tests/conftest.py": "import os\nos._exit(0)\n"},
    "a sitecustomize": {"sitecustomize.py": "import unittest\nunittest.TestCase.run = lambda *a: None\n"},
    "changed settings": {"pytest.ini": "[pytest]\naddopts = --co\n", "setup.cfg": "[tool:pytest]\npython_files = x\n"},
    "the tests": {"tests/test_area.py": "import unittest\n"},
    "a package around the tests": {
        "tests/__init__.py": "import unittest\nunittest.TestCase.assertEqual = lambda *a: 1\n"
    },
    "a module of the runner's name": {"unittest.py": "raise SystemExit(0)\n", "pytest.py": "raise SystemExit(0)\n"},
    "an end": {"area.py": "import os\nos._exit(0)\n"},
    "what equals everything": {
        "area.py": "class A:\n    def __eq__(self, other): return True\n\n\ndef area(a, b):\n    return A()\n"
    },
}
"""By what is planted; the last one passes without canaries, which the world of this test has in no slot."""


@pytest.mark.parametrize("what", [name for name in CHEATS if name != "what equals everything"])
def test_what_an_agent_plants_in_the_tree_raises_no_reward(world: StageWorld, what: str) -> None:
    lay(world.folder, CHEATS[what])
    assert rewards(grade_of(world), ())["reward"] == 0.0


def test_what_equals_everything_is_caught_by_canaries(world: StageWorld) -> None:
    from dataclasses import replace

    slots = [f"tests/test_area.py:{number}" for number in range(1, 8)]
    world.said = replace(world.said, baseline=world.said.baseline.with_canaries(slots))
    lay(world.folder, CHEATS["what equals everything"])
    found = grade_of(world)
    assert found.outcome == "tampered" and rewards(found, ())["f2p"] == 0.0


def test_the_repositorys_own_settings_and_programs_do_not_count(world: StageWorld, tmp_path: Path) -> None:
    """A filter would turn the source into the reference's, and so would a git on PATH."""
    lay(world.folder, {".gitattributes": "*.py filter=x\n", ".git/config": '[filter "x"]\n\tclean = cat /etc/passwd\n'})
    assert agents_tree(world.store, world.said, tmp_path / "none") == tree_of(
        world.store, {**BASE, ".gitattributes": "*.py filter=x\n"}
    )
    assert grade_of(world).outcome == "f2p_failed"


def packed(world: StageWorld, agent: Path, place: Path) -> Path:
    """What `collect.py` packs of an agent's folder."""
    entries = world.store.entries(world.said.image_tree)
    listing = {path: (entry.mode, entry.blob) for path, entry in entries.items()}
    collect.pack(str(agent).encode(), listing, str(place))
    return place


def test_an_archive_carries_what_an_agent_changed(world: StageWorld, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    lay(agent, {**LANDED, "new/ä.txt": "x", "made.log": "junk", ".git/HEAD": "no"})
    (agent / ".gitignore").unlink()
    (agent / "link").symlink_to("area.py")
    tree = agents_tree(world.store, world.said, packed(world, agent, tmp_path / "work.tar"))
    shutil.rmtree(world.folder)
    shutil.copytree(agent, world.folder, symlinks=True)
    assert tree == agents_tree(world.store, world.said, tmp_path / "none")
    assert {b"link", "new/ä.txt".encode()} <= world.store.entries(tree).keys()
    assert not {b"made.log", b".gitignore"} & world.store.entries(tree).keys()


def test_an_archive_of_another_tree_does_not_count_in_the_agents_own_container(
    world: StageWorld, tmp_path: Path
) -> None:
    """Where tests run in the agent's container, its folder is not the image's any more."""
    other = tmp_path / "other"
    lay(other, LANDED)
    archive = packed(world, other, tmp_path / "work.tar")
    lay(world.folder, {"notes.txt": "mine"})
    assert grade_of(world, archive).outcome == "f2p_failed"


def test_a_damaged_archive_is_no_work(world: StageWorld, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    lay(agent, LANDED)
    whole = packed(world, agent, tmp_path / "work.tar").read_bytes()
    read_changes(io.BytesIO(whole))
    for broken in (whole.replace(b"abs(a * b)", b"abs(a + b)"), whole[:600], b"no archive"):
        with pytest.raises(ExtractionFailed):
            read_changes(io.BytesIO(broken))


def test_what_a_grader_is_told_comes_back_from_its_file(world: StageWorld, tmp_path: Path) -> None:
    place = tmp_path / "stage.json"
    place.write_text(world.said.text(), encoding="utf-8")
    assert StageSaid.read(place) == world.said


def test_other_programs_have_another_fingerprint(tmp_path: Path) -> None:
    lay(tmp_path, {"bin/python": "one", "lib/x.py": "x"})
    first = fingerprint([str(tmp_path)])
    lay(tmp_path, {"lib/__pycache__/x.cpython-311.pyc": "compiled"})
    compiled = fingerprint([str(tmp_path)])
    assert compiled["files"] == first["files"] and compiled["compiled"] != first["compiled"]
    lay(tmp_path, {"lib/sitecustomize.py": "import os"})
    assert fingerprint([str(tmp_path)])["files"] != first["files"]


def test_rewards_are_shares_and_nothing_is_believed_of_a_cheat() -> None:
    classes = ClassifiedTests(f2p=("a", "b"), p2p=("c", "d", "e"))
    statuses = {"a": Status.passed, "c": Status.passed, "d": Status.passed}
    found = grade(classes, StateCheck(), statuses, earlier_f2p=["c", "e"])
    assert rewards(found, ["c", "e"]) == {"reward": 0.0, "f2p": 0.5, "p2p": 1.0, "earlier": 0.5}
    report = json.loads(ctrf(found, "pytest", 1.0, 2.0))["results"]
    assert report["summary"] | {"passed": 3, "failed": 2, "tests": 5} == report["summary"]
    told = grade(classes, StateCheck(), dict.fromkeys("abcde", Status.passed), cheats=["x"])
    assert set(rewards(told, ()).values()) == {0.0}


def test_the_grader_is_one_file_that_needs_python_alone(tmp_path: Path) -> None:
    """Without site-packages; and where it could not run it writes no reward."""
    packed_grader = bundle(GRADER)
    assert packed_grader == bundle.__wrapped__(GRADER)
    grader = tmp_path / "grader.pyz"
    grader.write_bytes(packed_grader)
    names = zipfile.ZipFile(grader).namelist()
    assert not [name for name in names if name.startswith(("sql/", "chains/", "miner/", "docker", "pydantic"))]
    (tmp_path / "stage.json").write_text("{}", encoding="utf-8")
    script = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(grader), str(tmp_path), str(tmp_path / "none"), str(tmp_path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1 and b"KeyError" in done.stderr
    assert not (tmp_path / "reward.json").exists()
