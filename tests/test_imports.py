"""Importing a module does nothing, and starting a command imports little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WATCH = """
import json, os, pkgutil, sys, importlib

seen = []

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else False
        if (writes and str(path) != os.devnull) or str(path).endswith((".env", "prchain.toml")):
            seen.append([event, str(path)])
    elif event in {"os.mkdir", "os.remove", "os.rename", "subprocess.Popen", "os.posix_spawn", "os.fork", "os.putenv",
                   "socket.connect", "socket.getaddrinfo", "socket.sendto", "sqlite3.connect"}:
        seen.append([event, *map(str, arguments)])

names = [name for package in PACKAGES for name in (
    package, *(module.name for module in pkgutil.walk_packages([f"{ROOT}/{package}"], package + ".")))
    if not name.endswith("__main__")]
sys.addaudithook(watch)
for name in names:
    importlib.import_module(name)
print(json.dumps([len(names), seen]))
"""


def python(code: str, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout


def test_importing_any_module_writes_nothing_connects_nowhere_and_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GITHUB_TOKEN=planted\n")
    (tmp_path / "prchain.toml").write_text("not toml")
    rooms = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
    packages = [name for name in rooms if (ROOT / name).is_dir()]
    out = python(f"ROOT = {str(ROOT)!r}\nPACKAGES = {packages!r}\n{WATCH}", tmp_path)
    count, events = json.loads(out)
    assert count > 10
    assert events == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "prchain.toml"]


HELP_OF_EVERYTHING = """
import sys, click
from prchain.cli import cli, run

def pages(group, words):
    yield words
    if isinstance(group, click.Group):
        with click.Context(group) as context:
            for name in group.list_commands(context):
                yield from pages(group.get_command(context, name), [*words, name])

found = list(pages(cli, []))
for words in found:
    assert run([*words, "--help"]) == 0, words
print('LOADED', len(found), *sorted({name.partition('.')[0] for name in sys.modules}))
"""


def test_no_page_of_help_imports_what_only_a_running_command_needs(tmp_path: Path) -> None:
    pages, *loaded = python(HELP_OF_EVERYTHING, tmp_path).rpartition("LOADED ")[2].split()
    assert int(pages) > 40
    assert "pydantic" in loaded  # settings of observers are told by it
    heavy = {
        *("sqlalchemy", "alembic", "psycopg", "pydantic_settings", "networkx", "jinja2", "docker", "openai", "httpx2"),
        *("genai_prices", "github", "git", "requests", "rich", "spellchecker", "scipy", "pyarrow", "tokenizers"),
    }
    assert not heavy & set(loaded)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_neither_stages_nor_heavy_packages(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom prchain.cli import run\n"
        f"assert run({arguments!r}) == 0\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(python(code, tmp_path).rpartition("LOADED ")[2].split())
    assert "click" in loaded
    assert not loaded & {"sqlalchemy", "alembic", "github", "git", "pydantic", "rich", "requests", "sql", "miner"}
