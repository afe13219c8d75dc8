"""The control group of a container's processes, where these are processes of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_FREEZERS = ("freezer", "")
"""Controllers of the hierarchy in which an engine freezes: of version 1, and of version 2, which has one for all."""


def processes_of(
    pid: int, name: str, groups: Path = _GROUPS, processes: Path = Path("/proc")
) -> tuple[int, ...] | None:
    """All processes of the control group in which a process is, if it can be frozen; `name` is a part of the group's
    own name. None where the group is not of this machine."""
    found: list[int] = []
    try:
        for line in (processes / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in _FREEZERS and name in path and ".." not in path:
                for group in (groups / controllers / path.lstrip("/")).rglob("cgroup.procs"):
                    found += map(int, group.read_text().split())
    except (OSError, ValueError):
        return None
    return tuple(found) if pid in found else None


def kill_all(processes: Iterable[int]) -> None:
    """Kill processes, those that are gone aside. Raises nothing."""
    for process in processes:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
