"""Run Harbor's own agents over an export of tasks, and say which rewards they get.

    prchain tasks export --format harbor --network compose --out OUT
    python -m research.harbor --folder OUT --harbor VENV/bin/harbor

Harbor (0.26) needs a Python 3.12 of its own, a Docker engine and Compose 2 as plugin of the docker program. ``oracle``
lays the reference over each step, and has to get reward 1 in all of them; ``nop`` does nothing, and has to get less in
the first; ``wrong`` is an oracle that does something else at step 2 (a task without one is passed over), and has to
get 1 before and less there. Exit code 1 where one fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from trajectories.export.tasks.harbor.export import CHAIN, SINGLE


class Trial(NamedTuple):
    """One run of an agent over a task: the rewards of its steps, in order; None where a verifier gave none."""

    task: str
    rewards: tuple[float | None, ...]
    steps: int
    """How many the task has."""

    def fits(self, agent: str) -> bool:
        """Whether these are the rewards that the agent has to get."""
        if agent == "oracle":
            return self.rewards == (1.0,) * self.steps
        if agent == "wrong":
            second = self.rewards[1] if len(self.rewards) == 2 else None
            return self.rewards[0] == 1.0 and second is not None and second < 1
        return bool(self.rewards) and self.rewards[0] is not None and self.rewards[0] < 1


@click.command()
@click.option("--folder", type=click.Path(exists=True, path_type=Path), required=True, help="An export of tasks.")
@click.option("--harbor", default="harbor", show_default=True, help="Harbor's program.")
@click.option("--agent", type=click.Choice(["oracle", "nop", "wrong"]), default="oracle", show_default=True)
@click.option("--limit", type=int, help="Only the first N tasks of each data set.")
def main(folder: Path, harbor: str, agent: str, limit: int | None) -> None:
    """Run an agent of Harbor's over exported tasks."""
    failed = False
    for data_set in (SINGLE, CHAIN):
        tasks = sorted(path.parent for path in (folder / data_set).glob("*/task.toml"))[:limit]
        for task in tasks:
            if agent == "wrong" and not (task / "steps" / "2").is_dir():
                continue
            trial = run(harbor, task, agent)
            fine = trial.fits(agent)
            failed = failed or not fine
            shown = " ".join("none" if it is None else f"{it:g}" for it in trial.rewards)
            click.echo(f"{'ok    ' if fine else 'FAILED'} {agent} {data_set}/{trial.task}: {shown or 'nothing'}")
    sys.exit(1 if failed else 0)


def run(harbor: str, task: Path, agent: str) -> Trial:
    """Run one task."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as jobs:
        place, name = (_wronged(task, Path(jobs)), "oracle") if agent == "wrong" else (task, agent)
        command = [harbor, "run", "-p", str(place), "-a", name, "-o", f"{jobs}/jobs", "-y", "-n", "1"]
        environment = {**os.environ, "HARBOR_TELEMETRY": "0"}
        subprocess.run(command, env=environment, capture_output=True, check=False)
        steps = len(list((task / "steps").glob("*"))) or 1
        return Trial(task.name, tuple(_rewards(Path(jobs, "jobs"))), steps)


def _wronged(task: Path, folder: Path) -> Path:
    """A copy of a task whose oracle does other work at step 2: it leaves a file, and upstream's code as it was."""
    copy = shutil.copytree(task, folder / "tasks" / task.name)
    script = copy / "steps" / "2" / "solution" / "solve.sh"
    script.write_text('#!/bin/bash\necho "done" > notes-of-the-wrong-agent.txt\n', encoding="utf-8")
    return Path(copy)


def _rewards(jobs: Path) -> Iterator[float | None]:
    for place in jobs.glob("*/*/result.json"):
        result = json.loads(place.read_text(encoding="utf-8"))
        for step in result.get("step_results") or [result]:
            yield _reward(step)


def _reward(step: dict[str, Any]) -> float | None:
    found = (step.get("verifier_result") or {}).get("rewards") or {}
    return found.get("reward")


if __name__ == "__main__":
    main()
