"""What a command costs through the channel, against one engine call each; and what a snapshot costs. Needs Docker."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any

from environments.docker import DockerSandbox
from environments.engine import connect
from environments.sandbox import Limits, Place
from tests.bench.measures import Measure

IMAGE = "prchain-base:bookworm"
FASTER_GOAL = 10.0
"""Times that a trivial command has to be faster through the channel than by ``docker exec``."""
COMMANDS = 100
CONTAINERS = 4
SIZES = {"10 MB": 10, "300 MB": 300}
FILES = 20
BLOCK = 10


def run(*, image: str | None = None, turns: int = COMMANDS) -> list[Measure]:
    """Measure in the local engine. Raises `EngineUnavailable` or `ImageMissing` where that is not possible."""
    image = image or os.environ.get("PRCHAIN_TEST_IMAGE", IMAGE)
    return [*_commands(image, turns), *_at_once(image), *_snapshots(image)]


def _sandbox(image: str) -> DockerSandbox:
    return DockerSandbox(Place(image, limits=Limits(memory_bytes=1 << 30)))


def _commands(image: str, turns: int) -> list[Measure]:
    """The ways in turn, a few times each, so that whatever else the machine does hits all of them alike.

    The first of a block is left out: the engine still removes the last one's process then.
    """
    client = connect()
    with _sandbox(image) as box:
        container = client.containers.get(box.name)
        line = ["docker", "exec", box.name, "bash", "-c", "true"]

        def by_channel() -> None:
            assert box.exec("true").exit_code == 0

        def in_session() -> None:
            assert box.exec("true", session="bench").exit_code == 0

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
        began = time.perf_counter()
        result = box.exec("head -c 200000000 /dev/zero", output_limit=4 << 20)
        rate = (result.omitted + len(result.output)) / (time.perf_counter() - began) / 1e6
    client.close()
    middle = {name: median(values) * 1000 for name, values in seconds.items()}
    bench = f"a trivial command in a container, median of {turns}, {BLOCK} of each way in turn"
    return [
        Measure(bench, "our channel", middle["channel"], "ms"),
        Measure(bench, "our channel, in a session", middle["session"], "ms"),
        Measure(bench, "docker exec by CLI", middle["cli"], "ms"),
        Measure(bench, "docker exec by SDK", middle["sdk"], "ms"),
        Measure(bench, "CLI / channel", middle["cli"] / middle["channel"], "x", FASTER_GOAL, at_least=True),
        Measure(bench, "SDK / channel", middle["sdk"] / middle["channel"], "x", FASTER_GOAL, at_least=True),
        Measure(bench, "output through the channel", rate, "MB/s"),
    ]


def _at_once(image: str) -> list[Measure]:
    """Commands in several containers at once, through channels and by CLI."""
    bench = f"{COMMANDS} commands in each of {CONTAINERS} containers at once"
    with ExitStack() as stack:
        boxes = [stack.enter_context(_sandbox(image)) for _ in range(CONTAINERS)]
        few = COMMANDS // 10
        channel = _in_threads([partial(_repeat, COMMANDS, partial(box.exec, "true")) for box in boxes])
        line = _in_threads([partial(_repeat, few, partial(_line, box.name)) for box in boxes])
    return [
        Measure(bench, "our channels", CONTAINERS * COMMANDS / channel, "commands/s", note=f"{channel:.2f} s in all"),
        Measure(bench, "docker exec by CLI", CONTAINERS * few / line, "commands/s", note=f"measured with {few} each"),
    ]


def _snapshots(image: str) -> list[Measure]:
    measures = []
    for name, megabytes in SIZES.items():
        bench = f"snapshot and restore of {name} in {FILES} files"
        part = megabytes * 1_000_000 // FILES
        with _sandbox(image) as box:
            box.exec(f"for i in {{1..{FILES}}}; do head -c {part} /dev/urandom > f$i; done", timeout=300)
            began = time.perf_counter()
            kept = box.snapshot()
            between = time.perf_counter()
            box.restore(kept)
            box.exec("true")
            snapshot, restore = between - began, time.perf_counter() - between
            assert box.exec("cat f* | wc -c").output.strip() == str(part * FILES).encode()
            commit, run_again = _by_line(box.name)
        measures += [
            Measure(bench, "our snapshot", snapshot, "s"),
            Measure(bench, "our restore, with a first command", restore, "s"),
            Measure(bench, "docker commit", commit, "s"),
            Measure(bench, "docker run and a first exec", run_again, "s"),
        ]
    return measures


def _by_line(container: str) -> tuple[float, float]:
    """Seconds of `docker commit`, and of a `docker run` of it with one command, by CLI."""
    name = f"prchain-bench-{secrets.token_hex(4)}"
    try:
        commit = _timed(lambda: _docker("commit", container, name))

        def again() -> None:
            _docker(
                "run", "-d", "--init", "--network", "none", "--name", name, "--entrypoint", "sleep", name, "infinity"
            )
            _docker("exec", name, "bash", "-c", "true")

        return commit, _timed(again)
    finally:
        subprocess.run(["docker", "rm", "-f", "-v", name], check=False, capture_output=True)
        subprocess.run(["docker", "rmi", "-f", name], check=False, capture_output=True)


def _docker(*arguments: str) -> None:
    subprocess.run(["docker", *arguments], check=True, capture_output=True)


def _line(container: str) -> None:
    _docker("exec", container, "bash", "-c", "true")


def _repeat(times: int, call: Callable[[], Any]) -> None:
    for _ in range(times):
        call()


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _in_threads(calls: list[Callable[[], None]]) -> float:
    threads = [threading.Thread(target=call) for call in calls]

    def all_of_them() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return _timed(all_of_them)
