"""A stage of a small repository as an exported grader is told of it, without an engine."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from environments.suites.baseline import RunnerBaseline
from environments.suites.outcomes import ClassifiedTests
from environments.suites.runners import RUNNERS
from prchain.core.git.trees import FILE, TreeEntry, TreeStore
from trajectories.export.tasks.harbor.inside.machine import User
from trajectories.export.tasks.harbor.inside.plain_git import PlainStore
from trajectories.export.tasks.harbor.inside.said import StageSaid
from trajectories.export.tasks.harbor.objects import graders_pack

Files = dict[str, str]

BASE: Files = {
    ".gitignore": "*.log\n",
    "area.py": "def area(a, b):\n    return a * b\n",
    "tests/__init__.py": "",
    "tests/test_area.py": (
        "import unittest\nfrom area import area\n\n\nclass AreaTest(unittest.TestCase):\n"
        "    def test_area(self):\n        self.assertEqual(area(2, 3), 6)\n"
    ),
}
LANDED: Files = {
    **BASE,
    "area.py": "def area(a, b):\n    return abs(a * b)\n",
    "tests/test_area.py": BASE["tests/test_area.py"]
    + "\n    def test_no_area_is_negative(self):\n        self.assertEqual(area(-2, 7), 14)\n",
}
OLD_TEST, NEW_TEST = (f"tests.test_area.AreaTest.{name}" for name in ("test_area", "test_no_area_is_negative"))


def tree_of(store: TreeStore, files: Files) -> str:
    return store.write_tree(
        {path.encode(): TreeEntry(FILE, store.write_blob(text.encode())) for path, text in files.items()}
    )


def lay(folder: Path, files: Files) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def take(store: PlainStore, pack: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(pack)
        store.take_pack(file)


@dataclass
class StageWorld:
    """A stage whose image is `folder`, with the store that its grader makes of the pack."""

    folder: Path
    store: PlainStore
    said: StageSaid

    @property
    def user(self) -> User:
        return User(os.geteuid(), os.getegid(), "/")


def stage_world(place: Path) -> StageWorld:
    own = TreeStore.open(place / "own.git")
    base, landed = (own.commit(tree_of(own, files)) for files in (BASE, LANDED))
    folder = place / "testbed"
    lay(folder, BASE)
    said = StageSaid(
        base=base,
        landed=landed,
        image_tree=own.tree_of(base),
        test_paths=("tests/test_area.py",),
        earlier_test_paths=(),
        files=("tests/test_area.py",),
        classes=ClassifiedTests(f2p=(NEW_TEST,), p2p=(OLD_TEST,)),
        earlier_f2p=(),
        baseline=RunnerBaseline(plugins=(), hooks=()),
        runner="unittest",
        command=RUNNERS["unittest"].command,
        refresh=(),
        tag="",
        workdir=str(folder),
        user="0",
        environment={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LANG": "C.UTF-8"},
        outputs=(),
        watched=(),
        fingerprint={},
        seconds=60.0,
    )
    store = PlainStore.made(place / "grader.git")
    take(store, graders_pack(own, [base, landed], [said.image_tree], ()))
    return StageWorld(folder, store, said)
