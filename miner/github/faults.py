"""What a failed request means: PyGithub's and requests' exceptions, sorted by what to do about them.

PyGithub raises whatever happened to its parser: a GraphQL error comes as ``GithubException(400)``, an empty body as
``TypeError``, an HTML page with status 200 as no error at all. `classify` and `check_graphql` are the only places
that know.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from github import GithubException
from urllib3.exceptions import ReadTimeoutError

from miner.github.budget import number
from prchain.core.errors import BadToken, ForgeError, NetworkUnreachable, QueryRefused, RepositoryNotFound

TOLERATED = frozenset({"FORBIDDEN", "NOT_FOUND", "INSUFFICIENT_SCOPES", "SAML_FAILURE"})
"""Errors about one node of an answer (deleted, or of a private repository); the rest of the answer is good."""


class ApiFault(Exception):
    """A request that failed; asking again may help."""


class Overloaded(ApiFault):
    """Too much was asked at once: 502, 504, a timeout, or the compute budget. Ask for less."""


class Incomplete(Overloaded):
    """The answer lacks parts that must be there."""


class Malformed(Incomplete):
    """The answer has not the form that GitHub's schema promises: a null, a wrong type, a missing key."""


class Withheld(Malformed):
    """A whole pull request is null, because of an error about a part of it that the schema says is never null."""


class CursorRefused(ApiFault):
    """GitHub does not take the cursor (any more): the list must be begun anew."""


class Transient(ApiFault):
    """A passing trouble: another 5xx, a broken body. Ask again."""


class Unreachable(Transient):
    """No connection, or one that broke."""


class Unauthorized(ApiFault):
    """401: the token is wrong or expired."""


@dataclass
class Limited(ApiFault):
    """A rate limit struck. `reset` is an epoch, for the primary limit; `retry_after` seconds, for the secondary."""

    primary: bool
    reset: float | None = None
    retry_after: float | None = None


def classify(error: Exception) -> ApiFault | ForgeError:
    """Return what an exception out of PyGithub means."""
    if isinstance(error, GithubException):
        return _refusal(error)
    if isinstance(error, requests.exceptions.ReadTimeout) or _hides_timeout(error):
        return Overloaded("no answer in time")
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return Transient("the answer broke off")
    distrust = _tls_failure(error)
    if distrust is not None:
        return NetworkUnreachable(
            f"no TLS connection to GitHub's API: {distrust}; check its certificate (REQUESTS_CA_BUNDLE names the file "
            "of your own authority's), the proxy, and GITHUB_API_URL"
        )
    if isinstance(error, requests.exceptions.RequestException | OSError):
        return Unreachable(type(error).__name__)
    return Transient("the answer is no JSON object")


def tolerable(errors: Any) -> bool:
    """Whether every GraphQL error is about one node only, so that the data beside them counts."""
    return isinstance(errors, list) and all(isinstance(e, dict) and e.get("type") in TOLERATED for e in errors)


def from_graphql(errors: list[Any], headers: dict[str, Any]) -> ApiFault | ForgeError:
    """Return what the errors of a GraphQL answer mean."""
    errors = [error for error in errors if isinstance(error, dict)]
    if not errors:
        return Transient("GitHub names no error")
    kinds = {str(error.get("type") or "") for error in errors}
    text = "; ".join(str(error.get("message") or "") for error in errors)
    lower = text.lower()
    if kinds & {"RATE_LIMITED", "RATE_LIMIT"} or "api rate limit" in lower:
        return Limited(primary=True, reset=number(headers.get("x-ratelimit-reset")))
    if "secondary rate limit" in lower:
        return Limited(primary=False, retry_after=_retry_after(headers))
    if "RESOURCE_LIMITS_EXCEEDED" in kinds or "resource limits" in lower or "timeout" in lower or "timedout" in lower:
        return Overloaded(text)
    if "something went wrong" in lower or "SERVICE_UNAVAILABLE" in kinds or "INTERNAL" in kinds:
        return Overloaded(text)
    if "INVALID_CURSOR_ARGUMENTS" in kinds or "valid cursor" in lower:
        return CursorRefused(text)
    if kinds <= {"NOT_FOUND"}:
        return RepositoryNotFound(text)
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        return BadToken(f"GitHub does not let this token do that: {text}")
    return QueryRefused(f"GitHub refused the query: {text}")


def _refusal(error: GithubException) -> ApiFault | ForgeError:
    data, headers = error.data, error.headers or {}
    message = str(data.get("message") or "") if isinstance(data, dict) else ""
    if isinstance(data, dict) and isinstance(data.get("errors"), list) and error.status in (400, 404):
        return from_graphql(data["errors"], headers)
    if error.status == 401:
        return Unauthorized("401")
    if error.status in (403, 429):
        return _limit_or_ban(error.status, message, headers)
    if error.status in (502, 504):
        return Overloaded(f"GitHub answered {error.status}")
    if error.status >= 500 or error.status in (0, 408):
        return Transient(f"GitHub answered {error.status}")
    if error.status == 404:
        return RepositoryNotFound("GitHub answers 404 (unknown, private for this token, or a wrong GITHUB_API_URL)")
    return QueryRefused(f"GitHub answered {error.status}: {message or 'no reason given'}")


def _limit_or_ban(status: int, message: str, headers: dict[str, Any]) -> ApiFault | ForgeError:
    retry_after = _retry_after(headers)
    lower = message.lower()
    if retry_after is not None:
        return Limited(primary=False, retry_after=retry_after)
    if "secondary rate limit" not in lower and number(headers.get("x-ratelimit-remaining")) == 0:
        return Limited(primary=True, reset=number(headers.get("x-ratelimit-reset")))
    if status == 429 or "rate limit" in lower or "abuse" in lower or "again later" in lower:
        return Limited(primary=False)
    return BadToken(f"GitHub does not let this token do that (403): {message or 'no reason given'}")


def _retry_after(headers: dict[str, Any]) -> float | None:
    text = headers.get("retry-after")
    seconds = number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        then, now = parsedate_to_datetime(str(text)), parsedate_to_datetime(str(headers.get("date")))
        return max((then - now).total_seconds(), 1.0)
    except (ValueError, TypeError, OverflowError):  # no date, one without a zone beside one with it, one out of range
        return None


def _hides_timeout(error: Exception) -> bool:
    return isinstance(error, requests.exceptions.ConnectionError) and any(
        isinstance(cause, ReadTimeoutError) for cause in error.args
    )


def _tls_failure(error: Exception) -> ssl.SSLError | None:
    """Why no TLS connection can be made, where trying again gives the same; a connection that merely broke may come."""
    if not isinstance(error, requests.exceptions.SSLError):
        return None
    causes = (cause for cause in _causes(error) if isinstance(cause, ssl.SSLError))
    return next((cause for cause in causes if not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was made from: requests and urllib3 wrap a cause as an argument or a `reason`."""
    yield error
    for inner in (*error.args, getattr(error, "reason", None)):
        if isinstance(inner, BaseException) and inner is not error:
            yield from _causes(inner)
