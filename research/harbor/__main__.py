"""Run Harbor's own agents over an export of tasks, and say which rewards they get.

    prchain tasks export --format harbor --network compose --out OUT
    python -m research.harbor --folder OUT --harbor VENV/bin/harbor

Harbor (0.26) needs a Python 3.12 of its own, a Docker engine and Compose 2 as plugin of the docker program. ``oracle``
lays the reference over each step, and has to get reward 1 in all of them; ``nop`` does nothing, and has to get less in
the first; ``wrong`` is an oracle that does something else at step 2 (a task without one is passed over), and has to
get 1 before and less there. Exit code 1 where one fails.

With ``--kept`` each trial is a line of a file, and a run that was cut off goes on behind them.
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

SAID = "said"
"""The file of what Harbor prints, beside its jobs."""


class Trial(NamedTuple):
    """One run of an agent over a task: the rewards of its steps, in order; None where a verifier gave none."""

    task: str
    rewards: tuple[float | None, ...]
    steps: int
    """How many the task has."""
    reason: str = ""
    """Why a verifier gave none."""

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
@click.option("--only", type=click.Choice([SINGLE, CHAIN]), multiple=True, default=(SINGLE, CHAIN), help="A data set.")
@click.option(
    "--kept", type=click.Path(dir_okay=False, path_type=Path), help="A file of trials, which are not repeated."
)
def main(folder: Path, harbor: str, agent: str, limit: int | None, only: tuple[str, ...], kept: Path | None) -> None:
    """Run an agent of Harbor's over exported tasks."""
    failed, ended = False, kept_trials(kept)
    for data_set in only:
        tasks = sorted(path.parent for path in (folder / data_set).glob("*/task.toml"))[:limit]
        for task in tasks:
            if agent == "wrong" and not (task / "steps" / "2").is_dir():
                continue
            trial = ended.get((agent, task.name))
            if trial is None:
                trial = run(harbor, task, agent)
                keep_trial(kept, agent, trial)
            fine = trial.fits(agent)
            failed = failed or not fine
            shown = " ".join("none" if it is None else f"{it:g}" for it in trial.rewards)
            why = trial.reason and f" ({trial.reason})"
            click.echo(f"{'ok    ' if fine else 'FAILED'} {agent} {data_set}/{trial.task}: {shown or 'nothing'}{why}")
    sys.exit(1 if failed else 0)


def run(harbor: str, task: Path, agent: str) -> Trial:
    """Run one task."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        place, name = (_wronged(task, Path(folder)), "oracle") if agent == "wrong" else (task, agent)
        steps = len(list((task / "steps").glob("*"))) or 1
        found = list(_results(harbors_jobs(harbor, place, name, folder)))
        reasons = [why for it in found if (why := _reason(it))]
        if not found:
            reasons = Path(folder, SAID).read_text(encoding="utf-8", errors="replace").strip().split("\n")[-3:]
        return Trial(task.name, tuple(map(_reward, found)), steps, "; ".join(reasons))


def harbors_jobs(harbor: str, task: Path, agent: str, folder: str) -> Path:
    """Where Harbor left its trial of a task, below a folder."""
    command = [harbor, "run", "-p", str(task), "-a", agent, "-o", f"{folder}/jobs", "-y", "-n", "1"]
    with Path(folder, SAID).open("wb") as said:
        told = {**os.environ, "HARBOR_TELEMETRY": "0"}
        subprocess.run(command, env=told, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False)
    return Path(folder, "jobs")


def kept_trials(file: Path | None) -> dict[tuple[str, str], Trial]:
    """The trials of a file, by agent and task."""
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["agent"], row["task"]): Trial(row["task"], tuple(row["rewards"]), row["steps"]) for row in rows}


def keep_trial(file: Path | None, agent: str, trial: Trial) -> None:
    """Add a trial to a file; one in which a verifier gave no reward is run again."""
    if file is not None and None not in trial.rewards and trial.rewards:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"agent": agent, **trial._asdict()}) + "\n")


def _wronged(task: Path, folder: Path) -> Path:
    """A copy of a task whose oracle does other work at step 2: it leaves a file, and upstream's code as it was."""
    copy = shutil.copytree(task, folder / "tasks" / task.name)
    script = copy / "steps" / "2" / "solution" / "solve.sh"
    script.write_text('#!/bin/bash\necho "done" > notes-of-the-wrong-agent.txt\n', encoding="utf-8")
    return Path(copy)


def _results(jobs: Path) -> Iterator[dict[str, Any]]:
    """What Harbor says of each step."""
    for place in jobs.glob("*/*/result.json"):
        result = json.loads(place.read_text(encoding="utf-8"))
        yield from result.get("step_results") or [result]


def _reason(step: dict[str, Any]) -> str:
    failed = step.get("exception_info") or {}
    return ": ".join(it for it in (failed.get("exception_type"), failed.get("exception_message")) if it)[:200]


def _reward(step: dict[str, Any]) -> float | None:
    found = (step.get("verifier_result") or {}).get("rewards") or {}
    return found.get("reward")


if __name__ == "__main__":
    main()
