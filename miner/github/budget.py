"""What each token may still ask of GitHub, and when to wait.

GitHub limits a user in two ways. The *primary* limit is a number of points (GraphQL) or requests (REST, called
``core``) an hour, told in the ``x-ratelimit-*`` headers of every answer. The *secondary* limit is unannounced; its
answers are 403 or 429, with ``Retry-After`` or without, and where there is none GitHub asks for at least a minute and
then ever longer pauses. It also counts the CPU seconds of GraphQL queries, which is why one token never has two
requests under way. See GitHub's "Rate limits and query limits for the GraphQL API".
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from prchain.core.errors import BadToken, RateLimitExceeded

SECONDARY_PAUSE = 60.0
LONGEST_PAUSE = 900.0
MAX_STRIKES = 6

log = logging.getLogger(__name__)

Clock = Callable[[], float]
Sleep = Callable[[float], None]
OnWait = Callable[[float, str], None]


@dataclass
class _Limit:
    """One resource's hourly allowance as last told; unknown until the first answer."""

    remaining: float = float("inf")
    reset: float = 0.0

    def left(self, now: float) -> float:
        return float("inf") if now >= self.reset else self.remaining


@dataclass
class Token:
    """One token and what is known of its limits. `ordinal` names it in messages, the value never does."""

    value: str = field(repr=False)
    ordinal: int
    limits: dict[str, _Limit] = field(default_factory=dict)
    blocked_until: float = 0.0
    strikes: int = 0
    busy: bool = False
    dropped: bool = False

    def ready_at(self, resource: str, now: float) -> float:
        """When this token may ask for the resource again, in the clock's seconds; not after `now` means at once."""
        limit = self.limits.get(resource)
        exhausted = limit is not None and limit.left(now) < 1
        return max(self.blocked_until, limit.reset if limit is not None and exhausted else 0.0)

    def left(self, resource: str, now: float) -> float:
        """Points or requests it may still spend in this hour; infinite when unknown."""
        limit = self.limits.get(resource)
        return float("inf") if limit is None else limit.left(now)


class Budget:
    """The tokens of one run, shared by its threads.

    `max_wait` is the longest single wait in seconds; `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        *,
        max_wait: float,
        clock: Clock = time.time,
        sleep: Sleep = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.tokens = [Token(value, number) for number, value in enumerate(dict.fromkeys(tokens), start=1)]
        self.max_wait = max_wait
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._released = threading.Condition()

    @contextmanager
    def lease(self, resource: str, on_wait: OnWait) -> Iterator[Token]:
        """Lend the token with the most left for the resource (``graphql`` or ``core``) to one request.

        Waits until one may ask. Raises `BadToken` when none is left and `RateLimitExceeded` when the wait would be
        longer than allowed.
        """
        token = self._take(resource, on_wait)
        try:
            yield token
        finally:
            with self._released:
                token.busy = False
                self._released.notify_all()

    def observe(self, token: Token, resource: str, headers: Mapping[str, str]) -> None:
        """Learn from the ``x-ratelimit-*`` headers of an answer; they name the resource they are about."""
        remaining, reset = number(headers.get("x-ratelimit-remaining")), number(headers.get("x-ratelimit-reset"))
        if remaining is not None and reset is not None:
            token.limits[headers.get("x-ratelimit-resource", resource)] = _Limit(remaining, reset)

    def succeeded(self, token: Token) -> None:
        """An answer came: the secondary limit has let go of the token."""
        token.strikes = 0

    def exhausted(self, token: Token, resource: str, reset: float | None) -> None:
        """The hourly allowance is spent; it comes back at `reset`, or, where that is not told, in a minute."""
        now = self._clock()
        token.limits[resource] = _Limit(0, reset if reset is not None and reset > now else now + SECONDARY_PAUSE)

    def slowed(self, token: Token, retry_after: float | None) -> None:
        """The secondary limit struck: keep the token still for `retry_after`, or ever longer from a minute on."""
        token.strikes += 1
        if retry_after is None:
            pause = min(SECONDARY_PAUSE * 2 ** (token.strikes - 1), LONGEST_PAUSE) * (1 + 0.1 * self._jitter())
        else:
            pause = max(retry_after, 1.0)
        token.blocked_until = self._clock() + pause
        if token.strikes > MAX_STRIKES:
            raise RateLimitExceeded(
                f"GitHub's secondary rate limit refused {token.strikes} requests in a row; run again later", pause
            )

    def drop(self, token: Token) -> None:
        """GitHub refused the token: go on without it. Raises `BadToken` when it was the last one."""
        token.dropped = True
        if all(other.dropped for other in self.tokens):
            raise self._none_left()
        # On the terminal, too, whatever is logged: only the user can replace the token.
        log.error("GitHub refused token %d of %d (401); going on without it", token.ordinal, len(self.tokens))

    def wait(self, seconds: float, reason: str, on_wait: OnWait) -> None:
        """Sleep visibly: `on_wait` gets the seconds and the reason before, and an empty reason after.

        Raises `RateLimitExceeded` when it is longer than allowed.
        """
        if seconds > self.max_wait:
            raise RateLimitExceeded(
                f"{reason}: the next request is allowed in {seconds:.0f} s, longer than the {self.max_wait:.0f} s "
                "that may be waited; run again later or allow a longer wait",
                seconds,
            )
        log.info("%s: waiting %.1f s", reason, seconds)
        on_wait(seconds, reason)
        self._sleep(seconds)
        on_wait(0.0, "")

    def _none_left(self) -> BadToken:
        """The error for every repository whose tokens were refused, by its own requests or by another one's before
        it."""
        if len(self.tokens) > 1:
            return BadToken(
                f"GitHub refused all {len(self.tokens)} tokens (401): they are wrong or expired; set GITHUB_TOKEN to "
                "valid ones"
            )
        return BadToken("GitHub refused the token (401): it is wrong or expired; set GITHUB_TOKEN to a valid one")

    def _take(self, resource: str, on_wait: OnWait) -> Token:
        while True:
            with self._released:
                alive = [token for token in self.tokens if not token.dropped]
                if not alive:
                    raise self._none_left()
                now = self._clock()
                ready = [token for token in alive if token.ready_at(resource, now) <= now]
                idle = [token for token in ready if not token.busy]
                if idle:
                    chosen = max(idle, key=lambda token: (token.left(resource, now), -token.ordinal))
                    chosen.busy = True
                    return chosen
                if ready:
                    self._released.wait()
                    continue
                pause = min(token.ready_at(resource, now) for token in alive) - now
            self.wait(pause, "GitHub's rate limit is spent", on_wait)


def number(text: str | None) -> float | None:
    """Return the number of a header, or None where it is missing or none, which ``nan`` and ``inf`` are."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
