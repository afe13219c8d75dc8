"""The programs that this process has started and that run now, so that a process which is cut off leaves none behind.

Ctrl-C in a terminal reaches the programs that a run started; SIGTERM reaches the run alone, and its threads are not
waited for.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable
from time import monotonic

_ENDING_SECONDS = 2.0
"""Seconds in which programs may clear away after SIGTERM; git removes its locks and unfinished files."""

_lock = threading.RLock()
"""Held while a program is started or forgotten; `end_children` keeps it. While a thread starts a program, the garbage
collector may close an abandoned reader in the same thread, which forgets another one."""

_running: set[subprocess.Popen[bytes]] = set()


def start_child(spawn: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a program, which the caller ends and then forgets (`forget_child`)."""
    with _lock:
        process = spawn()
        _running.add(process)
    return process


def forget_child(process: subprocess.Popen[bytes]) -> None:
    """Say that a program has ended, before anything is made of how it did."""
    with _lock:
        _running.discard(process)


def end_children() -> None:
    """End all programs that run. From then on no thread starts one, nor makes anything of the end of one."""
    _lock.acquire()  # kept: what is left of this process is its end
    ending = tuple(_running)
    for process in ending:
        process.terminate()
    deadline = monotonic() + _ENDING_SECONDS
    for process in ending:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.0, deadline - monotonic()))
    for process in ending:
        process.kill()
