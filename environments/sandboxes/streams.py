"""What the streams of sandboxes with a channel share: a descriptor that is read and written as it is ready, and an end.

What a command prints is not trusted to end: a stream that is closed, or whose sandbox is, ends whoever waits on it.
"""

from __future__ import annotations

import contextlib
import select
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from environments.sandboxes.sandbox import SandboxStream
from prchain.core.errors import SandboxError

TOKEN = "PRCHAIN_STREAM"
"""The variable by which the server knows a stream's processes."""

LONGEST = 100_000
"""Bytes of a command and of a variable: the kernel takes 128 KiB in one argument (execve(2))."""

CHUNK = 1 << 16
_TICK = 0.5
"""Seconds after which a waiting thread looks whether the stream was closed."""

NOT_READY = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ChannelledStream(ABC, SandboxStream):
    """A backend says how bytes go. `kill` ends the command's processes, `probe` raises where the sandbox is gone."""

    def __init__(self, kill: Callable[[], None], probe: Callable[[], object]) -> None:
        self._kill = kill
        self._probe = probe
        self._sending = threading.Lock()
        self._dropped = False

    @abstractmethod
    def _write(self, content: memoryview) -> int:
        """Write what can be written now. Raises `NOT_READY`, or `OSError` where nothing can be any more."""

    @abstractmethod
    def _read(self) -> tuple[bool, bytes] | None:
        """What can be read now; None where nothing can. Raises `EOFError` at the end."""

    @abstractmethod
    def _sources(self) -> list[int]:
        """The descriptors to wait for."""

    @abstractmethod
    def _sink(self) -> int:
        """The descriptor to wait for before more is written; -1 where there is none."""

    @abstractmethod
    def _code(self) -> int | None:
        """The exit code, where it is known."""

    def _has_ended(self) -> bool:
        """Whether the command has ended, where writing does not show that."""
        return False

    @abstractmethod
    def _free(self) -> None:
        """Close the descriptors. Never fails."""

    def send(self, content: bytes) -> None:
        """See `SandboxStream`."""
        rest = memoryview(content)
        with self._sending:
            while rest:
                if self._dropped or (sink := self._sink()) < 0:
                    raise BrokenPipeError("the stream takes no more")
                try:
                    rest = rest[self._write(rest) :]
                except NOT_READY:
                    if not _wait([], [sink], _TICK) and self._has_ended():
                        raise BrokenPipeError("the command has ended") from None
                except OSError:
                    raise BrokenPipeError("the command reads no more") from None

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        """See `SandboxStream`."""
        until = time.monotonic() + timeout
        while not self._dropped:
            try:
                found = self._read()
            except NOT_READY:
                found = None
            except (OSError, ValueError):
                raise EOFError("the stream broke") from None
            if found is not None:
                return found
            remaining = until - time.monotonic()
            if remaining <= 0:
                return None
            # A stream that another thread dropped since it was read has descriptors of -1: the loop ends then.
            _wait([it for it in self._sources() if it >= 0], [], min(remaining, _TICK))
        raise EOFError("the stream was closed")

    def exit_code(self) -> int | None:
        """See `SandboxStream`."""
        code = None if self._dropped else self._code()
        if code != 0:
            self._probe()
        return code

    def close(self) -> None:
        """See `SandboxStream`."""
        if not self._dropped:
            with contextlib.suppress(SandboxError):  # it is gone, and its processes with it
                self._kill()
            self.drop()

    def drop(self) -> None:
        """Free the stream of a sandbox that ends."""
        if not self._dropped:
            self._dropped = True
            with self._sending:
                self._free()


def _wait(readable: list[int], writable: list[int], seconds: float) -> bool:
    poll = select.poll()
    for descriptors, events in ((readable, select.POLLIN), (writable, select.POLLOUT)):
        for descriptor in descriptors:
            poll.register(descriptor, events)
    return bool(poll.poll(max(seconds, 0.0) * 1000))
