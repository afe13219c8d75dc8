"""A folder that is its own list: what its files say is read without them, and a file that is added is there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from environments.backends import BACKENDS
from environments.suites.runners import RUNNERS
from prchain.core.catalogue import Catalogue
from prchain.core.cli_options import CatalogueOption
from prchain.core.errors import UsageError
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.export.formats import FORMATS

FOLDER = "fruits_of_a_test"


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue[Any]]:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from prchain.core.catalogue import Catalogue\nFRUITS = Catalogue[str](__name__, 'FRUIT')\n"
    )
    for name, words in {"red_apple": "grows on a tree", "fig": "is sweet"}.items():
        (folder / f"{name}.py").write_text(f"from types import SimpleNamespace as N\nFRUIT = N(help={words!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(FOLDER).FRUITS
    for name in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
        del sys.modules[name]


def loaded() -> set[str]:
    return {name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{FOLDER}.")}


def test_names_are_told_by_the_files_and_things_by_their_modules(fruits: Catalogue[Any]) -> None:
    assert list(fruits) == ["fig", "red-apple"] and len(fruits) == 2
    assert "fig" in fruits and "red_apple" not in fruits and "plum" not in fruits
    assert loaded() == set()
    assert (fruits["red-apple"].help, loaded()) == ("grows on a tree", {"red_apple"})
    assert fruits.get("plum") is None and len(loaded()) == 1


def test_a_name_that_somebody_gave_and_is_not_there_is_answered_with_those_that_are(fruits: Catalogue[Any]) -> None:
    assert fruits.named("fig").help == "is sweet"
    with pytest.raises(UsageError, match=r"there is no fruit 'plum'; known are fig, red-apple$"):
        fruits.named("plum")


def test_what_fails_in_a_module_is_not_taken_for_a_name_that_is_not_there(
    fruits: Catalogue[Any], tmp_path: Path
) -> None:
    (tmp_path / FOLDER / "fig.py").write_text("import no_such_spoon\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_spoon"):
        fruits.named("fig")


def test_an_option_takes_the_names_and_only_its_help_imports_what_they_name(fruits: Catalogue[Any]) -> None:
    @click.command()
    @click.option("--fruit", cls=CatalogueOption, of=fruits, default="fig", show_default=True, help="To eat.")
    def eat(fruit: str) -> None:
        click.echo(f"ate {fruit}")

    assert CliRunner().invoke(eat, ["--fruit", "red-apple"]).output == "ate red-apple\n"
    assert CliRunner().invoke(eat, ["--fruit", "plum"]).exit_code == 2
    assert loaded() == set()
    for _ in range(2):
        help_text = " ".join(CliRunner().invoke(eat, ["--help"]).output.split())
        assert "[fig|red-apple] To eat. fig: is sweet; red-apple: grows on a tree. [default: fig]" in help_text


@pytest.mark.parametrize("catalogue", [BACKENDS, FORMATS, RUNNERS, SCAFFOLDS])
def test_each_thing_of_ours_has_the_name_of_its_module(catalogue: Catalogue[Any]) -> None:
    assert catalogue and {name: thing.name for name, thing in catalogue.items()} == {name: name for name in catalogue}
