"""Sends requests to GitHub, one at a time, and handles every fault before it returns an answer."""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from github import Auth, Github, GithubException

from miner.archive import Json, scrub
from miner.github import answer_checks, faults, wire
from miner.github.budget import Budget, OnWait, Token
from miner.github.queries import Query
from miner.source import ApiUsage
from prchain.core.errors import BadAnswer, ForgeError, NetworkUnreachable, RateLimitExceeded
from prchain.core.secrets.scrub import Counts, redact

ATTEMPTS = 6
MAX_LIMITED = 20
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
NOT_MODIFIED = 304
BAD_REQUEST = 400

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Headers = dict[str, Any]


@dataclass(frozen=True)
class GraphAnswer:
    """The data of a GraphQL answer, and the paths of the nodes that GitHub says do not exist (any more)."""

    data: dict[str, Json]
    not_found: frozenset[tuple[str | int, ...]] = frozenset()
    errors: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    """Path and type of each error that the answer was taken in spite of."""

    @property
    def refusals(self) -> dict[str, Json]:
        """The errors as a part of the request that is archived; nothing where there are none."""
        return {"refused": [[list(path), kind] for path, kind in self.errors]} if self.errors else {}


@dataclass(frozen=True)
class RestAnswer:
    """One REST answer: its items, or None when nothing changed since the ETag."""

    items: list[dict[str, Json]] | None
    """Those that have the form they must have."""
    etag: str | None
    has_next: bool
    malformed: tuple[str, ...] = ()
    """Of each of the others, what is wrong with it."""


