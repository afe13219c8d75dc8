"""A stream that is a process of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

_TICK = 0.05


class ProcessStream:
    """See `environments.sandboxes.sandbox.SandboxStream`; the process has a session of its own, which ends with it."""

    def __init__(self, command: Sequence[str], *, cwd: str = "/", environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._pipes = (self.process.stdin, self.process.stdout, self.process.stderr)
        self._open = [pipe.fileno() for pipe in self._pipes[1:]]
        # A descriptor that is closed while another thread uses it may be another file's a moment later.
        self._sending, self._receiving, self._closed = threading.Lock(), threading.Lock(), False

    def send(self, content: bytes) -> None:
        rest = memoryview(content)
        with self._sending:
            while rest:
                if self._closed or self._pipes[0].closed:
                    raise BrokenPipeError("the stream was closed")
                rest = rest[os.write(self._pipes[0].fileno(), rest) :]

    def end_input(self) -> None:
        with self._sending:
            self._pipes[0].close()

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        until = time.monotonic() + timeout
        while True:
            with self._receiving:
                if self._closed or not self._open:
                    raise EOFError
                ready = select.select(self._open, [], [], max(0.0, min(_TICK, until - time.monotonic())))[0]
                if ready and (content := os.read(ready[0], 1 << 16)):
                    return ready[0] == self._pipes[2].fileno(), content
                if ready:
                    self._open.remove(ready[0])
                elif time.monotonic() >= until:
                    return None

    def exit_code(self) -> int | None:
        code = self.process.wait()
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._closed = True
        with self._sending, self._receiving:
            for pipe in self._pipes:
                with suppress(OSError):
                    pipe.close()
