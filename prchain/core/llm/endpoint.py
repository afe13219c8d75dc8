"""One OpenAI-compatible endpoint: how many calls it takes at once, when it wants to be left alone, what it refuses."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prchain.core.errors import BadReply
from prchain.core.llm.sending import mark_sent
from prchain.core.llm.wire import PLAIN, Dialect

if TYPE_CHECKING:
    from openai import OpenAI

_CONNECT_SECONDS = 10.0

_NAMED = frozenset({"model", "messages"})

_LARGEST_BODY = 64 << 20
"""Bytes. No reply is that long: a million tokens are about 4 MB."""


@dataclass
class Endpoint:
    """An endpoint, shared by all models behind it and by all threads.

    `clock`, `wall`, `sleep` and `random` are the machine's, or a test's: seconds from anywhere, seconds since 1970, a
    pause, and a number from 0 to 1.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 8
    timeout_seconds: float = 600.0
    """For one call, from its start to the last byte of its answer."""
    max_tries: int = 5
    """How often a call is sent that cost nothing and may be better next time."""
    max_wait_seconds: float = 3900.0
    """The longest that one call waits between its tries, all waits together."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    wall: Callable[[], float] = field(default=time.time, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    random: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self.concurrency)
        self._lock = threading.Lock()
        self._sdk: OpenAI | None = None
        self._quiet_until = float("-inf")
        self._dialects: dict[str, Dialect] = {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, for `prchain.core.secrets.scrub.redact`."""
        return (self.api_key,) if self.api_key else ()

    @property
    def shown(self) -> str:
        """The endpoint as messages name it: its host and port."""
        return f"the endpoint {urlsplit(self.base_url).netloc.rpartition('@')[2]}"

    def post(self, body: dict[str, Any]) -> tuple[bytes, Mapping[str, str]]:
        """Send one request, as soon as a slot is free, and return the body of its answer and the headers.

        Raises what the SDK and its HTTP library raise; `TimeoutError` where the answer does not end in time, and
        `BadReply` where it is far too long.
        """
        sdk = self._client()
        with self._slots:
            end = self.clock() + self.timeout_seconds
            parts, size = [], 0
            # The SDK refuses keys that it does not know, and programs of others send such.
            rest = {name: value for name, value in body.items() if name not in _NAMED}
            asked = sdk.chat.completions.with_streaming_response.create(
                model=body["model"], messages=body["messages"], extra_body=rest
            )
            with asked as answer:
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > _LARGEST_BODY:
                        raise BadReply(f"{self.shown} answered with more than {_LARGEST_BODY} bytes", billed=True)
                    if self.clock() > end:
                        raise TimeoutError
            return b"".join(parts), answer.headers

    def be_quiet(self, seconds: float) -> None:
        """The endpoint asks for a pause: no call of any thread starts before it is over."""
        with self._lock:
            self._quiet_until = max(self._quiet_until, self.clock() + seconds)

    def quiet_seconds(self) -> float:
        """How long the endpoint still wants to be left alone."""
        return max(self._quiet_until - self.clock(), 0.0)

    def dialect(self, model: str) -> Dialect:
        """What the endpoint was found not to take from requests to a model."""
        return self._dialects.get(model, PLAIN)

    def learn(self, model: str, dialect: Dialect) -> None:
        """Remember what the endpoint does not take."""
        with self._lock:
            self._dialects[model] = dialect

    def close(self) -> None:
        """Close its connections."""
        with self._lock:
            if self._sdk is not None:
                self._sdk.close()
                self._sdk = None

    def _client(self) -> OpenAI:
        with self._lock:
            if self._sdk is None:
                import httpx2  # noqa: PLC0415  half a second that only a command that asks models pays
                from openai import DefaultHttpxClient, OpenAI  # noqa: PLC0415

                def sent(request: httpx2.Request) -> None:
                    mark_sent()

                timeout = httpx2.Timeout(self.timeout_seconds, connect=min(_CONNECT_SECONDS, self.timeout_seconds))
                self._sdk = OpenAI(
                    # The SDK wants a key; an endpoint without keys ignores it.
                    api_key=self.api_key or "none",
                    base_url=self.base_url,
                    max_retries=0,
                    timeout=timeout,
                    # A redirect would take the prompt, and the key on the same host, where the settings do not say.
                    http_client=DefaultHttpxClient(
                        timeout=timeout, follow_redirects=False, event_hooks={"request": [sent]}
                    ),
                )
            return self._sdk
