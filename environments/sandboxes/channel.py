"""The near end of the channel: many commands through one long-lived stream into a sandbox.

`environments.sandboxes.server` describes the protocol. What comes from the sandbox is not trusted: a stray byte, a line
that looks like an answer, or silence must end in a result or in `SandboxLost`, never in another command's output or in
endless waiting.
"""

from __future__ import annotations

import re
import secrets
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from environments.sandboxes.sandbox import OUT_OF_MEMORY, OUTPUT_LIMIT, PROCESS_LIMIT, ExecResult
from environments.sandboxes.shell_texts import check_variables, encoded
from prchain.core.errors import SandboxError, SandboxLost

PATIENCE = 30.0
"""Seconds that an answer of the server may take: a full machine is slow, a stopped server is silent."""

_PING = 1.0
_QUOTED = 200
_FLOOD = 64
"""A command that printed this many times its output limit, and 64 MB, prints without end."""
_FLOOD_LEAST = 64 << 20
_PIPES = re.compile(r"[0-9]{1,3}(?:,[0-9]{1,3}){0,63}\Z", re.ASCII)
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


class Transport(Protocol):
    """Two byte streams out of the sandbox and one into it."""

    def send(self, content: bytes) -> None:
        """Send all. Raises `ConnectionError` or `TimeoutError` where that is not possible."""

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        """What came next: (is it an answer, bytes). None after `timeout` seconds; `ConnectionError` at the end."""

    def close(self) -> None:
        """Cut the connection."""


