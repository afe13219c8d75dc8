"""Pythons of this machine from which an image can have an interpreter of another time: pyenv's, uv's, /usr's."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OLDEST = (3, 6)
"""The oldest Python that our reporters run on."""

_ASK = "import json, sys; print(json.dumps([list(sys.version_info[:3]), sys.base_prefix, sys.implementation.name]))"

_PATIENCE = 20
"""Seconds in which an interpreter says its version."""


@dataclass(frozen=True, slots=True)
class HostPython:
    """An interpreter of this machine. `prefix` is the folder that its library lies below."""

    version: tuple[int, int, int]
    program: str
    prefix: str

    @property
    def minor(self) -> str:
        """``3.8``."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def text(self) -> str:
        """``3.8.18``."""
        return ".".join(map(str, self.version))


@cache
def host_pythons() -> tuple[HostPython, ...]:
    """The interpreters of this machine that are new enough, oldest first, of each minor version its newest; those that
    do not start are left out."""
    found: dict[tuple[int, int], HostPython] = {}
    for program in dict.fromkeys(path.resolve() for path in _programs()):
        python = _asked(program) if _is_safe(program) else None
        if python is not None and python.version[:2] >= OLDEST:
            known = found.get(python.version[:2])
            # One below a prefix of its own is whole; /usr's leaves some of its library to other packages.
            if known is None or (python.prefix != "/usr", python.version) > (known.prefix != "/usr", known.version):
                found[python.version[:2]] = python
    return tuple(found[minor] for minor in sorted(found))


def _programs() -> Iterator[Path]:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    places = [
        (Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions", "*/bin/python3"),
        (Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv/python"), "*/bin/python3"),
        (Path("/opt/python"), "*/bin/python3"),
        (Path("/usr/local/bin"), "python3.*"),
        (Path("/usr/bin"), "python3.*"),
    ]
    for folder, glob in places:
        try:
            yield from sorted(
                path for path in folder.glob(glob) if path.name.rpartition(".")[2].isdigit() or "*/" in glob
            )
        except OSError:
            continue


def written_by_others(status: os.stat_result) -> bool:
    """Whether others than root and this user may write a file or a folder: it is theirs, or its mode lets them.

    A group that has its user's number is that user's alone, as distributions make them.
    """
    user = os.geteuid()
    if status.st_uid not in {0, user} or status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in {0, user}


def _is_safe(program: Path) -> bool:
    """Whether nobody else could have put a program there."""
    try:
        return not any(written_by_others(path.stat()) for path in (program, *program.parents[:2]))
    except OSError:
        return False


def _asked(program: Path) -> HostPython | None:
    try:
        answer = subprocess.run(
            [program, "-I", "-c", _ASK], capture_output=True, timeout=_PATIENCE, check=True, stdin=subprocess.DEVNULL
        )
        version, prefix, name = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return HostPython(tuple(version), str(program), str(prefix)) if name == "cpython" else None
