"""What a call costs, by the prices that the settings name. The code holds no prices: they change."""

from __future__ import annotations

from dataclasses import dataclass

from prchain.llm.model import Usage

_MILLION = 1_000_000

_TEMPLATE_TOKENS = 512
"""What a chat template and the endpoint's own preamble may add to a request; the harmony format's is about 100."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in USD per million tokens. Tokens from the endpoint's cache cost `cached`, or `input` where it is None."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float | None:
        """What a call with this usage cost, in USD; None where the endpoint did not say enough."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        cached = min(usage.tokens_cached or 0, usage.tokens_in)
        fresh = usage.tokens_in - cached
        paid_in = fresh * self.input + cached * (self.input if self.cached is None else self.cached)
        return (paid_in + usage.tokens_out * self.output) / _MILLION

    def most(self, size: int, max_tokens: int) -> float:
        """The most, in USD, that a request of `size` bytes costs whose reply has at most `max_tokens` tokens.

        A token of a byte-level BPE stands for one byte at least, so there are no more tokens than bytes.
        """
        dearest = max(self.input, self.cached or 0.0)
        return ((size + _TEMPLATE_TOKENS) * dearest + max_tokens * self.output) / _MILLION
