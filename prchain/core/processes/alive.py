"""Identifies a process, and says whether it has certainly ended."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from dataclasses import dataclass
from pathlib import Path

_HOST, _BOOT = 20, 8
"""Characters that are kept of a host's name and of a boot's id: a column of 64 takes the whole."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, so identified that another one with its number is not taken for it:
    ``host/boot/namespace/pid/start``."""

    host: str
    boot: str
    namespace: str
    pid: int
    start: str

    def __str__(self) -> str:
        return "/".join([self.host, self.boot, self.namespace, str(self.pid), self.start])

    @classmethod
    def parse(cls, text: str) -> Process | None:
        """The process that a text names; None where it names none."""
        parts = text.split("/")
        if len(parts) != 5 or not parts[3].isdigit():
            return None
        return cls(parts[0][:_HOST], parts[1][:_BOOT], parts[2], int(parts[3]), parts[4])

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended. One on another machine, or in another container, may still run."""
        current = this_process()
        if self.host != current.host:
            return False
        if self.boot != current.boot:
            return True
        return self.namespace == current.namespace and _started(self.pid) != self.start


def this_process() -> Process:
    """The current process."""
    return Process(*_machine(), os.getpid(), _started(os.getpid()))


@functools.cache
def _machine() -> tuple[str, str, str]:
    boot = namespace = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid").removeprefix("pid:").strip("[]")
    return socket.gethostname().replace("/", "_")[:_HOST], boot[:_BOOT], namespace


def _started(pid: int) -> str:
    """When a process was started, in ticks since boot; "" where none runs, or where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "" if not Path("/proc/self/stat").exists() and _answers(pid) else "gone"
    return stat.rpartition(b") ")[2].split()[19].decode("ascii")


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
