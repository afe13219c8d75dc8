"""Every rig has a target of the Makefile that starts it and says what it does, and none of them is installed."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]

_STARTS = re.compile(r"^([a-z-]+):.* #: .+\n\t.*\$\(BIN\)/python -m research\.(\w+) ", re.M)


def test_every_rig_has_a_target() -> None:
    programs = {path.parent.name for path in ROOT.glob("research/*/__main__.py")} | {
        path.stem for path in ROOT.glob("research/*.py") if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    started = dict(_STARTS.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    assert len(programs) > 8
    assert sorted(started.values()) == sorted(programs)


def test_the_rigs_are_not_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["packages"]["find"]["include"]
    assert not [
        name for name in ("research", "research.bench", "tests") for pattern in patterns if fnmatch(name, pattern)
    ]
    assert {"research", "tests"} <= set(project["tool"]["mypy"]["files"])
