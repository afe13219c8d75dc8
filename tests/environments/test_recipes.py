"""Recipes: which one a tree gets, what a user may change, and what no file may say."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from environments.images.globs import matches
from environments.images.recipes import choose, override_name, parse_recipe, shipped_recipes, with_values
from environments.suites.runners import RUNNERS
from prchain.core.errors import NoRecipe, RecipeError


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ({"pyproject.toml", "src/a.py"}, "python"),
        ({"setup.py"}, "python"),
        ({"requirements-dev.txt", "app.py"}, "python"),
        ({"package.json"}, "node"),
        ({"package.json", "pyproject.toml"}, "python"),
        ({"go.mod", "main.go"}, "go"),
        ({"Cargo.toml", "src/lib.rs"}, "rust"),
        ({"pom.xml"}, "java"),
    ],
)
def test_the_recipe_follows_from_what_the_tree_contains(paths: set[str], name: str) -> None:
    assert choose(paths, "o/n").name == name


def test_a_manifest_below_the_top_folder_does_not_choose_a_recipe() -> None:
    with pytest.raises(NoRecipe, match="o/n"):
        choose({"examples/package.json", "README.md"}, "o/n")


@pytest.mark.parametrize("recipe", shipped_recipes(), ids=lambda recipe: recipe.name)
def test_every_shipped_recipe_names_a_runner_that_there_is_and_checks_its_image(recipe: object) -> None:
    assert recipe.runner in RUNNERS  # type: ignore[attr-defined]
    assert recipe.build and recipe.check and recipe.manifests and recipe.detects  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("requirements-dev.txt", "requirements*.txt", True),
        ("docs/requirements.txt", "requirements*.txt", False),
        ("requirements/test.txt", "requirements/*.txt", True),
        ("requirements/a/b.txt", "requirements/*.txt", False),
        ("a/b/go.mod", "**/go.mod", True),
        ("go.mod", "**/go.mod", True),
        ("a/xgo.mod", "**/go.mod", False),
        ("setup.py", "setup?py", True),
        ("setupxpy", "setup.py", False),
        ("a1", "a[0-9]", True),
        ("requirements.txt\nx", "requirements*.txt", False),
    ],
)
def test_globs_stop_at_slashes_unless_they_start_with_two_stars(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, (pattern,)) is expected


def test_no_pattern_matches_nothing() -> None:
    assert not matches("setup.py", ())


def test_a_users_file_for_a_repository_changes_single_keys_and_leaves_the_rest(tmp_path: Path) -> None:
    (tmp_path / override_name("Owner/Name")).write_text('packages = ["libpq-dev"]\n[environment]\nFOO = "1"\n')
    own, shipped = choose({"setup.py"}, "owner/NAME", tmp_path), choose({"setup.py"}, "o/other", tmp_path)
    assert own.packages == ("libpq-dev",)
    assert own.environment == {**shipped.environment, "FOO": "1"}
    assert own.build == shipped.build
    assert own.digest() != shipped.digest()
    assert shipped == choose({"setup.py"}, "o/other")


def test_a_users_file_can_name_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "o--n.toml").write_text('recipe = "go"\n')
    assert choose({"setup.py"}, "o/n", tmp_path).name == "go"
    (tmp_path / "o--n.toml").write_text('recipe = "cobol"\n')
    with pytest.raises(RecipeError, match=r"'cobol'.*known are.*python"):
        choose({"setup.py"}, "o/n", tmp_path)


def test_a_recipe_of_the_users_own_goes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nlanguage = "python"\nrank = 900\ndetects = ["setup.py"]\n')
    assert choose({"setup.py"}, "o/n", tmp_path).name == "mine"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "no TOML"),
        ('name = "x"\n', "language"),
        ('name = "x"\nlanguage = "c"\ncolour = 1\n', "colour is not a key"),
        ('name = "x"\nlanguage = "c"\npackages = ["-o=evil"]\n', "packages"),
        ('name = "x"\nlanguage = "c"\npackages = ["a; rm -rf /"]\n', "packages"),
        ('name = "x"\nlanguage = "c"\nmanifests = ["a b"]\n', "manifests"),
        ('name = "x"\nlanguage = "c"\nrequirements = ["--index-url http://h"]\n', "requirements"),
        ('name = "x"\nlanguage = "c"\n[environment]\n"A B" = "1"\n', "environment"),
        ('name = "x"\nlanguage = "c"\n[[build]]\nname = "s"\nrun = []\n', "must hold a script"),
        ('name = "x"\nlanguage = "c"\n[[versions]]\nsign = "("\nvariable = "V"\n', "regular expression"),
        ('name = "x"\nlanguage = "c"\n[keep]\n"a" = "relative"\n', "keep"),
    ],
)
def test_what_is_no_recipe_is_refused_with_the_file_and_the_key(text: str, told: str) -> None:
    with pytest.raises(RecipeError, match=told) as caught:
        parse_recipe(text, "mine.toml")
    assert "mine.toml" in str(caught.value)


def test_a_folder_of_recipes_that_is_not_there_is_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        choose({"setup.py"}, "o/n", tmp_path / "missing")


def test_the_digest_follows_what_the_image_holds_and_not_how_tests_run() -> None:
    python = choose({"setup.py"}, "o/n")
    assert with_values(python, {"test": "true {files}", "rank": 3}, "x").digest() == python.digest()
    assert with_values(python, {"refresh": ("true",)}, "x").digest() == python.digest()
    assert with_values(python, {"extras": ("test",)}, "x").digest() != python.digest()


def ran(script: str, folder: Path, **variables: str) -> list[str]:
    """Run a script of the Python recipe with a stand-in for uv; returns uv's arguments, or fails with its status."""
    uv = folder / "uv-stand-in"
    uv.write_text(
        f'#!/bin/bash\necho "$*" >> {folder}/asked\ncat > /dev/null\n'
        '[[ "$*" != *--exclude-newer* ]] || exit ${UV_DATED:-${UV_STATUS:-0}}; exit ${UV_STATUS:-0}\n'
    )
    uv.chmod(0o755)
    (folder / "asked").write_text("")
    environment = {"UV": str(uv), "BUILD": str(folder), "PATH": "/usr/bin:/bin", **variables}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env=environment, cwd=folder, check=True, stdin=subprocess.DEVNULL
    )
    return (folder / "asked").read_text().splitlines()


