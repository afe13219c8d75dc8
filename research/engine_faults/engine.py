"""A separate Docker engine on a small disk of its own, which can be killed, started again and filled up.

It needs root, `dockerd`, `unshare`, loop devices and ext4. The user's own engine only provides an image.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from environments.sandboxes.engine import connect
from prchain.core.errors import EngineUnavailable

_START = 60.0
_PIECE = 1 << 20


class OwnEngine:
    """The engine and its disk, while the block is open; `folder` is the part of the disk for other files.

    `base_folder` is a new folder with a short path, for sockets; `size` is the size of the disk, in bytes.
    """

    def __init__(self, base_folder: Path, size: int) -> None:
        self._base_folder = base_folder
        self._size = size
        self._disk = base_folder / "disk"
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of its socket."""
        return f"unix://{self._base_folder}/docker.sock"

    @property
    def folder(self) -> Path:
        """A folder on the disk."""
        return self._disk / "work"

    def __enter__(self) -> Self:
        image = self._base_folder / "disk.img"
        self._disk.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(self._size)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self._disk], check=True)
        self.folder.mkdir()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait(60)
        for _ in range(20):
            if subprocess.run(["umount", "-R", self._disk], check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        shutil.rmtree(self._base_folder, ignore_errors=True)

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        # In its own network namespace: an engine without a bridge removes the bridge of another engine.
        command = [
            "unshare",
            "--net",
            "dockerd",
            "-H",
            self.url,
            "--data-root",
            f"{self._disk}/docker",
            "--exec-root",
            f"{self._base_folder}/exec",
            "--pidfile",
            f"{self._base_folder}/docker.pid",
            "--bridge",
            "none",
            "--iptables=false",
        ]
        (self._base_folder / "docker.pid").unlink(missing_ok=True)
        with (self._base_folder / "docker.log").open("ab") as log:
            self._daemon = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + _START
        while True:
            with contextlib.suppress(EngineUnavailable):
                connect(self.url, timeout=5).close()
                return
            if time.monotonic() > end or self._daemon.poll() is not None:
                raise RuntimeError((self._base_folder / "docker.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill the daemon and its containerd with SIGKILL; what runs in containers goes on."""
        assert self._daemon is not None
        children = subprocess.run(["pgrep", "-P", str(self._daemon.pid)], capture_output=True, text=True, check=False)
        for pid in (self._daemon.pid, *map(int, children.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._daemon.wait()
        self._daemon = None

    def load(self, image: str) -> None:
        """Copy an image from the user's engine."""
        user_engine: Any = connect()
        own_engine: Any = connect(self.url)
        try:
            own_engine.images.load(user_engine.images.get(image).save(named=True))
        finally:
            user_engine.close()
            own_engine.close()

    @contextlib.contextmanager
    def full(self) -> Any:
        """Leave no byte of the disk free while the block is open."""
        path = self.folder / "filler"
        with path.open("wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    free = os.statvfs(self._disk)
                    os.posix_fallocate(
                        file.fileno(),
                        os.fstat(file.fileno()).st_size,
                        max(free.f_bavail * free.f_frsize - _PIECE, free.f_frsize),
                    )
            with contextlib.suppress(OSError):
                while True:
                    file.seek(0, os.SEEK_END)
                    file.write(bytes(4096))
        try:
            yield
        finally:
            path.unlink()
