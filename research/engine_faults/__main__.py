"""Eight rollouts in docker while the engine is killed and started again, the disk is full, and the worker is killed.

    python -m research.engine_faults

Everything is real but the model, which is a script behind an endpoint on this machine: a Docker engine of its own,
whose disk (a file, mounted) also holds the databases. First the rollouts run undisturbed; then, in a database for each
fault, with the fault in their midst, and again until all have ended. The rollouts must come out equal, and no stored
reply may be paid twice.
It needs root and takes some minutes. Exit code 1 where something is otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from prchain.terminal import say
from research.engine_faults.engine import OwnEngine
from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.endpoint import FakeEndpoint, wait_for
from tests.trajectories.rolloutworld import RolloutWorld, answering, rollout_world

CHAINS = [(1, 2), (2, 3), (3, 4), (4, 5)]
ARGUMENTS = ("--backend", "docker", "--samples", "2", "--workers", "8")
RECIPE = 'name = "plain"\nlanguage = "shell"\nrank = 1\ndetects = ["src/*.py"]\nmanifests = []\nrunner = "unittest"\n'
MOST_RUNS = 8
Fault = Callable[[OwnEngine, subprocess.Popen[str]], None]
_ROOT = Path(__file__).parents[2]


class Runs:
    """Runs of `prchain rollouts run` over a world, and what was seen of them."""

    def __init__(self, world: RolloutWorld, engine: OwnEngine, endpoint: FakeEndpoint, image: str) -> None:
        self.world = world
        recipes = world.folder / "recipes"
        recipes.mkdir()
        (recipes / "plain.toml").write_text(RECIPE)
        given = {
            "ENVIRONMENTS_ENGINE": engine.url,
            "ENVIRONMENTS_BASE_IMAGE": image,
            "ENVIRONMENTS_BUILD_NETWORK": "none",
            "ENVIRONMENTS_RECIPES_DIR": str(recipes),
            "LLM_MODEL": "fake",
            "LLM_PRICE_INPUT": "1.0",
            "LLM_PRICE_OUTPUT": "4.0",
            "LLM_TIMEOUT_SECONDS": "20",
            "DATA_DIR": "data",
        }
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": "",
            **{f"PRCHAIN_{name}": value for name, value in given.items()},
        }

    def start(self) -> subprocess.Popen[str]:
        """Start one."""
        command = [sys.executable, "-m", "prchain.cli", "rollouts", "run", "--db", "prchain.db", "--json", *ARGUMENTS]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.world.folder, env=self.environment, text=True, stdout=pipe, stderr=pipe
        )

    def end(self, run: subprocess.Popen[str], name: str) -> bool:
        """Wait for a run; whether everything had ended when it ended."""
        said, err = run.communicate(timeout=900)
        last = " | ".join(line for line in err.strip().splitlines() if not line.startswith("rollouts"))[-300:]
        if not said.strip():
            say(f"{name}: exit code {run.returncode}; {last}")
            return False
        report = json.loads(said)
        say(
            f"{name}: {report['outcomes']}, infrastructure {report['infrastructure']}, left {report['left']}"
            + (f"; {last}" if last else "")
        )
        return not report["infrastructure"] and not report["left"]

    def turns(self) -> int:
        """How many turns are stored."""
        return len(self.world.rows(TrajectoryMessage, "ordinal", kind="turn"))

    def after(self, more: int, run: subprocess.Popen[str]) -> None:
        """Wait until so many more turns are stored, or the run has ended."""
        wanted = self.turns() + more
        wait_for(lambda: run.poll() is not None or self.turns() >= wanted, seconds=600)


@click.command()
@click.option("--image", default="prchain-base:bookworm", show_default=True, help="A base image of the user's engine.")
@click.option("--disk", default=6.0, show_default=True, help="Gigabytes of the engine's disk.")
def main(image: str, disk: float) -> None:
    """Roll out undisturbed and under faults, and compare."""
    place = Path(tempfile.mkdtemp(prefix="pf-"))
    wrong: list[str] = []
    with OwnEngine(place, int(disk * 1e9)) as engine, ExitStack() as opened:
        engine.load(image)

        def world(name: str) -> RolloutWorld:
            folder = engine.folder / name
            folder.mkdir()
            return opened.enter_context(rollout_world(folder, CHAINS))

        calm = world("undisturbed")
        with FakeEndpoint(answering()) as endpoint:
            runs = Runs(calm, engine, endpoint, image)
            if not runs.end(runs.start(), "undisturbed"):
                sys.exit(1)
        for name, fault in FAULTS.items():
            rough = world(name.replace(" ", "-"))
            with FakeEndpoint(answering()) as endpoint:
                wrong += disturbed(Runs(rough, engine, endpoint, image), engine, name, fault)
            wrong += [f"{name}: {difference}" for difference in differences(calm, rough)]
    for difference in wrong:
        say(f"FAILED {difference}", err=True)
    say("not as without faults" if wrong else f"each time {len(CHAINS) * 2} rollouts ended as without faults")
    sys.exit(1 if wrong else 0)


def disturbed(runs: Runs, engine: OwnEngine, name: str, fault: Fault) -> list[str]:
    """A run with the fault in its midst, then runs until nothing is left; what is wrong."""
    run = runs.start()
    runs.after(8, run)
    if run.poll() is not None:
        return [f"{name}: the run had ended before the fault"]
    fault(engine, run)
    done = runs.end(run, name)
    for number in range(MOST_RUNS):
        if done:
            return []
        done = runs.end(runs.start(), f"  run {number + 2}")
    return [] if done else [f"{name}: something is left after all runs"]


def _restart(engine: OwnEngine, run: subprocess.Popen[str]) -> None:
    engine.kill()
    time.sleep(3)
    engine.start()


def _fill(engine: OwnEngine, run: subprocess.Popen[str]) -> None:
    with engine.full():
        time.sleep(8)


def _kill(engine: OwnEngine, run: subprocess.Popen[str]) -> None:
    run.kill()


def _all(engine: OwnEngine, run: subprocess.Popen[str]) -> None:
    _restart(engine, run)
    time.sleep(2)
    _fill(engine, run)
    run.kill()


FAULTS: dict[str, Fault] = {
    "engine killed and started again": _restart,
    "disk full": _fill,
    "worker killed": _kill,
    "all of these": _all,
}


def differences(calm: RolloutWorld, rough: RolloutWorld) -> list[str]:
    """What of the rollouts differs, and what was paid twice."""
    names = [name for (name,) in calm.rows(Trajectory, "id")]
    found = [] if [name for (name,) in rough.rows(Trajectory, "id")] == names else ["the finished sets differ"]
    for name in names:
        ours, theirs = calm.whole(name), rough.whole(name)
        found += [f"{name}: {part} differs" for part in ours if ours[part] != theirs[part]]
    found += [f"paid {count} times: {call}" for call, count in Counter(rough.calls()).items() if count > 1]
    lost = len(rough.rows(LlmCall, "id", state="lost"))
    say(f"  {len(rough.calls())} stored replies, as many as undisturbed: {len(calm.calls())}; {lost} lost")
    return found if len(rough.calls()) == len(calm.calls()) else [*found, "other calls were made"]


if __name__ == "__main__":
    main()
