"""What a call costs, by the prices that the settings name. The code holds no prices: they change.

A model's price where the settings name none is looked up in `prchain.llm.price_table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from prchain.llm.model import Usage

_MILLION = 1_000_000

TEMPLATE_TOKENS = 512
"""What a chat template and the endpoint's own preamble may add to a request; the harmony format's is about 100."""


class Pricing(Protocol):
    """What calls of one model cost, in USD."""

    @property
    def source(self) -> str:
        """Where the prices are from, as the ledger keeps it."""

    def of(self, usage: Usage) -> float | None:
        """What a call with this usage cost; None where the endpoint did not say enough."""

    def about(self, tokens_in: int, tokens_out: int) -> float:
        """What a call of so many tokens costs, with none from a cache."""

    def most(self, size: int, max_tokens: int) -> float:
        """The most that a request of `size` bytes costs whose reply has at most `max_tokens` tokens."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in USD per million tokens. Tokens from the endpoint's cache cost `cached`, or `input` where it is None."""

    input: float
    output: float
    cached: float | None = None
    source: str = "settings"

    def of(self, usage: Usage) -> float | None:
        """What a call with this usage cost, in USD; None where the endpoint did not say enough."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        cached = min(usage.tokens_cached or 0, usage.tokens_in)
        fresh = usage.tokens_in - cached
        paid_in = fresh * self.input + cached * (self.input if self.cached is None else self.cached)
        return (paid_in + usage.tokens_out * self.output) / _MILLION

    def about(self, tokens_in: int, tokens_out: int) -> float:
        """See `Pricing`."""
        return (tokens_in * self.input + tokens_out * self.output) / _MILLION

    def most(self, size: int, max_tokens: int) -> float:
        """The most, in USD, that a request of `size` bytes costs whose reply has at most `max_tokens` tokens.

        A token of a byte-level BPE stands for one byte at least, so there are no more tokens than bytes.
        """
        dearest = max(self.input, self.cached or 0.0)
        return ((size + TEMPLATE_TOKENS) * dearest + max_tokens * self.output) / _MILLION
