"""The cost of a command through the channel, against one engine call each; of a stage's set-up, and of a snapshot.

Needs a Docker engine on this machine, its command line, an image with git, and bubblewrap.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import connect
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from research.bench import branching_bench, placing_bench
from research.bench.measures import Measure

IMAGE = "prchain-base:bookworm"
FASTER_GOAL = 10.0
"""How many times faster a trivial command must be through the channel than by ``docker exec``."""
COMMANDS = 100
CONTAINERS = 4
SIZES = {"10 MB": (10, 3), "300 MB": (300, 2)}
"""Label to (megabytes that a container wrote before its snapshot, number of measurements)."""
FILES = 20
BRANCHES = 8
MUCH = 100
"""Megabytes from which on what is written decides how long a snapshot takes."""
BLOCK = 10


def run(
    *,
    image: str | None = None,
    mirror: Path | None = None,
    turns: int = COMMANDS,
    sizes: Mapping[str, tuple[int, int]] | None = None,
    trees: Mapping[str, int] | None = None,
    placings: int = placing_bench.TURNS,
) -> list[Measure]:
    """Measure in the local engine. Raises `EngineUnavailable` or `ImageMissing` where that is not possible.

    `sizes` as `SIZES` and `trees` as `placing_bench.FILES`, each placed so many times; `mirror` is one more
    repository to set a stage up from.
    """
    image = image or os.environ.get("PRCHAIN_TEST_IMAGE", IMAGE)
    before = os.getloadavg()[0]
    measures = [
        *_commands(image, turns),
        *_at_once(image, turns),
        *placing_bench.run(image, mirror=mirror, files=trees, turns=placings),
        *branching_bench.run(image, files=trees, turns=placings),
        *(measure for name, size in (sizes or SIZES).items() for measure in _snapshots(image, name, *size)),
    ]
    bench = "the machine meanwhile"
    return [
        *measures,
        Measure(bench, "processors", os.cpu_count() or 0),
        Measure(bench, "load average before", before, note="of the last minute; figures of a busy machine are high"),
        Measure(bench, "load average after", os.getloadavg()[0]),
    ]


def _sandbox(image: str) -> DockerSandbox:
    return DockerSandbox(SandboxConfig(image, limits=ResourceLimits(memory_bytes=1 << 30)))


def _commands(image: str, turns: int) -> list[Measure]:
    """The ways in turn, a few times each, so that other load of the machine affects all alike.

    The first command of a block does not count: the engine is still removing the process of the previous one.
    """
    client = connect()
    with _sandbox(image) as sandbox:
        container = client.containers.get(sandbox.name)
        line = ["docker", "exec", sandbox.name, "bash", "-c", "true"]

        def by_channel() -> None:
            assert sandbox.exec("true").exit_code == 0

        def in_session() -> None:
            assert sandbox.exec("true", session="bench").exit_code == 0

        def by_line() -> None:
            subprocess.run(line, check=True, capture_output=True)

        def by_sdk() -> None:
            assert container.exec_run(["bash", "-c", "true"]).exit_code == 0

        ways: dict[str, Callable[[], None]] = {
            "channel": by_channel,
            "session": in_session,
            "cli": by_line,
            "sdk": by_sdk,
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(turns // BLOCK):
            for name, way in ways.items():
                way()
                seconds[name] += [_timed(way) for _ in range(BLOCK)]
        started = time.perf_counter()
        result = sandbox.exec("head -c 200000000 /dev/zero", output_limit=4 << 20)
        rate = (result.omitted + len(result.output)) / (time.perf_counter() - started) / 1e6
    client.close()
    medians = {name: median(values) * 1000 for name, values in seconds.items()}
    bench = f"a trivial command in a container, median of {turns}, {BLOCK} of each way in turn"
    return [
        Measure(bench, "our channel", medians["channel"], "ms"),
        Measure(bench, "our channel, in a session", medians["session"], "ms"),
        Measure(bench, "docker exec by CLI", medians["cli"], "ms"),
        Measure(bench, "docker exec by SDK", medians["sdk"], "ms"),
        Measure(bench, "CLI / channel", medians["cli"] / medians["channel"], "x", FASTER_GOAL, at_least=True),
        Measure(bench, "SDK / channel", medians["sdk"] / medians["channel"], "x", FASTER_GOAL, at_least=True),
        Measure(bench, "output through the channel", rate, "MB/s"),
    ]


def _at_once(image: str, turns: int) -> list[Measure]:
    """Commands in several containers at once, through channels and by CLI."""
    bench = f"{turns} commands in each of {CONTAINERS} containers at once"
    with ExitStack() as stack:
        sandboxes = [stack.enter_context(_sandbox(image)) for _ in range(CONTAINERS)]
        few = max(1, turns // 10)
        channel = _in_threads([partial(_repeat, turns, partial(sandbox.exec, "true")) for sandbox in sandboxes])
        line = _in_threads([partial(_repeat, few, partial(_line, sandbox.name)) for sandbox in sandboxes])
    return [
        Measure(bench, "our channels", CONTAINERS * turns / channel, "commands/s", note=f"{channel:.2f} s in all"),
        Measure(bench, "docker exec by CLI", CONTAINERS * few / line, "commands/s", note=f"measured with {few} each"),
    ]


def _snapshots(image: str, name: str, megabytes: int, turns: int) -> list[Measure]:
    """Both ways, in turn: snapshot a container that has just written the same amount, and restore it."""
    bench = f"snapshot and restore of {name} in {FILES} files, median of {turns}"
    part = megabytes * 1_000_000 // FILES
    # What is not on the disk yet is waited for by whatever of the engine unmounts something next.
    write = f"for i in {{1..{FILES}}}; do head -c {part} /dev/urandom > /testbed/f$i; done; sync"
    ours, theirs, branches = [], [], []
    for _ in range(turns):
        ours.append(_by_channel(image, write, part * FILES))
        theirs.append(_by_line(image, write, part * FILES))
        branches.append(_branches(image, write))
    beside = median(commit + run_again for commit, run_again, _ in theirs)
    rows = [
        ("our snapshot", ours, 0),
        ("docker commit", theirs, 0),
        ("our restore, with a first command", ours, 1),
        ("docker rm -f, run and a first exec", theirs, 1),
    ]
    goal = 0.2 if megabytes >= MUCH else None  # of little a container's start is all that takes time
    times = (
        ("the first", [it[0] for it, _ in branches]),
        ("the second", [it[1] for it, _ in branches]),
        ("later ones", [later for it, _ in branches for later in it[2:]]),
    )
    return [
        *(
            Measure(
                bench, label, median(it[column] for it in pairs), "s", note=f"{median(it[2] for it in pairs):.0f} MB"
            )
            for label, pairs, column in rows
        ),
        *(
            Measure(bench, f"snapshot, branch and first command, {label} / by docker", median(of) / beside, "x", goal)
            for label, of in times
        ),
        Measure(bench, "the sandbox's own next command after the first", median(own for _, own in branches), "s"),
    ]


def _by_channel(image: str, write: str, size: int) -> tuple[float, float, float]:
    """Seconds of our snapshot, and of our restore with one command; megabytes of the snapshot."""
    with _sandbox(image) as sandbox:
        assert sandbox.exec(write, timeout=300).exit_code == 0
        snapshots: list[str] = []
        snapshot = _timed(lambda: snapshots.append(sandbox.snapshot()))

        def restore_once() -> None:
            sandbox.restore(snapshots[0])
            sandbox.exec("true")

        restore = _timed(restore_once)
        assert int(sandbox.exec("cat /testbed/f* | wc -c").output) == size
        kept = sandbox._family._snapshots[snapshots[0]]
        if kept.written is not None:
            return snapshot, restore, sum(name.status.st_size for name in kept.written.names if name.content) / 1e6
        if kept.ground.layers:
            return snapshot, restore, kept.ground.layers[0].used / 1e6
        return snapshot, restore, _layer(kept.ground.image, image)


def _branches(image: str, write: str) -> tuple[list[float], float]:
    """Seconds of snapshots of one sandbox that wrote much, after a step each, with a branch and its first command; and
    of its own first command after the first snapshot, for which it may have to begin anew."""
    with _sandbox(image) as sandbox:
        assert sandbox.exec(write, timeout=300).exit_code == 0

        def branch_once(step: int) -> None:
            with sandbox.branch(sandbox.snapshot()) as other:
                assert other.exec("cat /testbed/step").output == b"%d\n" % step

        found: list[float] = []
        steps: list[float] = []
        for step in range(BRANCHES):
            steps.append(_timed(partial(sandbox.exec, f"echo {step} > /testbed/step")))
            found.append(_timed(partial(branch_once, step)))
        return found, steps[1]


def _by_line(image: str, write: str, size: int) -> tuple[float, float, float]:
    """The same by CLI: `docker commit`, then `rm`, `run` and `exec`."""
    name = f"prchain-bench-{secrets.token_hex(4)}"
    start = ("run", "-d", "--init", "--network", "none", "--name", name, "--entrypoint", "sleep")
    try:
        _docker(*start, image, "infinity")
        _docker("exec", name, "bash", "-c", write)
        commit = _timed(lambda: _docker("commit", name, name))

        def run_anew() -> None:
            _docker("rm", "-f", "-v", name)
            _docker(*start, name, "infinity")
            _docker("exec", name, "bash", "-c", "true")

        run_again = _timed(run_anew)
        assert int(_docker("exec", name, "bash", "-c", "cat /testbed/f* | wc -c")) == size
        return commit, run_again, _layer(name, image)
    finally:
        subprocess.run(["docker", "rm", "-f", "-v", name], check=False, capture_output=True)
        subprocess.run(["docker", "rmi", "-f", name], check=False, capture_output=True)


def _layer(image: str, below: str) -> float:
    """Megabytes by which an image is larger than another."""
    whole, part = (int(_docker("image", "inspect", "-f", "{{.Size}}", name)) for name in (image, below))
    return (whole - part) / 1e6


def _docker(*arguments: str) -> bytes:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True).stdout


def _line(container: str) -> None:
    _docker("exec", container, "bash", "-c", "true")


def _repeat(times: int, call: Callable[[], Any]) -> None:
    for _ in range(times):
        call()


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _in_threads(calls: list[Callable[[], None]]) -> float:
    threads = [threading.Thread(target=call) for call in calls]

    def all_of_them() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return _timed(all_of_them)
