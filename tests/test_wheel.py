"""The wheel, installed where neither the checkout nor a developer's package can be imported."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("prchain", "sql", "miner", "chains", "environments", "trajectories")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built offline from a copy: a build leaves its folders beside the source."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, folder / "source")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a virtual environment with the wheel and the packages of requirements.txt."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:  # of another Python, or of an extra
            continue
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(sysconfig.get_path("purelib")) / top)
    pip("--python", folder / "bin/python", "install", "--no-index", "--no-deps", wheel)
    return folder / "bin"


def pip(*arguments: str | Path) -> str:
    quiet = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    process = subprocess.run([*quiet, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def output_of(folder: Path, *words: str | Path) -> str:
    """The output of a program, run in a folder from which the checkout cannot be imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == files
    assert {Path(name).suffix for name in inside} >= {
        ".py",
        ".j2",
        ".sql",
        ".graphql",
        ".toml",
        ".cjs",
        ".mjs",
        ".mbox",
        ".gitattributes",
    }
    assert {f"{name}/py.typed" for name in PACKAGES} <= inside


def test_the_wheel_says_what_it_is_and_for_which_pythons(wheel: Path) -> None:
    (name,) = (name for name in ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(ZipFile(wheel).read(name).decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "training data" in metadata["Summary"]
    versions = {
        classifier.rpartition(" ")[2]
        for classifier in metadata.get_all("Classifier", [])
        if ":: Python :: 3." in classifier
    }
    assert metadata["Requires-Python"] == f">={min(versions)}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in versions


def test_the_wheel_runs_alone_with_the_locked_packages(installed: Path, tmp_path: Path) -> None:
    pip("--python", installed / "python", "check")
    where = (
        "import importlib, json; print(json.dumps([importlib.import_module(n).__file__ for n in "
        f"{PACKAGES!r}])); import importlib.util; assert not importlib.util.find_spec('pytest')"
    )
    for place in json.loads(output_of(tmp_path, installed / "python", "-c", where)):
        assert Path(place).is_relative_to(installed.parent), place
    by_name = output_of(tmp_path, installed / "prchain", "--version")
    assert by_name == output_of(tmp_path, installed / "python", "-m", "prchain", "--version")
    observers = "from importlib.metadata import entry_points as e; [one.load() for one in e(group='prchain.observers')]"
    output_of(tmp_path, installed / "python", "-c", observers)
    assert "funnel" in output_of(tmp_path, installed / "prchain", "sql", "--list")


@pytest.mark.whole
def test_the_demo_runs_from_the_wheel_to_its_samples(installed: Path, tmp_path: Path) -> None:
    words = ("-m", "prchain", "demo", "--backend", "unsafe-local", "--folder", tmp_path / "demo")
    assert "Done in" in output_of(tmp_path, installed / "python", *words)
    assert (tmp_path / "demo/samples.jsonl").read_text(encoding="utf-8").count("\n") == 3
