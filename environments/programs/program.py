"""What is installed, and where it is seen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

FOLDER = "/opt/prchain/agents"
"""Where sandboxes see programs, each in a folder of its own."""

WHOLE = ".whole"
"""A file that stands in a program's folder once everything is in it, and says how many KiB that is."""

_BEFORE = """
npm_package() { "$PYTHON" "$BUILD/npm_package.py" "$@"; }
"""
_AFTER = f'\nchmod -R a+rX .\nkept=$(du -sk .)\necho "${{kept%%[!0-9]*}}" > {WHOLE}\n'


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """A program that is put into one folder by a script, which may be moved afterwards.

    The script is bash, run with ``-euo pipefail`` and the network in the folder, which is empty. ``$PYTHON`` is a
    Python 3, and ``npm_package PACKAGE VERSION FOLDER`` unpacks a package of npm's registry.
    """

    name: str
    install: str

    @property
    def key(self) -> str:
        """Tells installs apart: another script makes another."""
        return f"{self.name}-{hashlib.sha256(self.install.encode()).hexdigest()[:12]}"

    @property
    def path(self) -> str:
        """Where sandboxes see it."""
        return f"{FOLDER}/{self.name}"

    @staticmethod
    def size(whole: str) -> int:
        """Bytes that a program takes, of what its `WHOLE` holds; 0 where that says nothing."""
        return int(whole) << 10 if whole.strip().isdecimal() else 0

    @property
    def script(self) -> str:
        """What is run to install it."""
        return f"{_BEFORE}{self.install}{_AFTER}"
