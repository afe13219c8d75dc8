"""This container as a sandbox: commands run here, as the image's user, in the repository's folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.sandboxes.local import LocalSandbox, ProcessTransport, become_reaper
from environments.sandboxes.sandbox import ResourceLimits, Sandbox, SandboxConfig
from environments.sandboxes.server import SCRIPT
from environments.suites.runner import TestCommand
from prchain.core.errors import SandboxError

_QUIET = 3
"""Looks at the processes in a row that have to find none."""
_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class User:
    """Whom commands run as: another than root, so that what we keep and write is out of their reach."""

    uid: int
    gid: int
    home: str

    @classmethod
    def of(cls, name: str) -> User:
        """The user of an image, by name or number; whoever we are, where we are not root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), os.environ.get("HOME", "/"))
        word = name.partition(":")[0] or "0"
        with contextlib.suppress(KeyError):
            known = pwd.getpwuid(int(word)) if word.isdecimal() else pwd.getpwnam(word)
            return cls(known.pw_uid, known.pw_gid, known.pw_dir)
        return cls(int(word) if word.isdecimal() else 0, 0, "/")


class MachineSandbox(LocalSandbox):
    """Plain processes of another user, if we may start such."""

    def __init__(self, config: SandboxConfig, user: User) -> None:
        super().__init__(config, unsafe=True)
        self._user = user

    @property
    def shared(self) -> tuple[str, ...]:
        """See `SharesFiles`: all of this container, which every run sees."""
        return ("/",)

    def _make(self) -> ProcessTransport:
        if self.begin_with is not None:
            # The folder itself stays: who is not root cannot make it anew.
            begin, self.begin_with = self.begin_with, None
            _refill(Path(self.config.workdir), begin.folder)
        return super()._make()

    def _spawn(self, folder: Path, state: Path) -> subprocess.Popen[bytes]:
        (folder / "server").mkdir()
        if os.geteuid() == 0:
            for path in (folder, folder / "server", state):
                os.chown(path, self._user.uid, self._user.gid)
        command = ["/bin/bash", "--noprofile", "--norc", "-c", f"ulimit -c 0\n{SCRIPT}", "prchain", "self"]
        switched = os.geteuid() == 0 and self._user.uid != 0
        ids: dict[str, Any] = {"user": self._user.uid, "group": self._user.gid, "extra_groups": []} if switched else {}
        return subprocess.Popen(
            [*command, str(folder / "server"), "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HOME": self._user.home, **self.config.environment},
            cwd="/",
            start_new_session=True,
            preexec_fn=become_reaper,  # noqa: PLW1509  one call into libc, no Python lock taken
            **ids,
        )


def _refill(folder: Path, source: Path) -> None:
    """Make a folder hold what another one holds."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    done = subprocess.run(["/bin/cp", "-a", "--", f"{source}/.", str(folder)], capture_output=True, check=False)
    if done.returncode != 0:
        raise SandboxError(f"{folder} cannot be made anew: {done.stderr.decode('utf-8', 'replace')[-200:].strip()}")


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """What is known of an image: the part of `environments.images.image_plan.ImagePlan` that running tests takes."""

    runner: str
    tag: str
    workdir: str
    refresh: tuple[str, ...]
    command: TestCommand
    environment: Mapping[str, str]
    """Of the image and of the plan: all variables of commands."""


@dataclass(frozen=True, slots=True)
class Provided:
    """In place of `environments.images.stage_image.StageImage`."""

    plan: MachinePlan
    image: None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The part of `environments.backend.Backend` that running tests takes."""

    user: User

    def sandbox(self, plan: MachinePlan, image: None, *, limits: ResourceLimits, labels: Mapping[str, str]) -> Sandbox:
        """This container."""
        config = SandboxConfig(image, workdir=plan.workdir, limits=limits, environment=plan.environment)
        return MachineSandbox(config, self.user)

    def command(self, plan: MachinePlan) -> TestCommand:
        """How tests are run."""
        return plan.command

    def refreshes(self, plan: MachinePlan) -> tuple[str, ...]:
        """What makes a tree ready to run."""
        return plan.refresh


def end_others(user: User) -> bool:
    """Kill what the user left running: it could write over what we write. We, those that began us and the first
    process stay. Whether none is left: processes that make others without end are stopped as they are found, and
    looked for again and again."""
    kept, pid = {1}, os.getpid()
    while pid > 1:
        kept.add(pid)
        pid = _parent(pid)
    quiet, start = 0, time.monotonic()
    while quiet < _QUIET and time.monotonic() - start < _PATIENCE:
        quiet += 1
        for pid, owner in _processes():
            if owner == user.uid and pid not in kept and _is_alive(pid) and not _keeps_container(pid):
                quiet = 0
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    return quiet >= _QUIET


def _is_alive(pid: int) -> bool:
    try:
        return _facts(pid)[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _keeps_container(pid: int) -> bool:
    """Whether it is of the container's first session, which holds the container: what an engine starts in it later
    has a session of its own, and no process can enter another one's."""
    try:
        return _facts(pid)[3] == _facts(1)[3]
    except (OSError, IndexError):
        return False


def _facts(pid: int) -> list[bytes]:
    """The fields of a process's ``stat`` behind its name (proc(5)): state, parent, group, session ..."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()


def _processes() -> Iterator[tuple[int, int]]:
    """The newest first."""
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdecimal()), reverse=True):
        with contextlib.suppress(OSError):
            yield pid, os.stat(f"/proc/{pid}").st_uid


def _parent(pid: int) -> int:
    try:
        return int(_facts(pid)[1])
    except (OSError, ValueError, IndexError):
        return 0
