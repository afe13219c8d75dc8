"""The relay alone, its two ends joined by a pair of sockets: no sandbox is needed for its rules."""

from __future__ import annotations

import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import environments.sandboxes.relay
from environments.sandboxes.relay import CLOSE, DATA, END, HEAD, MORE, MOST_CONNECTIONS, OPEN, PORT, WINDOW
from environments.sandboxes.relaying import RelayedPort, relayed
from prchain.core.errors import SandboxError
from tests.environments.process_stream import ProcessStream
from tests.environments.relays import serving_echo

PROGRAM = Path(environments.sandboxes.relay.__file__)


class HostileStream:
    """A far end that says what it likes, and keeps what it is told."""

    def __init__(self, *frames: bytes, port: int = 4242) -> None:
        self.said = b"".join((HEAD.pack(0, PORT, port), *frames))
        self.told = b""
        self._closed = threading.Event()

    def send(self, content: bytes) -> None:
        self.told += content

    def end_input(self) -> None: ...

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        said, self.said = self.said[:1000], self.said[1000:]
        if not said:
            if self._closed.wait(timeout):
                raise EOFError
            return None
        return False, said

    def exit_code(self) -> int | None:
        return None

    def close(self) -> None:
        self._closed.set()


@pytest.fixture
def port() -> Iterator[RelayedPort]:
    """A port that leads to an echo."""
    with serving_echo() as address, relayed(ProcessStream([sys.executable, "-I", str(PROGRAM)]), address) as port:
        yield port


def dial(port: RelayedPort) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port.number), timeout=20)


def heard(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (part := connection.recv(1 << 16)):
        content += part
    return content


def test_bytes_go_both_ways_and_each_end_is_told_of_the_other(port: RelayedPort) -> None:
    content = random.Random(1).randbytes(3 * WINDOW + 17)
    with dial(port) as connection:
        sending = threading.Thread(target=connection.sendall, args=(content,))
        sending.start()
        assert heard(connection, len(content)) == content
        sending.join()
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b"", "the echo ends where what it hears does"


def test_connections_do_not_mix_and_one_that_is_not_read_holds_up_itself_alone(port: RelayedPort) -> None:
    with dial(port) as stuck:
        stuck.settimeout(0.5)
        with pytest.raises(TimeoutError):
            for _ in range(2_000):  # the kernel's own buffers on the way take some 40 MB at most
                stuck.sendall(bytes(1 << 16))
        connections = [dial(port) for _ in range(20)]
        for number, connection in enumerate(connections):
            connection.sendall(b"%03d" % number * 1000)
        for number, connection in enumerate(connections):
            assert heard(connection, 3000) == b"%03d" % number * 1000
            connection.close()


def test_a_connection_that_breaks_is_forgotten(port: RelayedPort) -> None:
    for _ in range(MOST_CONNECTIONS + 20):
        with dial(port) as connection:
            connection.sendall(b"x")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    with dial(port) as connection:
        connection.sendall(b"still here")
        assert heard(connection, 10) == b"still here"
    assert not port.broken


def test_where_nobody_listens_the_connection_ends() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
        with relayed(ProcessStream([sys.executable, "-I", str(PROGRAM)]), address) as port, dial(port) as connection:
            assert connection.recv(1) == b""
            assert not port.broken


def test_a_relay_that_is_killed_is_known() -> None:
    stream = ProcessStream([sys.executable, "-I", str(PROGRAM)])
    with serving_echo() as address, relayed(stream, address) as port, dial(port) as connection:
        connection.sendall(b"x")
        assert heard(connection, 1) == b"x"
        stream.process.kill()
        until = time.monotonic() + 10
        while not port.broken and time.monotonic() < until:
            time.sleep(0.01)
        assert port.broken


def test_a_far_end_that_never_listens_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("environments.sandboxes.relaying.PATIENCE", 0.3)
    with pytest.raises(SandboxError, match="does not say where it listens"), relayed(HostileStream(port=0), ("", 0)):
        raise AssertionError("it says where")  # pragma: no cover


@contextmanager
def hostile(*frames: bytes) -> Iterator[tuple[RelayedPort, HostileStream]]:
    stream = HostileStream(*frames)
    with serving_echo() as address, relayed(stream, address) as port:
        yield port, stream


@pytest.mark.parametrize(
    "frames",
    [
        [HEAD.pack(1, 99, 0)],
        [HEAD.pack(1, DATA, WINDOW + 1)],
        [HEAD.pack(1, OPEN, 0), HEAD.pack(1, OPEN, 0)],
        [HEAD.pack(number, OPEN, 0) for number in range(1, MOST_CONNECTIONS + 3)],
        [HEAD.pack(1, OPEN, 0), HEAD.pack(1, END, 0), HEAD.pack(1, DATA, 1), b"x"],
        [HEAD.pack(1, OPEN, 0), HEAD.pack(1, MORE, WINDOW)],
        [HEAD.pack(1, OPEN, 0), HEAD.pack(1, MORE, 0xFFFFFFFF)],
    ],
    ids=["kind", "size", "twice", "many", "after the end", "credit", "endless credit"],
)
def test_a_far_end_that_breaks_the_rules_is_hung_up_on(frames: list[bytes]) -> None:
    with hostile(*frames) as (port, _):
        until = time.monotonic() + 10
        while not port.broken and time.monotonic() < until:
            time.sleep(0.01)
        assert port.broken


def test_words_on_connections_that_are_not_there_are_passed_over() -> None:
    frames = [HEAD.pack(7, kind, 0) for kind in (END, CLOSE, MORE)] + [HEAD.pack(9, DATA, 3), b"abc"]
    good = [HEAD.pack(1, OPEN, 0), HEAD.pack(1, DATA, 5), b"hello"]
    with hostile(*frames, *good) as (port, stream):
        until = time.monotonic() + 10
        while not stream.told.endswith(b"hello") and time.monotonic() < until:
            time.sleep(0.01)
        assert HEAD.pack(1, DATA, 5) + b"hello" in stream.told
        assert not port.broken
