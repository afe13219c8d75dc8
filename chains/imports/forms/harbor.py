"""Harbor's task folders, of one step and of several.

Keys and the layout are those of the package ``harbor`` 0.26 (`harbor.models.task.config`, `harbor.models.task.paths`),
schema_version 1.4. A folder has no patch: what its oracle leaves is the reference, and its own ``tests/test.sh`` is the
test, in a fresh container of the task's image. Tests come as their own mode ``separate`` has them, whatever the folder
says.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from chains.imports import reader
from chains.imports.instance import DataSet, Instance, TaskStep
from chains.imports.reader import Row
from chains.imports.rows import TASK, TASK_FOLDER
from chains.imports.task_folder import TaskFolder
from prchain.core.errors import BadInstance, NoQuery

PARSER = "harbor"
"""Our own name for what reads the rewards; no publisher has one."""
TEST = "reward"
"""The one test of such a step: that its reward is 1."""

_COMPOSE = re.compile(r"\s*services:\s+main:\s+network_mode:\s+[\"']?none[\"']?\s*")
"""All that a compose file may say: no container of ours has a network."""
_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_CANARY = re.compile(r"\s*(?:<!--.*canary.*-->|#.*canary.*)\s*", re.I)
_MOST_STEPS = 100
_SWITCH = "/opt/prchain/environment.py switch "
"""In the command that makes the environment of a next step (`trajectories.export.tasks.harbor.chain_image`)."""


class Harbor:
    """See the module."""

    help = "folders of Harbor, with a task.toml"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return {*columns} == {TASK_FOLDER}

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        path = row.get(TASK_FOLDER)
        if not isinstance(path, Path):
            raise BadInstance(f"it is no folder with a {TASK}")
        folder = TaskFolder(path)
        task = folder.table(TASK)
        environment, metadata = _table(task, "environment"), _table(task, "metadata")
        steps = tuple(_steps(folder, task))
        name = str(_table(task, "task").get("name") or path.name)
        workdir = environment.get("workdir")
        if workdir is not None and not (isinstance(workdir, str) and re.fullmatch(r"/[\w.+@/-]{1,200}", workdir)):
            raise BadInstance(f"environment.workdir is {workdir!r:.60}, which is no absolute path of a folder")
        _require_alike(task, folder, workdir)
        return Instance(
            source=where.source,
            revision=where.revision,
            split=where.split,
            form="harbor",
            instance_id=reader.instance_name({"task.name": name.rpartition("/")[2]}, "task.name"),
            repository=_repository(metadata, name, where),
            base_commit=folder.digest,
            query=steps[0].query,
            patch="",
            test_patch="",
            f2p=(TEST,),
            p2p=(),
            image=_image(environment, folder),
            image_by="column",
            workdir=workdir,
            test_command=_commands(task),
            log_parser=PARSER,
            licence=reader.word_or_none(metadata, "licence") or reader.word_or_none(metadata, "license"),
            difficulty=reader.word_or_none(metadata, "difficulty"),
            language=reader.word_or_none(metadata, "language"),
            benchmark=metadata.get("benchmark") is True,
            steps=steps,
            oracle_variables=tuple(_variables(_table(task, "solution"), "solution.env").items()),
        )


def _steps(folder: TaskFolder, task: Mapping[str, Any]) -> Iterator[TaskStep]:
    """The steps of a task, in order. Raises `BadInstance`."""
    listed = task.get("steps")
    if listed is None:
        yield _step(folder, "")
        return
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_STEPS:
        raise BadInstance(f"steps is no list of 1 to {_MOST_STEPS} tables")
    names: set[str] = set()
    for place, step in enumerate(listed, 1):
        name = step.get("name") if isinstance(step, dict) else None
        if not isinstance(name, str) or not _STEP.fullmatch(name):
            raise BadInstance(f"the name of step {place} is {name!r:.60}, which is no name of a folder")
        if name.casefold() in names:
            raise BadInstance(f"two steps are called {name}")
        names.add(name.casefold())
        _require_shared_image(_table(step, "verifier"), f"step {name}: ")
        _require_own_environment(_table(step, "verifier"), f"step {name}: ")
        yield _step(folder, name)


def _step(folder: TaskFolder, name: str) -> TaskStep:
    """A step as its own files, and those of the task, have it."""
    below = f"steps/{name}/" if name else ""
    query = _instruction(folder, f"{below}instruction.md")
    tests = [found for it in dict.fromkeys(("tests", f"{below}tests")) if (found := folder.folder(it)) is not None]
    if not any(folder.holds(f"{it}tests/test.sh") for it in ("", below)):
        raise BadInstance(f"it has no {below}tests/test.sh, which would test it")
    solved = next((it for it in (f"{below}solution", "solution") if folder.holds(f"{it}/solve.sh")), None)
    if solved is None:
        raise BadInstance(
            f"it has no {below}solution/solve.sh: without an oracle nothing shows that its tests can pass"
        )
    workdir = folder.folder(f"{below}workdir") if name else None
    return TaskStep(name, query, tuple(tests), folder.path / solved, workdir)


def _instruction(folder: TaskFolder, name: str) -> str:
    """An instruction without the marks at its beginning by which copies of it are found (Harbor takes them off, too).
    Raises `BadInstance`."""
    lines = folder.text(name).splitlines(keepends=True)
    while lines and (_CANARY.fullmatch(lines[0]) or not lines[0].strip()):
        lines = lines[1:]
    if not lines:
        raise NoQuery(f"{name} is blank: nothing is asked")
    return reader.text({name: "".join(lines)}, name)


def _image(environment: Mapping[str, Any], folder: TaskFolder) -> str:
    """The image that a task names. Raises `BadInstance`."""
    name = environment.get("docker_image")
    if name is None:
        has = "an environment/Dockerfile alone" if folder.holds("environment/Dockerfile") else "no docker_image"
        raise BadInstance(f"it has {has}; build its image and name that in environment.docker_image")
    if not isinstance(name, str):
        raise BadInstance("environment.docker_image is no text")
    return reader.image_name("environment.docker_image", name.strip())


def _require_alike(task: Mapping[str, Any], folder: TaskFolder, workdir: str | None) -> None:
    """Raise `BadInstance` for a task that means another thing in Harbor than here."""
    if _table(task, "environment").get("os", "linux") != "linux":
        raise BadInstance("environment.os is not linux")
    for compose in ("environment/docker-compose.yaml", "environment/docker-compose.yml"):
        if folder.holds(compose) and not _COMPOSE.fullmatch(folder.text(compose)):
            raise BadInstance(f"{compose} says more than that there is no network; only one container is run here")
    _require_shared_image(_table(task, "verifier"), "")
    if folder.holds("tests/Dockerfile"):
        raise BadInstance("tests/Dockerfile: its tests have an image of their own, and here they run in the agent's")
    for artifact in task.get("artifacts") or ():
        source = artifact.get("source") if isinstance(artifact, dict) else artifact
        inside = (workdir, "/logs") if workdir else ("/",)
        if not isinstance(source, str) or not any(f"{source}/".startswith(f"{it.rstrip('/')}/") for it in inside):
            raise BadInstance(f"the artifact {source!r:.80} lies outside of {workdir}, and only that folder is kept")


def _require_shared_image(verifier: Mapping[str, Any], where: str) -> None:
    if verifier.get("environment") is not None:
        raise BadInstance(
            f"{where}verifier.environment: its tests have an image of their own, and here they run in the agent's"
        )


def _require_own_environment(verifier: Mapping[str, Any], where: str) -> None:
    """Raise `BadInstance` for a step of ours behind which the container gets another environment."""
    collects = verifier.get("collect")
    for collect in collects if isinstance(collects, list) else ():
        if isinstance(collect, dict) and _SWITCH in str(collect.get("command")):
            raise BadInstance(
                f"{where}verifier.collect: the next step has another environment, which is not switched to here; "
                "import the folders of its stages"
            )


def _commands(task: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables of all commands, a line each, and the line that runs the tests."""
    own = _variables(_table(task, "verifier"), "verifier.env")
    lines = [
        f"export {key}={shlex.quote(it)}"
        for key, it in _variables(_table(task, "environment"), "environment.env").items()
    ]
    return (*lines, " ".join([*(f"{key}={shlex.quote(it)}" for key, it in own.items()), "/tests/test.sh"]))


