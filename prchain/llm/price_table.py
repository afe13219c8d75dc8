"""Prices of the models of well-known providers, from the table that the package genai-prices carries.

The table is read from the package; nothing is fetched. A price is known where the base URL is that provider's own:
an endpoint elsewhere may ask for anything, whatever its models are called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import genai_prices
from genai_prices import data_snapshot

from prchain.llm.model import Usage
from prchain.llm.price import TEMPLATE_TOKENS

TABLE = f"genai-prices {genai_prices.__version__}"
"""What the ledger names as the source of these prices."""


@dataclass(frozen=True, slots=True)
class TablePrice:
    """The price of one provider's model, with its tiers, its price for cached tokens, and the hours it holds at."""

    provider: str
    model: str
    source: str = TABLE

    def of(self, usage: Usage) -> float | None:
        """What a call with this usage costs now, in USD; None where the endpoint did not say enough."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        return self._usd(usage.tokens_in, usage.tokens_out, min(usage.tokens_cached or 0, usage.tokens_in))

    def about(self, tokens_in: int, tokens_out: int) -> float:
        """What a call of so many tokens costs now, in USD, with none from a cache."""
        return self._usd(tokens_in, tokens_out)

    def most(self, size: int, max_tokens: int) -> float:
        """See `prchain.llm.price.Price.most`."""
        return self._usd(size + TEMPLATE_TOKENS, max_tokens)

    def _usd(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        used = genai_prices.Usage(input_tokens=tokens_in, output_tokens=tokens_out, cache_read_tokens=cached)
        return float(genai_prices.calc_price(used, self.model, provider_id=self.provider).total_price)


def find_price(base_url: str, model: str) -> TablePrice | None:
    """The price of a model at a base URL; None where the table does not have it, or for that use has no price."""
    for provider in data_snapshot.get_snapshot().providers:
        if not _is_of(base_url, provider.api_pattern):
            continue
        price = TablePrice(provider.id, model)
        try:
            price.about(1_000, 1_000)
        except (LookupError, ValueError):
            continue
        return price
    return None


def _is_of(base_url: str, pattern: str) -> bool:
    """Whether an address is a provider's. Its pattern may end within the name of a host: no label may follow there, for
    `api.provider.com.example` is another's."""
    match = re.match(pattern, base_url)
    if match is None or urlsplit(base_url).username is not None:
        return False
    rest = re.split(r"[/:?#]", base_url[match.end() :], maxsplit=1)[0]
    return match[0].endswith("/") or "." not in rest
