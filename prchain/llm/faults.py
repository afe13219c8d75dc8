"""What the endpoint, the network or the SDK failed with, named as one of `prchain.errors`.

Whether a failed call may have been paid for decides if it may be repeated on the same reservation:

- not paid: no connection; any 4xx, 429 too; 500, 503 and 529, by which the endpoint says that it did not answer;
- perhaps paid: a timeout and a cut connection, after which nobody knows; 502, 504 and 52x, by which a gateway says so
  of the model behind it; a 200 whose body is no reply, but for a web page (`prchain.llm.wire`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai

from prchain.errors import ContextTooLong, EndpointRefused, EndpointTimeout, EndpointUnreachable, LlmError, RateLimited
from prchain.scrub import clean_text, redact

_NEVER_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

_EARLY = {408, 409, 425}
_AGAIN = {*_EARLY, 429, 500, 503, 529}
"""Statuses of answers that cost nothing and may be better next time."""

_GATEWAY = {502, 504, *range(520, 528)}
_GATEWAY_TIMEOUTS = {504, 522, 524}

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|(?:prompt|input|request) is too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|reduce the length of the (?:messages|prompt|input)",
    re.I,
)
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}

_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"}

_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class EndpointFault:
    """A failed exchange: what it is called, whether the same call may be sent again, and what the endpoint said."""

    error: LlmError
    again: bool = False
    retry_after: float | None = None
    """Seconds that the endpoint asks to wait; None where it does not say."""
    status: int | None = None
    words: str = ""


def fault_of(
    error: openai.OpenAIError | httpx2.HTTPError | OSError, where: str, secrets: tuple[str, ...], now: float
) -> EndpointFault:
    """The fault that an exchange ended in. `where` names the endpoint, `now` is the time in seconds since 1970."""
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, where, secrets, now)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, _NEVER_CONNECTED):
        detail = redact(" ".join(str(cause).split()), secrets)[:_LONGEST_WORDS] or type(cause).__name__
        return EndpointFault(
            EndpointUnreachable(f"{where} cannot be reached: {detail}; is llm_base_url right?"), again=True
        )
    if isinstance(error, openai.APITimeoutError) or isinstance(cause, httpx2.TimeoutException):
        return EndpointFault(timed_out(where))
    return EndpointFault(EndpointUnreachable(f"{where} cut the connection ({type(cause).__name__})", billed=True))


def timed_out(where: str) -> EndpointTimeout:
    """The error of an answer that did not come, or did not end, in time."""
    return EndpointTimeout(f"{where} did not answer in time; llm_timeout_seconds says how long to wait", billed=True)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that an answer's headers ask to wait: a number or an HTTP date (RFC 9110, 10.2.3), or None."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        return max(parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now, 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _of_status(error: openai.APIStatusError, where: str, secrets: tuple[str, ...], now: float) -> EndpointFault:
    status = error.status_code
    fields = error.body if isinstance(error.body, dict) else {}
    words = redact(_body_text(error.body), secrets)[:_LONGEST_WORDS]
    message = f"{where} answered {status}{f': {words}' if words else ''}"
    codes = {str(fields.get(name)) for name in ("code", "type")}
    wait = retry_after(error.response.headers, now)
    if status in {401, 403}:
        llm_error: LlmError = EndpointRefused(
            f"{message}; check the key (OPENAI_API_KEY, or api_key_env of the purpose)"
        )
    elif status == 404:
        llm_error = EndpointRefused(f"{message}; check llm_model and llm_base_url")
    elif 300 <= status < 400:
        llm_error = EndpointRefused(f"{where} redirects ({status}); set llm_base_url to the address it redirects to")
    elif status in {400, 413, 422} and (codes & _TOO_LONG_CODES or _TOO_LONG.search(words)):
        llm_error = ContextTooLong(message)
    elif status == 413:
        llm_error = ContextTooLong(f"{message or where}: the request is too large")
    elif status == 429 and not codes & _NO_MONEY:
        llm_error = RateLimited(message, wait or 0.0)
    elif status in _GATEWAY_TIMEOUTS:
        llm_error = EndpointTimeout(message, billed=True)
    elif status >= 500 or status in _EARLY:
        llm_error = EndpointUnreachable(message, billed=status in _GATEWAY)
    else:
        llm_error = EndpointRefused(message)
    again = status in _AGAIN and not isinstance(llm_error, EndpointRefused)
    return EndpointFault(llm_error, again, wait, status, words)


def _body_text(body: Any) -> str:
    """What an error's body says, in one line; bodies of compatible endpoints have many forms."""
    if isinstance(body, dict):
        inner = body.get("error")
        for value in (
            body.get("message"),
            inner.get("message") if isinstance(inner, dict) else inner,
            body.get("detail"),
        ):
            if isinstance(value, str) and value:
                return " ".join(clean_text(value).split())
        return ""
    return " ".join(clean_text(body).split()) if isinstance(body, str) else ""
