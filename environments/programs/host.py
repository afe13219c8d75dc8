"""Programs of agents on this machine, for backends that use its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from environments.images.buildlogs import decisive_lines
from environments.programs.program import WHOLE, AgentProgram
from prchain.core.errors import BuildFailed
from prchain.core.secrets.scrub import redact

if TYPE_CHECKING:
    from prchain.core.settings import Settings


def host_folder(program: AgentProgram, data_dir: Path) -> Path:
    """Where a program lies."""
    return data_dir.absolute() / "agents" / program.key


def installed_size(folder: Path) -> int | None:
    """Bytes of a program that was installed there to its end (`AgentProgram.size`); None where none was."""
    try:
        return AgentProgram.size((folder / WHOLE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def install_on_host(program: AgentProgram, settings: Settings) -> None:
    """Install a program as the user, with the clients of registries that this machine has. What stood there before is
    replaced once the new one is whole. Raises `BuildFailed`."""
    folder = host_folder(program, settings.data_dir)
    folder.parent.mkdir(parents=True, exist_ok=True)
    build = resources.files("environments.images") / "inside"
    with resources.as_file(build) as scripts, tempfile.TemporaryDirectory(dir=folder.parent) as above:
        fresh = Path(above) / program.name
        fresh.mkdir()
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", program.script],
            cwd=fresh,
            env={**os.environ, "BUILD": str(scripts), "PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if ran.returncode != 0:
            log = redact(ran.stdout.decode("utf-8", "replace"), settings.secrets)
            lines = decisive_lines(log)
            why = lines[-1] if lines else f"exit code {ran.returncode}"
            raise BuildFailed(f"{program.name} cannot be installed: {why}", step="install", lines=lines, log=log)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
