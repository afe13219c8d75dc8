"""`prchain mine --source git` against `git log --all --raw` on the same repository, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from research.bench.generated import generate
from research.bench.measures import Measure

LANDED = 9_000
"""The goal for time holds from so many landed pull requests; below, most of the time is the start of Python."""
RATIO_GOAL, RATIO_AIM, PEAK_GOAL = 4.0, 3.0, 400.0

_ROOT = Path(__file__).parents[2]
_LEFT_OUT = ("GITHUB_", "PRCHAIN_", "PYTHONDONTWRITEBYTECODE")
"""How variables begin that a measured process does not have: settings, and what makes Python compile each time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process, with the children that it waited for."""

    wall: float
    """Seconds."""
    processor: float
    """Seconds of all its threads and children; a busy machine changes them less than wall time."""
    status: int
    output: str
    errors: str


def timed(command: Sequence[str], *, keep_output: bool = False) -> Run:
    """Run a command to its end; without `keep_output` its output is discarded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    environment |= {"PYTHONPATH": str(_ROOT), "LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output if keep_output else subprocess.DEVNULL, stderr=errors, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        output_text, error_text = (stream.read().decode("utf-8", "replace") for stream in (output, errors))
    return Run(wall, usage.ru_utime + usage.ru_stime, process.returncode, output_text, error_text)


def run(mirror: Path | None, *, rounds: int, landed: int = LANDED) -> list[Measure]:
    """Measure on a mirror, or on a generated history with so many landed pull requests."""
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        folder_path = Path(folder)
        if mirror is None:
            started = time.perf_counter()
            mirror = generate(folder_path / "generated.git", landed)
            name = f"git source, on a generated history (made in {time.perf_counter() - started:.0f} s)"
        else:
            name = f"git source, on {mirror}"
        return _measure(name, mirror.resolve(), folder_path, rounds)


def _measure(name: str, mirror: Path, folder: Path, rounds: int) -> list[Measure]:
    log = ["git", "-c", "safe.directory=*", "-C", str(mirror), "log", "--all", "--raw"]
    note = "all of them"
    if timed(log).status:  # this first one also warms the disk cache for both
        log.append("--no-renames")
        note = "with --no-renames: blobs are missing, which its search for renames would need"
        if (retry := timed(log)).status:
            raise RuntimeError(f"git log fails on {mirror}: {retry.errors.strip()[-200:]}")
    logs, mines, peaks, landed = [], [], [], 0
    list_file = folder / "repos.txt"
    list_file.write_text(f"bench/mirror = {mirror}\n", encoding="utf-8")
    for turn in range(rounds):
        logs.append(timed(log))
        peak, database = folder / "peak", folder / f"round-{turn}.db"
        command = [sys.executable, "-m", "research.bench.child", str(peak), "mine", str(list_file), "--source", "git"]
        mined = timed([*command, "--db", str(database), "--json"], keep_output=True)
        if mined.status:
            raise RuntimeError(f"prchain mine fails on {mirror}: {mined.errors.strip()[-300:]}")
        mines.append(mined)
        peaks.append(int(peak.read_text(encoding="ascii")) / 1e6)
        landed = json.loads(mined.output)[0]["landed"]
        for file in folder.glob(f"{database.name}*"):
            file.unlink()
    by_git, by_prchain = median(r.wall for r in logs), median(r.wall for r in mines)
    ratio = by_prchain / by_git
    processor = median(r.processor for r in mines) / median(r.processor for r in logs)
    enough = landed >= LANDED
    aim = f"aim {RATIO_AIM:g}, {'reached' if ratio <= RATIO_AIM else 'not reached'}"
    note_of_ratio = aim if enough else f"no goal below {LANDED:,} landed pull requests"
    return [
        Measure(name, "landed pull requests", landed),
        Measure(name, "git log --all --raw", by_git, "s", note=f"median of {rounds}; {note}"),
        Measure(name, "prchain mine --source git", by_prchain, "s", note=f"median of {rounds}, in turns with git log"),
        Measure(name, "ratio of the two", ratio, "", RATIO_GOAL if enough else None, note=note_of_ratio),
        Measure(name, "ratio of processor time", processor, note="children included; for a busy machine"),
        Measure(name, "peak memory of Python", max(peaks), "MB", PEAK_GOAL, note="the largest of all rounds"),
    ]
