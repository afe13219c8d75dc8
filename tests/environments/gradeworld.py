"""Trees of a small project in memory, graded as a stage's trees are: overlay, canaries, a run with the real runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from random import SystemRandom
from typing import Any

from environments.checkouts.overlay import Blobs, Overlay, overlay
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, Planting
from environments.suites.canaries.renames import lone_names
from environments.suites.runner import TestCommand
from environments.suites.runners import RUNNERS
from environments.suites.testruns import TestRun, run_tests
from prchain.core.git.trees import TreeEntry
from tests.environments.test_testruns import PYTEST, Shell

TESTS = "tests/test_till.py"
HIDDEN = """
import pytest

from till import cart


def test_total_of_nothing():
    assert cart.total([]) == 0


def test_total_of_many():
    prices = [3, 4]
    assert cart.total(prices) == 7


@pytest.mark.parametrize("price", [1, 2])
def test_total_of_one(price):
    assert cart.total([price]) == price


class TestNames:
    def test_label_has_the_price(self):
        found = cart.label("tea", 3)
        assert found == "tea: 3"

    def test_label_of_nothing(self):
        assert cart.label("", 0) == ": 0"
"""
WRONG = "def total(prices):\n    return None\n\n\ndef label(name, price):\n    raise NotImplementedError\n"
RIGHT = 'def total(prices):\n    return sum(prices)\n\n\ndef label(name, price):\n    return f"{name}: {price}"\n'
BASE = {
    "till/__init__.py": "",
    "till/cart.py": WRONG,
    "tests/__init__.py": "",
    "pyproject.toml": "[project]\nname = 'till'\n",
}
LANDED = BASE | {"till/cart.py": RIGHT, TESTS: HIDDEN}
F2P = tuple(
    f"{TESTS}::{name}"
    for name in (
        "test_total_of_nothing",
        "test_total_of_many",
        "test_total_of_one[1]",
        "test_total_of_one[2]",
        "TestNames::test_label_has_the_price",
        "TestNames::test_label_of_nothing",
    )
)

Files = Mapping[str, str]


@dataclass(frozen=True)
class Graded:
    """A run on a tree, with its overlay."""

    run: TestRun
    overlay: Overlay
    canaries: tuple[Canary, ...]

    @property
    def accepted(self) -> bool:
        """Whether the gate of tests would accept it."""
        return not self.run.cheats and all(self.run.statuses.get(test) == "passed" for test in F2P)


def grade_tree(
    folder: Path,
    own: Files,
    *,
    base: Files = BASE,
    landed: Files = LANDED,
    baseline: RunnerBaseline | None = None,
    command: TestCommand = PYTEST,
    tests: str = TESTS,
    timeout: float = 60,
    places: str = "places",
) -> Graded:
    """Grade a tree. Without a `baseline` it is a run that finds one: on the reference. `places` is what places and
    values of canaries follow from."""
    made: dict[str, bytes] = {}

    def write(content: bytes) -> str:
        name = sha1(content, usedforsecurity=False).hexdigest()
        made[name] = content
        return name

    trees = [
        {path.encode(): TreeEntry("100644", write(text.encode())) for path, text in files.items()}
        for files in (own, landed, base)
    ]
    laid = overlay(
        trees[0],
        trees[1],
        [tests.encode()],
        base=trees[2],
        blobs=Blobs(lambda names: [made[name] for name in names], write),
    )
    files = {**trees[0], **laid.changes}
    plant = RUNNERS[command.runner].plant
    slots = None if baseline is None else baseline.canaries or ()
    canaries: tuple[Canary, ...] = ()
    for path, entry in files.items():
        if entry is None:
            continue
        text = made[entry.blob].decode()
        if path.decode() == tests and plant is not None:
            lone = lone_names((path.encode(), text.encode()) for path, text in landed.items())
            planted = plant(tests, text, Planting(places, SystemRandom(), slots, set(), lone=lone))
            text, canaries = planted.text, planted.canaries
        (folder / path.decode()).parent.mkdir(parents=True, exist_ok=True)
        (folder / path.decode()).write_text(text)
    sandbox: Any = Shell(folder)  # the part of a sandbox that runs need
    run = run_tests(sandbox, command, [tests], timeout=timeout, baseline=baseline, canaries=canaries)
    return Graded(run, laid, canaries)
