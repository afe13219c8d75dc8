"""The cost of setting a stage up in a container and of tracking the agent's tree, on a small and a large repository.

The comparison is what most harnesses do: clone the repository, with its objects from a mounted mirror, and check out.
(That shows the agent the whole future; ours has a repository of one commit.) Needs Docker.
"""

from __future__ import annotations

import random
import secrets
import shlex
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from environments.backends import BACKENDS
from environments.checkouts.checkout import extract_tree, place_tree
from environments.checkouts.state import next_state
from environments.checkouts.tracking import Tracker
from environments.images.image_plan import ImagePlan
from environments.images.recipes import shipped_recipes
from environments.images.stage_image import StageImage
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.kept_places import drop_places
from environments.sandboxes.local_places import kept_folders
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from environments.workplace import Workplace
from prchain.core.git.process import GitStream, only, run_git
from prchain.core.git.trees import FILE, SUBMODULE, TreeEntry, TreeStore
from research.bench.measures import Measure

FILES = {"small": 200, "large": 9_000}
TURNS = 20
"""Of the clone and of set-ups by way of a kept base, in turn."""
FEW = 3
"""Of the rest, which is not beside the clone."""
LANDINGS = 40
CHANGED = 3
STEPS = 5
_TICK = 0.1
_WORDS = tuple(
    "buffer token window parse merge layout cursor render scope lookup value config batch retry index".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class BenchTrees:
    """A repository and, in a store that borrows its objects, two successive trees: M_{t-1} and B_t."""

    mirror: Path
    store: TreeStore
    landed: str
    base: str


def run(
    image: str, *, mirror: Path | None = None, files: Mapping[str, int] | None = None, turns: int = TURNS
) -> list[Measure]:
    """Measure in the local engine, on generated trees and, with `mirror`, on the tip of a mirror."""
    measures = []
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        for name, count in (files or FILES).items():
            bench_trees = generated(Path(folder) / name, count)
            measures += _placing(image, bench_trees, f"a {name} tree of {count:,} files", turns)
        if mirror is not None:
            bench_trees = of_mirror(mirror, Path(folder) / "mirror")
            measures += _placing(image, bench_trees, f"the tip of {mirror.name}", turns)
    return measures


def generated(folder: Path, count: int) -> BenchTrees:
    """A repository of so many files of source-like text, 8 KB each on average, and a few landings."""
    rng = random.Random(count)
    folder.mkdir()
    path = folder / "mirror.git"
    run_git("init", "-q", "--bare", "-b", "main", str(path), place=folder)
    names = [f"src/part{number % 60}/module{number % 7}/file{number}.py" for number in range(count)]
    fast_import = GitStream(("fast-import", "--quiet"), None, own=only(path))
    with fast_import as output, fast_import.input as script:
        for turn in range(LANDINGS + 1):
            script.write(
                b"commit refs/heads/main\ncommitter B <b@example.org> %d +0000\ndata 1\nx\n" % (1_500_000_000 + turn)
            )
            for name in names if turn == 0 else rng.sample(names, 5):
                text = "".join(
                    f"{' ' * rng.randrange(0, 12, 4)}{' '.join(rng.choices(_WORDS, k=6))}\n"
                    for _ in range(rng.randrange(20, 340))
                ).encode()
                script.write(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(text), text))
            script.write(b"\n")
        script.close()
        output.read()
    return of_mirror(path, folder)


def of_mirror(mirror: Path, folder: Path) -> BenchTrees:
    """The tip of a repository and a commit before it, without files whose blobs are missing."""
    store = TreeStore.open(folder / "store", [mirror])
    trees = []
    for name in ("HEAD~5", "HEAD"):
        tree = run_git("rev-parse", f"{name}^{{tree}}", place=mirror).decode().strip()
        entries = store.entries(tree)
        with store.stream("cat-file", "--batch-check", lines=(entry.blob for entry in entries.values())) as output:
            missing = {line.split()[0].decode() for line in output if line.rstrip().endswith(b"missing")}
        removed: dict[bytes, TreeEntry | None] = {
            path: None for path, entry in entries.items() if entry.mode == SUBMODULE or entry.blob in missing
        }
        trees.append(store.edit(tree, removed))
    return BenchTrees(mirror.absolute(), store, *trees)


