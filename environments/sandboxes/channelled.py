"""What sandboxes with a channel share: commands and files through it, the watchdog beside it, and why it broke."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import secrets
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from environments.sandboxes.channel import Channel, Transport
from environments.sandboxes.sandbox import ExecResult, SandboxConfig
from environments.sandboxes.shell_texts import check_variables
from environments.sandboxes.streams import LONGEST, TOKEN, ChannelledStream
from environments.sandboxes.watchdog import Watchdog
from prchain.core.errors import DiskLimit, SandboxError, SandboxFileError, SandboxLost

log = logging.getLogger(__name__)

MOST_READ = 256 << 20
"""Bytes of a file that `read` returns at most, and of a stdin that a command gets."""

_FILES = 600.0
"""Seconds that reading or writing a file may take."""


class ChannelledSandbox(ABC):
    """A backend says how to make the place and the transport; see `Sandbox` for the methods."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self._channel: Channel | None = None
        self._watchdog: Watchdog | None = None
        self._streams: dict[str, tuple[ChannelledStream, contextlib.ExitStack]] = {}
        self._closed = False

    @abstractmethod
    def _make(self) -> Transport:
        """Make the place, and a transport to a server in it."""

    @abstractmethod
    def _unmake(self) -> None:
        """Remove what `_make` made. Never fails."""

    @abstractmethod
    def _end(self) -> None:
        """Kill all that runs in the place. Never fails."""

    @abstractmethod
    def _disk_use(self) -> int:
        """Bytes that commands wrote in the place and that are still there."""

    @abstractmethod
    def _begin_stream(
        self, command: str, cwd: str, environment: Mapping[str, str], kill: Callable[[], None]
    ) -> ChannelledStream:
        """Begin a command with these variables; see `SandboxStream`."""

    @abstractmethod
    def _cause(self, error: SandboxLost) -> SandboxError:
        """The error to raise when the channel is gone; after it nothing may run in the place."""

    def _not_started(self, error: SandboxLost) -> SandboxError:
        """The error to raise where the channel never opened."""
        return error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """See `Sandbox.start`."""
        if self._closed:
            raise SandboxLost("the sandbox was closed")
        if self._channel is not None:
            return
        started, start = False, time.monotonic()
        try:
            self._channel = Channel(self._make())
            self._channel.open()
            started = True
        except SandboxLost as error:
            raise self._not_started(error) from None
        finally:
            if not started:
                self._stop()
        self._watchdog = Watchdog(self._disk_use, self.config.limits.disk_bytes, self._end)
        self._watchdog.start()
        log.info(
            "%s started in %.1f s, of %s", self._label, time.monotonic() - start, self.config.image or "this machine"
        )

    def close(self) -> None:
        """See `Sandbox.close`."""
        if not self._closed:
            self._closed = True
            if self._channel is not None:
                log.info("%s ended", self._label)
            self._stop()

    @property
    def _label(self) -> str:
        return f"sandbox {id(self) & 0xFFFFFF:06x}"

    def _stop(self) -> None:
        for stream, watched in list(self._streams.values()):
            stream.drop()
            watched.close()
        self._streams.clear()
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._unmake()

    def exec(
        self,
        command: str,
        *,
        timeout: float = 60.0,
        session: str | None = None,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
        pipestatus: bool = False,
    ) -> ExecResult:
        """See `Sandbox.exec`."""
        return self._exec(command, timeout, cwd, session, environment, output_limit, stdin, pipestatus=pipestatus)

    def _exec(
        self,
        command: str,
        timeout: float,
        cwd: str | None = None,
        session: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
        sink: Callable[[bytes], None] | None = None,
        *,
        pipestatus: bool = False,
    ) -> ExecResult:
        if len(stdin) > min(MOST_READ, self.config.limits.file_bytes):
            raise SandboxError(f"a stdin of {len(stdin):,} bytes is too much; put a file and read that")
        channel = self._running()
        watching = self._watchdog.watching() if self._watchdog else contextlib.nullcontext()
        try:
            with watching:
                return channel.run(
                    command,
                    timeout=timeout,
                    workdir=self.config.workdir,
                    cwd=cwd,
                    session=session,
                    environment=environment,
                    output_limit=output_limit,
                    stdin=stdin,
                    sink=sink,
                    pipestatus=pipestatus,
                )
        except SandboxLost as error:
            raise self._why(error) from None

    def stream(
        self, command: str, *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> ChannelledStream:
        """See `Sandbox.stream`; the command and each variable have at most `LONGEST` bytes."""
        variables = dict(environment or {})
        if any(len(text.encode("utf-8", "surrogateescape")) > LONGEST for text in (command, *variables.values())):
            raise SandboxError(f"a stream's command and variables have at most {LONGEST:,} bytes; write a file")
        check_variables(variables, command)
        channel, token = self._running(), secrets.token_hex(16)
        watched = contextlib.ExitStack()
        try:
            channel.spare(token)
            stream = self._begin_stream(
                command, cwd or self.config.workdir, {**variables, TOKEN: token}, lambda: self._end_stream(token)
            )
        except SandboxLost as error:
            raise self._why(error) from None
        if self._watchdog is not None:
            watched.enter_context(self._watchdog.watching())
        self._streams[token] = stream, watched
        return stream

    def _end_stream(self, token: str) -> None:
        _, watched = self._streams.pop(token, (None, contextlib.ExitStack()))
        watched.close()
        if self._channel is not None:
            self._channel.end_stream(token)

    def leftovers(self) -> int:
        """See `Sandbox.leftovers`."""
        channel = self._running()
        try:
            return channel.count()
        except SandboxLost as error:
            raise self._why(error) from None

    def _running(self) -> Channel:
        """The channel. Raises `SandboxLost`, or its cause, where there is none any more."""
        if self._channel is None:
            raise SandboxLost("the sandbox was closed" if self._closed else "the sandbox was not started")
        if self._channel.lost:
            raise self._why(SandboxLost(f"the sandbox's channel is gone: {self._channel.lost}"))
        return self._channel

    def _why(self, error: SandboxLost) -> SandboxError:
        if self._watchdog is not None and self._watchdog.tripped:
            most = self.config.limits.disk_bytes
            why: SandboxError = DiskLimit(f"the sandbox wrote {self._watchdog.tripped:,} bytes; it may write {most:,}")
        else:
            why = self._cause(error)
        log.warning("%s is lost: %s", self._label, why.name)
        return why

    def read(self, path: str) -> bytes:
        """See `Sandbox.read`; at most `MOST_READ` bytes."""
        result = self._exec(f"cat -- {shlex.quote(path)}", _FILES, "/", output_limit=MOST_READ)
        if result.exit_code != 0 or result.omitted:
            raise SandboxFileError(f"{path!r} cannot be read: {failure_text(result)}")
        return result.output

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`; at most `MOST_READ` bytes."""
        name, above = shlex.quote(path), shlex.quote(posixpath.dirname(path) or ".")
        command = f"mkdir -p -- {above} && cat > {name} && chmod {mode:o} -- {name}"
        result = self._exec(command, _FILES, "/", stdin=content)
        if result.exit_code != 0:
            raise SandboxFileError(f"{path!r} cannot be written: {failure_text(result)}")


def failure_text(result: ExecResult) -> str:
    """Why a command of our own failed, in few words."""
    if result.timed_out:
        return "it took too long"
    if result.omitted:
        return "it is too large"
    return " ".join(result.text.split())[-200:] or f"exit code {result.exit_code}"
