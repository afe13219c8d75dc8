"""The codes of errors in words, and the HTTP statuses that they stand for.

Of OpenAI, Anthropic, Google, DeepSeek, Moonshot, MiniMax, Zhipu and gateways: their guides on errors. They are matched
in small letters, as `prchain.core.llm.error_bodies` gives them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_NO_MONEY = re.compile(
    r"insufficient_?(?:account_?)?(?:quota|balance|credits?|funds)|billing|payment|credit_?balance|arrear"
    r"|exceeded_current_quota|\b1113\b"
)
"""1113 is Zhipu's."""

_NO_MONEY_WORDS = re.compile(
    r"insufficient (?:account )?(?:balance|credits?|funds)|(?:credit balance|balance) (?:is )?too low|out of credits?"
    r"|(?:requires|need) more credits|payment required|specified (?:api )?usage limits?|spend(?:ing)? (?:limit|cap)"
    r"|余额不足|欠费",
    re.I,
)

_RATE = re.compile(
    r"rate_?limit|too_?many_?(?:requests|tokens)|throttl|resource_?exhausted|quota|concurren|limit_?burst"
    r"|request_?limit|^limit_exceeded"
)

_STATUSES = (
    (402, _NO_MONEY),
    (429, _RATE),
    (401, re.compile(r"invalid_?api_?key|authenticat|unauthori[sz]ed|invalid_?token")),
    (403, re.compile(r"permission|forbidden|access_?denied")),
    (404, re.compile(r"not_?found")),
    (504, re.compile(r"time_?d?_?out|deadline")),
    (503, re.compile(r"overload|unavailable|capacity|busy")),
    (500, re.compile(r"server_?error|internal|upstream|provider_?error|api_?error|bad_?gateway|network|engine|system")),
    (400, re.compile(r"invalid|bad_?request|unsupported|validation|unprocessable|context|too_?(?:long|large)|inspect")),
)
"""The first that fits a code counts: ``insufficient_quota`` comes with status 429, and no wait helps against it."""

_RATE_WORDS = re.compile(
    r"rate.?limit|too many requests|throttl|qps|tpm|resource.?exhausted|请求过多|频率|速率|限[流频]|并发", re.I
)
_BUSY_WORDS = re.compile(
    r"overload|unavailable|busy|no capacity|capacity (?:\w+ )?exceeded|model .{0,80}\bloading\b|loading (?:the )?model"
    r"|繁忙|过载|饱和|访问量过大",
    re.I,
)

_STATUS_WORDS = (
    (402, _NO_MONEY_WORDS),
    (429, _RATE_WORDS),
    (401, re.compile(r"(?:access.token|api.?(?:secret.)?key).{0,60}\b(?:invalid|expired|incorrect)", re.I)),
    (401, re.compile(r"(?:invalid|incorrect|expired) (?:access.token|api.?key)|log ?in fail|unauthori[sz]ed", re.I)),
    (503, _BUSY_WORDS),
    (500, re.compile(r"(?:internal|unknown|server|system|network) (?:\w+ )?error|timed? ?out|upstream", re.I)),
    (404, re.compile(r"\bmodel\b.{0,80}(?:not found|does not exist)|no such model", re.I)),
    (400, re.compile(r"invalid param|bad request", re.I)),
)
"""Words beside a number that is no status: MiniMax, Zhipu and Baidu have numbers of their own."""


def status_of(codes: Collection[str], words: str) -> int | None:
    """The HTTP status that codes are or stand for; None where none does."""
    for code in codes:
        if code.isascii() and code.isdecimal() and len(code) == 3 and 400 <= int(code) < 600:
            return int(code)
    for code in codes:
        for status, pattern in _STATUSES:
            if pattern.search(code):
                return status
    if any(map(str.isdecimal, codes)):
        return next((status for status, pattern in _STATUS_WORDS if pattern.search(words)), None)
    return None


def passing_status(words: str) -> int | None:
    """The HTTP status of an error in words alone that passes, where these say that no model has worked: that there are
    too many calls, or that the model is overloaded or still loads."""
    return 429 if _RATE_WORDS.search(words) else 503 if _BUSY_WORDS.search(words) else None


def is_rate(codes: Collection[str]) -> bool:
    """Whether a code is of a limit of calls or tokens in a time."""
    return any(map(_RATE.search, codes))


def is_money(codes: Collection[str], words: str) -> bool:
    """Whether a code or the words are of an account without credit."""
    return any(map(_NO_MONEY.search, codes)) or _NO_MONEY_WORDS.search(words) is not None
