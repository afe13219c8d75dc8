"""Programs of agents in volumes of a Docker engine: one copy, whatever images and sandboxes there are."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_settings import BuildSettings
from environments.images.interpreters.layers import lay_tools
from environments.programs.program import FOLDER, WHOLE, AgentProgram
from environments.sandboxes.engine import engine_failures
from environments.sandboxes.leftovers import OWNER
from prchain.core.errors import ImageError, ImageMissing, PrchainError
from prchain.core.processes.alive import Process, this_process

LABEL = "prchain.agent"


def volume_name(program: AgentProgram) -> str:
    """The volume that holds a program."""
    return f"prchain-agent-{program.key}"


def volume_size(engine: Any, image: str, program: AgentProgram) -> int | None:
    """Bytes of the volume, as `AgentProgram.size` tells them; None where it is not there or was not filled to its end.
    Looked up from a container of the image that is never started. Raises what an engine raises."""
    from docker.errors import NotFound  # noqa: PLC0415  loaded with the engine

    with engine_failures():
        try:
            engine.volumes.get(volume_name(program))
        except NotFound:
            return None
    whole = _whole(engine, image, volume_name(program))
    return None if whole is None else AgentProgram.size(whole)


def _whole(engine: Any, image: str, name: str) -> str | None:
    """What the file holds that stands in a volume once it is filled; None without it."""
    from docker.errors import NotFound  # noqa: PLC0415  loaded with the engine

    with engine_failures():
        container = engine.containers.create(image, volumes={name: {"bind": FOLDER, "mode": "ro"}})
        try:
            stream, _ = container.get_archive(f"{FOLDER}/{WHOLE}")
            with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
                content = archive.extractfile(WHOLE)
                return "" if content is None else content.read().decode("ascii", "replace")
        except NotFound:
            return None
        finally:
            container.remove(force=True)


def clear_volumes(engine: Any, image: Callable[[], str], *, everybody: bool) -> dict[str, bool]:
    """Remove the volumes of installs that were cut off, by processes of this machine that have ended; with `everybody`
    all that no sandbox uses. Returns the name of each, and whether it is gone. `image` names one to look into them
    from.

    Raises `EngineUnavailable`.
    """
    found: dict[str, bool] = {}
    with engine_failures():
        volumes = engine.volumes.list(filters={"label": LABEL})
    for volume in volumes:
        owner = Process.parse((volume.attrs.get("Labels") or {}).get(OWNER, ""))
        try:
            if not everybody and (
                owner is None or not owner.is_gone or _whole(engine, image(), volume.name) is not None
            ):
                continue
            with engine_failures():
                volume.remove()
            found[volume.name] = True
        except ImageMissing:
            continue  # nobody can look into it
        except ImageError:
            found[volume.name] = False  # a container uses it
    return found


def install_in_volume(engine: Any, program: AgentProgram, settings: BuildSettings) -> None:
    """Fill the volume in a container of the base image with the tools of every build, as root, with the network. One
    that was filled in part is filled anew. Raises `BuildFailed`, and what an engine raises."""
    name = volume_name(program)
    image = lay_tools(engine, settings)
    fetch = resources.files("environments.images") / "inside" / "npm_package.py"
    filled = False
    with engine_failures():
        engine.volumes.create(name, labels={LABEL: program.name, OWNER: str(this_process())})
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
