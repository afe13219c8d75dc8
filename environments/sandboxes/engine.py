"""The Docker engine that images are built in, reached through the `docker` SDK; its failures as our own errors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prchain.core.errors import DiskFull, EngineUnavailable, ImageError, ImageMissing
from prchain.core.processes.cut_off import leave_to
from prchain.core.secrets.scrub import redact

LABEL = "prchain"
"""The prefix of every label of ours; nothing without it is listed or removed."""

LONG = 900
"""Seconds for one answer of an engine at work: to commit some gigabytes takes minutes."""

BASE_LABEL = f"{LABEL}.base"
IMAGE_LABEL = f"{LABEL}.image"
LAYER_LABEL = f"{LABEL}.layer"
"""On base images, on images of repositories, and on layers that these share, of which they inherit it."""

NO_ROOM = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
"""How the system's words for a full disk are found in those of a program."""

_USAGE_BUSY = "disk usage operation is already running"
_USAGE_PATIENCE, _USAGE_PAUSE = 300.0, 0.5
"""Seconds to wait for another's request of disk usage, which reads every container's tree, and between two tries."""

_NOT_FROZEN = "unable to freeze"
_FREEZES, _FREEZE_PAUSE = 10, 0.2
"""The kernel freezes no process that waits for a disk (runc gives up after some milliseconds), so it is asked again."""

_DEFAULT = "unix:///var/run/docker.sock"
"""Where the SDK looks where nothing names an engine."""

_CAUSES: Mapping[type[BaseException], str] = {
    FileNotFoundError: "there is no such socket",
    ConnectionRefusedError: "nothing listens there",
    PermissionError: "this user may not use its socket (who may is told by its group, docker as a rule)",
    socket.gaierror: "its host's name is unknown",
    ssl.SSLError: "no safe connection (TLS) could be made",
    TimeoutError: "no answer came in time",
    ConnectionError: "it ended the connection",
}
"""The system's errors that stand behind the SDK's; the first that fits counts."""


class EngineDiskFull(ImageError, DiskFull):
    """No room is left where the engine keeps images and containers; reported like a full disk anywhere else."""

    log = ""
    """The end of the log of a build that it ended."""

    @property
    def name(self) -> str:
        """``disk_full``."""
        return "disk_full"


def disk_full(said: str) -> EngineDiskFull:
    """The error for what the engine, or a program on its disk, said."""
    return EngineDiskFull(
        f"no room is left on the Docker engine's disk: {said}; `prchain environments prune` makes room, then run the "
        "command again, it goes on from there"
    )


def connect(url: str | None = None, *, timeout: int = 120) -> Any:
    """A `docker.DockerClient` for the engine at `url`; None: the one that DOCKER_HOST names, or the local socket.

    `timeout` is that of one answer, in seconds. Raises `EngineUnavailable`, which says what was tried.
    """
    import docker  # noqa: PLC0415  loaded with the first engine

    with engine_failures(tried_address(url)):
        client = docker.DockerClient(base_url=url, timeout=timeout) if url else docker.from_env(timeout=timeout)
        try:
            client.ping()
        except BaseException:
            client.close()
            raise
    leave_to("environments.sandboxes.heir", {"DOCKER_HOST": url} if url else {})
    return client


def tried_address(url: str | None) -> str:
    """Where `connect` looks for the engine, and which setting says so; without credentials."""
    if url:
        return f" at {redact(url)} (environments_engine)"
    if named := os.environ.get("DOCKER_HOST"):
        return f" at {redact(named)} (DOCKER_HOST)"
    return f" at {_DEFAULT} (the default)"


@contextlib.contextmanager
def paused(api: Any, container: str) -> Iterator[None]:
    """Nothing that runs in a container goes on meanwhile. Raises what the SDK raises."""
    pause(api, container)
    try:
        yield
    finally:
        api.unpause(container)


