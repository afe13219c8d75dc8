"""The texts of a task's folder, as Harbor reads them (schema_version "1.4", harbor 0.26). Pure."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import tomli_w

from trajectories.export.tasks.harbor.chain_image import SCRIPT as SWITCH
from trajectories.export.tasks.harbor.image import ARCHIVE, PLACE
from trajectories.export.tasks.harbor.inside.said import OBJECTS, STAGE

SCHEMA_VERSION = "1.4"

Network = Literal["declared", "compose"]
"""How a task says that there is no network. ``declared``: by the key that every provider reads, for which Docker needs
two images of Docker Hub; ``compose``: by a file that Docker alone reads, and that needs nothing."""

AgentUser = Literal["image", "declared"]
"""How the agent becomes another user than the grader, which is root. ``image``: the image's user is the agent's, and
``[verifier].user`` says root; ``declared``: the image's is root, and ``[agent].user`` names the agent's."""

GRADER = "grader.pyz"
_COMPOSE = "services:\n  main:\n    network_mode: none\n"
_RUNS = 4
"""Runs of a stage's tests in a grade, at most: three, and duels."""
_COLLECTING = 600.0

Files = dict[str, bytes]
"""By path below the task's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderStep:
    """One stage: what its agent reads, and what grades it and does it."""

    name: str
    instruction: str
    tests: Mapping[str, bytes]
    """`said.STAGE` and `said.OBJECTS`."""
    solution: Mapping[str, bytes]
    workdir: Mapping[str, bytes] = field(default_factory=dict)
    """What is laid into the repository's folder before the step."""
    switches_to: str = ""
    """The environment in the image that the agent's container is switched to behind the step; empty: it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """A task. With one step whose name is empty it is a single-step one."""

    name: str
    description: str
    keywords: Sequence[str]
    metadata: Mapping[str, Any]
    image: str
    workdir: str
    network: Network
    steps: Sequence[FolderStep]
    grader: bytes
    seconds: float
    """For one run of the tests."""
    min_reward: float | None = None
    """A step below it ends the trial."""
    canary: str = ""
    agent: str | None = None
    """The agent's user where the image's is root, for whom no verifier has to name one; None: the image's user."""


def files_of(task: HarborTask) -> Files:
    """All files of the folder."""
    single = len(task.steps) == 1 and not task.steps[0].name
    files: Files = {
        "task.toml": tomli_w.dumps(_configuration(task, single=single)).encode(),
        f"tests/{GRADER}": task.grader,
        "tests/test.sh": _test_script(task.canary).encode(),
    }
    if task.network == "compose":
        files["environment/docker-compose.yaml"] = _COMPOSE.encode()
    for step in task.steps:
        place = "" if single else f"steps/{step.name}/"
        files[f"{place}instruction.md"] = step.instruction.encode()
        for folder, content in (("tests", step.tests), ("solution", step.solution), ("workdir", step.workdir)):
            files.update({f"{place}{folder}/{name}": text for name, text in content.items()})
    return files


def _configuration(task: HarborTask, *, single: bool) -> dict[str, Any]:
    environment: dict[str, Any] = {"docker_image": task.image, "workdir": task.workdir}
    # A network that a task's own compose file rules out is none that Harbor has to guard.
    environment["network_mode"] = "no-network" if task.network == "declared" else "public"
    python = "env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 /usr/bin/python3 -I -S"
    collect = f"{python} {PLACE}/collect.py {shlex.quote(task.workdir)} {PLACE}/listing {ARCHIVE}"
    named = {"user": "root"} if task.agent is None else {}
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "task": {"name": task.name, "description": task.description, "keywords": list(task.keywords)},
        "metadata": dict(task.metadata),
        "environment": environment,
        "verifier": {
            # Bare: with an image of its own Harbor would take the tests for part of that, and not upload them.
            "environment_mode": "separate",
            "timeout_sec": _RUNS * task.seconds,
            **named,
            "collect": [{"command": collect, **named, "timeout_sec": _COLLECTING}],
        },
    }
    if task.agent is not None:
        values["agent"] = {"user": task.agent}
    if not single:
        values["multi_step_reward_strategy"] = "mean"
        gate = {} if task.min_reward is None else {"min_reward": {"reward": task.min_reward}}
        values["steps"] = []
        for step in task.steps:
            # A step's verifier has a time of its own, 600 s where none is told, and never the task's (harbor 0.26).
            verifier = {"timeout_sec": values["verifier"]["timeout_sec"]}
            if step.switches_to:
                # The last that root does in the agent's container before the next step, behind the task's own packing.
                switch = {"command": f"{python} {SWITCH} switch {step.switches_to}", **named}
                verifier["collect"] = [{**switch, "timeout_sec": _COLLECTING}]
            values["steps"].append({"name": step.name, **gate, "verifier": verifier})
    return values


def _test_script(canary: str) -> str:
    return (
        "#!/bin/bash\n"
        f"# {canary}\n"
        'here=$(cd -- "$(dirname -- "$0")" && pwd)\n'
        f"# {STAGE} and {OBJECTS} lie beside the grader, which writes /logs/verifier/reward.json, or nothing.\n"
        "exec /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 /usr/bin/python3 -I -S "
        f'"$here/{GRADER}" "$here" {ARCHIVE} /logs/verifier\n'
    )


def digest(files: Mapping[str, bytes]) -> str:
    """A task's digest in a ``dataset.toml`` (harbor 0.26, `Packager.compute_content_hash`)."""
    whole = hashlib.sha256()
    for path, content in sorted(files.items()):
        whole.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def dataset(name: str, description: str, digests: Mapping[str, str]) -> str:
    """The text of ``dataset.toml``; `digests` are those of the tasks, by their names."""
    tasks = [{"name": task, "digest": value} for task, value in sorted(digests.items())]
    return tomli_w.dumps(
        {"schema_version": "1.0", "dataset": {"name": name, "description": description}, "tasks": tasks}
    )
