"""A stream that is a process of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress


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

    def send(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._pipes[0].fileno(), rest) :]

    def end_input(self) -> None:
        self._pipes[0].close()

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        while self._open and not self._pipes[1].closed:
            ready = select.select(self._open, [], [], timeout)[0]
            if not ready:
                return None
            if content := os.read(ready[0], 1 << 16):
                return ready[0] == self._pipes[2].fileno(), content
            self._open.remove(ready[0])
        raise EOFError

    def exit_code(self) -> int | None:
        code = self.process.wait()
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in self._pipes:
            pipe.close()
