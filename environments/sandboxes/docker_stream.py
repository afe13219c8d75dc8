"""The stream of one exec in a container, and the engine's errors as our own."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from typing import Any

from prchain.core.errors import EngineUnavailable, ImageMissing, SandboxError, SandboxLost
from prchain.core.secrets.scrub import redact

_FRAME = struct.Struct(">BxxxL")
_STDERR = 2
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


def _line(error: BaseException) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return redact(" ".join(text.split()))[:300]
