"""Rollouts whose process is killed, whose sandboxes die and whose endpoint fails: costs and outcomes.

Real processes, real sockets, sandboxes of bubblewrap.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.endpoint import Answer, Call, FakeEndpoint, cut, error, wait_for
from tests.trajectories.rolloutworld import RolloutWorld, answering, place_of, rollout_world

ROOT = Path(__file__).parents[2]
PRICES = ("1.0", "4.0")

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap")


def start(
    folder: Path, endpoint: FakeEndpoint, *arguments: str, patience: float = 20, db: str = "prchain.db", key: str = ""
) -> subprocess.Popen[str]:
    """Start `prchain rollouts run` as a user does, with so many seconds to wait for each answer."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_BASE_URL": endpoint.url,
        "PRCHAIN_LLM_MODEL": "fake",
        "PRCHAIN_LLM_PRICE_INPUT": PRICES[0],
        "PRCHAIN_LLM_PRICE_OUTPUT": PRICES[1],
        "PRCHAIN_DATA_DIR": "data",
        "PRCHAIN_LLM_TIMEOUT_SECONDS": str(patience),
        "OPENAI_API_KEY": key,
    }
    command = [sys.executable, "-m", "prchain.cli", "rollouts", "run", "--db", db, "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, "--backend", "local", *arguments], cwd=folder, env=environment, text=True, stdout=pipe, stderr=pipe
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> dict[str, object]:
    """Wait for the end of a run; its report."""
    output, err = process.communicate(timeout=400)
    assert process.returncode == code, err
    report = json.loads(output)
    assert isinstance(report, dict)
    return report


def billed(endpoint: FakeEndpoint) -> Counter[str]:
    """How often each different request was billed."""
    return Counter(json.dumps(call.body, sort_keys=True) for call, _ in endpoint.bill)


@contextlib.contextmanager
def worlds(tmp_path: Path, chains: list[tuple[int, ...]]) -> Iterator[tuple[RolloutWorld, RolloutWorld]]:
    """Two equal worlds: one for a run without faults."""
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with rollout_world(tmp_path / "calm", chains) as calm, rollout_world(tmp_path / "rough", chains) as rough:
        yield calm, rough


def ids(world: RolloutWorld) -> list[str]:
    return [name for (name,) in world.rows(Trajectory, "id")]


def test_killed_in_the_middle_of_stage_3_of_5_nothing_is_paid_twice_and_the_trajectory_is_whole(tmp_path: Path) -> None:
    with worlds(tmp_path, [(1, 2, 3, 4, 5)]) as (calm, rough):
        with FakeEndpoint(answering()) as endpoint:
            assert finish(start(calm.folder, endpoint))["outcomes"] == {"accepted": 1}
            expected = billed(endpoint)
        reached = threading.Event()
        inner = answering()

        def holds(call: Call) -> Answer:
            """Holds back the second turn of stage 3 until the asking process is dead."""
            system = str(call.body["messages"][0]["content"])
            if (
                not reached.is_set()
                and "You review code" not in system
                and place_of(call.body["messages"])[:2] == (3, 1)
            ):
                reached.set()
                killed.wait(60)
            return inner(call)

        killed = threading.Event()
        with FakeEndpoint(holds) as endpoint:
            run = start(rough.folder, endpoint)
            assert reached.wait(120)
            run.kill()
            run.communicate()
            killed.set()
            wait_for(lambda: endpoint.idle)
            (name,) = ids(rough)
            assert rough.outcome(name)[0] == "running"
            assert rough.stages(name) == [(1, "accepted"), (2, "accepted"), (3, "running")]
            before = rough.rows(TrajectoryMessage, "ordinal", "at", "content", trajectory_id=name)

            report = finish(start(rough.folder, endpoint))
            assert report["outcomes"] == {"accepted": 1}
            bill = billed(endpoint)
        assert rough.rows(TrajectoryMessage, "ordinal", "at", "content", trajectory_id=name)[: len(before)] == before
        assert bill.keys() == expected.keys(), "the same questions, and no others"
        twice = [request for request, count in bill.items() if count > 1]
        assert len(twice) == 1 and bill[twice[0]] == 2, "only the call in flight may be paid twice"
        assert place_of(json.loads(twice[0])["messages"])[:2] == (3, 1)
        assert ids(calm) == [name]
        assert rough.whole(name) == calm.whole(name)
        marked = [
            row
            for row in rough.rows(TrajectoryMessage, "position", "details", trajectory_id=name)
            if "restored" in row[1]
        ]
        assert [position for position, _ in marked] == [3], "the record says where the sandbox was made anew"
        assert finish(start(rough.folder, endpoint))["stood_before"] == 1
        assert not list(rough.folder.glob("*.rollout-*.lock")), "locks of single rollouts do not pile up"


PATIENCE = 4.0
"""Seconds that a run waits for an answer of the rough endpoint; right ones come in milliseconds."""


class Rough:
    """An endpoint that fails in turn in every way it can, at every fourth call."""

    def __init__(self) -> None:
        self.inner = answering()
        self.faults: Counter[str] = Counter()
        self.ways: list[tuple[str, Callable[[Call], Answer]]] = [
            ("429", error(429, headers={"retry-after": "0"})),
            ("500", error(500)),
            ("cut", cut()),
            ("503", error(503)),
            ("late", lambda call: replace(self.inner(call), delay=PATIENCE + 1)),
        ]

    def __call__(self, call: Call) -> Answer:
        if call.number % 4:
            return self.inner(call)
        name, part = self.ways[call.number // 4 % len(self.ways)]
        self.faults[name] += 1
        return part(call)


def sandboxes_of(pid: int) -> list[int]:
    """The bubblewrap processes below a process."""
    results = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            name, rest = text.split("(", 1)[1].rsplit(") ", 1)
            if name == "bwrap" and int(rest.split()[1]) == pid:
                results.append(int(path.parent.name))
    return results


def tried(world: RolloutWorld) -> bool:
    """Whether a rollout was tried again after its sandbox was lost."""
    return any(tries for (tries,) in world.rows(Trajectory, "tries"))


@pytest.mark.whole
def test_eight_rollouts_under_faults_end_as_without_them(tmp_path: Path) -> None:
    chains: list[tuple[int, ...]] = [(1, 2), (2,), (3,), (4,)]
    arguments = ("--samples", "2", "--workers", "8")
    with worlds(tmp_path, chains) as (calm, rough):
        with FakeEndpoint(answering()) as endpoint:
            assert finish(start(calm.folder, endpoint, *arguments))["outcomes"] == {"accepted": 8}
        part = Rough()
        shot = 0
        with FakeEndpoint(part) as endpoint:
            run = start(rough.folder, endpoint, *arguments, patience=PATIENCE)
            wait_for(lambda: len(rough.rows(TrajectoryMessage, "ordinal", kind="turn")) >= 6, seconds=120)
            until = time.monotonic() + 20
            # Sandboxes die under their commands, those of agents among them: others are made anew without a word.
            while time.monotonic() < until and (shot < 6 or not tried(rough)):
                for pid in sandboxes_of(run.pid)[:2]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        shot += 1
                time.sleep(0.3)
            wait_for(lambda: len(rough.rows(TrajectoryMessage, "ordinal", kind="turn")) >= 20, seconds=120)
            run.kill()  # and so does the worker
            run.communicate()
            wait_for(lambda: endpoint.idle)
            unfinished = [name for name in ids(rough) if rough.outcome(name)[0] == "running"]
            assert unfinished and shot
            for _ in range(5):  # failures that outlast the retries leave rollouts for the next run
                run = start(rough.folder, endpoint, *arguments, patience=PATIENCE)
                output, err = run.communicate(timeout=400)
                report = json.loads(output)
                assert set(report["outcomes"]) <= {"accepted"}, err
                if not report["infrastructure"] and not report["left"]:
                    break
        assert len(part.faults) == len(part.ways)
        assert ids(rough) == ids(calm) and len(ids(calm)) == 8
        for name in ids(calm):
            assert rough.whole(name) == calm.whole(name)
        assert tried(rough), "dead sandboxes were made anew"
        stored = Counter(rough.calls())
        assert max(stored.values()) == 1, "no stored reply was paid twice"
        assert stored.keys() == Counter(calm.calls()).keys()
        assert rough.rows(LlmCall, "id", state="lost"), "what was billed and lost stays in the books"


@pytest.mark.postgres
def test_several_processes_share_one_postgresql_and_one_of_them_is_killed(tmp_path: Path, postgres_url: str) -> None:
    chains: list[tuple[int, ...]] = [(1, 2), (2, 3), (3, 4)]
    arguments = ("--samples", "2", "--workers", "2")
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with (
        rollout_world(tmp_path / "calm", chains) as calm,
        rollout_world(tmp_path / "rough", chains, url=postgres_url) as rough,
        FakeEndpoint(answering()) as endpoint,
    ):
        assert finish(start(calm.folder, endpoint, *arguments))["outcomes"] == {"accepted": 6}
        runs = [start(rough.folder, endpoint, *arguments, db=postgres_url) for _ in range(3)]
        wait_for(lambda: len(rough.rows(TrajectoryMessage, "ordinal", kind="turn")) >= 8, seconds=120)
        runs[0].kill()
        for run in runs:
            run.communicate(timeout=400)
        report = finish(start(rough.folder, endpoint, *arguments, db=postgres_url))
        assert report["left"] == 0 and not report["infrastructure"]
        assert ids(rough) == ids(calm) and len(ids(calm)) == 6
        for name in ids(calm):
            assert rough.outcome(name)[0] == "accepted"
            assert rough.whole(name) == calm.whole(name)
        assert max(Counter(rough.calls()).values()) == 1, "no stored reply was paid twice"
        assert Counter(rough.calls()).keys() == Counter(calm.calls()).keys()
