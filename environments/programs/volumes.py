"""Programs of agents in volumes of a Docker engine: one copy, whatever images and sandboxes there are."""

from __future__ import annotations

import time
from contextlib import suppress
from importlib import resources
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_settings import BuildSettings
from environments.images.interpreters.layers import lay_tools
from environments.programs.program import WHOLE, AgentProgram
from environments.sandboxes.engine import engine_failures
from prchain.core.errors import PrchainError

LABEL = "prchain.agent"


def volume_name(program: AgentProgram) -> str:
    """The volume that holds a program."""
    return f"prchain-agent-{program.key}"


def volume_is_whole(engine: Any, image: str, program: AgentProgram) -> bool:
    """Whether the volume is there and was filled to its end; looked up from a container of the image that is never
    started. Raises what an engine raises."""
    from docker.errors import NotFound  # noqa: PLC0415  loaded with the engine

    name = volume_name(program)
    with engine_failures():
        try:
            engine.volumes.get(name)
        except NotFound:
            return False
        container = engine.containers.create(image, volumes={name: {"bind": program.path, "mode": "ro"}})
        try:
            stream, _ = container.get_archive(f"{program.path}/{WHOLE}")
            for _ in stream:
                pass
        except NotFound:
            return False
        finally:
            container.remove(force=True)
    return True


def install_in_volume(engine: Any, program: AgentProgram, settings: BuildSettings) -> None:
    """Fill the volume in a container of the base image with the tools of every build, as root, with the network. One
    that was filled in part is filled anew. Raises `BuildFailed`, and what an engine raises."""
    name = volume_name(program)
    image = lay_tools(engine, settings)
    fetch = resources.files("environments.images") / "inside" / "npm_package.py"
    filled = False
    with engine_failures():
        engine.volumes.create(name, labels={LABEL: program.name})
    try:
        with BuildContainer(
            engine,
            image,
            network=settings.network,
            deadline=time.monotonic() + settings.timeout,
            files={**settings.files, fetch.name: fetch.read_bytes()},
            variables={**settings.variables, "PYTHON": "/usr/bin/python3"},
            secrets=settings.secrets,
            volumes={name: program.path},
        ) as container:
            script = f"cd {program.path}\nfind . -mindepth 1 -delete\n{program.script}"
            container.run("prepare", script, root=True)
        filled = True
    finally:
        if not filled:
            with suppress(PrchainError), engine_failures():
                engine.volumes.get(name).remove(force=True)
