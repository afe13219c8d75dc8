"""Layers that images share, over the base image: what every build needs, and an interpreter of this machine below
``/opt/python/X.Y``, copied, made relocatable, and tried there before it is used."""

from __future__ import annotations

import hashlib
import io
import posixpath
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_plan import BUILD
from environments.images.image_settings import BuildSettings
from environments.images.images import (
    BASE_PACKAGES,
    PREPARE,
    Image,
    find_tagged,
    list_images,
    list_labelled,
    remove_listed,
)
from environments.images.interpreters.copies import FOLDER, write_tar
from environments.images.interpreters.host_pythons import HostPython
from environments.sandboxes.engine import BASE_LABEL, LAYER_LABEL, engine_failures
from prchain.core.errors import BuildFailed, ImageMissing

_TRY = """
import ctypes, hashlib, json, lzma, sqlite3, ssl, venv, zlib
import sys
assert sys.prefix.startswith("/opt/python/"), sys.prefix
"""

_UV = """
wheel=$(ls /usr/share/python-wheels/pip-*.whl 2> /dev/null | tail -n 1)
if [ -n "$wheel" ]; then
    /usr/bin/python3 "$wheel/pip" install --quiet --disable-pip-version-check --no-cache-dir --target /opt/prchain/uv uv
else
    python3 -m venv /opt/prchain/uv && /opt/prchain/uv/bin/python -m pip install --quiet --no-cache-dir uv
fi
"""
"""Debian's pip, as a file: to put one into a venv takes longer than all else."""

TIDY = f"rm -rf {BUILD} /tmp/* /root/.cache"
"""Removes what making a layer leaves."""

_UNFIT = "-unfit"
"""The end of the name of a layer that says: this interpreter does not run there. Pruning forgets it."""

UNUSED = "no image stands on it"
"""The note of a layer."""

_LONGEST = 120.0
"""Seconds for making the layer and trying it."""


def layer_name(python: HostPython, base_id: str) -> str:
    """The name of the image: of the interpreter, and what it stands on."""
    digest = hashlib.sha256(f"2\0{base_id}\0{python.text}\0{python.program}".encode()).hexdigest()
    return f"prchain-python:{python.text}-{digest[:12]}"


def is_unfit(engine: Any, name: str) -> bool:
    """Whether some process has found that the interpreter of a layer does not run there."""
    return find_tagged(engine, name + _UNFIT) is not None


def lay(engine: Any, base: str, base_id: str, python: HostPython) -> str:
    """The name of an image that is the base image with this interpreter; made where the engine lacks it.

    Raises `BuildFailed` where the interpreter does not run in it, `OSError` and `ValueError` where it cannot be copied,
    and what an engine raises.
    """
    name = layer_name(python, base_id)
    if find_tagged(engine, name):
        return name
    deadline = time.monotonic() + _LONGEST
    with io.BytesIO() as archive, BuildContainer(engine, base, network="none", deadline=deadline) as container:
        write_tar(python, archive, deadline)
        container.put(archive.getvalue())
        program = posixpath.join(FOLDER, python.minor, "bin", f"python{python.minor}")
        # As somebody who may not read what lies in a home folder.
        script = f"setpriv --reuid=65534 --regid=65534 --clear-groups {program} -c '{_TRY}' && {TIDY}"
        try:
            container.run("prepare", script, root=True)
        except BuildFailed:
            with suppress(BuildFailed):  # a container that was ended says nothing of the interpreter
                container.run("prepare", f"rm -rf {FOLDER}; {TIDY}", root=True)
                container.commit(name + _UNFIT, labels_of(f"no python {python.text}"))
            raise
        container.commit(name, labels_of(f"python {python.text}"))
    return name


def labels_of(what: str) -> list[str]:
    """The labels of a layer, as lines of a Dockerfile."""
    # A layer is no base image that a user made, though it stands on one.
    return [f'LABEL {BASE_LABEL}=""', f'LABEL {LAYER_LABEL}="{what}"']


def tools_name(engine: Any, settings: BuildSettings) -> str:
    """The name of the image that `lay_tools` makes."""
    base_id = find_tagged(engine, settings.base_image) or settings.base_image
    digest = hashlib.sha256(f"1\0{base_id}\0{' '.join(BASE_PACKAGES)}".encode()).hexdigest()
    return f"prchain-python:tools-{digest[:12]}"


def lay_tools(engine: Any, settings: BuildSettings) -> str:
    """The name of an image that is the settings' base image with what every build would put in by itself: Debian's
    packages, and uv; made where the engine lacks it. Raises `BuildFailed`, and what an engine raises."""
    name = tools_name(engine, settings)
    if find_tagged(engine, name):
        return name
    variables = {**settings.variables, "PACKAGES": " ".join(BASE_PACKAGES)}
    with BuildContainer(
        engine,
        settings.base_image,
        network=settings.network,
        deadline=time.monotonic() + settings.timeout,
        files=settings.files,
        variables=variables,
        secrets=settings.secrets,
    ) as container:
        container.run("prepare", f"{PREPARE}\n{_UV}\n{TIDY}", root=True)
        container.commit(name, labels_of("tools"))
    return name


def list_layers(engine: Any) -> list[Image]:
    """The layers that images share, newest first; the notes of one that none stands on say so."""
    layers = list_labelled(engine, LAYER_LABEL)
    stacks = [_stack(engine, image) for image in list_images(engine)] if layers else []
    found = []
    for layer in layers:
        own = _stack(engine, layer)
        used = any(stack[: len(own)] == own for stack in stacks) and not layer.name.endswith(_UNFIT)
        found.append(layer if used else replace(layer, notes=(UNUSED,)))
    return found


def prune_layers(engine: Any, before: datetime | None = None) -> list[Image]:
    """Remove the layers that no image stands on, of those that were made before a time if one is given; returns them.
    What was found of interpreters that do not run here goes with them."""
    return remove_listed(engine, [layer for layer in list_layers(engine) if layer.notes], before)


def _stack(engine: Any, image: Image) -> list[str]:
    try:
        with engine_failures():
            return list(engine.images.get(image.id).attrs["RootFS"]["Layers"])
    except ImageMissing:  # somebody else removed it meanwhile
        return []
