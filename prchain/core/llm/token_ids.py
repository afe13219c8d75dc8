"""The token ids and log-probabilities of a reply, as servers of open models give them: pure.

vLLM (``return_token_ids``; its "OpenAI-Compatible Server") has ``prompt_token_ids`` beside ``choices`` and
``token_ids`` in the choice; SGLang 0.5.13 (``return_prompt_token_ids``, ``return_meta_info``) has ``prompt_token_ids``
and ``meta_info.output_token_logprobs`` (log-probability, id, text) in the choice, later ones ``response_token_ids``.
Log-probabilities are those of OpenAI's API (``logprobs.content``), which both have.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ASKS: Mapping[str, bool] = {
    "logprobs": True,
    "return_token_ids": True,
    "return_prompt_token_ids": True,
    "return_meta_info": True,
}
"""What a request says that wants them, for either server; each passes over the other's words."""

_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ReplyTokens:
    """What a server gave; empty where it gave none."""

    prompt: tuple[int, ...] = ()
    """Ids of the prompt, as the chat template made it."""
    reply: tuple[int, ...] = ()
    """Ids of the reply, its end included."""
    logprobs: tuple[float, ...] = ()
    """Of the ids of the reply, under the model that sampled them."""

    def to_text(self) -> str:
        """As ASCII, compressed; `from_text` gives an equal value."""
        values = json.dumps([self.prompt, self.reply, self.logprobs], separators=(",", ":"))
        return base64.b64encode(zlib.compress(values.encode())).decode()

    @classmethod
    def from_text(cls, text: str) -> ReplyTokens:
        """From what `to_text` wrote."""
        return cls(*map(tuple, json.loads(zlib.decompress(base64.b64decode(text)))))


def tokens_of(answer: Mapping[str, Any], choice: Mapping[str, Any]) -> ReplyTokens | None:
    """The tokens that the body of an answer, and its choice, hold; None without any. Log-probabilities that are not as
    many as the ids are left out."""
    meta = choice.get("meta_info")
    pairs = meta.get("output_token_logprobs") if isinstance(meta, dict) else None
    told = [it for it in pairs if isinstance(it, list) and len(it) > 1] if isinstance(pairs, list) else []
    found = choice.get("logprobs")
    content = found.get("content") if isinstance(found, dict) else None
    parts = content if isinstance(content, list) else []
    prompt = _ids(answer.get("prompt_token_ids")) or _ids(choice.get("prompt_token_ids"))
    reply = _ids(choice.get("token_ids")) or _ids(choice.get("response_token_ids")) or _ids([it[1] for it in told])
    logprobs = _numbers([it.get("logprob") if isinstance(it, dict) else None for it in parts])
    logprobs = logprobs or _numbers([it[0] for it in told])
    if reply and len(logprobs) != len(reply):
        logprobs = ()
    return ReplyTokens(prompt, reply, logprobs) if prompt or reply or logprobs else None


def _ids(value: Any) -> tuple[int, ...]:
    """The ids; empty for what are none."""
    good = isinstance(value, list) and all(type(it) is int and 0 <= it <= _LARGEST_ID for it in value)
    return tuple(value) if good else ()


def _numbers(values: list[Any]) -> tuple[float, ...]:
    good = all(isinstance(it, int | float) and not isinstance(it, bool) and math.isfinite(it) for it in values)
    return tuple(map(float, values)) if good else ()