class HeadTail:
    """Keeps the beginning and the end of a stream: at most `limit` bytes, half of them from each."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._most_head = limit - limit // 2
        self._most_tail = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.total += len(chunk)
        room = self._most_head - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._in_tail += len(chunk)
        while self._in_tail - len(self._tail[0]) >= self._most_tail:
            self._in_tail -= len(self._tail.popleft())

    def parts(self) -> tuple[bytes, bytes, int]:
        """Head, tail, and how many bytes are left out between them."""
        tail = b"".join(self._tail)
        if len(tail) > self._most_tail:
            tail = tail[len(tail) - self._most_tail :]
        return bytes(self._head), tail, self.total - len(self._head) - len(tail)


class Channel:
    """Runs commands over a transport, one at a time. Not reusable once a method raised `SandboxLost`."""

    def __init__(self, transport: Transport, *, patience: float = PATIENCE) -> None:
        self._transport = transport
        self._patience = patience
        self._lock = threading.Lock()
        self._answers = bytearray()
        self._kills = 0
        self._folder = ""
        self._last_words = ""
        self.lost = ""
        """Why the channel is gone; empty while it is not."""

    def open(self) -> None:
        """Wait until the server is ready."""
        with self._lock:
            self.send(b"hello\n")
            ready = self._wait(lambda words: words[0] == "ready")
            self._folder = ready[1]

    def close(self) -> None:
        """Cut the connection; a command that runs ends in `SandboxLost`."""
        self.lost = self.lost or "it was closed"
        self._transport.close()

    def run(
        self,
        command: str,
        *,
        timeout: float,
        workdir: str,
        cwd: str | None = None,
        session: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
        sink: Callable[[bytes], None] | None = None,
        pipestatus: bool = False,
    ) -> ExecResult:
        """Run one command; see `Sandbox.exec`. All output goes to a `sink`, if one is given."""
        setup, script = self._setup(workdir, cwd, session, environment or {}, pipestatus), encoded(command)
        with self._lock:
            if self.lost:
                raise SandboxLost(f"the channel is gone: {self.lost}")
            return _RunningCommand(self, timeout, output_limit, sink).result(setup, script, stdin)

    def count(self) -> int:
        """How many processes of earlier commands still run."""
        with self._lock:
            if self.lost:
                raise SandboxLost(f"the channel is gone: {self.lost}")
            name = secrets.token_hex(16)
            self.send(b"count %s\n" % name.encode())
            match self._wait(lambda words: words[0] == name):
                case [_, "count", number] if number.isdecimal():
                    return int(number)
            raise self._gone("it answered something that is no number of processes")

    def spare(self, token: str) -> None:
        """Have the server spare a stream's processes: those with the token in their PRCHAIN_STREAM."""
        with self._lock:
            if self.lost:
                raise SandboxLost(f"the channel is gone: {self.lost}")
            self.send(b"stream %s\n" % token.encode())

    def end_stream(self, token: str) -> None:
        """Kill a stream's processes."""
        with self._lock:
            if self.lost:
                raise SandboxLost(f"the channel is gone: {self.lost}")
            name = secrets.token_hex(16)
            self.send(b"unstream %s %s\n" % (name.encode(), token.encode()))
            answer = self._wait(lambda words: words[0] == name)
            if answer[1:] != ["ended", "0"]:
                raise self._gone("processes of a stream could not be killed")

    def _setup(
        self, workdir: str, cwd: str | None, session: str | None, environment: Mapping[str, str], pipestatus: bool
    ) -> bytes:
        """Shell text that goes before the command, in a shell of its own."""
        check_variables(environment)
        exports = "".join(f" && export {name}={shlex.quote(value)}" for name, value in environment.items())
        enter = f"cd -- {shlex.quote(cwd or workdir)} 2>&1{exports}"
        if session is None and not pipestatus:
            return encoded(enter)
        if session is not None and not _SESSION.match(session):
            raise SandboxError(f"{session!r} is no name of a session: letters, digits, - and _")
        values = {}
        if session is not None:
            values["PRCHAIN_SESSION"] = f"{self._folder}/session-{session}"
            values["PRCHAIN_SETUP"] = (f"cd -- {shlex.quote(cwd)}" if cwd else ":") + exports
        if pipestatus:
            values["PRCHAIN_PIPES"] = f"{self._folder}/pipes"
            # An earlier command may have put a named pipe there, whose opening would not return.
            pipes = shlex.quote(values["PRCHAIN_PIPES"])
            enter += f" && {{ [[ -e {pipes} && ! -f {pipes} ]] || : >|{pipes}; }}"
        load = "".join(f" && export {name}={shlex.quote(value)}" for name, value in values.items())
        return encoded(
            f'{enter}{load} && export PRCHAIN_BASH_ENV="${{BASH_ENV-}}" BASH_ENV={shlex.quote(self._folder)}/session'
        )

    # What follows is for `_RunningCommand`, with the lock held.

    def send(self, content: bytes) -> None:
        try:
            self._transport.send(content)
        except OSError as error:
            raise self._gone(f"it broke while a request was sent ({type(error).__name__})") from None

    def receive(self, timeout: float) -> tuple[bytes, list[list[str]]]:
        """Output, and answers as words; both empty after `timeout` seconds."""
        try:
            message = self._transport.receive(max(timeout, 0.001))
        except OSError as error:
            last_words = f" ({self._last_words})" if self._last_words else ""
            raise self._gone((str(error) or "it broke") + last_words) from None
        if message is None:
            return b"", []
        answers, content = message
        if not answers:
            return content, []
        self._answers += content
        *lines, rest = self._answers.split(b"\n")
        if len(rest) > 1 << 16:
            raise self._gone("it answered something that is no answer")
        self._answers = bytearray(rest)
        return b"", [line.decode("ascii", "replace").split() or [""] for line in lines]

    def gone(self, why: str) -> SandboxLost:
        """The error to raise, and the end of this channel."""
        return self._gone(why)

    def _gone(self, why: str) -> SandboxLost:
        self.lost = self.lost or why
        self._transport.close()
        return SandboxLost(f"the sandbox's channel is gone: {self.lost}")

    def _wait(self, is_answer: Callable[[list[str]], bool]) -> list[str]:
        until = time.monotonic() + self._patience
        while (remaining := until - time.monotonic()) > 0:
            _, answers = self.receive(remaining)
            for words in answers:
                if is_answer(words):
                    return words
                self._last_words = " ".join(words)[:_QUOTED]
        raise self._gone(f"the server did not answer within {self._patience:g} s")

    @property
    def patience(self) -> float:
        """Seconds that an answer may take."""
        return self._patience

    def kills_since(self, kills: int) -> int:
        """How many processes the memory limit ended since the last command, given the count so far."""
        before, self._kills = self._kills, kills
        return kills - before


