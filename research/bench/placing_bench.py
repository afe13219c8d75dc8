"""What it costs to set a stage up in a container and to follow the agent's tree, on a small and on a large repository.

The way to compare with is what most harnesses do: a clone of the repository, borrowing its objects from a mirror that
is mounted, and a checkout. (It shows the agent the whole future; ours cuts a repository of one commit.) Needs Docker.
"""

from __future__ import annotations

import random
import shlex
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from environments.checkouts.checkout import extract_tree, place_tree
from environments.checkouts.state import next_state
from environments.checkouts.tracking import Tracker
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from prchain.git.trees import FILE, SUBMODULE, TreeEntry, TreeStore
from research.bench.measures import Measure

FILES = {"small": 200, "large": 9_000}
TURNS = {"small": 5, "large": 2}
LANDINGS = 40
CHANGED = 3
STEPS = 5
_TICK = 0.1
_WORDS = tuple(
    "buffer token window parse merge layout cursor render scope lookup value config batch retry index".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Bed:
    """A repository and, in a store that borrows from it, two trees in a row: M_{t-1} and B_t."""

    mirror: Path
    store: TreeStore
    landed: str
    base: str


def run(image: str, *, mirror: Path | None = None, files: Mapping[str, int] | None = None) -> list[Measure]:
    """Measure in the local engine, on generated trees and, if one is given, on the tip of a mirror."""
    measures = []
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        for name, count in (files or FILES).items():
            bed = generated(Path(folder) / name, count)
            measures += _placing(image, bed, f"a {name} tree of {count:,} files", TURNS.get(name, 1))
        if mirror is not None:
            bed = of_mirror(mirror, Path(folder) / "mirror")
            measures += _placing(image, bed, f"the tip of {mirror.name}", 2)
    return measures


def generated(folder: Path, count: int) -> Bed:
    """A repository of so many files of source-like text, 8 KB each on average, and a few landings."""
    rng = random.Random(count)
    folder.mkdir()
    path = folder / "mirror.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    names = [f"src/part{number % 60}/module{number % 7}/file{number}.py" for number in range(count)]
    importing = ["git", "-C", str(path), "fast-import", "--quiet"]
    with subprocess.Popen(importing, stdin=subprocess.PIPE) as process:
        assert process.stdin
        for turn in range(LANDINGS + 1):
            process.stdin.write(
                b"commit refs/heads/main\ncommitter B <b@example.org> %d +0000\ndata 1\nx\n" % (1_500_000_000 + turn)
            )
            for name in names if turn == 0 else rng.sample(names, 5):
                text = "".join(
                    f"{' ' * rng.randrange(0, 12, 4)}{' '.join(rng.choices(_WORDS, k=6))}\n"
                    for _ in range(rng.randrange(20, 340))
                ).encode()
                process.stdin.write(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(text), text))
            process.stdin.write(b"\n")
    if process.returncode:
        raise RuntimeError("the repository of the bench could not be made")
    return of_mirror(path, folder)


def of_mirror(mirror: Path, folder: Path) -> Bed:
    """The tip of a repository and a commit before it, without files whose blobs are missing there."""
    store = TreeStore.open(folder / "store", [mirror])
    trees = []
    for name in ("HEAD~5", "HEAD"):
        shown = subprocess.run(
            ["git", "-C", str(mirror), "rev-parse", f"{name}^{{tree}}"], check=True, capture_output=True, text=True
        )
        tree = shown.stdout.strip()
        entries = store.entries(tree)
        with store.stream("cat-file", "--batch-check", lines=(entry.blob for entry in entries.values())) as output:
            missing = {line.split()[0].decode() for line in output if line.rstrip().endswith(b"missing")}
        lost: dict[bytes, TreeEntry | None] = {
            path: None for path, entry in entries.items() if entry.mode == SUBMODULE or entry.blob in missing
        }
        trees.append(store.edit(tree, lost))
    return Bed(mirror.absolute(), store, *trees)


