"""What many stages and branches leave behind: containers, images, folders and mounts of this process, which is nothing.

In containers and in namespaces, on a small tree. Needs Docker and bubblewrap.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from environments.sandboxes import leftovers
from environments.sandboxes.engine import connect, disk_usage
from environments.sandboxes.leftovers import LOCAL_PREFIX, OWNER_FILE
from environments.sandboxes.own_layers import area, engine_layers
from environments.sandboxes.sandbox import ResourceLimits
from environments.workplace import Workplace
from prchain.core.processes.alive import this_process
from research.bench.measures import Measure
from research.bench.placing_bench import BenchTrees, generated, keeping
from research.bench.sandbox_bench import IMAGE

STAGES = 200
BRANCHES = 500
FILES = 50
BACKENDS = ("docker", "local")
_LAYERS = "layers in the engine, more than before"


def run(*, image: str | None = None, stages: int = STAGES, branches: int = BRANCHES) -> list[Measure]:
    """Set so many stages up in a row, then make so many branches of a snapshot, each with a snapshot of its own."""
    image = image or os.environ.get("PRCHAIN_TEST_IMAGE", IMAGE)
    measures = []
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        trees = generated(Path(folder) / "trees", FILES)
        for backend in BACKENDS:
            bench = f"{stages} stages and {branches} branches in {backend}, {FILES} files"
            before, started = _remains(), time.perf_counter()
            with keeping(image, trees, ResourceLimits(memory_bytes=1 << 30), backend) as place:
                _stages(place, trees, stages)
                staged = time.perf_counter()
                _branches(place, trees, branches)
            ended, after = time.perf_counter(), _remains()
            measures += [
                Measure(bench, "a stage", (staged - started) / stages, "s"),
                Measure(bench, "a branch, with a snapshot of it", (ended - staged) / branches, "s"),
                *(
                    Measure(bench, f"{name} left", after[name] - before[name], goal=0)
                    for name in before
                    if name != _LAYERS
                ),
                Measure(bench, _LAYERS, after[_LAYERS] - before[_LAYERS], "MB", note="others' among them"),
            ]
    return measures


def _stages(place: Workplace, trees: BenchTrees, count: int) -> None:
    for turn in range(count):
        with place.sandbox() as sandbox:
            place.place(sandbox, trees.landed if turn % 2 else trees.base)
            assert sandbox.exec(f"echo {turn} > made && git status --porcelain").text == "?? made\n"


def _branches(place: Workplace, trees: BenchTrees, count: int) -> None:
    with place.sandbox() as sandbox:
        place.place(sandbox, trees.landed)
        name = sandbox.snapshot()
        for turn in range(count):
            with sandbox.branch(name) as other:
                assert other.exec(f"echo {turn} > made").exit_code == 0
                name, last = other.snapshot(), name
            sandbox.forget(last)


def _remains() -> dict[str, int]:
    """Counts of what there is: of this process, but for the engine's layers."""
    own = str(this_process())
    client = connect()
    try:
        found = leftovers.find_own(client)
        layers = int(disk_usage(client)["LayersSize"])
        layers_at = engine_layers(client)
    finally:
        client.close()
    places = [Path(tempfile.gettempdir()), *([area(layers_at)] if layers_at else ())]
    folders = [path for place in places for path in place.glob(f"{LOCAL_PREFIX}*/{OWNER_FILE}")]
    return {
        "containers": sum(item.kind == "container" for item in found),
        "snapshots": sum(item.kind == "snapshot" for item in found),
        "folders": sum(1 for path in folders if path.read_text(encoding="utf-8") == own),
        "mounts": _mounts(LOCAL_PREFIX),
        "processes below this one": len(_below(os.getpid())),
        _LAYERS: layers // 1_000_000,
    }


def _mounts(word: str) -> int:
    return sum(word in line for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines())


def _below(process: int) -> list[str]:

    return [it for path in Path(f"/proc/{process}/task").glob("*/children") for it in path.read_text().split()]
