"""The exported grader: it grades what an agent left as we do, and is told nothing by the agent."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from environments.suites.outcomes import PASSED, ClassifiedTests, Grade, StateCheck, grade
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import ExtractionFailed, ImageError, SandboxLost
from tests.trajectories.harborworld import (
    BASE,
    LANDED,
    NEW_TEST,
    OLD_TEST,
    Files,
    StageWorld,
    lay,
    stage_world,
    tree_of,
)
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.export import GRADER
from trajectories.export.tasks.harbor.inside import collect
from trajectories.export.tasks.harbor.inside.fingerprint import fingerprint
from trajectories.export.tasks.harbor.inside.grade import agents_tree, grade_alone, grade_of_work, graded
from trajectories.export.tasks.harbor.inside.rewards import ctrf, rewards
from trajectories.export.tasks.harbor.inside.said import OBJECTS, StageSaid
from trajectories.export.tasks.harbor.inside.work_tree import read_changes
from trajectories.export.tasks.harbor.objects import graders_pack


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


@pytest.mark.drawn(4)
@pytest.mark.parametrize("what", [name for name in CHEATS if name != "what equals everything"])
def test_what_an_agent_plants_in_the_tree_raises_no_reward(world: StageWorld, what: str) -> None:
    lay(world.folder, CHEATS[what])
    assert rewards(grade_of(world), ())["reward"] == 0.0


def test_what_equals_everything_is_caught_by_canaries(world: StageWorld) -> None:
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


def test_with_an_archive_a_changed_image_is_a_wrong_one_and_no_cheat(world: StageWorld, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    lay(agent, LANDED)
    archive = packed(world, agent, tmp_path / "work.tar")
    place = with_pack(world, tmp_path)
    other = replace(world.said, fingerprint={"files": "another", "compiled": "another"})
    with pytest.raises(ImageError, match="programs"):
        grade_of_work(place, archive, other, world.user)
    assert grade_of_work(place, tmp_path / "none", other, world.user).outcome == "tampered"
    lay(world.folder, {"notes.txt": "mine"})
    with pytest.raises(ImageError, match="another tree"):
        grade_of_work(place, archive, world.said, world.user)


def with_pack(world: StageWorld, tmp_path: Path) -> Path:
    """The folder of a grader's files."""
    place = tmp_path / "grader"
    place.mkdir()
    pack = graders_pack(world.store, [world.said.base, world.said.landed], [world.said.image_tree], ())
    (place / OBJECTS).write_bytes(pack)
    world.said = replace(world.said, fingerprint=fingerprint(()))
    return place


