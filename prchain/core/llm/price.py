"""What a call costs: the protocol of a price, and the price that the settings name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from prchain.core.llm.model import Usage

_MILLION = 1_000_000

_TEMPLATE_TOKENS = 512
"""What a chat template and the endpoint's own preamble may add to a request; the harmony format's is about 100."""


class Pricing(Protocol):
    """What the calls of one model at one endpoint cost, in USD."""

    @property
    def source(self) -> str:
        """Where the price is from, as the ledger keeps it of each call: 64 characters at most."""

    def of(self, usage: Usage) -> float | None:
        """What a call with this usage cost, in USD; None where the endpoint did not say enough."""

    def most(self, size: int, max_tokens: int) -> float:
        """The most, in USD, that a request of `size` bytes costs whose reply has at most `max_tokens` tokens."""

    def estimate(self, calls: int, tokens_in: int, tokens_out: int) -> float:
        """What `calls` calls of one size cost that have so many tokens together, in USD; none is from a cache."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in USD per million tokens. Tokens from the endpoint's cache cost `cached`, or `input` where it is None."""

    input: float
    output: float
    cached: float | None = None
    source: str = "settings"
    """As of `Pricing`."""

    def of(self, usage: Usage) -> float | None:
        """As of `Pricing`."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        cached = min(usage.tokens_cached or 0, usage.tokens_in)
        fresh = usage.tokens_in - cached
        paid_in = fresh * self.input + cached * (self.input if self.cached is None else self.cached)
        return (paid_in + usage.tokens_out * self.output) / _MILLION

    def most(self, size: int, max_tokens: int) -> float:
        """As of `Pricing`."""
        dearest = max(self.input, self.cached or 0.0)
        return (most_tokens(size) * dearest + max_tokens * self.output) / _MILLION

    def estimate(self, calls: int, tokens_in: int, tokens_out: int) -> float:
        """As of `Pricing`."""
        return (tokens_in * self.input + tokens_out * self.output) / _MILLION


def most_tokens(size: int) -> int:
    """The most tokens that a request of `size` bytes may count.

    A token of a byte-level BPE stands for one byte at least, so there are no more tokens than bytes.
    """
    return size + _TEMPLATE_TOKENS