def script_of(step: str) -> str:
    return next(recipe_step.run[0] for recipe_step in choose({"setup.py"}, "o/n").build if recipe_step.name == step)


def test_the_interpreter_is_the_one_that_was_chosen(tmp_path: Path) -> None:
    (python,) = {Path(sys.executable).resolve()}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3.99").symlink_to(python)
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    venv = "venv --quiet --clear --seed"
    commands = ran(script_of("interpreter"), tmp_path, INTERPRETER="3.99", PYTHON=">=3.8", PATH=path)
    assert commands == [f"{venv} --python {tmp_path}/bin/python3.99 /opt/env"]
    with pytest.raises(subprocess.CalledProcessError):
        ran(script_of("interpreter"), tmp_path, INTERPRETER="3.98", PYTHON=">=3.8", PATH=path)


@pytest.mark.parametrize(("requires", "option"), [(">=3.8", "--python >=3.8 "), ("", "")])
def test_where_no_interpreter_was_chosen_uv_looks_for_what_the_project_asks_for(
    tmp_path: Path, requires: str, option: str
) -> None:
    commands = ran(script_of("interpreter"), tmp_path, INTERPRETER="", PYTHON=requires)
    assert commands == [f"venv --quiet --clear --seed {option}/opt/env"]


@pytest.mark.parametrize(("status", "note"), [("0", "dated"), ("2", "dates_unknown")])
def test_packages_are_dated_only_where_the_index_has_the_one_that_every_index_has(
    tmp_path: Path, status: str, note: str
) -> None:
    commands = ran(script_of("date"), tmp_path, AS_OF="2024-05-01T00:00:00Z", UV_DATED=status)
    assert "--exclude-newer 2024-05-01T00:00:00Z" in commands[0]
    assert (tmp_path / "notes").read_text() == f"{note}\n"
    assert (tmp_path / "variables").exists() == (status == "0")


@pytest.mark.parametrize(("status", "asked"), [("2", 2), ("124", 1)])
def test_an_index_that_does_not_answer_at_all_ends_a_build_before_the_tree_is_looked_at(
    tmp_path: Path, status: str, asked: int
) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        ran(script_of("date"), tmp_path, AS_OF="2024-05-01T00:00:00Z", UV_STATUS=status)
    assert len((tmp_path / "asked").read_text().splitlines()) == asked
    assert not (tmp_path / "notes").exists() and not (tmp_path / "variables").exists()


