"""Eight rollouts in docker while the engine is killed and started again, the disk is full, and the worker is killed.

    python -m research.engine_faults

Everything is real except the model, which is a script behind an endpoint on this machine. The Docker engine is a
separate one, whose disk (a mounted file) also holds the databases. First the rollouts run undisturbed. Then, with a
database for each fault, they run with the fault in the middle, and again until all have ended. The results must be
equal, and no stored reply may be paid twice.
It needs root and takes some minutes. Exit code 1 where something differs.
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

from prchain.core.console.terminal import say
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
    """Runs of `prchain rollouts run` over a world."""

    def __init__(self, world: RolloutWorld, engine: OwnEngine, endpoint: FakeEndpoint, image: str) -> None:
        self.world = world
        recipes = world.folder / "recipes"
        recipes.mkdir()
        (recipes / "plain.toml").write_text(RECIPE)
        settings = {
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
            **{f"PRCHAIN_{name}": value for name, value in settings.items()},
        }

    def start(self) -> subprocess.Popen[str]:
        """Start a run."""
        command = [sys.executable, "-m", "prchain.cli", "rollouts", "run", "--db", "prchain.db", "--json", *ARGUMENTS]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.world.folder, env=self.environment, text=True, stdout=pipe, stderr=pipe
        )

    def end(self, run: subprocess.Popen[str], name: str) -> bool:
        """Wait for a run; returns whether all rollouts had ended by then."""
        output, errors = run.communicate(timeout=900)
        last = " | ".join(line for line in errors.strip().splitlines() if not line.startswith("rollouts"))[-300:]
        if not output.strip():
            say(f"{name}: exit code {run.returncode}; {last}")
            return False
        report = json.loads(output)
        say(
            f"{name}: {report['outcomes']}, infrastructure {report['infrastructure']}, left {report['left']}"
            + (f"; {last}" if last else "")
        )
        return not report["infrastructure"] and not report["left"]

    def turns(self) -> int:
        """How many turns are stored."""
        return len(self.world.rows(TrajectoryMessage, "ordinal", kind="turn"))

    def after(self, count: int, run: subprocess.Popen[str]) -> None:
        """Wait until `count` more turns are stored, or the run has ended."""
        target = self.turns() + count
        wait_for(lambda: run.poll() is not None or self.turns() >= target, seconds=600)


@click.command()
@click.option("--image", default="prchain-base:bookworm", show_default=True, help="A base image of the user's engine.")
@click.option("--disk", default=6.0, show_default=True, help="Gigabytes of the engine's disk.")
def main(image: str, disk: float) -> None:
    """Roll out undisturbed and under faults, and compare."""
    base_folder = Path(tempfile.mkdtemp(prefix="pf-"))
    failures: list[str] = []
    with OwnEngine(base_folder, int(disk * 1e9)) as engine, ExitStack() as stack:
        engine.load(image)

        def world(name: str) -> RolloutWorld:
            folder = engine.folder / name
            folder.mkdir()
            return stack.enter_context(rollout_world(folder, CHAINS))

        undisturbed = world("undisturbed")
        with FakeEndpoint(answering()) as endpoint:
            runs = Runs(undisturbed, engine, endpoint, image)
            if not runs.end(runs.start(), "undisturbed"):
                sys.exit(1)
        for name, fault in FAULTS.items():
            faulty = world(name.replace(" ", "-"))
            with FakeEndpoint(answering()) as endpoint:
                failures += disturbed(Runs(faulty, engine, endpoint, image), engine, name, fault)
            failures += [f"{name}: {difference}" for difference in differences(undisturbed, faulty)]
    for difference in failures:
        say(f"FAILED {difference}", err=True)
    say("not as without faults" if failures else f"each time {len(CHAINS) * 2} rollouts ended as without faults")
    sys.exit(1 if failures else 0)


def disturbed(runs: Runs, engine: OwnEngine, name: str, fault: Fault) -> list[str]:
    """A run with the fault in the middle, then runs until nothing is left; returns what is wrong."""
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


def differences(undisturbed: RolloutWorld, faulty: RolloutWorld) -> list[str]:
    """The differences between the rollouts, and the calls that were paid twice."""
    names = [name for (name,) in undisturbed.rows(Trajectory, "id")]
    found = [] if [name for (name,) in faulty.rows(Trajectory, "id")] == names else ["the finished sets differ"]
    for name in names:
        expected, actual = undisturbed.whole(name), faulty.whole(name)
        found += [f"{name}: {part} differs" for part in expected if expected[part] != actual[part]]
    found += [f"paid {count} times: {call}" for call, count in Counter(faulty.calls()).items() if count > 1]
    lost = len(faulty.rows(LlmCall, "id", state="lost"))
    say(f"  {len(faulty.calls())} stored replies, as many as undisturbed: {len(undisturbed.calls())}; {lost} lost")
    return found if len(faulty.calls()) == len(undisturbed.calls()) else [*found, "other calls were made"]


if __name__ == "__main__":
    main()
