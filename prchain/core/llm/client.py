"""Models behind OpenAI-compatible endpoints."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prchain.core.errors import ContextTooLong, LlmError, RateLimited
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Reply, Request
from prchain.core.llm.pauses import full_jitter
from prchain.core.llm.sending import mark_sent
from prchain.core.llm.wire import Dialect, body_of, reply_of

log = logging.getLogger(__name__)

_RESPONSE_FORMAT = re.compile(r"response_?format|json_?schema|guided_(?:json|decoding)|structured outputs?", re.I)

_REASONING = re.compile(r"reasoning_content")
_REASONING_REQUIRED = re.compile(r"pass(?:ed)? back|required|missing|must be (?:sent|given|provided|included)", re.I)
"""An endpoint that complains of reasoning which was not passed back complains of another message."""

if TYPE_CHECKING:
    from prchain.core.llm.faults import EndpointFault


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """A model behind an endpoint."""

    name: str
    endpoint: Endpoint

    def complete(self, request: Request) -> Reply:
        """Answer one request with one paid call at most.

        What cost nothing and may be better next time is sent again, after the pause that the endpoint asks for and a
        random one, within the endpoint's limits. Raises `LlmError`; its `billed` says whether the call may have been
        paid for.
        """
        tries, waited = 0, 0.0
        while True:
            waited += self._wait(self.endpoint.quiet_seconds(), waited, None)
            dialect = self.endpoint.dialect(self.name)
            result = self._send(request, dialect)
            if isinstance(result, Reply):
                return result
            mark_sent(result.error.billed)
            other_dialect = _other_dialect(result, request, dialect)
            if other_dialect is not None:
                log.info("%s does not take every parameter for %s: sent in another way", self.endpoint.shown, self.name)
                self.endpoint.learn(self.name, other_dialect)
                continue
            tries += 1
            if not result.again or tries >= self.endpoint.max_tries:
                raise result.error
            if result.retry_after:
                self.endpoint.be_quiet(result.retry_after)
            pause = (result.retry_after or 0.0) + full_jitter(tries, self.endpoint.random)
            log.warning(
                "%s, try %d of %d for %s: %s%s; again in %.1f s",
                self.endpoint.shown,
                tries,
                self.endpoint.max_tries,
                request.purpose or self.name,
                result.error.name,
                f" ({result.status})" if result.status else "",
                pause,
            )
            waited += self._wait(pause, waited, result.error)

    def _wait(self, seconds: float, waited: float, error: LlmError | None) -> float:
        """Wait, and return for how long; raise where that would be longer than allowed."""
        if waited + seconds > self.endpoint.max_wait_seconds:
            if error is not None and not isinstance(error, RateLimited):
                raise error
            raise RateLimited(
                f"{self.endpoint.shown} wants a pause of {seconds:.0f} s, and max_wait_seconds is "
                f"{self.endpoint.max_wait_seconds:.0f}; run again later, it goes on from here",
                seconds,
            )
        if seconds > 0:
            log.info("%s: waiting %.1f s", self.endpoint.shown, seconds)
            self.endpoint.sleep(seconds)
        return seconds

    def _send(self, request: Request, dialect: Dialect) -> Reply | EndpointFault:
        import httpx2  # noqa: PLC0415  see `Endpoint`
        import openai  # noqa: PLC0415

        from prchain.core.llm.faults import EndpointFault, fault_of, fault_within, timed_out  # noqa: PLC0415  they import the SDK

        endpoint = self.endpoint
        try:
            body, headers = endpoint.post(body_of(request, self.name, dialect))
        except TimeoutError:
            return EndpointFault(timed_out(endpoint.shown))
        except (openai.OpenAIError, httpx2.HTTPError, OSError) as error:
            return fault_of(error, endpoint.shown, endpoint.secrets, endpoint.wall())
        where, now = endpoint.shown, endpoint.wall()
        answer = reply_of(body, self.name, endpoint.secrets, where, now, token_ids=request.token_ids)
        if isinstance(answer, Reply):
            return answer
        return fault_within(answer, headers, endpoint.shown, endpoint.secrets, endpoint.wall())


def _other_dialect(fault: EndpointFault, request: Request, dialect: Dialect) -> Dialect | None:
    """The dialect to try where the endpoint refused a parameter that can be sent in another way."""
    if fault.status not in {400, 422} or isinstance(fault.error, ContextTooLong):
        return None  # vLLM names max_completion_tokens where they do not fit beside the prompt
    if request.schema is not None and not dialect.schema_in_words and _RESPONSE_FORMAT.search(fault.words):
        return replace(dialect, schema_in_words=True)
    if not dialect.completion_tokens and "max_completion_tokens" in fault.words:
        return replace(dialect, completion_tokens=True)
    sends_reasoning = any(message.reasoning is not None for message in request.messages) and not dialect.no_reasoning
    if sends_reasoning and _REASONING.search(fault.words) and not _REASONING_REQUIRED.search(fault.words):
        return replace(dialect, no_reasoning=True)
    return None
