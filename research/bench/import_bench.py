"""What an import costs: memory that does not grow with the number of rows, and how fast they are read and stored."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from research.bench.measures import Measure

ROWS = 32_000
KILOBYTES = 100
"""Of a row."""
REDUCTION = 8
"""The first import has so many times fewer rows, to compare memory and time."""

MEMORY_GOAL = 300.0
"""MB."""
GROWTH_GOAL = 1.25
"""Most memory, and most time a row, of the large import, as a multiple of the small one's."""
SPEED_GOAL = 15.0
"""MB a second, of processor time: the wall's says how busy the machine was."""

_LINE = "+    return check(self.value, 'name')  # the 1st of 2: é\n"
_HEAD = "diff --git a/src/till/{0}.py b/src/till/{0}.py\nnew file mode 100644\n--- /dev/null\n+++ b/src/till/{0}.py\n"


def run(*, rows: int = ROWS) -> list[Measure]:
    """Import made rows in SWE-Gym's columns; takes twice their bytes on the disk."""
    bench = f"import of {rows:,} rows of {KILOBYTES} kB"
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as name:
        small = _measured(Path(name) / "small", max(rows // REDUCTION, 1))
        large = _measured(Path(name) / "large", rows)
    longer = (large["cpu"] / large["bytes"]) / (small["cpu"] / small["bytes"])
    megabytes, grown = large["bytes"] / 1e6, large["peak"] / small["peak"]
    return [
        Measure(bench, "peak memory", large["peak"] / 1e6, "MB", MEMORY_GOAL),
        Measure(bench, f"peak memory, against 1 in {REDUCTION}", grown, "x", GROWTH_GOAL),
        Measure(bench, f"processor time a row, against 1 in {REDUCTION}", longer, "x", GROWTH_GOAL),
        Measure(bench, "time", large["seconds"], "s", note=f"{megabytes:,.0f} MB read"),
        Measure(bench, "read", megabytes / large["seconds"], "MB/s"),
        Measure(bench, "read, of processor time", megabytes / large["cpu"], "MB/s", SPEED_GOAL, at_least=True),
    ]


def _measured(folder: Path, rows: int) -> dict[str, float]:
    folder.mkdir()
    file, peak = folder / "train.jsonl", folder / "peak"
    with file.open("w", encoding="utf-8") as out:
        for number in range(1, rows + 1):
            out.write(f"{json.dumps(_row(number))}\n")
    size = file.stat().st_size
    command = [sys.executable, "-m", "research.bench.child", str(peak), "tasks", "import", str(file), "--json"]
    command += ["--source", "SWE-Gym/SWE-Gym", "--db", str(folder / "prchain.db")]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, check=False, capture_output=True, cwd=Path(__file__).parents[2])
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    waiting = sum(json.loads(ended.stdout)["waiting"].values())
    assert waiting == rows, f"{waiting} of {rows} were stored"
    for made in (file, folder / "prchain.db"):
        made.unlink()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "peak": float(peak.read_text()), "bytes": float(size)}


def _row(number: int) -> dict[str, object]:
    """A row of about `KILOBYTES`: half of it patches, a third names of tests."""
    lines = KILOBYTES * 1_000 // (4 * len(_LINE.encode()) + 40)
    patch = f"{_HEAD.format(f'part_{number}')}@@ -0,0 +1,{lines} @@\n{_LINE * lines}"
    return {
        "instance_id": f"shop__till-{number}",
        "repo": "shop/till",
        "base_commit": f"{number:040x}",
        "problem_statement": f"Part {number} lacks a check.\n\n" + "It has to be there. " * (KILOBYTES * 12),
        "hints_text": "",
        "created_at": "2024-05-01 12:30:00",
        "version": "1.2",
        "patch": patch,
        "test_patch": patch.replace("src/till/", "tests/test_"),
        "FAIL_TO_PASS": [f"tests/test_part_{number}.py::test_check"],
        "PASS_TO_PASS": [f"tests/test_part_{number}.py::test_check[{place}]" for place in range(KILOBYTES * 7)],
    }
