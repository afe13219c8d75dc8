"""The Docker engine that images are built in, reached through the `docker` SDK; its failures in our own names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from prchain.errors import EngineUnavailable, ImageError, ImageMissing
from prchain.scrub import redact

LABEL = "prchain"
"""The prefix of every label of ours; nothing without it is listed or removed."""

BASE_LABEL = f"{LABEL}.base"
IMAGE_LABEL = f"{LABEL}.image"
"""On base images, and on images of repositories."""


def connect(url: str | None = None, *, timeout: int = 120) -> Any:
    """A `docker.DockerClient` for the engine at `url`; None: the one that DOCKER_HOST names, or the local socket.

    `timeout` is that of one answer, in seconds. Raises `EngineUnavailable`.
    """
    import docker  # noqa: PLC0415  loaded with the first engine

    with in_engine():
        client = docker.DockerClient(base_url=url, timeout=timeout) if url else docker.from_env(timeout=timeout)
        try:
            client.ping()
        except BaseException:
            client.close()
            raise
    return client


@contextlib.contextmanager
def in_engine() -> Iterator[None]:
    """Give what the SDK raises our names: `EngineUnavailable`, `ImageMissing`, `ImageError` for other refusals."""
    import docker  # noqa: PLC0415  loaded with the first engine
    import requests  # noqa: PLC0415  comes with docker

    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise ImageMissing(_line(error)) from None
    except docker.errors.APIError as error:
        raise ImageError(f"the Docker engine refused: {_line(error)}") from None
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        ConnectionError,
        TimeoutError,
    ) as error:
        raise EngineUnavailable(
            f"the Docker engine does not answer ({_line(error)}); start it, or name another"
        ) from None


def engine_words(answer: str | bytes | Iterable[Any]) -> list[str]:
    """What the engine said in a stream of JSON lines (an import, a pull); raises `ImageError` with its error."""
    text = answer if isinstance(answer, str) else answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    said = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            word = json.loads(line)
            if "error" in word:
                raise ImageError(f"the Docker engine refused: {redact(str(word['error']))[:300]}")
            said.append(str(word.get("status", "")))
    return said


def _line(error: BaseException) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return redact(" ".join(text.split()))[:300]
