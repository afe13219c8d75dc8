"""What the endpoint, the network or the SDK failed with, named as one of `prchain.core.errors`.

Whether a failed call may have been paid for decides if it may be repeated on the same reservation:

- not paid: no connection; any 4xx, 429 too; 500, 503 and 529, by which the endpoint says that it did not answer;
- perhaps paid: a timeout and a cut connection, after which nobody knows; 502, 504 and 52x, by which a gateway says so
  of the model behind it; a 200 whose body is no reply, but for a web page (`prchain.core.llm.wire`).

An error within a 200 is the status that its code names, as if it had come with it, and was not paid for: a gateway had
sent its 200 before the model behind it failed. See OpenRouter's guides "Errors and Debugging" and "Zero Completion
Insurance".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx2
import openai

from prchain.core.errors import (
    ContextTooLong,
    EndpointIncompatible,
    EndpointRefused,
    EndpointTimeout,
    EndpointUnreachable,
    LlmError,
    RateLimited,
)
from prchain.core.llm.context_words import Cause, cause_of
from prchain.core.llm.error_bodies import ErrorBody, read_error
from prchain.core.llm.error_codes import is_money, is_rate, passing_status
from prchain.core.llm.wire import FailedAnswer
from prchain.core.secrets.scrub import redact

_NEVER_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

_EARLY = {408, 409, 425}
_AGAIN = {*_EARLY, 429, 500, 503, 529}
"""Statuses of answers that cost nothing and may be better next time."""

_GATEWAY = {502, 504, *range(520, 528)}
_GATEWAY_TIMEOUTS = {504, 522, 524}

_LONGEST_WORDS = 300
"""Characters of an endpoint's words in a message."""


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
        return _of_answer(error, where, secrets, now)
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


def fault_within(
    answer: FailedAnswer, headers: Mapping[str, str], where: str, secrets: tuple[str, ...], now: float
) -> EndpointFault:
    """The fault that an answer of status 200 tells of. A pause that it asks for is in its headers or in the error."""
    said = answer.error
    words = redact(said.words, secrets)
    status = said.status if said.status is not None or answer.finish else passing_status(words)
    wait = retry_after(headers, now) or said.retry_after
    code = f" ({redact(said.codes[0], secrets)})" if said.codes else ""
    detail = f": {words[:_LONGEST_WORDS]}" if words else ""
    if status is not None or cause_of(words, said.codes) is Cause.CONTEXT:
        return _of_status(status or 400, said, words, f"{where} answered 200 with an error{code}{detail}", wait, False)
    if answer.finish:
        message = f"{where} broke its reply off (finish_reason is {answer.finish!r}){detail}"
        return EndpointFault(EndpointUnreachable(message, billed=answer.billed), not answer.billed, wait, None, words)
    message = f"{where} answered with no chat completion; it says{code}{detail}; is llm_base_url right?"
    return EndpointFault(EndpointIncompatible(message, billed=True))


def _of_answer(error: openai.APIStatusError, where: str, secrets: tuple[str, ...], now: float) -> EndpointFault:
    status, answer = error.status_code, error.response
    said = read_error(answer.content if answer.is_stream_consumed else error.body, now)
    words = redact(said.words, secrets)
    message = f"{where} answered {status}{f': {words[:_LONGEST_WORDS]}' if words else ''}"
    wait = retry_after(answer.headers, now)
    return _of_status(status, said, words, message, said.retry_after if wait is None else wait, True)


def _of_status(
    status: int, said: ErrorBody, words: str, message: str, wait: float | None, outside: bool
) -> EndpointFault:
    """The fault of a status; `outside` says whether the answer had it itself, and not an error within a 200."""
    cause = cause_of(words, said.codes, status)
    if status in {400, 403, 413} and cause is Cause.OTHER and is_rate(said.codes):
        status = 429  # Groq says 413 of more tokens than it takes in a minute
    no_money = status == 402 or is_money(said.codes, words)
    if cause is Cause.CONTEXT:
        llm_error: LlmError = ContextTooLong(message)
    elif no_money and status in {400, 402, 403, 429, 500}:
        llm_error = EndpointRefused(f"{message}; the account has no credit left for it")
    elif status in {401, 403}:
        llm_error = EndpointRefused(f"{message}; check the key (OPENAI_API_KEY, or api_key_env of the purpose)")
    elif status == 404:
        llm_error = EndpointRefused(f"{message}; check llm_model and llm_base_url")
    elif 300 <= status < 400:
        llm_error = EndpointRefused(f"{message}: it redirects; set llm_base_url to the address it redirects to")
    elif status == 413 and cause is not Cause.OTHER:
        llm_error = ContextTooLong(f"{message}: the request is too large")
    elif status == 429:
        llm_error = RateLimited(message, wait or 0.0)
    elif status in _GATEWAY_TIMEOUTS:
        llm_error = EndpointTimeout(message, billed=outside)
    elif status >= 500 or status in _EARLY:
        llm_error = EndpointUnreachable(message, billed=outside and status in _GATEWAY)
    else:
        llm_error = EndpointRefused(message, unexplained=status in {400, 422} and cause is Cause.UNKNOWN)
    passes = status in _AGAIN or (status >= 500 and not outside)
    again = passes and not isinstance(llm_error, EndpointRefused | ContextTooLong)
    return EndpointFault(llm_error, again, wait, status, words)
