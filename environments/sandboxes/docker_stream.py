"""The streams of execs in a container, the channel's and those beside it, and the engine's errors as our own."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from environments.sandboxes.streams import CHUNK, ChannelledStream
from prchain.core.errors import EngineUnavailable, ImageMissing, SandboxError, SandboxLost
from prchain.core.secrets.scrub import redact

_FRAME = struct.Struct(">BxxxL")
_STDERR = 2
_ENDING = 5.0
"""Seconds that the engine may take to notice that a command ended."""
_STARTING = 10.0
"""Seconds that it may take to start one."""
_LOOK = 0.01
"""Seconds between two looks: the engine says nothing when a command in a container begins."""
_BAD_ARCHIVE = ("processing tar file", "not a directory")
"""What the engine (20.10 to 28) says of an archive that it cannot unpack, with status 500 or 400."""


@contextlib.contextmanager
def engine_errors(action: str, missing: type[SandboxError] = SandboxLost) -> Iterator[None]:
    """Turn the engine's errors into ours; `missing` is for missing things other than containers and images.

    `ImageMissing`; `SandboxLost` where the container is gone or does not run; `EngineUnavailable` for all others.
    """
    import requests  # noqa: PLC0415  comes with docker
    from docker import errors  # noqa: PLC0415  loaded with the first engine

    try:
        yield
    except errors.ImageNotFound as error:
        raise ImageMissing(f"{action}: {_line(error)}; build it with `prchain environments build`") from None
    except errors.NotFound as error:
        gone = "no such container" in _line(error).lower()
        raise (SandboxLost if gone else missing)(f"{action}: {_line(error)}") from None
    except errors.APIError as error:
        if missing is not SandboxLost and any(sign in _line(error) for sign in _BAD_ARCHIVE):
            raise missing(f"{action}: {_line(error)}") from None
        if error.status_code == 409:
            raise SandboxLost(f"{action}: {_line(error)}") from None
        raise EngineUnavailable(f"{action}: the Docker engine answered {_line(error)}") from None
    except (errors.DockerException, requests.RequestException, OSError) as error:
        raise EngineUnavailable(f"{action}: the Docker engine does not answer ({_line(error)})") from None


class ExecTransport:
    """The stream of one exec in a container, in Docker's framing of stdout and stderr."""

    def __init__(self, stream: Any, patience: float) -> None:
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._patience = patience
        self._buffer = bytearray()

    def send(self, content: bytes) -> None:
        """See `Transport`."""
        self._socket.settimeout(self._patience)
        self._socket.sendall(content)

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        """See `Transport`."""
        until = time.monotonic() + timeout
        while not self._whole():
            remaining = until - time.monotonic()
            if remaining <= 0:
                return None
            self._socket.settimeout(remaining)
            try:
                content = self._socket.recv(1 << 18)
            except TimeoutError:
                return None
            if not content:
                raise ConnectionError("its stream ended")
            self._buffer += content
        kind, size = _FRAME.unpack_from(self._buffer)
        payload = bytes(self._buffer[_FRAME.size : _FRAME.size + size])
        del self._buffer[: _FRAME.size + size]
        return kind == _STDERR, payload

    def _whole(self) -> bool:
        if len(self._buffer) < _FRAME.size:
            return False
        size: int = _FRAME.unpack_from(self._buffer)[1]
        return len(self._buffer) >= _FRAME.size + size

    def close(self) -> None:
        """See `Transport`."""
        with contextlib.suppress(OSError):
            self._stream.close()
        with contextlib.suppress(OSError):
            self._socket.close()


class ExecStream(ChannelledStream):
    """A stream of one exec. It says the first word, for the engine's client may lose what comes before it."""

    LEADER = (
        "IFS= read -r _; { echo 800 >/proc/self/oom_score_adj; } 2>/dev/null\n"
        'cd -- "$1" || exit 126\nexec "$BASH" -c "$2"'
    )
    """The bash program of the exec; its arguments are a folder and a command."""

    def __init__(
        self, api: Any, execution: str, stream: Any, kill: Callable[[], None], probe: Callable[[], object]
    ) -> None:
        super().__init__(kill, probe)
        self._api = api
        self._execution = execution
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._socket.setblocking(False)
        self._buffer = bytearray()
        self._input_ended = False
        self.send(b"\n")

    def settle(self) -> None:
        """Wait until the engine has started the command: a container that is paused before that stays so, and neither
        goes on nor can be removed (seen with engine 20.10)."""
        until = time.monotonic() + _STARTING
        while time.monotonic() < until:
            state = self._api.exec_inspect(self._execution)
            if state["Pid"] or state["ExitCode"] is not None:
                return
            time.sleep(_LOOK)

    def end_input(self) -> None:
        """See `SandboxStream`."""
        with self._sending:
            if not self._input_ended:
                self._input_ended = True
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_WR)

    def _write(self, content: memoryview) -> int:
        return int(self._socket.send(content[:CHUNK]))

    def _read(self) -> tuple[bool, bytes] | None:
        while (size := self._size()) is None or len(self._buffer) < size + _FRAME.size:
            content = self._socket.recv(CHUNK)
            if not content:
                raise EOFError("the command ended")
            self._buffer += content
        is_stderr = self._buffer[0] == _STDERR
        payload = bytes(self._buffer[_FRAME.size : _FRAME.size + size])
        del self._buffer[: _FRAME.size + size]
        return (is_stderr, payload) if payload else None

    def _size(self) -> int | None:
        return None if len(self._buffer) < _FRAME.size else int(_FRAME.unpack_from(self._buffer)[1])

    def _sources(self) -> list[int]:
        return [self._socket.fileno()]

    def _sink(self) -> int:
        return -1 if self._input_ended else int(self._socket.fileno())

    def _has_ended(self) -> bool:
        # The engine leaves the connection open, and takes nothing more from it.
        with engine_errors("asking whether a command runs"):
            return not self._api.exec_inspect(self._execution)["Running"]

    def _code(self) -> int | None:
        until = time.monotonic() + _ENDING
        with engine_errors("asking how a command ended"):
            while (found := self._api.exec_inspect(self._execution))["Running"] and time.monotonic() < until:
                time.sleep(0.05)
        return None if found["Running"] else found["ExitCode"]

    def _free(self) -> None:
        for closing in (self._stream.close, self._socket.close):
            with contextlib.suppress(OSError):
                closing()


def _line(error: BaseException) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return redact(" ".join(text.split()))[:300]
