"""A server that a relay can lead to."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class _Echo(socketserver.BaseRequestHandler):
    request: socket.socket

    def handle(self) -> None:
        with suppress(OSError):
            while content := self.request.recv(1 << 16):
                self.request.sendall(content)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


@contextmanager
def serving_echo() -> Iterator[tuple[str, int]]:
    """The address of a server that says again what it is told, to the end of it."""
    with _Server(("127.0.0.1", 0), _Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield ("127.0.0.1", server.server_address[1])
        finally:
            server.shutdown()
