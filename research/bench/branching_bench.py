"""What a search for another continuation costs: snapshots, branches and restores of a stage's tree, and their disk.

In containers and in namespaces. Needs Docker and bubblewrap.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

from environments.checkouts.checkout import move_tree
from environments.sandboxes.docker import SNAPSHOTS as IMAGES
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import connect
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.local_files import used_bytes
from environments.sandboxes.sandbox import ResourceLimits, Sandbox
from environments.workplace import Workplace
from research.bench.measures import Measure
from research.bench.placing_bench import FILES, BenchTrees, generated, keeping

TURNS = 20
SNAPSHOTS = 100
"""As many as a stage of a hundred steps has; their disk is computed from that of the turns."""

ALIVE = 20

T = TypeVar("T")

_LIMITS = ResourceLimits(memory_bytes=1 << 30)


def run(image: str, *, files: Mapping[str, int] | None = None, turns: int = TURNS) -> list[Measure]:
    """Measure both backends on generated trees; `files` as `placing_bench.FILES`."""
    measures = []
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        for name, count in (files or FILES).items():
            trees = generated(Path(folder) / name, count)
            for backend in ("docker", "local"):
                bench = f"a search in {backend} on a {name} tree of {count:,} files, median of {turns}"
                with keeping(image, trees, _LIMITS, backend) as place:
                    measures += _search(bench, partial(_placed, place, trees), trees, turns)
    return measures


@contextmanager
def _placed(place: Workplace, trees: BenchTrees) -> Iterator[Sandbox]:
    """A sandbox that holds M_{t-1}, as rollouts make it; the first one keeps its base."""
    with place.sandbox() as sandbox:
        place.place(sandbox, trees.landed)
        yield sandbox


def _search(
    bench: str,
    make: Callable[[], AbstractContextManager[Sandbox]],
    trees: BenchTrees,
    turns: int,
) -> list[Measure]:
    """A step that writes, a snapshot, a branch and a restore, again and again; then snapshots without restores: of a
    copy, as curation takes them, and of a sandbox that holds what its own base does not."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, call: Callable[[], T]) -> T:
        started = time.perf_counter()
        result = call()
        seconds[what].append(time.perf_counter() - started)
        return result

    with make() as sandbox:
        names = [sandbox.snapshot()]
        sandbox.restore(names[0])
        for turn in range(turns):
            assert sandbox.exec(f"echo {turn} > step{turn}").exit_code == 0
            names.append(timed("snapshot", sandbox.snapshot))
            with timed("branch", lambda: sandbox.branch(names[-1])) as other:
                assert other.exec(f"cat step{turn}").output == b"%d\n" % turn
            timed("restore", lambda: sandbox.restore(names[-1]))
        chained = snapshot_bytes(sandbox, names[1:])
        with ExitStack() as alive:
            others = timed(
                f"{ALIVE} branches of one snapshot, alive at once",
                lambda: [alive.enter_context(sandbox.branch(names[-1])) for _ in range(ALIVE)],
            )
            assert all(other.exec("echo mine > step0 && cat step1").output == b"1\n" for other in others)
        with sandbox.branch(names[0]) as other:
            timed("move_tree to B_t", lambda: move_tree(other, trees.store, trees.landed, trees.base))
        sandbox.restore(names[0])  # nothing that a sandbox stands on is freed
        for name in reversed(names):
            timed("forget", partial(sandbox.forget, name))
    with make() as sandbox:
        disks = {}
        for what, unrestored in (
            ("a copy", sandbox.branch(sandbox.snapshot())),
            ("a placed sandbox", contextlib.nullcontext(sandbox)),
        ):
            with unrestored as box:
                taken = []
                for turn in range(turns):
                    # An engine keeps equal layers once.
                    assert box.exec(f"echo {what} {turn} > step{turn}").exit_code == 0
                    taken.append(timed(f"snapshot of {what}, never restored", box.snapshot))
                disks[what] = snapshot_bytes(box, taken)
    scale = SNAPSHOTS / turns / 1e6
    return [
        *(Measure(bench, name, median(values), "s") for name, values in seconds.items()),
        Measure(bench, f"{SNAPSHOTS} snapshots, each restored", chained * scale, "MB", 1000.0),
        Measure(bench, f"{SNAPSHOTS} snapshots of a copy, none restored", disks["a copy"] * scale, "MB", 1000.0),
        Measure(bench, f"{SNAPSHOTS} of a sandbox moved from its base", disks["a placed sandbox"] * scale, "MB"),
    ]


def snapshot_bytes(sandbox: Sandbox, names: Collection[str]) -> int:
    """Bytes that snapshots take besides what they stand on."""
    if isinstance(sandbox, LocalSandbox):
        return sum(used_bytes(sandbox._family.snapshots[name].folder) for name in names)
    assert isinstance(sandbox, DockerSandbox)
    snapshots = {name: sandbox._family._snapshots[name] for name in names}
    copies = [it.written.folder for it in snapshots.values() if it.written is not None]
    files = {at.stat().st_ino: at.stat().st_blocks * 512 for folder in copies for at in folder.iterdir()}
    client = connect()
    try:
        images = [f"{IMAGES}:{name}" for name, it in snapshots.items() if it.written is None]
        return sum(files.values()) + sum(int(client.api.history(image)[0]["Size"]) for image in images)
    finally:
        client.close()