def pause(api: Any, container: str) -> None:
    """Stop all that runs in a container, for a while. Raises what the SDK raises."""
    from docker import errors  # noqa: PLC0415  loaded with the first engine

    for _ in range(_FREEZES - 1):
        try:
            api.pause(container)
        except errors.APIError as error:
            if _NOT_FROZEN not in str(error):
                raise
            time.sleep(_FREEZE_PAUSE)
        else:
            return
    api.pause(container)


@contextlib.contextmanager
def engine_failures(address: str = "") -> Iterator[None]:
    """Turn the SDK's errors into ours: `EngineUnavailable`, `ImageMissing`, `EngineDiskFull`, `ImageError` for other
    refusals.

    `address` is what `tried_address` gives, where a connection is being made.
    """
    import docker  # noqa: PLC0415  loaded with the first engine
    import requests  # noqa: PLC0415  comes with docker

    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise ImageMissing(_line(error)) from None
    except docker.errors.APIError as error:
        raise _refusal(_line(error)) from None
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        ConnectionError,
        TimeoutError,
    ) as error:
        without = "; `validate` and `rollouts run` work without one, too: --backend local" if address else ""
        raise EngineUnavailable(
            f"the Docker engine{address} does not answer: {why_silent(error)}; start it, or name another in "
            f"environments_engine or DOCKER_HOST{without}"
        ) from None


def disk_usage(engine: Any) -> dict[str, Any]:
    """What `GET /system/df` answers: `Images`, `Containers`, `Volumes`, `BuildCache`.

    Engines before API 1.42 work on one such request at a time and refuse others, also another program's; these are
    repeated until `_USAGE_PATIENCE` seconds have passed. Raises `ImageError`, `EngineUnavailable`.
    """
    until = time.monotonic() + _USAGE_PATIENCE
    while True:
        try:
            with engine_failures():
                usage: dict[str, Any] = engine.api.df()
                return usage
        except ImageError as error:
            if _USAGE_BUSY not in str(error) or time.monotonic() >= until:
                raise
        time.sleep(_USAGE_PAUSE)


def why_silent(error: BaseException) -> str:
    """Why an engine cannot be reached, in plain words: the SDK, requests and urllib3 wrap what the system said."""
    for base_exception in _inner(error):
        for kind, words in _CAUSES.items():
            if isinstance(base_exception, kind):
                return words
    return _line(error)


def _inner(error: BaseException) -> Iterator[BaseException]:
    """An error and all errors that it wraps; a cycle ends."""
    waiting, visited = [error], set[int]()
    while waiting:
        error = waiting.pop(0)
        if id(error) in visited:
            continue
        visited.add(id(error))
        yield error
        causes = (error.__cause__, error.__context__, getattr(error, "reason", None), *error.args)
        waiting += [item for item in causes if isinstance(item, BaseException)]


def pull(engine: Any, name: str) -> Any:
    """Pull an image and give it as the SDK does, which itself would not tell what ended a pull. Raises `ImageError`,
    `ImageMissing`, `EngineDiskFull`, `EngineUnavailable`."""
    from docker.utils import parse_repository_tag  # noqa: PLC0415  loaded with the first engine

    repository, tag = parse_repository_tag(name)
    with engine_failures():
        engine_words(engine.api.pull(repository, tag=tag or "latest"))
        return engine.images.get(name)


def engine_words(answer: str | bytes | Iterable[Any]) -> list[str]:
    """What the engine said in a stream of JSON lines (an import, a pull); raises `ImageError` with its error,
    `EngineDiskFull`."""
    text = answer if isinstance(answer, str) else answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    words = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if "error" in event:
                raise _refusal(redact(str(event["error"]))[:300])
            words.append(str(event.get("status", "")))
    return words


def _refusal(said: str) -> ImageError:
    return disk_full(said) if NO_ROOM.search(said) else ImageError(f"the Docker engine refused: {said}")


def _line(error: BaseException) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return redact(" ".join(text.split()))[:300]
