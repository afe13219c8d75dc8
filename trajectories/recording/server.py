"""The endpoint that a recorded program asks: ``/v1/chat/completions`` and ``/v1/models`` on this machine's loopback.

A random token is the program's key; who has another one, or asks for anything else, is refused. The upstream endpoint
is asked without streaming: a program that wants a stream gets comments while it waits, then the whole reply as events.
"""

from __future__ import annotations

import hmac
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from prchain.core.console.terminal import counted, say
from prchain.core.errors import (
    BudgetExceeded,
    ContextTooLong,
    EndpointRefused,
    PrchainError,
    RateLimited,
    RequestUnfit,
)
from prchain.core.llm.model import Reply
from prchain.core.secrets.scrub import redact
from trajectories.recording.asked import AskedRequest, Connected
from trajectories.recording.chat import (
    PATH,
    PING,
    AskedChat,
    events,
    failure,
    failure_event,
    models,
    read_asked,
    whole,
)

LARGEST_BODY = 64 << 20
"""Bytes of a request: no context is that long."""
_LONGEST_LENGTH = 12
"""Digits; Python reads no number of thousands."""
PING_SECONDS = 3.0
_SLOWEST = 60.0
"""Seconds that the parts of a request may be apart."""
_POLL_SECONDS = 0.05
"""How long the server may take to see that it is to end."""
BODY_SECONDS = 300.0
"""That a whole body may take."""
MOST_BYTES = 4 * LARGEST_BODY
"""Of bodies that are held at once: who asks may be anybody's code."""
_MOST_CALLS = 64
"""Requests that are answered at once."""

_STATUS: tuple[tuple[type[PrchainError], int, str | None], ...] = (
    (RequestUnfit, 400, None),
    (ContextTooLong, 400, "context_length_exceeded"),
    (EndpointRefused, 400, None),
    (RateLimited, 429, "rate_limit_exceeded"),
    (BudgetExceeded, 402, "budget_exceeded"),
)
"""How a failure is told to the program; any other is a 502."""


class Answers(Protocol):
    """What answers a program's requests. Safe for several threads."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be in words for the program."""

    @property
    def model(self) -> str:
        """The model that answers."""

    @property
    def under_way(self) -> int:
        """Requests that are being answered."""

    def answer(self, asked: AskedChat, connected: Connected, *, again: bool) -> tuple[Reply, AskedRequest]:
        """The reply, and the request that is delivered when the program has it; `again`: the program says that it sends
        this once more. Raises `PrchainError`."""

    def fail(self, name: str) -> None:
        """Count a request that got no reply, by the failure's name."""


class RecordingServer(ThreadingHTTPServer):
    """Serves one program. `token` is its key."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, recorder: Answers, *, ping_seconds: float = PING_SECONDS) -> None:
        super().__init__(("127.0.0.1", 0), _ProgramHandler)
        self.recorder = recorder
        self.ping_seconds = ping_seconds
        self.token = secrets.token_urlsafe(32)
        self.calls = ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="recorded")
        self._held = 0
        self._holding = threading.Lock()

    @property
    def base_url(self) -> str:
        """What the program is given as the address of its endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @contextmanager
    def holding(self, size: int) -> Iterator[bool]:
        """Whether there is room for a body of so many bytes, which it has until the block ends."""
        with self._holding:
            fits = self._held + size <= MOST_BYTES
            self._held += size if fits else 0
        try:
            yield fits
        finally:
            if fits:
                with self._holding:
                    self._held -= size

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the program's affair."""


@contextmanager
def serving(recorder: Answers, *, ping_seconds: float = PING_SECONDS) -> Iterator[RecordingServer]:
    """The endpoint, until the block ends and what was asked meanwhile is answered and kept."""
    server = RecordingServer(recorder, ping_seconds=ping_seconds)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="recorder", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        if waiting := recorder.under_way:
            say(f"waiting for {counted(waiting, 'reply')} that will be paid for", err=True)
        server.calls.shutdown(wait=True, cancel_futures=True)