def test_the_steps_whose_failure_is_the_indexs_come_before_all_that_run_code_of_the_tree() -> None:
    steps = choose({"setup.py"}, "o/n").build
    assert [step.name for step in steps if step.asks_index] == [step.name for step in steps[:2]] == ["uv", "date"]


@pytest.mark.parametrize("index", [0, 1, 2, 4])
def test_uv_puts_no_project_in_where_the_interpreter_is_too_old_for_it(tmp_path: Path, index: int) -> None:
    (step,) = (it for it in choose({"setup.py"}, "o/n").build if it.name == "dependencies")
    (tmp_path / "constraints.txt").write_text("a==1\n")
    (tmp_path / "as_pip.sh").write_text('uv_install() { "$UV"; }')
    with pytest.raises(subprocess.CalledProcessError):
        ran(step.run[index], tmp_path, INTERPRETER="3.7", EDITABLE="--editable .", EDITABLE_FEWER="--editable .")
    assert (tmp_path / "asked").read_text() == ""


def test_extensions_find_the_library_of_an_interpreter_that_was_copied(tmp_path: Path) -> None:
    script = script_of("interpreter").replace("/opt/python/", f"{tmp_path}/python/")
    (tmp_path / "python/3.99/lib").mkdir(parents=True)
    (tmp_path / "python/3.99/bin").mkdir()
    (tmp_path / "python/3.99/bin/python3.99").symlink_to(sys.executable)
    ran(script, tmp_path, INTERPRETER="3.99", PYTHON="")
    assert (tmp_path / "variables").read_text() == f"LIBRARY_PATH={tmp_path}/python/3.99/lib\n"


def ran_inside(script: str, folder: Path, python: str) -> list[str]:
    """As `ran`, with the scripts of ``inside`` and a stand-in for the environment's Python."""
    for file in (resources.files("environments.images") / "inside").iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "bin").mkdir()
    (folder / "bin/python").write_text(python)
    (folder / "bin/python").chmod(0o755)
    return ran(f'source "$BUILD/runner.sh"\n{script}', folder, VIRTUAL_ENV=str(folder), PYTHONPATH="")


def test_a_runner_that_runs_is_left_alone_and_one_that_does_not_is_renewed_with_its_plugins(tmp_path: Path) -> None:
    for name, code, status in (("new", f'exec {sys.executable} "$@"', 0), ("old", "echo pytest-cov; exit 1", 1)):
        (tmp_path / name).mkdir()
        asked = ran_inside("runs || renew", tmp_path / name, f"#!/bin/bash\n{code}\n")
        renewed = "--no-sources pytest>=3 pytest-cov --upgrade-package pytest --upgrade-package=pytest-cov"
        assert asked == [f"pip install --python {tmp_path / name} {renewed}"] * status


def test_a_requirement_that_cannot_be_had_alone_is_taken_in_any_version_or_noted(tmp_path: Path) -> None:
    lines = "a==1\nb[x]>=2 ; python_version > '3'\nc\nd @ git+https://h/d\n"
    script = f"source $BUILD/as_pip.sh; printf '%s' {shlex.quote(lines)} > $BUILD/each.txt; each_alone $BUILD/each.txt"
    uv = 'case "$*" in *" a") exit 0;; *) exit 1;; esac'
    ran_inside(f'printf "#!/bin/bash\\n%s\\n" {shlex.quote(uv)} > $UV; {script}', tmp_path, "")
    notes = (tmp_path / "notes").read_text().split()
    assert notes == ["relaxed:a==1", "without:b[x]>=2;python_version>'3'", "without:c", "without:d@git+https://h/d"]


def test_plugins_that_settings_ask_for_by_an_option_or_by_name_are_put_in(tmp_path: Path) -> None:
    said = "error: unrecognized arguments: --cov=x --own -n auto\nMissing required plugins: pytest-mock, pytest-x>=1"
    asked = ran_inside("add_plugins", tmp_path, f"#!/bin/bash\necho '{said}'\nexit 4\n")
    assert [line.rpartition(" ")[2] for line in asked] == ["pytest-cov", "pytest-xdist", "pytest-mock", "pytest-x"]


def test_without_a_date_the_newest_packages_are_taken(tmp_path: Path) -> None:
    assert ran(script_of("date"), tmp_path, AS_OF="") == []
    assert not (tmp_path / "variables").exists()
