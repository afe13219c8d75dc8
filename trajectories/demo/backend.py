"""Where the demo's code runs: the best that this machine has, without the network."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.images.base_image import NAME
from environments.images.plans import WORKDIR
from environments.images.provide import Backend
from environments.sandboxes.engine import BASE_LABEL, connect, in_engine
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import Place
from prchain.errors import PrchainError, UsageError
from prchain.settings import Settings

_PATIENCE = 10
"""Seconds that the engine, or bubblewrap, has to answer in."""

_HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where commands of sandboxes without an image look for programs (`environments.sandboxes.local`)."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend, and the words that say why it is this one. `image` is the base image, where it needs one."""

    backend: Backend
    why: str
    image: str | None = None

    @property
    def workdir(self) -> str | None:
        """Where a repository lies in its sandboxes; None where that is not known before."""
        return None if self.backend is Backend.UNSAFE_LOCAL else WORKDIR

    @property
    def flags(self) -> list[str]:
        """What commands are told."""
        sure = ["--unsafe-local"] if self.backend is Backend.UNSAFE_LOCAL else []
        return ["--backend", self.backend.value, *sure]


def choose(settings: Settings, wanted: Backend | None = None) -> Chosen:
    """Docker if an engine answers and has a base image of ours, else bubblewrap, else plain processes.

    `wanted` is taken without asking for the others. Raises `UsageError` where it does not work here.
    """
    reasons = []
    if wanted in {None, Backend.DOCKER}:
        image, why = _docker(settings)
        if image is not None:
            return Chosen(Backend.DOCKER, why, image)
        reasons.append(why)
    if wanted in {None, Backend.LOCAL}:
        why_not = _bubblewrap()
        if why_not is None:
            return Chosen(Backend.LOCAL, "; ".join([*reasons, "bubblewrap works"]))
        reasons.append(why_not)
    if wanted in {None, Backend.UNSAFE_LOCAL}:
        return Chosen(Backend.UNSAFE_LOCAL, "; ".join([*reasons, "the code is our own"]))
    raise UsageError(f"the demo cannot use the backend {wanted}: {'; '.join(reasons)}")


def _docker(settings: Settings) -> tuple[str | None, str]:
    """The base image to build on, which holds all that a build needs; or why there is none."""
    names = dict.fromkeys((settings.environments_base_image, NAME))
    try:
        with _engine(settings) as engine:
            for name in names:
                with contextlib.suppress(PrchainError), in_engine():
                    if (engine.images.get(name).labels or {}).get(BASE_LABEL):
                        return name, f"a Docker engine answers and has the image {name}"
    except PrchainError:
        return None, "no Docker engine answers"
    return None, "the Docker engine has no base image (`prchain environments base` makes one)"


@contextlib.contextmanager
def _engine(settings: Settings) -> Iterator[Any]:
    with closing(connect(settings.environments_engine, timeout=_PATIENCE)) as engine:
        yield engine


def _bubblewrap() -> str | None:
    """Why no sandbox of bubblewrap can run the tests; None: one can."""
    try:
        with LocalSandbox(Place(None, workdir=WORKDIR)) as sandbox:
            ran = sandbox.exec("python3 --version && git --version", timeout=_PATIENCE)
    except PrchainError as error:
        return f"bubblewrap does not work ({' '.join(str(error).split())[:100]})"
    return None if ran.exit_code == 0 else "bubblewrap shows /usr alone, and there is no python3 or no git in it"


def path_with_python() -> Mapping[str, str]:
    """The variables that let plain processes find a Python: none, where there is one among the machine's programs."""
    if shutil.which("python3", path=_HOST_PATH):
        return {}
    folder = next((one for one in (shutil.which("python3"), sys.executable) if one), "")
    return {"PATH": f"{Path(folder).parent}{os.pathsep}$PATH"}