class _RunningCommand:
    """One command that runs."""

    def __init__(
        self, channel: Channel, timeout: float, output_limit: int, sink: Callable[[bytes], None] | None
    ) -> None:
        self._channel = channel
        self._timeout = timeout
        self._kept = HeadTail(output_limit)
        self._sink = sink or self._kept.add
        self._flood = None if sink else max(_FLOOD * output_limit, _FLOOD_LEAST)
        self._id = secrets.token_hex(16)
        self._mark = secrets.token_hex(16).encode()
        self._marked = False
        self._mark_requested = False
        self._pending = b""
        self._code: int | None = None
        self._done = False
        self._over = False
        self._ending = False
        self._timed_out = False
        self._limit: str | None = None
        self._pipestatus: tuple[int, ...] = ()
        self._last_answer = time.monotonic()

    def result(self, setup: bytes, script: bytes, stdin: bytes) -> ExecResult:
        channel = self._channel
        channel.send(
            b"run %s %s %d %d %d\n%s%s"
            % (self._id.encode(), self._mark, len(setup), len(script), len(stdin), setup, script)
        )
        if stdin:
            channel.send(stdin)
        self._await_start()
        started = self._last_answer = time.monotonic()
        self._pump(started + self._timeout)
        seconds = time.monotonic() - started
        channel.send(b"fin\n")
        head, tail, omitted = self._kept.parts()
        return ExecResult(
            exit_code=None if self._ending else self._code,
            output=head + tail,
            omitted=omitted,
            timed_out=self._timed_out,
            seconds=seconds,
            limit=self._limit,
            head=len(head),
            pipestatus=() if self._ending else self._pipestatus,
        )

    def _await_start(self) -> None:
        """Throw away what earlier commands left, up to the mark."""
        mark, buffer = self._id.encode(), b""
        until = time.monotonic() + self._channel.patience
        while True:
            if (remaining := until - time.monotonic()) <= 0:
                raise self._channel.gone("a command could not be started: the server is silent")
            output, answers = self._channel.receive(remaining)
            for words in answers:
                self._hear(words)
            buffer += output
            if (place := buffer.find(mark)) >= 0:
                self._take(buffer[place + len(mark) :])
                return
            buffer = buffer[-len(mark) :]

    def _pump(self, deadline: float) -> None:
        channel = self._channel
        last_ping = 0.0
        while not self._over:
            now = time.monotonic()
            if not self._done:
                if now >= deadline and not self._ending:
                    self._timed_out = True
                    self._end()
                if now - self._last_answer > channel.patience:
                    raise channel.gone("the server is silent")
                if now - max(self._last_answer, last_ping) > _PING:
                    last_ping = now
                    channel.send(b"ping %s\n" % self._id.encode())
            else:
                if now - self._last_answer > channel.patience:
                    raise channel.gone("the end of a command's output did not come")
                if now - self._last_answer > _PING:
                    self._ask_for_mark()
            output, answers = channel.receive(min(_PING, max(deadline - now, 0.001) if not self._ending else _PING))
            if output:
                self._take(output)
            for words in answers:
                self._hear(words)

    def _end(self) -> None:
        """Have the server kill the command."""
        if not self._ending:
            self._ending = True
            self._channel.send(b"kill %s\n" % self._id.encode())

    def _take(self, output: bytes) -> None:
        if self._marked:
            return
        output = self._pending + output
        place = output.find(self._mark)
        if place >= 0:
            self._marked = True
            self._over = self._done
            output, self._pending = output[:place], b""
        else:
            keep = len(self._mark) - 1
            output, self._pending = output[:-keep], output[-keep:]
        if not output:
            return
        if self._flood is not None and self._kept.total + len(output) > self._flood:
            if not self._ending:
                self._limit = OUTPUT_LIMIT
                self._end()
            return
        self._sink(output)

    def _hear(self, words: list[str]) -> None:
        if words[0] != self._id and words[0].encode() != self._mark:
            return
        self._last_answer = time.monotonic()
        match words[1:]:
            case ["done", code, kills] if not self._done and code.isdigit() and kills.isdigit():
                self._code = int(code)
                if self._channel.kills_since(int(kills)) > 0:
                    self._limit = self._limit or OUT_OF_MEMORY
                self._done, self._over = True, self._marked
            case ["pipes", codes] if not self._done and _PIPES.match(codes):
                self._pipestatus = tuple(map(int, codes.split(",")))
            case ["gone"] if not self._done:
                # The command has killed its own supervisor: nobody can tell how it ended.
                self._end()
            case ["killed", survivors]:
                if survivors != "0":
                    raise self._channel.gone(f"{survivors} processes could not be killed")
                self._done, self._over = True, self._marked
                self._ask_for_mark()
            case ["crowded"]:
                self._limit = PROCESS_LIMIT
            case ["cut"]:
                self._over = True

    def _ask_for_mark(self) -> None:
        if not self._marked and not self._mark_requested:
            self._mark_requested = True
            self._channel.send(b"end %s\n" % self._mark)
