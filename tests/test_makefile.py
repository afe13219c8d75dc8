"""What make tells of what it does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("target", ["install", "mini", "check", "test", "test-llm", "test-consumers"])
def test_each_installation_says_before_it_begins_what_is_installed_and_where(target: str, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", *(path.name for path in ROOT.glob("requirements*.txt"))):
        shutil.copy(ROOT / name, tmp_path)
    process = subprocess.run(
        ["make", "--dry-run", target],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in process.stdout.splitlines() if " -m venv .venv/" not in line and "rm -rf" not in line]
    installs = [index for index, line in enumerate(lines) if " -m pip " in line]
    assert installs
    for index in installs:
        assert lines[index - 1].startswith('echo "installing ')
        assert ".venv" in lines[index - 1]
        # What it prints may be a command's JSON.
        assert lines[index - 1].endswith(">&2")
