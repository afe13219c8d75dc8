"""The near end of the relay: what listens in a sandbox has its connections carried to an address of ours."""

from __future__ import annotations

import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources

from environments.sandboxes.relay import CHUNK, PORT, Relay, RelayBroken
from environments.sandboxes.sandbox import SandboxStream
from prchain.core.errors import SandboxError

PATIENCE = 30.0
"""Seconds that the far end may take to say where it listens."""

_TICK = 1.0
_LAST_WORDS = 500


def relay_command() -> str:
    """The far end, as a command."""
    program = resources.files("environments.sandboxes") / "relay.py"
    return f"exec python3 -I -c {shlex.quote(program.read_text(encoding='utf-8'))}"


class RelayedPort:
    """A port of a sandbox's loopback, whose connections go where `connect` leads.

    `stream` is that of `Sandbox.listen`; it is closed with this.
    """

    def __init__(self, stream: SandboxStream, connect: Callable[[], socket.socket]) -> None:
        self._stream = stream
        self._near, self._far = socket.socketpair()
        self._relay = _NearRelay(self._near.fileno(), self._near.fileno(), connect=connect)
        self._over = threading.Event()
        self._last_words = b""
        self._threads = [
            threading.Thread(target=work, name=f"relay-{work.__name__.strip('_')}", daemon=True)
            for work in (self._carry, self._inwards, self._outwards)
        ]

    @property
    def broken(self) -> bool:
        """Whether it ended before it was closed: nobody in the sandbox can connect any more."""
        return self._over.is_set()

    def breaks(self, seconds: float) -> bool:
        """Whether it has ended so, or does within so many seconds."""
        return self._over.wait(seconds)

    @property
    def number(self) -> int:
        """The port's number, once it is open."""
        return self._relay.port

    def open(self) -> None:
        """Begin. Raises `SandboxError` where the far end does not say where it listens."""
        for thread in self._threads:
            thread.start()
        if not self._relay.told.wait(PATIENCE):
            words = " ".join(self._last_words.decode("utf-8", "replace").split())
            raise SandboxError(f"the relay in the sandbox does not say where it listens{words and ': '}{words}")

    def close(self) -> None:
        """End all connections. Never fails."""
        self._over.set()
        self._stream.close()
        for end in (self._near, self._far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=PATIENCE)
        for end in (self._near, self._far):
            end.close()

    def _carry(self) -> None:
        try:
            self._relay.run()
        except RelayBroken:
            self._over.set()
            with suppress(OSError):
                self._near.shutdown(socket.SHUT_RDWR)

    def _inwards(self) -> None:
        try:
            while not self._over.is_set():
                if (found := self._stream.receive(_TICK)) is None:
                    continue
                is_error, content = found
                if is_error:
                    self._last_words = (self._last_words + content)[-_LAST_WORDS:]
                else:
                    self._far.sendall(content)
        except (EOFError, OSError):
            pass
        with suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)

    def _outwards(self) -> None:
        try:
            while content := self._far.recv(CHUNK):
                self._stream.send(content)
        except OSError:
            pass
        with suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)


class _NearRelay(Relay):
    """Knows the port."""

    port = 0

    def __init__(self, source: int, sink: int, *, connect: Callable[[], socket.socket]) -> None:
        super().__init__(source, sink, connect=connect)
        self.told = threading.Event()

    def hear(self, number: int, kind: int, size: int, content: bytes) -> None:
        """See `Relay.hear`."""
        if kind == PORT and not self.told.is_set() and 0 < size < 1 << 16:
            self.port = size
            self.told.set()
        super().hear(number, kind, size, content)


@contextmanager
def relayed(stream: SandboxStream, address: tuple[str, int]) -> Iterator[RelayedPort]:
    """While the block runs, connections to a port of the sandbox's loopback go to the address; `RelayedPort.number` is
    the port's. Raises `SandboxError` where the far end does not say where it listens."""
    port = RelayedPort(stream, lambda: socket.create_connection(address, timeout=PATIENCE))
    try:
        port.open()
        yield port
    finally:
        port.close()
