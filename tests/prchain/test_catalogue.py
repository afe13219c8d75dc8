"""A folder that is its own list: what its files say is read without them, and a file that is added is there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.suites.runners import RUNNERS
from prchain.catalogue import Catalogue
from prchain.errors import UsageError
from trajectories.export.formats import FORMATS

FOLDER = "fruits_of_a_test"


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue[str]]:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from prchain.catalogue import Catalogue\nFRUITS = Catalogue[str](__name__, 'FRUIT')\n"
    )
    (folder / "red_apple.py").write_text("FRUIT = 'an apple'\n")
    (folder / "fig.py").write_text("FRUIT = 'a fig'\n")
    (folder / "rotten.py").write_text("raise ModuleNotFoundError('no spoon')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(FOLDER).FRUITS
    for name in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
        del sys.modules[name]


def loaded() -> set[str]:
    return {name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{FOLDER}.")}


def test_names_are_told_by_the_files_and_things_by_their_modules(fruits: Catalogue[str]) -> None:
    assert list(fruits) == ["fig", "red-apple", "rotten"] and len(fruits) == 3
    assert "fig" in fruits and "red_apple" not in fruits and "plum" not in fruits
    assert loaded() == set()
    assert (fruits["red-apple"], loaded()) == ("an apple", {"red_apple"})
    assert fruits.get("fig") == "a fig" and fruits.get("plum") is None


def test_a_name_that_somebody_gave_and_is_not_there_is_answered_with_those_that_are(fruits: Catalogue[str]) -> None:
    assert fruits.named("fig") == "a fig"
    with pytest.raises(UsageError, match=r"there is no fruit 'plum'; known are fig, red-apple, rotten$"):
        fruits.named("plum")
    with pytest.raises(ModuleNotFoundError, match="no spoon"):
        fruits.named("rotten")


@pytest.mark.parametrize("catalogue", [RUNNERS, FORMATS])
def test_each_thing_of_ours_has_the_name_of_its_module(catalogue: Catalogue[Any]) -> None:
    assert catalogue and {name: thing.name for name, thing in catalogue.items()} == {name: name for name in catalogue}
