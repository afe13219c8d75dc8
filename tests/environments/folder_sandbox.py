"""A sandbox that is nothing but a folder of this machine: for tests of what goes into a sandbox and comes out of it."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from environments.sandboxes.relaying import relay_command
from environments.sandboxes.sandbox import ExecResult, SandboxConfig
from prchain.core.errors import SandboxFileError, SnapshotUnknown
from tests.environments.process_stream import ProcessStream

_CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


class FolderSandbox:
    """The folder is the workdir; commands run in it as ourselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = SandboxConfig(None, str(folder))
        self.home = folder.with_name("home")
        self.home.mkdir(exist_ok=True)

    def start(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def exec(
        self,
        command: str,
        *,
        timeout: float = 60.0,
        session: str | None = None,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
        pipestatus: bool = False,
    ) -> ExecResult:
        folder = Path(cwd or self.folder)
        if not folder.is_dir():
            return ExecResult(126, f"{folder}: there is no such folder\n".encode())
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            input=stdin,
            timeout=timeout,
            check=False,
            env={**_CLEAN, "HOME": str(self.home), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return ExecResult(done.returncode, done.stdout)

    def stream(
        self, command: str, *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> ProcessStream:
        variables = {**_CLEAN, "HOME": str(self.home), **(environment or {})}
        return ProcessStream(["bash", "-c", command], cwd=cwd or str(self.folder), environment=variables)

    def listen(self) -> ProcessStream:
        return self.stream(relay_command())

    def read(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise SandboxFileError(str(error)) from error

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        except OSError as error:
            raise SandboxFileError(str(error)) from error

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        data = archive if isinstance(archive, bytes) else archive.read()
        unpacked = subprocess.run(["tar", "-xp", "-C", folder], input=data, check=False, capture_output=True)
        if unpacked.returncode != 0:
            raise SandboxFileError(unpacked.stderr.decode("utf-8", "replace"))

    def get(self, path: str) -> Iterator[bytes]:
        if not os.path.lexists(path):
            raise SandboxFileError(f"there is no {path}")
        above, name = os.path.split(path)
        with subprocess.Popen(
            ["tar", "-c", "-C", above, name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as packing:
            assert packing.stdout
            while chunk := packing.stdout.read(1 << 16):
                yield chunk

    def leftovers(self) -> int:
        return 0

    def snapshot(self) -> str:
        kept = tempfile.mkdtemp(prefix="snapshot-", dir=self.folder.parent)
        shutil.copytree(self.folder, kept, symlinks=True, dirs_exist_ok=True)
        return kept

    def restore(self, snapshot: str) -> None:
        if not Path(snapshot).is_dir():
            raise SnapshotUnknown(snapshot)
        shutil.rmtree(self.folder)
        shutil.copytree(snapshot, self.folder, symlinks=True)

    def branch(self, snapshot: str) -> FolderSandbox:
        """A copy of the folder beside it, so absolute paths in commands lead elsewhere."""
        if not Path(snapshot).is_dir():
            raise SnapshotUnknown(snapshot)
        other = copy.copy(self)
        other.folder = Path(tempfile.mkdtemp(prefix="branch-", dir=self.folder.parent))
        other.config = SandboxConfig(None, str(other.folder))
        shutil.copytree(snapshot, other.folder, symlinks=True, dirs_exist_ok=True)
        return other

    def forget(self, snapshot: str) -> None:
        shutil.rmtree(snapshot, ignore_errors=True)