def _variables(table: Mapping[str, Any], where: str) -> dict[str, str]:
    """Variables of commands. Raises `BadInstance`, also for one whose value Harbor takes from its own environment."""
    found: dict[str, str] = {}
    for key, value in _table(table, "env").items():
        if not _VARIABLE.fullmatch(key) or not isinstance(value, str) or not value.isprintable():
            raise BadInstance(f"{where} holds {key[:60]!r}, which is no variable with a text in one line")
        if "${" in value:
            raise BadInstance(f"{where} takes {key} from the environment of who runs it, and no sandbox has that")
        found[key] = value
    return found


def _repository(metadata: Mapping[str, Any], name: str, where: DataSet) -> str:
    """The repository that the metadata name, else the task's own name with its organisation."""
    source = re.sub(r"[^A-Za-z0-9_.-]+", "-", where.source).strip("-.") or "harbor"
    for found in (metadata.get("repository"), name if "/" in name else f"{source}/{name}"):
        if isinstance(found, str):
            try:
                return reader.repository_name({"repository": found}, "repository")
            except BadInstance:
                continue
    return reader.repository_name({"task.name": name}, "task.name")


def _table(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A table of TOML; empty where there is none. Raises `BadInstance`."""
    found = values.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadInstance(f"{key} is no table")
    return found


READER = Harbor()