def header(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", link: str = "") -> bytes:
    """A member of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), link
    return info.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def sparse() -> bytes:
    """512 bytes that claim a file of 4 GB."""
    block = bytearray(header("changed/big", tarfile.GNUTYPE_SPARSE))
    block[386:398], block[398:410] = b"%011o\0" % (4 << 30), b"%011o\0" % 0
    block[483:495] = b"%011o\0" % (4 << 30)
    block[148:156] = b"%06o\0 " % sum(block[:148] + b" " * 8 + block[156:])
    return bytes(block)


END = b"\0" * 1024
BROKEN = {
    "a sparse file": (sparse() + END, "special"),
    "the folder itself": (header("changed/", content=b"x") + END, "holds a"),
    "another place": (header("elsewhere", content=b"x") + END, "elsewhere"),
    "a hard link": (header("changed/x", tarfile.LNKTYPE, link="changed/y") + END, "hard_link"),
    "a long name": (header("changed/" + "x/" * 3000) + END, "holds a"),
    "names of names": (header("n", tarfile.GNUTYPE_LONGLINK, b"x") * 1500 + END, "broken"),
    "a false digest": (header("changed/x", content=b"x") + header("digest", content=b"0" * 64) + END, "damaged"),
    "no digest": (header("gone") + END, "damaged"),
    "an end too early": (header("changed/x", content=b"x" * 4096)[:1024], "cut off|broken"),
    "no archive": (b"no archive", "broken"),
    "nothing": (b"", "broken"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_archive_that_nothing_of_ours_packs_is_no_work(what: str) -> None:
    content, words = BROKEN[what]
    with pytest.raises(ExtractionFailed, match=words):
        read_changes(io.BytesIO(content))


def test_a_damaged_or_too_large_archive_is_no_work(world: StageWorld, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    lay(agent, LANDED)
    whole = packed(world, agent, tmp_path / "work.tar").read_bytes()
    assert read_changes(io.BytesIO(whole)).paths == {b"area.py", b"tests/test_area.py"}
    for broken in (whole.replace(b"abs(a * b)", b"abs(a + b)"), whole[:600]):
        with pytest.raises(ExtractionFailed):
            read_changes(io.BytesIO(broken))
    with pytest.raises(ExtractionFailed, match="more than 3 files"):
        read_changes(io.BytesIO(whole), most_members=3)
    with pytest.raises(ExtractionFailed, match="more than 600 bytes"):
        read_changes(io.BytesIO(whole), most_bytes=600)


def test_work_that_cannot_be_read_is_worth_nothing_and_not_left_out(world: StageWorld, tmp_path: Path) -> None:
    """A step without a reward does not count in a mean: an agent would have its way with a damaged archive."""
    place, archive = with_pack(world, tmp_path), tmp_path / "work.tar"
    found = []
    agent = tmp_path / "agent"
    lay(agent, {**LANDED, "/".join(["deep" * 50] * 12): "no copy of it can be made elsewhere"})
    found.append(grade_of_work(place, packed(world, agent, archive), world.said, world.user))
    archive.write_bytes(sparse() + END)
    found.append(grade_of_work(place, archive, world.said, world.user))
    archive.unlink()
    os.mkfifo(archive)
    found.append(grade_of_work(place, archive, world.said, world.user))
    archive.unlink()
    archive.mkdir()
    found.append(grade_of_work(place, archive, world.said, world.user))
    archive.rmdir()
    archive.symlink_to(tmp_path / "none")
    found.append(grade_of_work(place, archive, world.said, world.user))
    for it in found:
        values = rewards(it, ())
        assert (values["reward"], values["f2p"], values["p2p"]) == (0.0, 0.0, 0.0)


def test_work_that_ends_the_tests_processes_is_worth_nothing(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = TestRun({}, "", 0.0, None, infra=SandboxLost("").name)
    monkeypatch.setattr("trajectories.export.tasks.harbor.inside.grade.graded_run", lambda *a: lost)
    assert rewards(grade_of(world), ())["reward"] == 0.0


@pytest.mark.parametrize(("ended", "reward"), [((True, True), 1.0), ((True, False), 0.0), ((False, True), 0.0)])
def test_processes_that_cannot_be_ended_are_a_cheat(
    world: StageWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: tuple[bool, ...], reward: float
) -> None:
    """They could write another reward over ours."""
    module, answers = "trajectories.export.tasks.harbor.inside.grade", iter(ended)
    done = grade(world.said.classes, StateCheck(), dict.fromkeys([OLD_TEST, NEW_TEST], Status.passed))
    monkeypatch.setattr(f"{module}.end_others", lambda user: next(answers))
    monkeypatch.setattr(f"{module}.grade_of_work", lambda *given: done)
    assert rewards(grade_alone(tmp_path, tmp_path / "none", world.said), ())["reward"] == reward


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


def test_what_the_images_refresh_made_is_no_work_though_a_later_stages_rules_do_not_hide_it(tmp_path: Path) -> None:
    world = stage_world(tmp_path)
    (world.folder / "area.egg-info").mkdir()
    (world.folder / "area.egg-info/PKG-INFO").write_text("of the image")
    start = world.store.entries(world.said.image_tree)
    archive = tmp_path / "work.tar"
    listing = {path: (str(it.mode), it.blob) for path, it in start.items()}
    collect.pack(os.fsencode(world.folder), listing, str(archive))
    assert b"PKG-INFO" in archive.read_bytes()
    later = replace(world.said, base=world.said.landed)
    assert agents_tree(world.store, later, archive) == world.said.image_tree
