"""What documents of ATIF cost: written from trajectories of ours, and imported into an empty database; memory that does
not grow with their number, and time that grows with it alone."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from research.bench.export_bench import GROWTH_GOAL, MEMORY_GOAL, REDUCTION, TOKENS, fill
from research.bench.measures import Measure
from tests.trajectories.sampleworld import sample_world

TRAJECTORIES = 10_000
TIME_GOAL = 1.25
"""Most processor time a trajectory of the large run, as a multiple of the small one's."""


def run(*, trajectories: int = TRAJECTORIES, tokens: int = TOKENS) -> list[Measure]:
    """Export generated trajectories and import what was written; four bytes of disk for each byte of them."""
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as name:
        small = _measured(Path(name) / "small", max(trajectories // REDUCTION, 1), tokens)
        large = _measured(Path(name) / "large", trajectories, tokens)
    measures = []
    for way in ("export", "import"):
        bench = f"{way} of {trajectories:,} documents of {tokens:,} tokens"
        few, many = small[way], large[way]
        megabytes = many["bytes"] / 1e6
        slower = (many["cpu"] / trajectories) / (few["cpu"] / max(trajectories // REDUCTION, 1))
        measures += [
            Measure(bench, "peak memory", many["peak"] / 1e6, "MB", MEMORY_GOAL),
            Measure(bench, f"peak memory, against 1 in {REDUCTION}", many["peak"] / few["peak"], "x", GROWTH_GOAL),
            Measure(bench, f"processor time each, against 1 in {REDUCTION}", slower, "x", TIME_GOAL),
            Measure(bench, "time", many["seconds"], "s", note=f"{megabytes:,.0f} MB of documents"),
            Measure(bench, "documents, of processor time", trajectories / many["cpu"], "/s"),
        ]
    return measures


def _measured(folder: Path, trajectories: int, tokens: int) -> dict[str, dict[str, float]]:
    folder.mkdir()
    with sample_world(folder) as world:
        fill(world, trajectories, tokens)
    out, ours, theirs = folder / "documents", folder / "prchain.db", folder / "theirs.db"
    options = ("--format", "atif", "--out", str(out), "--duplicates", "keep", "--db", str(ours))
    written, _ = _timed(folder / "peak", "export", *options)
    ours.unlink()
    files = list(out.glob("*.json"))
    assert len(files) == trajectories, f"{len(files)} of {trajectories} were written"
    size = float(sum(file.stat().st_size for file in files))
    read, told = _timed(folder / "peak", "rollouts", "import", str(out), "--json", "--db", str(theirs))
    assert json.loads(told)["imported"] == trajectories, told
    theirs.unlink()
    for file in files:
        file.unlink()
    return {"export": {**written, "bytes": size}, "import": {**read, "bytes": size}}


def _timed(peak: Path, *arguments: str) -> tuple[dict[str, float], str]:
    command = [sys.executable, "-m", "research.bench.child", str(peak), *arguments]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "peak": float(peak.read_text())}, ended.stdout
