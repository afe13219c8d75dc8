"""The body of an error, whatever its shape: what it says, its codes, the status that it names, the pause it asks for.

Bodies that are understood: an object or a list of objects, with the error at the top or below ``error``, ``errors``,
``detail`` and the like; an error of an upstream as JSON text in ``metadata.raw``; FastAPI's lists of details; a text.
Names of keys are compared without case and signs: ``errorCode`` is ``error_code``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prchain.core.llm.error_codes import status_of
from prchain.core.storable import clean_text

_MESSAGE_KEYS = (
    ("message", "msg", "errormessage", "errormsg", "statusmsg", "text"),
    ("error", "errors", "baseresp", "response", "detail", "details"),
    ("faultstring", "fault", "innererror", "cause", "body"),
    ("errordescription", "description", "title", "raw", "metadata"),
)
"""Keys below which an error's words are, those that say most first."""

_CODE_KEYS = ("code", "errorcode", "errcode", "statuscode", "httpstatus", "httpcode", "type", "errortype", "status")
"""Keys of codes; a code says more than a type, and a type more than a status, which may be a word such as ``error``."""

_PAUSE_KEYS = {"retryafter": 1.0, "retryafterseconds": 1.0, "retrydelay": 1.0, "retryafterms": 0.001}
"""Keys of a pause, with their unit in seconds. ``retryDelay`` is of Google's ``RetryInfo``."""

_PAUSE_WORDS = re.compile(
    r"\b(?:try|retry|wait)(?: again| your request| after| in)*(?: about)? (?:(?P<h>\d+) ?h(?:ours?)? ?)?"
    r"(?:(?P<m>\d+) ?m(?!s|illi)(?:in(?:ute)?s?)? ?)?(?:(?P<s>\d+(?:\.\d+)?) ?(?P<u>ms|milliseconds?|s))?",
    re.I,
)
"""What OpenAI and Groq say of a rate limit: ``Please try again in 1m26.4s``."""

_STATUS_WORDS = re.compile(r"\W*(?:(?:http|error|status|code)\W*)*([45]\d\d)\b", re.I)
"""How words begin that name a status: ``429 Too Many Requests``, ``Error code: 503 - ...``."""

_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")
"""Of a web page, which a proxy in between may answer."""

_WORD = re.compile(r"[A-Za-z][\w.-]{2,99}")
"""An error that is one word is a code."""

_DEEPEST = 6
_LONGEST_CODE = 100
_MOST_ITEMS = 5
_LONGEST_WORDS = 4_000
_LONGEST_PIECE = 1_500
"""Characters of one text: a message may quote the prompt that it refuses."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What the body of an error says."""

    words: str = ""
    """All of its messages in one line."""
    codes: tuple[str, ...] = ()
    """Its codes, types and statuses in snake case, those of the outermost object first."""
    status: int | None = None
    """The HTTP status that a code is or stands for, or with which the words begin; None where there is none."""
    retry_after: float | None = None
    """Seconds that it asks to wait."""

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not self.words and not self.codes


def read_error(body: Any, now: float = 0.0, *, surely: bool = True) -> ErrorBody:
    """The error that a body holds: bytes, a text, or a value of JSON. `now` is the time in seconds since 1970.

    `surely` says that it is an error: then texts below keys that nobody knows are its words, where there are no others.
    """
    value = _parsed(body.decode(errors="replace") if isinstance(body, bytes) else body)
    words = _joined(_messages(value, 0)) or (_joined(_texts(value, 0)) if surely else "")
    codes = tuple(dict.fromkeys(_codes(value, 0)))
    named = status_of(codes, words)
    if named is None and (begins := _STATUS_WORDS.match(words)):
        named = int(begins[1])
    return ErrorBody(words, codes, named, next(_pauses(value, now, 0), None) or _pause_in_words(words))


def _parsed(value: Any) -> Any:
    """The value, or what it holds where it is a text of JSON."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _key(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def _folded(value: Mapping[str, Any]) -> dict[str, Any]:
    return {_key(name): part for name, part in value.items() if not name.startswith("@")}


def _messages(value: Any, depth: int) -> Iterator[str]:
    value = _parsed(value)
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value[:_MOST_ITEMS]:
            yield from _messages(item, depth + 1)
    elif isinstance(value, Mapping):
        parts = _folded(value)
        if isinstance(parts.get("loc"), list) and isinstance(parts.get("msg"), str):  # FastAPI, "Handling Errors"
            yield f"{' '.join(map(str, parts['loc'][:_DEEPEST]))}: {parts['msg']}"
            return
        for names in _MESSAGE_KEYS:
            for name in names:
                yield from _messages(parts.get(name), depth + 1)


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Every text of a value whose keys are not known."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth <= _DEEPEST:
        items = list(value.values() if isinstance(value, Mapping) else value)
        for item in items[:_MOST_ITEMS]:
            yield from _texts(item, depth + 1)


def _joined(texts: Iterator[str]) -> str:
    lines = dict.fromkeys(" ".join(_TAG.sub(" ", clean_text(text[:_LONGEST_PIECE])).split()) for text in texts)
    return ": ".join(line for line in lines if line)[:_LONGEST_WORDS]


def _codes(value: Any, depth: int) -> Iterator[str]:
    value = _parsed(value)
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value[:_MOST_ITEMS]:
            yield from _codes(item, depth + 1)
    elif isinstance(value, Mapping):
        parts = _folded(value)
        for name in _CODE_KEYS:
            code = parts.get(name)
            if isinstance(code, str) or type(code) is int:
                yield _snake(str(code))
        for word in (parts.get("error"), parts.get("detail")):
            if isinstance(word, str) and _WORD.fullmatch(word):
                yield _snake(word)
        for names in _MESSAGE_KEYS:
            for name in names:
                if isinstance(_parsed(parts.get(name)), Mapping | list):
                    yield from _codes(parts[name], depth + 1)


def _snake(code: str) -> str:
    words = " ".join(clean_text(code[:_LONGEST_CODE]).split())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).casefold()


def _pauses(value: Any, now: float, depth: int) -> Iterator[float]:
    value = _parsed(value)
    if depth > _DEEPEST or not isinstance(value, Mapping | list):
        return
    if isinstance(value, Mapping):
        for name, part in _folded(value).items():
            if name in _PAUSE_KEYS and (number := _number(part)) is not None:
                yield number * _PAUSE_KEYS[name]
            elif name == "xratelimitreset" and (moment := _number(part)) is not None:  # OpenRouter: milliseconds
                yield max((moment / 1000 if moment > 1e11 else moment) - now, 0.0)
    for part in list(value.values() if isinstance(value, Mapping) else value)[: 4 * _MOST_ITEMS]:
        yield from _pauses(part, now, depth + 1)


def _number(value: Any) -> float | None:
    """A number of zero or more, given as such, as a text, or as a text that ends with ``s``."""
    text = str(value).strip().removesuffix("s") if isinstance(value, str | int | float) else ""
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text) else None


def _pause_in_words(words: str) -> float | None:
    for found in _PAUSE_WORDS.finditer(words):
        hours, minutes, seconds = (found[name] for name in "hms")
        if hours or minutes or seconds:
            unit = 0.001 if (found["u"] or "s").lower().startswith("m") else 1.0
            return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + unit * float(seconds or 0)
    return None
