"""What tests of the demo share: its repository, and a way to run commands in a folder of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prchain.cli import run
from prchain.core.settings import Settings, variable
from prchain.demo.commands import GRAPH_CHAIN
from prchain.demo.run import run_demo
from sql.store import Store

CITED = {(2, 5, 8), (3, 6, 10), (4, 11)}
"""The chains that the history is made for, as its people say themselves."""

UNCITED = {(13, 14)}
"""The chains of which nobody says that they are any."""

TIP = "8b31f22bcbd47c9e8c76cef8a7151dbac42089b0"
"""What git calls the last commit, on every machine."""


@dataclass(frozen=True)
class Ran:
    """The result of a demo run."""

    folder: Path
    printed: str
    logged: str
    """Its log, with all details."""

    def copied(self, folder: Path) -> Path:
        """A copy of its folder, to do in as one likes."""
        # What SQLite keeps beside a database comes and goes with those who read it, in other processes, too.
        return shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("*-wal", "*-shm", "*.lock"))

    def rows(self, table: Any, *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        store = Store.open(str(self.folder / "prchain.db"), create=False)
        with store.reading() as tx:
            rows = [tuple(row) for row in tx.rows(table, *columns, **equals)]
        store.close()
        return rows

    @property
    def samples(self) -> list[dict[str, Any]]:
        lines = (self.folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


def run_through(folder: Path, backend: str = "unsafe-local") -> Ran:
    """Run the demo, as plain processes unless told otherwise: they work everywhere, and the code is our own."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), alone_in(folder.parent):
        log = folder.parent / "demo.log"
        assert succeeds("-vv", "--log-file", str(log), "demo", "--all", "--folder", str(folder), "--backend", backend)
    return Ran(folder, out.getvalue(), log.read_text(encoding="utf-8"))


def go_on_to_windows(folder: Path, backend: str) -> Ran:
    """Run the demo once more in a folder where it is finished, with sandboxes that take snapshots: of its commands only
    those that windows stand on, that make them, and that write what came of them."""

    def run_some(words: list[str]) -> int:
        if words[:2] == ["environments", "validate"]:
            return run([*words, "--chain", GRAPH_CHAIN])
        return run(words) if words[0] in ("curate", "export") else 0

    out = io.StringIO()
    with contextlib.redirect_stdout(out), alone_in(folder.parent):
        run_demo(folder, backend=backend, everything=True, run=run_some)
    return Ran(folder, out.getvalue(), "")


def pack(folder: Path) -> None:
    """Put the objects of a demo's repositories into a pack each: hundreds of files that every copy would have, too."""
    for objects in list(folder.rglob("objects")):
        if (objects.parent / "HEAD").is_file():
            names = git(objects.parent, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
            packing = ["git", "pack-objects", "--local", "--quiet", str(objects / "pack" / "pack")]
            subprocess.run(packing, cwd=objects.parent, input=names, check=True, capture_output=True, text=True)
            git(objects.parent, "prune-packed", "--quiet")


def git(repository: Path, *arguments: str) -> str:
    """The output of git, without the last newline."""
    result = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=True, text=True)
    return result.stdout.rstrip("\n")


def landings(repository: Path) -> dict[int, str]:
    """Pull request number to the commit that landed it, from the subjects of the default branch."""
    landed = {}
    for line in git(repository, "log", "--first-parent", "--format=%H %s", "main").split("\n"):
        sha, _, subject = line.partition(" ")
        if "#" in subject:
            number = (
                subject.rpartition("(#")[2].rstrip(")") if subject.endswith(")") else subject.split("#")[1].split()[0]
            )
            landed[int(number)] = sha
    return landed


def check_out(repository: Path, tree: str, folder: Path, *paths: str) -> None:
    """Put a commit's files, or some of them, into a folder."""
    folder.mkdir(exist_ok=True)
    archive = subprocess.run(["git", "archive", tree, *paths], cwd=repository, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def suite_passes(folder: Path) -> bool:
    """Whether the library's tests pass in a folder."""
    command = [sys.executable, "-B", "-W", "error", "-m", "unittest", "--quiet"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """In a folder, without settings from the environment."""
    names = {variable(name) for name in Settings.model_fields} & os.environ.keys()
    removed = {name: os.environ.pop(name) for name in names}
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.update(removed)


def succeeds(*arguments: str) -> bool:
    """Whether a command line of prchain ends with exit code 0."""
    return run(list(arguments)) == 0
