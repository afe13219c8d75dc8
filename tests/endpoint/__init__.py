"""A fake OpenAI-compatible endpoint on this machine, with every fault of an endpoint and its own bill.

It speaks ``/v1/chat/completions`` over real sockets. A *part* decides what becomes of each call; `completion` answers
it, and the others fail in their way. What a call costs is written down when the endpoint has worked for it, whether
the answer arrives or not.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Call:
    """One request that arrived; the first has number 1."""

    number: int
    body: dict[str, Any]
    size: int
    key: str
    path: str

    @property
    def last(self) -> str:
        """The text of the last message."""
        content = self.body["messages"][-1]["content"]
        assert isinstance(content, str)
        return content


@dataclass(frozen=True)
class Answer:
    """The response, and how it is sent."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the response is sent."""
    keep: int | None = None
    """Bytes of the body that are sent before the connection is cut; None for all. -1 cuts before the status line."""
    trickle: float = 0.0
    """Seconds between the body's bytes; each byte arrives in time, the whole does not."""
    tokens: tuple[int, int] | None = None
    """Tokens in and out that the endpoint bills; None where it bills nothing."""


Part = Callable[[Call], Answer]


def usage_of(call: Call, out: int = 5) -> tuple[int, int]:
    """Tokens in and out that a call is billed for: the number of bytes, which is the maximum."""
    return call.size, min(out, int(call.body.get("max_tokens") or call.body["max_completion_tokens"]))


def completion(
    text: str | None = "fine", *, out: int = 5, usage: bool = True, delay: float = 0.0, **message: Any
) -> Part:
    """A good answer with this text; `finish_reason` and fields of the message can be given by name."""
    finish = message.pop("finish_reason", "stop")

    def part(call: Call) -> Answer:
        tokens = usage_of(call, out)
        body: dict[str, Any] = {
            "id": f"chatcmpl-{call.number}",
            "object": "chat.completion",
            "created": 1,
            "model": call.body["model"],
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text} | message}
            ],
        }
        if usage:
            body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        return Answer(body=json.dumps(body).encode(), delay=delay, tokens=tokens)

    return part


def raw(body: Any, *, billed: bool = True, **how: Any) -> Part:
    """A 200 with this body: bytes as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda call: Answer(body=data, tokens=usage_of(call) if billed else None, **how)


def error(
    status: int, message: str = "no", *, billed: bool = False, headers: Mapping[str, str] | None = None, **fields: Any
) -> Part:
    """An error in OpenAI's form."""
    body = json.dumps({"error": {"message": message} | fields}).encode()
    return lambda call: Answer(status, body, headers or {}, tokens=usage_of(call) if billed else None)


def cut(keep: int = -1) -> Part:
    """An answer whose connection ends early."""
    return lambda call: Answer(body=completion()(call).body, keep=keep, tokens=usage_of(call))


def in_turn(*parts: Part) -> Part:
    """The first part for the first call and so on; the last part for all later calls."""
    return lambda call: parts[min(call.number, len(parts)) - 1](call)


_QUIET = 0.2
"""Seconds."""


class FakeEndpoint:
    """The endpoint, while its block is open. `calls` holds the calls that arrived, `bill` those that it charges for."""

    def __init__(self, part: Part = completion()) -> None:  # noqa: B008  a part is a pure function
        self.part = part
        self.calls: list[Call] = []
        self.bill: list[tuple[Call, tuple[int, int]]] = []
        self.busiest = 0
        """The largest number of calls that were answered at the same time."""
        self._busy = 0
        self._last_seen = 0.0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.endpoint = self
        self._closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def idle(self) -> bool:
        """Whether no call is in progress, and none has been for a while: that of a killed process may still lie in a
        socket."""
        return self._busy == 0 and time.monotonic() - self._last_seen > _QUIET

    def billed_usd(self, price_input: float, price_output: float) -> float:
        """The bill so far, by prices per million tokens."""
        with self._lock:
            return sum(tokens[0] * price_input + tokens[1] * price_output for _, tokens in self.bill) / 1e6

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        data = handler.rfile.read(int(handler.headers["content-length"]))
        with self._lock:
            key = (handler.headers.get("authorization") or "").removeprefix("Bearer ")
            call = Call(len(self.calls) + 1, json.loads(data), len(data), key, handler.path)
            self.calls.append(call)
            self._busy += 1
            self._last_seen = time.monotonic()
            self.busiest = max(self.busiest, self._busy)
        try:
            answer = self.part(call)
            if answer.tokens is not None:
                with self._lock:
                    self.bill.append((call, answer.tokens))
            if answer.delay:
                self._closing.wait(answer.delay)
        finally:
            with self._lock:
                self._busy -= 1
                self._last_seen = time.monotonic()
        self._send(handler.connection, answer)

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        fields = {"content-type": "application/json", "content-length": str(len(answer.body))} | dict(answer.headers)
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode()
        if answer.keep is not None:
            if answer.keep >= 0:
                connection.sendall(head + answer.body[: answer.keep])
            connection.shutdown(socket.SHUT_RDWR)
        elif answer.trickle:
            connection.sendall(head)
            for byte in answer.body:
                connection.sendall(bytes([byte]))
                if self._closing.wait(answer.trickle):
                    return
        else:
            connection.sendall(head + answer.body)


class _Server(ThreadingHTTPServer):
    endpoint: FakeEndpoint
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up: the tests provoke it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        self.server.endpoint.answer(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


class FakeClock:
    """Time that passes only by `sleep`. Starts at a full second of 2026."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.now += seconds


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