def _placing(image: str, bench_trees: BenchTrees, name: str, turns: int) -> list[Measure]:
    seconds: dict[str, list[float]] = defaultdict(list)

    def timed(label: str, call: Callable[[], object]) -> None:
        seconds[label].append(_timed(call))

    agent = _agents_tree(bench_trees)
    tree = bench_trees.landed
    with ExitStack() as later:
        for _ in range(turns):
            seconds["clone"].append(_clone(image, bench_trees, later))
            for label, call in _by_base(image, bench_trees, agent, later):
                timed(label, call)
    for _ in range(min(turns, FEW)):
        timed(
            "id",
            lambda: next_state(
                bench_trees.store, landed_before=bench_trees.landed, agent_tree=agent, base=bench_trees.base
            ),
        )
        with DockerSandbox(SandboxConfig(image, limits=ResourceLimits(memory_bytes=2 << 30))) as sandbox:
            timed("placed", partial(place_tree, sandbox, bench_trees.store, bench_trees.base))
            timed("next", partial(place_tree, sandbox, bench_trees.store, bench_trees.landed))
            timed(
                "extracted", partial(extract_tree, sandbox, bench_trees.store, start_tree=tree, ignore_rules_from=tree)
            )
            _steps(sandbox, bench_trees, "", timed)
            sandbox.restore(sandbox.snapshot())
            _steps(sandbox, bench_trees, _KEPT_BASE, timed)
    medians = {label: median(values) for label, values in seconds.items()}
    bench = f"a stage on {name}, median of {turns}, of the rest {min(turns, FEW)}"
    large = medians["clone"] > 1.0  # a clone of few files takes less than a command by the engine
    return [
        Measure(bench, "S_t's tree id, by merge", medians["id"] * 1000, "ms"),
        Measure(bench, "our set-up in a new container", medians["placed"], "s"),
        Measure(bench, "our set-up of the next stage in it", medians["next"], "s"),
        Measure(bench, "clone from a mounted mirror, and checkout", medians["clone"], "s"),
        Measure(bench, "clone and checkout / our set-up", medians["clone"] / medians["placed"], "x"),
        *(
            Measure(
                bench, f"{words} / clone and checkout", medians[label] / medians["clone"], "x", goal if large else None
            )
            for label, words, goal in _KEPT
        ),
        *(Measure(bench, words, medians[label], "s") for label, words, _ in _KEPT),
        Measure(bench, "a full extraction", medians["extracted"], "s"),
        *(
            Measure(
                bench, f"the tree after a step that changed {words}{where}", medians[label + where] * 1000, "ms", goal
            )
            for where in ("", _KEPT_BASE)
            for label, words, goal in (("idle", "nothing", 20.0), ("changed", f"{CHANGED} files", 60.0))
        ),
    ]


_KEPT_BASE = ", in a sandbox that began with a kept base"


def _steps(
    sandbox: DockerSandbox, bench_trees: BenchTrees, where: str, timed: Callable[[str, Callable[[], object]], None]
) -> None:
    """Follow the tree of a sandbox that holds M_{t-1}."""
    tree = bench_trees.landed
    tracker = Tracker(sandbox, bench_trees.store, start_tree=tree, ignore_rules_from=tree)
    tracker.take()
    paths = [path.decode() for path in list(bench_trees.store.entries(tree))[:CHANGED]]
    for step in range(STEPS):
        time.sleep(_TICK)
        tracker.take()
        timed(f"idle{where}", tracker.take)
        sandbox.exec("".join(f"echo {step} >> {shlex.quote(path)}\n" for path in paths))
        timed(f"changed{where}", tracker.take)


