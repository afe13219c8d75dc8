"""Primary rate limits: so many points an hour for each token and resource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.emulator.objects import iso

WINDOW = 3600


@dataclass
class Meter:
    """One token's budget of one resource. The hour starts with its first use, as at GitHub."""

    resource: str
    limit: int
    clock: Callable[[], float]
    used: int = 0
    reset: int = 0
    total: int = 0
    """Points over all hours."""

    def refresh(self) -> None:
        if self.clock() >= self.reset:
            self.used, self.reset = 0, int(self.clock()) + WINDOW

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    def charge(self, points: int) -> None:
        self.used += points
        self.total += points

    def exhaust(self) -> None:
        self.refresh()
        self.used = max(self.used, self.limit)

    def headers(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-reset": str(self.reset),
            "x-ratelimit-resource": self.resource,
        }

    def rest(self) -> dict[str, int]:
        """Return its entry in GET /rate_limit."""
        return {"limit": self.limit, "remaining": self.remaining, "reset": self.reset, "used": self.used}

    def graphql(self, cost: int, nodes: int) -> dict[str, object]:
        """Return the `rateLimit` object."""
        return {
            "cost": cost,
            "limit": self.limit,
            "nodeCount": nodes,
            "remaining": self.remaining,
            "resetAt": iso(self.reset),
            "used": self.used,
        }


@dataclass
class Meters:
    """The budgets of all accepted tokens; the core (REST) budget of a token is as large as its GraphQL one."""

    tokens: dict[str, int]
    clock: Callable[[], float]
    _meters: dict[tuple[str, str], Meter] = field(default_factory=dict)

    def of(self, token: str, resource: str) -> Meter:
        key = (token, resource)
        if key not in self._meters:
            self._meters[key] = Meter(resource, self.tokens[token], self.clock)
        meter = self._meters[key]
        meter.refresh()
        return meter

    def total(self, token: str | None, resource: str) -> int:
        return sum(m.total for (t, r), m in self._meters.items() if r == resource and token in {None, t})
