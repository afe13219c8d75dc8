"""Layers that images share, over the base image: what every build needs, and an interpreter of this machine below
``/opt/python/X.Y``, copied, made relocatable, and tried there before it is used."""

from __future__ import annotations

import hashlib
import io
import posixpath
import time
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_settings import BuildSettings
from environments.images.images import BASE_PACKAGES, PREPARE, find_tagged
from environments.images.interpreters.copies import FOLDER, write_tar
from environments.images.interpreters.host_pythons import HostPython
from environments.images.plans import BUILD
from environments.sandboxes.engine import BASE_LABEL

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

_TIDY = f"rm -rf {BUILD} /tmp/* /root/.cache"

_NO_BASE = f'LABEL {BASE_LABEL}=""'
"""A layer is no base image that a user made, though it stands on one."""

_LONGEST = 120.0
"""Seconds for making the layer and trying it."""


def layer_name(python: HostPython, base_id: str) -> str:
    """The name of the image: of the interpreter, and what it stands on."""
    digest = hashlib.sha256(f"2\0{base_id}\0{python.text}\0{python.program}".encode()).hexdigest()
    return f"prchain-python:{python.text}-{digest[:12]}"


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
        script = f"setpriv --reuid=65534 --regid=65534 --clear-groups {program} -c '{_TRY}' && {_TIDY}"
        container.run("prepare", script, root=True)
        container.commit(name, [_NO_BASE])
    return name


def lay_tools(engine: Any, settings: BuildSettings) -> str:
    """The name of an image that is the settings' base image with what every build would put in by itself: Debian's
    packages, and uv; made where the engine lacks it. Raises `BuildFailed`, and what an engine raises."""
    base_id = find_tagged(engine, settings.base_image) or settings.base_image
    digest = hashlib.sha256(f"1\0{base_id}\0{' '.join(BASE_PACKAGES)}".encode()).hexdigest()
    name = f"prchain-python:tools-{digest[:12]}"
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
        container.run("prepare", f"{PREPARE}\n{_UV}\n{_TIDY}", root=True)
        container.commit(name, [_NO_BASE])
    return name