_KEPT = (
    ("first", "the base's first set-up, which is kept", 1.0),
    ("second", "its second one", 0.15),
    ("later", "its later ones", 0.15),
    ("moved", f"a tree of an agent with {CHANGED} changed files, later", 0.15),
)
"""Label of the times, what they are of, and the goal beside clone and checkout."""


def _by_base(
    image: str, bench_trees: BenchTrees, agent: str, later: ExitStack
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Set-ups by way of a base that is kept, as stages of rollouts and their tests are set up: each in a new container,
    whose start does not count, as that of the clone does not.

    What holds all files goes with `later`, as the clones do: on ext4 whoever writes 9,000 files just after as many were
    removed waits for seconds.
    """
    trees = bench_trees.store
    place = later.enter_context(keeping(image, bench_trees))
    base = trees.commit(bench_trees.base)
    for label, tree in (("first", base), ("second", base), ("later", base), ("moved", agent)):
        with ExitStack() as now:
            sandbox = (later if label == "first" else now).enter_context(place.sandbox())
            yield label, partial(place.place, sandbox, tree)
            assert (
                sandbox.exec("git status --porcelain && git rev-parse HEAD^{tree}").text == f"{trees.tree_of(tree)}\n"
            )


@contextmanager
def keeping(
    image: str, bench_trees: BenchTrees, limits: ResourceLimits | None = None, backend: str = "docker"
) -> Iterator[Workplace]:
    """A workplace in a backend that keeps B_t, which is a base of this bench's own and goes with it. Nothing is
    installed, as nothing is beside the clone."""
    (recipe,) = (recipe for recipe in shipped_recipes() if recipe.name == "python")
    own = {"PRCHAIN_BENCH": secrets.token_hex(8)}
    recipe = recipe.model_copy(update={"refresh": ()})
    plan = ImagePlan("bench/bench", recipe, image, (), {}, {}, own, recipe.runner, "")
    base = bench_trees.store.commit(bench_trees.base)
    with BACKENDS[backend].connected() as connected:
        place = Workplace(StageImage(plan, image), bench_trees.store, backend=connected, base=base, limits=limits)
        try:
            yield place
        finally:
            kept_folders().drop()
            with place.sandbox() as sandbox:
                name = sandbox._place_name if isinstance(sandbox, DockerSandbox) else ""
            if name:
                drop_places(connected.client, named=name)


def _agents_tree(bench_trees: BenchTrees) -> str:
    """M_{t-1} with a few files in another version."""
    entries = list(bench_trees.store.entries(bench_trees.landed).items())[:CHANGED]
    blobs = bench_trees.store.write("blob", [b"the agent's\n%d\n" % number for number in range(CHANGED)])
    return bench_trees.store.edit(
        bench_trees.landed, {path: TreeEntry(FILE, blob) for (path, _), blob in zip(entries, blobs, strict=True)}
    )


def _clone(image: str, bench_trees: BenchTrees, later: ExitStack) -> float:
    """Seconds of clone and checkout in a new container with the mirror and the store mounted; it goes with `later`."""
    commit = bench_trees.store.commit(bench_trees.base)
    mounts = [str(bench_trees.mirror), str(bench_trees.store.path.absolute())]
    mirror, store = map(shlex.quote, mounts)
    script = (
        f"git config --global safe.directory '*' && git clone -q --shared --no-checkout {mirror} /testbed/clone && "
        f"cd /testbed/clone && echo {store}/objects >> .git/objects/info/alternates && "
        f"git checkout -q --detach {commit}"
    )
    process = subprocess.run(
        ["docker", "run", "-d", "--init", "--network", "none", "--user", "0", "--label", "prchain.test=bench"]
        + [word for mount in mounts for word in ("-v", f"{mount}:{mount}:ro")]
        + ["--entrypoint", "sleep", image, "infinity"],
        check=True,
        capture_output=True,
        text=True,
    )
    container = process.stdout.strip()
    later.callback(subprocess.run, ["docker", "rm", "-f", "-v", container], check=False, capture_output=True)
    command = ["docker", "exec", container, "bash", "-c", script]
    return _timed(lambda: subprocess.run(command, check=True, capture_output=True))


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
