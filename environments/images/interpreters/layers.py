"""Layers that images share, over the base image: what every build needs, and an interpreter of this machine below
``/opt/python/X.Y``, copied, made relocatable, and tried there before it is used."""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from environments.images.building import BuildContainer
from environments.images.image_settings import BuildSettings
from environments.images.images import BASE_PACKAGES, PREPARE, find_tagged
from environments.images.interpreters.elf import with_library_path
from environments.images.interpreters.host_pythons import HostPython
from environments.images.plans import BUILD
from environments.sandboxes.engine import BASE_LABEL

FOLDER = "/opt/python"

_LEFT_OUT = frozenset({"test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages", "dist-packages"})
"""Folders of the library that no test run needs; packages are the venv's. Setuptools of the time needs lib2to3."""

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
    digest = hashlib.sha256(f"1\0{base_id}\0{python.text}\0{python.program}".encode()).hexdigest()
    return f"prchain-python:{python.text}-{digest[:12]}"


def lay(engine: Any, base: str, base_id: str, python: HostPython) -> str:
    """The name of an image that is the base image with this interpreter; made where the engine lacks it.

    Raises `BuildFailed` where the interpreter does not run in it, `OSError` and `ValueError` where it cannot be copied,
    and what an engine raises.
    """
    name = layer_name(python, base_id)
    if find_tagged(engine, name):
        return name
    with BuildContainer(engine, base, network="none", deadline=time.monotonic() + _LONGEST) as container:
        with io.BytesIO() as archive:
            write_tar(python, archive)
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


def write_tar(python: HostPython, file: IO[bytes]) -> None:
    """Write what an interpreter needs, below ``opt/python/X.Y``."""
    prefix, minor = Path(python.prefix), python.minor
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        program = Path(python.program)
        _add(tar, program, f"{minor}/bin/python{minor}", b"$ORIGIN/../lib")
        _link(tar, f"{minor}/bin/python3", f"python{minor}")
        for path in sorted((prefix / "lib").glob(f"libpython{minor}*.so*")):
            if path.is_symlink():
                _link(tar, f"{minor}/lib/{path.name}", os.readlink(path))
            else:
                _add(tar, path, f"{minor}/lib/{path.name}", b"$ORIGIN")
        library = prefix / "lib" / f"python{minor}"
        for path in _files(library):
            place = path.relative_to(library)
            up = b"$ORIGIN/" + b"/".join([b".."] * len(place.parts)) if path.suffix == ".so" else b""
            _add(tar, path, f"{minor}/lib/python{minor}/{place}", up)
        for headers in sorted((prefix / "include").glob(f"python{minor}*")):
            for path in _files(headers):
                _add(tar, path, f"{minor}/include/{headers.name}/{path.relative_to(headers)}", b"")


def _files(folder: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(it for it in folders if it not in _LEFT_OUT)
        for name in sorted(names):
            if not name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc", ".exe")):
                yield Path(top) / name


def _add(tar: tarfile.TarFile, path: Path, place: str, libraries: bytes) -> None:
    content = path.read_bytes()
    if libraries:
        content = with_library_path(content, libraries)
    entry = tarfile.TarInfo(f"{FOLDER.lstrip('/')}/{place}")
    status = path.stat()
    entry.size, entry.mtime, entry.mode = len(content), int(status.st_mtime), 0o755 if status.st_mode & 0o100 else 0o644
    tar.addfile(entry, io.BytesIO(content))


def _link(tar: tarfile.TarFile, place: str, target: str) -> None:
    entry = tarfile.TarInfo(f"{FOLDER.lstrip('/')}/{place}")
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)
