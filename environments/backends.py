"""Sandboxes by the name of their backend, with what each of them needs to serve a plan."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from environments.images.plans import WORKDIR, Plan
from environments.images.provide import Backend
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.leftovers import LOCAL_PREFIX, OWNER_FILE
from environments.sandboxes.local import LocalSandbox, ProcessTransport
from environments.sandboxes.sandbox import Limits, Place, Sandbox
from environments.suites.runner import PIPED, TestCommand
from environments.suites.runners import RUNNERS
from prchain.processes import this_process

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_IMAGE_ONLY = "/opt/env"
"""Where images keep dependencies (`environments.images.plans`): no such folder is on a host."""


class PlainSandbox(LocalSandbox):
    """Plain processes in a folder of their own among the temporary ones, which goes when the sandbox is closed."""

    def __init__(self, place: Place) -> None:
        self._own = Path(tempfile.gettempdir()) / f"{LOCAL_PREFIX}{secrets.token_hex(6)}"
        super().__init__(replace(place, workdir=str(self._own / "work")), unsafe=True)

    def _make(self) -> ProcessTransport:
        self._own.mkdir(mode=0o700, exist_ok=True)
        (self._own / OWNER_FILE).write_text(str(this_process()), encoding="utf-8")
        return super()._make()

    def close(self) -> None:
        """See `environments.sandboxes.sandbox.Sandbox.close`."""
        super().close()
        shutil.rmtree(self._own, ignore_errors=True)


def make_sandbox(
    backend: Backend,
    plan: Plan,
    image: str | None,
    *,
    limits: Limits,
    labels: Mapping[str, str],
    client: Any = None,
    engine: str | None = None,
) -> Sandbox:
    """A new sandbox for a plan, not started. `client` is a `docker.DockerClient`; without it the sandbox makes its own,
    to the engine at the URL `engine` (None: the one that DOCKER_HOST names)."""
    if backend is Backend.DOCKER:
        place = Place(image, workdir=WORKDIR, limits=limits, labels=labels, environment=dict(plan.environment))
        return DockerSandbox(place, client=client, engine=engine)
    place = Place(None, workdir=WORKDIR, limits=limits, labels=labels, environment=_host_environment(plan))
    return LocalSandbox(place) if backend is Backend.LOCAL else PlainSandbox(place)


def command_for(backend: Backend, plan: Plan) -> TestCommand:
    """How the plan's tests are run: the runner's command, or the recipe's own in its place.

    A command of a recipe's that does not start our reporter is read by what it prints, which is not signed.
    """
    command = RUNNERS[plan.runner].command
    if plan.test:
        signed = command.signed and "{tools}" in plan.test
        own = plan.test if signed or "{report}" in plan.test else f"{plan.test} {PIPED}"
        command = replace(command, template=own, signed=signed)
    elif backend is not Backend.DOCKER and command.template.startswith("python "):
        # Debian's python3 comes without a program called python.
        named = "$(command -v python || command -v python3) " + command.template.removeprefix("python ")
        command = replace(command, template=named)
    return command


def refreshes(backend: Backend, plan: Plan) -> tuple[str, ...]:
    """The refresh scripts that mean something to the backend: on a host there is no environment of an image to mend."""
    return tuple(script for script in plan.refresh if backend is Backend.DOCKER or _IMAGE_ONLY not in script)


def _host_environment(plan: Plan) -> dict[str, str]:
    """What an image would tell its commands, and, as nothing is installed, where Python finds the tree's packages."""
    recipe = plan.recipe
    told = {name: value.replace("$PATH", _PATH) for name, value in {**recipe.environment, **recipe.offline}.items()}
    kept = {name: value for name, value in told.items() if name == "PATH" or _IMAGE_ONLY not in value}
    imports = {"PYTHONPATH": "src:."} if recipe.language == "python" else {}
    return {**imports, **kept, **plan.environment}
