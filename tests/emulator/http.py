"""The wire: HTTP/1.1 with kept-alive connections, and answers that break on the way."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.emulator import answers
from tests.emulator.answers import Answer
from tests.emulator.faults import Fault, Kind

Answering = Callable[[str, str, Any, bytes], tuple[Answer, Fault | None]]
"""(method, target, headers, body) to the answer and, where there is one, the fault of its transport."""


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, answering: Answering) -> None:
        """Listen on 127.0.0.1 at a free port."""
        self.answering = answering
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake the threads that wait for a kept-alive client's next request."""
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed already

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up; the handler answers internal errors with 599."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: HttpServer

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _serve(self, body: bytes) -> None:
        try:
            answer, transport = self.server.answering(self.command, self.path, self.headers, body)
        except Exception as error:  # a defect of the emulator must not look like one of GitHub's failures
            answer, transport = answers.message(599, f"The emulator failed: {type(error).__name__}: {error}"), None
        if transport is not None:
            if transport.kind is Kind.RESET:
                self._reset()
                return
            if transport.kind is Kind.SLOW:
                time.sleep(transport.delay)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if transport is not None and transport.kind is Kind.TRUNCATED:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
            return
        if transport is not None and transport.kind is Kind.DRIP:
            self._drip(answer.body, transport.delay)
            return
        self.wfile.write(answer.body)

    def _drip(self, body: bytes, delay: float) -> None:
        size = -(-len(body) // 8) or 1
        for start in range(0, len(body), size):
            self.wfile.flush()
            time.sleep(delay)
            self.wfile.write(body[start : start + size])

    def _reset(self) -> None:
        # with a linger time of 0 the kernel sends a reset instead of closing in order
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: `Emulator.log` is the log."""