class GitHubClient:
    """GitHub as one thread sees it: its own PyGithub client for each token, because they cannot be shared.

    (PyGithub keeps url and headers of the request under way on the shared connection, so that two threads get each
    other's answers.) Retries, waits and the choice of token are here and in `Budget`; PyGithub's own are off: its
    retries keep the old token, its waits have no cap, and its pause between POSTs would cost a second a page.

    Answers are scrubbed of the tokens, of other secrets and of unstorable characters; what was replaced is added to
    `replaced`.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        api_url: str,
        timeout: float,
        usage: ApiUsage,
        show_wait: OnWait = lambda seconds, reason: None,
        jitter: Callable[[], float] = random.random,
        replaced: Counts | None = None,
    ) -> None:
        self.usage = usage
        self.moved = False
        """Whether an answer came from another place than it was asked for at: the repository has another name."""
        self._budget = budget
        self._api_url = api_url.rstrip("/")
        self._timeout = timeout
        self._show_wait = show_wait
        self._jitter = jitter
        self._replaced = replaced
        self._secrets = tuple(token.value for token in budget.tokens)
        self._clients: dict[int, Github] = {}
        # PyGithub writes to standard error by itself: redirects at INFO, whole unscrubbed bodies at DEBUG.
        logging.getLogger("github.Requester").setLevel(logging.WARNING)

    def __enter__(self) -> GitHubClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def graphql(self, query: Query, variables: Mapping[str, Json]) -> GraphAnswer:
        """Return the answer to a query.

        Raises `Overloaded` at once, because only the caller can ask for less, and as `Malformed` where the answer has
        not the form that it must have; `CursorRefused`, too. Everything else is tried again first, and ends as a
        `ForgeError`.
        """

        def send(client: Github) -> tuple[Headers, GraphAnswer]:
            self.usage.graphql_requests += 1
            try:
                headers, body = client.requester.graphql_query(query.text, dict(variables))
            except Exception as error:  # the boundary to PyGithub, which raises whatever its parser stumbled over
                self.usage.points += _cost_of_failure(error)
                return partial(error)
            if not isinstance(body, dict) or not isinstance(body.get("data"), dict):
                raise faults.Transient("the answer is no JSON object")
            self.usage.points += _told_cost(body["data"], 1)
            return headers, GraphAnswer(body["data"])

        answer = self._ask("graphql", send)
        data = scrub(answer.data, self._secrets, self._replaced)
        answer_checks.check(query.name, data)
        return replace(answer, data=data)

    def review_comments(self, path: str, parameters: Mapping[str, str], etag: str | None = None) -> RestAnswer:
        """Return one page of REST's list of review comments; with an ETag, an unchanged page costs nothing and comes
        without items."""

        def send(client: Github) -> tuple[Headers, RestAnswer]:
            self.usage.rest_requests += 1
            condition = {"If-None-Match": etag} if etag else {}
            try:
                status, headers, text = client.requester.requestJson("GET", path, dict(parameters), headers=condition)
            except Exception as error:  # the boundary to PyGithub, as above
                raise faults.classify(error) from None
            if status == NOT_MODIFIED:
                return headers, RestAnswer(None, etag, False)
            items = scrub(_items(status, headers, text), self._secrets, self._replaced)
            items, malformed = answer_checks.review_comments(items)
            return headers, RestAnswer(items, headers.get("etag"), _has_next(headers, parameters), malformed)

        return self._ask("core", send)

    def pause(self, attempt: int) -> None:
        """Wait before asking again: a second or less at first (attempt 0), doubling, with jitter."""
        seconds = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE) * (0.5 + self._jitter() / 2)
        self._budget.wait(seconds, "GitHub stumbled", self._on_wait)

    def _ask(self, resource: str, send: Callable[[Github], tuple[Headers, Answer]]) -> Answer:
        stumbles, limited = 0, 0
        while True:
            with self._budget.lease(resource, self._on_wait) as token:
                try:
                    headers, answer = send(self._client(token))
                except faults.Unauthorized:
                    self._budget.drop(token)
                    continue
                except faults.Limited as limit:
                    limited += 1
                    self._obey(limit, token, resource, limited)
                    continue
                except faults.Transient as fault:
                    stumbles += 1
                    if stumbles == ATTEMPTS:
                        raise self._surrender(fault) from None
                    log.warning("GitHub, attempt %d of %d: %s", stumbles, ATTEMPTS, _one_line(fault, self._secrets))
                except ForgeError as error:
                    raise type(error)(_one_line(error, self._secrets)) from None
                else:
                    self._budget.observe(token, resource, headers)
                    self._budget.succeeded(token)
                    return answer
            self.pause(stumbles - 1)

    def _obey(self, limit: faults.Limited, token: Token, resource: str, times: int) -> None:
        kind = "hourly" if limit.primary else "secondary"
        log.warning("GitHub's %s rate limit for %s struck token %d", kind, resource, token.ordinal)
        if times > MAX_LIMITED:
            raise RateLimitExceeded(f"GitHub refused one request {times} times for its rate limit; run again later", 0)
        if limit.primary:
            self._budget.exhausted(token, resource, limit.reset)
        else:
            self._budget.slowed(token, limit.retry_after)

    def _surrender(self, fault: faults.Transient) -> ForgeError:
        reason = _one_line(fault, self._secrets)
        if isinstance(fault, faults.Unreachable):
            return NetworkUnreachable(
                f"{urlsplit(self._api_url).netloc} cannot be reached ({reason}); is there a network?"
            )
        return BadAnswer(f"GitHub gave no usable answer in {ATTEMPTS} attempts: {reason}")

    def _client(self, token: Token) -> Github:
        client = self._clients.get(token.ordinal)
        if client is None:
            client = Github(
                auth=Auth.Token(token.value),
                base_url=self._api_url,
                timeout=max(1, math.ceil(self._timeout)),  # PyGithub insists on whole seconds
                user_agent="prchain",
                per_page=100,
                retry=None,
                seconds_between_requests=0,
                seconds_between_writes=0,
                lazy=True,
                api_version="2022-11-28",
            )
            wire.mend(client, self._timeout, self._note_redirect)
            self._clients[token.ordinal] = client
        return client

    def _note_redirect(self) -> None:
        self.usage.rest_requests += 1
        self.moved = True

    def _on_wait(self, seconds: float, reason: str) -> None:
        self.usage.waited_seconds += seconds
        self._show_wait(seconds, reason)


def partial(error: Exception) -> tuple[Headers, GraphAnswer]:
    """Return the good part of an answer whose errors are about single nodes only; raise what it means otherwise."""
    body = error.data if isinstance(error, GithubException) else None
    if isinstance(body, dict) and isinstance(body.get("data"), dict) and faults.tolerable(body.get("errors")):
        data = body["data"]
        if "repository" not in data or data["repository"] is not None:
            errors = tuple((_path(item.get("path")), str(item["type"])) for item in body["errors"])
            paths = frozenset(path for path, kind in errors if kind == "NOT_FOUND" and path)
            return getattr(error, "headers", None) or {}, GraphAnswer(data, paths, errors)
    raise faults.classify(error) from None


def _path(path: Json) -> tuple[str | int, ...]:
    steps = path if isinstance(path, list) else ()
    return tuple(step if isinstance(step, int) else str(step) for step in steps)


def _cost_of_failure(error: Exception) -> int:
    """Points of a query that failed: what GitHub says, or one where it began to work on it; refusals are free."""
    body = error.data if isinstance(error, GithubException) else None
    data = body.get("data") if isinstance(body, dict) else None
    return _told_cost(data, 1 if isinstance(faults.classify(error), faults.Overloaded) else 0)


def _told_cost(data: Json, otherwise: int) -> int:
    limit = data.get("rateLimit") if isinstance(data, dict) else None
    cost = limit.get("cost") if isinstance(limit, dict) else None
    return cost if isinstance(cost, int) else otherwise


def _items(status: int, headers: Headers, text: str) -> list[dict[str, Json]]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if status >= BAD_REQUEST:
        raise faults.classify(GithubException(status, value, headers))
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise faults.Transient("the answer is no JSON list")
    return value


def _has_next(headers: Headers, parameters: Mapping[str, str]) -> bool:
    """Whether the Link header knows a next page; it must repeat the parameters, else another list came."""
    for link in str(headers.get("link") or "").split(","):
        address, _, relation = link.partition(";")
        if 'rel="next"' in relation:
            try:
                query = parse_qs(urlsplit(address.strip(" <>")).query)
            except ValueError:
                raise faults.Transient("the link to the next page is none") from None
            if query.get("per_page") != [parameters["per_page"]]:
                raise faults.Transient("another list came than was asked for")
            return True
    return False


def _one_line(error: Exception, secrets: tuple[str, ...]) -> str:
    return redact(" ".join(str(error).split()), secrets)[:500]
