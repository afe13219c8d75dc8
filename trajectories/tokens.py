"""The token ids of turns as they are kept: pure.

The prompt of a turn mostly is the prompt and the reply of the turn before, and what came after it. So each turn is kept
by what it adds, and whole prompts are put together from the turns before.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prchain.core.errors import RowUnreadable
from prchain.core.llm.token_ids import ReplyTokens


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """What a turn adds: `shared` ids of its prompt are the first ones of what was `seen` before."""

    shared: int
    added: ReplyTokens
    """With the rest of the prompt."""


class SeenTokens:
    """Prompt and reply of the last turn whose ids are known."""

    def __init__(self) -> None:
        self._ids: array[int] = array("i")

    def take(self, tokens: ReplyTokens) -> TurnTokens:
        """What the next turn adds."""
        prompt = array("i", tokens.prompt)
        shared = _common(self._ids, prompt)
        self._ids = prompt + array("i", tokens.reply)
        return TurnTokens(shared, ReplyTokens(tokens.prompt[shared:], tokens.reply, tokens.logprobs))

    def whole(self, turn: TurnTokens) -> ReplyTokens:
        """The next turn, put together."""
        prompt = self._ids[: turn.shared] + array("i", turn.added.prompt)
        self._ids = prompt + array("i", turn.added.reply)
        return ReplyTokens(tuple(prompt), turn.added.reply, turn.added.logprobs)


def whole_tokens(turns: Iterable[tuple[int, TurnTokens]]) -> Iterator[tuple[int, ReplyTokens]]:
    """The tokens of turns, each under its number, in their order."""
    seen = SeenTokens()
    for number, turn in turns:
        yield number, seen.whole(turn)


def packed(tokens: ReplyTokens) -> bytes:
    """Tokens as they are stored."""
    return zlib.compress(json.dumps([tokens.prompt, tokens.reply, tokens.logprobs], separators=(",", ":")).encode())


def unpacked(data: bytes) -> ReplyTokens:
    """What `packed` stored. Raises `RowUnreadable`."""
    try:
        return ReplyTokens(*map(tuple, json.loads(zlib.decompress(data))))
    except (ValueError, TypeError, zlib.error) as error:
        raise RowUnreadable("the database holds token ids that cannot be read") from error


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """A conversation as one sequence of ids, of which each prompt begins with all that was seen before it."""

    ids: tuple[int, ...]
    prompt: int
    """So many ids stand before the first reply."""
    mask: tuple[int, ...]
    """Of each id behind them: 1 where it is of a reply under loss."""
    logprobs: tuple[float, ...]
    """Of the same ids; 0 where it is of no reply."""


def sequence_of(turns: Sequence[tuple[ReplyTokens | None, bool]]) -> TokenSequence | None:
    """The sequence of a conversation's turns, each with whether it is under loss; None where one has no ids or no
    log-probabilities, or where a prompt does not go on from what was before it (a template that drops reasoning)."""
    ids: tuple[int, ...] = ()
    mask: list[int] = []
    logprobs: list[float] = []
    start: int | None = None
    for tokens, train in turns:
        if tokens is None or not tokens.prompt or not tokens.reply or len(tokens.logprobs) != len(tokens.reply):
            return None
        if tokens.prompt[: len(ids)] != ids:
            return None
        if start is None:
            start = len(tokens.prompt)
        else:
            between = len(tokens.prompt) - len(ids)
            mask += [0] * between
            logprobs += [0.0] * between
        mask += [int(train)] * len(tokens.reply)
        logprobs += tokens.logprobs
        ids = tokens.prompt + tokens.reply
    return None if start is None else TokenSequence(ids, start, tuple(mask), tuple(logprobs))


def _common(one: array[int], other: array[int]) -> int:
    """How many first ids are the same: found by halves, since arrays are compared faster than their items."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
