"""What goes wrong, when, and how often."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.emulator.world import World


class Kind(StrEnum):
    """A kind of misbehaviour of GitHub. `Exchange.fault` has the value."""

    RETRY_AFTER_403 = "retry_after_403"
    """Secondary limit, with Retry-After."""
    SECONDARY_403 = "secondary_403"
    """Secondary limit, without Retry-After: only the message says so."""
    PRIMARY_403 = "primary_403"
    """Primary limit: x-ratelimit-remaining 0 and a reset in `seconds`."""
    RETRY_AFTER_429 = "retry_after_429"
    BARE_429 = "bare_429"
    RATE_LIMITED_200 = "rate_limited_200"
    """GraphQL's primary limit: 200, errors[].type RATE_LIMITED, remaining 0, reset in `seconds`."""
    RESOURCE_LIMITS_200 = "resource_limits_200"
    """GraphQL's compute budget: 200, the first `keep` nodes, null for the others, RESOURCE_LIMITS_EXCEEDED."""
    BAD_GATEWAY_502 = "bad_gateway_502"
    UNAVAILABLE_503 = "unavailable_503"
    GATEWAY_TIMEOUT_504 = "gateway_timeout_504"
    SERVER_ERROR_500 = "server_error_500"
    UNAUTHORIZED_401 = "unauthorized_401"
    SOMETHING_WENT_WRONG_200 = "something_went_wrong_200"
    """GraphQL's 200 with data null and an untyped error that asks to quote a request id."""
    NULL_NODES_200 = "null_nodes_200"
    """Null for all but the first `keep` nodes of each connection `field`; its totalCount stays."""
    LOST_NODES_200 = "lost_nodes_200"
    """Only the first `keep` nodes of each connection `field`; its totalCount stays."""
    FORBIDDEN_FIELD_200 = "forbidden_field_200"
    """Each connection `field` is null, with an error of type FORBIDDEN beside the data."""
    NULL_FIELD_200 = "null_field_200"
    """Each connection `field` is null, and no error says why."""
    SHORT_PAGE = "short_page"
    """Fewer items than there are, with hasNextPage; the cursor continues after them."""
    LOST_CURSOR = "lost_cursor"
    """endCursor null, with hasNextPage."""
    REPEATED_CURSOR = "repeated_cursor"
    """endCursor is the cursor that was sent (on a first page: that of its first item)."""
    REPEATED_PAGE = "repeated_page"
    """The previous answer of the same operation again."""
    TRUNCATED = "truncated"
    """Half of the body, then the connection closes."""
    BAD_JSON = "bad_json"
    HTML_200 = "html_200"
    EMPTY_200 = "empty_200"
    NULL_200 = "null_200"
    SLOW = "slow"
    """The right answer, `delay` real seconds late."""
    DRIP = "drip"
    """The right answer, in eight pieces with `delay` real seconds before each."""
    REWRITE = "rewrite"
    """The right answer, but its JSON is what `rewrite` makes of it, with `headers` beside or instead of its own."""
    RESET = "reset"
    """The connection is reset before any answer."""
    EXHAUSTED = "exhausted"
    """The token's budget of the resource is used up; the answer is that of the emulator's own limit."""
    CHANGE = "change"
    """`change(world)` runs after the exchange was answered: the world changes in the middle of a run."""


WITHHELD = frozenset({Kind.NULL_NODES_200, Kind.LOST_NODES_200, Kind.FORBIDDEN_FIELD_200, Kind.NULL_FIELD_200})
"""Those that keep back a part of pull requests."""


@dataclass(frozen=True)
class Call:
    """One request, before it is answered."""

    method: str
    path: str
    """Without /api/v3 and without the query string."""
    query: dict[str, str]
    operation: str | None
    variables: dict[str, Any]
    token: str | None
    resource: str
    page_size: int | None


@dataclass
class Fault:
    """A rule: which calls are hit, and by which fault.

    A call matches when every given condition holds: `operation` (a GraphQL operation's name, or for REST the end of the
    path, such as "/pulls/comments"), `resource` (graphql, core), `page_over` (its page size is larger), `token`,
    `when`.
    Of the matching calls, the `nth` (1 is the first) and those after it are hit, `times` in all (None: for ever).
    """

    kind: Kind
    nth: int = 1
    times: int | None = 1
    operation: str | None = None
    resource: str | None = None
    page_over: int | None = None
    token: str | None = None
    when: Callable[[Call], bool] | None = None
    seconds: int = 60
    """Retry-After, or the time until the reset."""
    delay: float = 0.5
    keep: int = 1
    field: str = "comments"
    """The connection of pull requests that a fault takes from, by its name in GraphQL."""
    change: Callable[[World], None] | None = None
    rewrite: Callable[[Any], Any] | None = None
    """Takes the body and returns another; it may change the one it gets."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Headers of the answer, of whatever kind the fault is."""
    hits: int = dataclasses.field(default=0, init=False)
    _matched: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        if (self.kind is Kind.CHANGE) is not (self.change is not None):
            raise ValueError("a CHANGE takes what to change, and nothing else does")
        if self.rewrite is not None and self.kind is not Kind.REWRITE:
            raise ValueError("only a REWRITE rewrites")

    def strikes(self, call: Call) -> bool:
        """Count the call, and return whether it is hit."""
        if not self._matches(call):
            return False
        self._matched += 1
        if self._matched < self.nth or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True

    def _matches(self, call: Call) -> bool:
        if self.operation is not None:
            named = call.operation == self.operation if call.operation else call.path.endswith(self.operation)
            if not named:
                return False
        return (
            (self.resource is None or call.resource == self.resource)
            and (self.page_over is None or (call.page_size or 0) > self.page_over)
            and (self.token is None or call.token == self.token)
            and (self.when is None or self.when(call))
        )