class _ProgramHandler(BaseHTTPRequestHandler):
    server: RecordingServer
    protocol_version = "HTTP/1.1"
    server_version = "prchain"
    sys_version = ""
    timeout = _SLOWEST

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is the program's."""

    def do_GET(self) -> None:
        """See `BaseHTTPRequestHandler`."""
        if not self._is_allowed():
            return
        if self.path.partition("?")[0].rstrip("/") == "/v1/models":
            self._send(200, models(self.server.recorder.model))
        else:
            self._refuse(404, "there is nothing here but /v1/models and /v1/chat/completions")

    def do_POST(self) -> None:
        """See `BaseHTTPRequestHandler`."""
        if not self._is_allowed():
            return
        if self.path.partition("?")[0].rstrip("/") != PATH:
            self._refuse(404, "there is nothing here but /v1/models and /v1/chat/completions")
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._refuse(411, "a request needs its Content-Length")
            return
        if len(length) > _LONGEST_LENGTH or int(length) > LARGEST_BODY:
            self._refuse(413, f"a request has at most {LARGEST_BODY >> 20} MiB")
            return
        with self.server.holding(int(length)) as fits:
            if not fits:
                self._refuse(503, "too much is asked at once")
                return
            data = self._body(int(length))
            if len(data) < int(length):
                self.close_connection = True
                return
            try:
                asked = read_asked(data)
            except RequestUnfit as error:
                self._fail(error)
                return
            self._answer(asked)

    def _body(self, length: int) -> bytes:
        """So many bytes, or those that came before the connection ended. Raises `TimeoutError`, which closes it."""
        until, data = time.monotonic() + BODY_SECONDS, bytearray()
        while len(data) < length and (part := self.rfile.read1(min(length - len(data), 1 << 20))):
            data += part
            if time.monotonic() > until:
                raise TimeoutError
        return bytes(data)

    def _answer(self, asked: AskedChat) -> None:
        server = self.server
        # The SDK counts how often it has sent a request before.
        again = self.headers.get("x-stainless-retry-count", "0") not in {"", "0"}
        future = server.calls.submit(server.recorder.answer, asked, self._is_connected, again=again)
        begun = False
        while True:
            try:
                reply, request = future.result(server.ping_seconds)
                break
            except PrchainError as error:  # first: a timeout of the endpoint is a TimeoutError, too
                self._fail(error, begun=begun)
                return
            except NotYet:
                if future.done():
                    continue
                if asked.stream:
                    begun = begun or self._begin_stream()
                    self._write(PING)
        name, created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())
        # Before it is written: who has the answer may ask the same at once.
        claimed = not request.delivered and self._is_connected()
        request.delivered = request.delivered or claimed
        try:
            if not asked.stream:
                self._send(200, whole(reply, name, created))
            else:
                self._stream(reply, name, created, asked, begun=begun)
        except OSError:
            if claimed:  # else another connection has brought it
                request.delivered = False
            raise

    def _is_connected(self) -> bool:
        """Whether the program's end of the connection is open."""
        poll = select.poll()
        try:
            poll.register(self.connection, select.POLLIN)
            return not poll.poll(0) or self.connection.recv(1, socket.MSG_PEEK) != b""
        except (OSError, ValueError):  # it is closed
            return False

    def _stream(self, reply: Reply, name: str, created: int, asked: AskedChat, *, begun: bool) -> None:
        if not begun:
            self._begin_stream()
        for event in events(reply, name, created, with_usage=asked.with_usage):
            self._write(event)
        self.wfile.write(b"0\r\n\r\n")

    def _begin_stream(self) -> bool:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        return True

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _fail(self, error: PrchainError, *, begun: bool = False) -> None:
        self.server.recorder.fail(error.name)
        status, code = next(((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (502, None))
        words = redact(" ".join(str(error).split()), self.server.recorder.secrets)
        if begun:
            self._write(failure_event(words, error.name, code))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._send(status, failure(words, error.name, code))

    def _is_allowed(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if hmac.compare_digest(given, self.server.token.encode()):
            return True
        self._refuse(401, "this is not the key that the recorded program was given")
        return False

    def _refuse(self, status: int, words: str) -> None:
        self.close_connection = True  # what it sends is not read
        self._send(status, failure(words, "invalid_request_error"))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status != 200:
            self.send_header("x-should-retry", "false")  # the gateway has tried as often as it makes sense
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
