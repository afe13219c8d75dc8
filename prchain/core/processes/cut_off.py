"""How a process ends whose threads still work, after Ctrl-C or an error in one of them.

Their work is in transactions that may be cut off, so nobody waits for them. The programs that they run are ended
(`prchain.core.processes.children`). What else they hold outside of this process, such as containers, is left to a
program that takes the process's place: from then on no thread uses it, makes more of it, or stores that it is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from prchain.core.processes.children import end_children

_HEIRS: dict[str, Mapping[str, str]] = {}
"""Modules, with variables of their environment."""


def leave_to(module: str, environment: Mapping[str, str]) -> None:
    """Have a module run as a program in place of this process, if that is cut off; it gets the exit code to end with.

    It has this process's number, and so its identity (`prchain.core.processes.alive.this_process`). `environment` is
    added to that of the process.
    """
    _HEIRS.clear()
    _HEIRS[module] = environment


def cut_off(status: int) -> NoReturn:
    """End at once with an exit code, whatever threads do; their programs are ended, and an heir comes first."""
    with contextlib.suppress(KeyboardInterrupt):  # a second one waits for nothing
        end_children()
    sys.stdout.flush()
    sys.stderr.flush()
    for module, environment in _HEIRS.items():
        os.execve(sys.executable, [sys.executable, "-m", module, str(status)], {**os.environ, **environment})
    os._exit(status)