def _placing(image: str, bed: Bed, name: str, turns: int) -> list[Measure]:
    seconds: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, call: Callable[[], object]) -> None:
        seconds[what].append(_timed(call))

    agent = _agents_tree(bed)
    tree = bed.landed
    for _ in range(turns):
        timed("id", lambda: next_state(bed.store, landed_before=bed.landed, agent_tree=agent, base=bed.base))
        seconds["clone"].append(_clone(image, bed))
        with DockerSandbox(SandboxConfig(image, limits=ResourceLimits(memory_bytes=2 << 30))) as sandbox:
            timed("placed", partial(place_tree, sandbox, bed.store, bed.base))
            timed("next", partial(place_tree, sandbox, bed.store, bed.landed))
            timed("extracted", partial(extract_tree, sandbox, bed.store, start_tree=tree, ignore_rules_from=tree))
            tracker = Tracker(sandbox, bed.store, start_tree=tree, ignore_rules_from=tree)
            assert tracker.take() == bed.landed
            some = [path.decode() for path in list(bed.store.entries(bed.landed))[:CHANGED]]
            for step in range(STEPS):
                time.sleep(_TICK)
                tracker.take()
                timed("idle", tracker.take)
                sandbox.exec("".join(f"echo {step} >> {shlex.quote(path)}\n" for path in some))
                timed("changed", tracker.take)
    middle = {what: median(values) for what, values in seconds.items()}
    bench = f"a stage on {name}, median of {turns}"
    return [
        Measure(bench, "S_t's tree id, by merge", middle["id"] * 1000, "ms"),
        Measure(bench, "our set-up in a new container", middle["placed"], "s"),
        Measure(bench, "our set-up of the next stage in it", middle["next"], "s"),
        Measure(bench, "clone from a mounted mirror, and checkout", middle["clone"], "s"),
        Measure(bench, "clone and checkout / our set-up", middle["clone"] / middle["placed"], "x"),
        Measure(bench, "a full extraction", middle["extracted"], "s"),
        Measure(bench, "the tree after a step that changed nothing", middle["idle"] * 1000, "ms"),
        Measure(bench, f"the tree after a step that changed {CHANGED} files", middle["changed"] * 1000, "ms"),
    ]


def _agents_tree(bed: Bed) -> str:
    """M_{t-1} with a few files in another version."""
    entries = list(bed.store.entries(bed.landed).items())[:CHANGED]
    blobs = bed.store.write("blob", [b"the agent's\n%d\n" % number for number in range(CHANGED)])
    return bed.store.edit(
        bed.landed, {path: TreeEntry(FILE, blob) for (path, _), blob in zip(entries, blobs, strict=True)}
    )


def _clone(image: str, bed: Bed) -> float:
    """Seconds in a new container with the mirror and the store mounted."""
    commit = bed.store.commit(bed.base)
    mounts = [str(bed.mirror), str(bed.store.path.absolute())]
    mirror, store = map(shlex.quote, mounts)
    script = (
        f"git config --global safe.directory '*' && git clone -q --shared --no-checkout {mirror} /testbed/clone && "
        f"cd /testbed/clone && echo {store}/objects >> .git/objects/info/alternates && "
        f"git checkout -q --detach {commit}"
    )
    made = subprocess.run(
        ["docker", "run", "-d", "--init", "--network", "none", "--user", "0", "--label", "prchain.test=bench"]
        + [word for mount in mounts for word in ("-v", f"{mount}:{mount}:ro")]
        + ["--entrypoint", "sleep", image, "infinity"],
        check=True,
        capture_output=True,
        text=True,
    )
    container = made.stdout.strip()
    try:
        command = ["docker", "exec", container, "bash", "-c", script]
        return _timed(lambda: subprocess.run(command, check=True, capture_output=True))
    finally:
        subprocess.run(["docker", "rm", "-f", "-v", container], check=False, capture_output=True)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
