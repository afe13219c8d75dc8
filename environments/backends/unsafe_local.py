"""Plain processes on this machine, without isolation."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from environments.backend import Usable
from environments.backends.local import LocalBackend
from environments.programs.program import AgentProgram
from environments.sandboxes.leftovers import LOCAL_PREFIX, OWNER_FILE
from environments.sandboxes.local import LocalSandbox, ProcessTransport
from environments.sandboxes.sandbox import LaidFolder, Sandbox, SandboxConfig
from prchain.core.processes.alive import this_process


class PlainSandbox(LocalSandbox):
    """Plain processes in a folder of their own among the temporary ones, which goes when the sandbox is closed."""

    def __init__(self, config: SandboxConfig) -> None:
        self._own_folder = Path(tempfile.gettempdir()) / f"{LOCAL_PREFIX}{secrets.token_hex(6)}"
        super().__init__(replace(config, workdir=str(self._own_folder / "work")), unsafe=True)

    def _make(self) -> ProcessTransport:
        self._own_folder.mkdir(mode=0o700, exist_ok=True)
        (self._own_folder / OWNER_FILE).write_text(str(this_process()), encoding="utf-8")
        return super()._make()

    def close(self) -> None:
        """See `environments.sandboxes.sandbox.Sandbox.close`."""
        super().close()
        shutil.rmtree(self._own_folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class PlainBackend(LocalBackend):
    """Like `LocalBackend`, without bubblewrap."""

    def _of(self, config: SandboxConfig) -> Sandbox:
        return PlainSandbox(config)

    def laid_program(self, program: AgentProgram, data_dir: Path) -> LaidFolder:
        """See `environments.backend.Backend.laid_program`: where it lies."""
        source = super().laid_program(program, data_dir).source
        return LaidFolder(source, source)

    def usable(self) -> Usable:
        """See `environments.backend.Backend.usable`."""
        return Usable(True, "plain processes need nothing")


BACKEND = PlainBackend(name="unsafe-local", help="plain processes", rank=30, unsafe=True, workdir=None)
