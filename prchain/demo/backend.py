"""The demo's backend: the best one that this machine has, without the network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from environments.backend import Backend
from environments.backends import BACKENDS
from environments.sandboxes.local import PATH
from prchain.core.errors import UsageError
from prchain.core.settings import Settings


@dataclass(frozen=True, slots=True)
class ChosenBackend:
    """A backend, and why it was chosen. `image` is the base image, where it needs one."""

    backend: Backend
    why: str
    image: str | None = None

    @property
    def flags(self) -> list[str]:
        """Flags of the commands for this backend."""
        return ["--backend", self.backend.name, *(["--unsafe-local"] if self.backend.unsafe else [])]


def choose(settings: Settings, name: str | None = None) -> ChosenBackend:
    """The best backend that works: Docker if an engine answers and has a base image of ours, else bubblewrap ....

    With `name` no other is tried. Raises `UsageError` where it does not work here.
    """
    ranked = sorted(BACKENDS.values(), key=lambda backend: backend.rank)
    reasons = []
    for backend in [BACKENDS.named(name)] if name else ranked:
        usability = backend.of(settings).usable()
        reasons.append(usability.why)
        if usability.works:
            ours = ["the code is our own"] if backend.unsafe else []
            return ChosenBackend(backend, "; ".join([*reasons, *ours]), usability.image)
    raise UsageError(f"the demo cannot use the backend {name}: {'; '.join(reasons)}")


def path_with_python() -> Mapping[str, str]:
    """The variables that let plain processes find a Python; empty where the default PATH has one."""
    if shutil.which("python3", path=PATH):
        return {}
    folder = next((program for program in (shutil.which("python3"), sys.executable) if program), "")
    return {"PATH": f"{Path(folder).parent}{os.pathsep}$PATH"}
