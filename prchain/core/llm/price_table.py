"""Prices of providers' models from the table of the library genai-prices: the default where settings name none.

The table is data of the installed package. Nothing is asked of the network for it: the library fetches newer prices
only where its `UpdatePrices` is started, which nothing here does. Its prices are for calls one by one at the standard
tier, paid by the token; who pays otherwise (a subscription, a discount, a region) sets the prices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from urllib.parse import urlsplit

from genai_prices import Usage as PricedUsage
from genai_prices import __version__ as table_version
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import (
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)

from prchain.core.llm.model import Usage
from prchain.core.llm.price import most_tokens

_PAID_IN = ("input_mtok", "cache_read_mtok", "cache_write_mtok")
"""Prices of what a text request has, per million tokens; each token has one of them."""

_NOT_COUNTED = ("output_reasoning_mtok", "output_citation_mtok")
"""Prices of parts of a reply that are not counted apart: what a call costs then is not known."""

_OF_CUSTOMERS = {"azure", "databricks", "modal"}
"""Providers whose addresses are their customers': a deployment, a gateway or a server there may have any name and any
price, and Databricks' prices differ by region."""


@dataclass(frozen=True, slots=True)
class TablePrice:
    """The price of one model in the table; see `prchain.core.llm.price.Pricing`.

    Prices that depend on the time, by date or by hour, are those of the moment at which they are asked for. A tier's
    price holds for all tokens of a call whose prompt has more tokens than the tier's start, as providers bill.
    """

    model: ModelInfo
    provider: Provider
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def source(self) -> str:
        """The table's name, e.g. ``genai-prices 0.2.3, prices to 2026-11-09``: see `table_name`."""
        return table_name(self.clock().date())

    def of(self, usage: Usage) -> float | None:
        """As of `Pricing`."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        read = min(usage.tokens_cached or 0, usage.tokens_in)
        written = min(usage.tokens_written or 0, usage.tokens_in - read)
        return self._usd(usage.tokens_in, usage.tokens_out, read, written)

    def most(self, size: int, max_tokens: int) -> float:
        """As of `Pricing`, whichever price holds when the call ends, if it does so within a day."""
        tokens_in = most_tokens(size)
        every = [self.model.get_prices(moment) for moment in _moments(self.model, self.clock())]
        return max(float(_most(prices, tokens_in, max_tokens)) for prices in every)

    def estimate(self, calls: int, tokens_in: int, tokens_out: int) -> float:
        """As of `Pricing`."""
        if not (calls or tokens_in or tokens_out):
            return 0.0
        count = max(calls, 1)
        return count * self._usd(tokens_in / count, tokens_out / count)

    def _usd(self, tokens_in: float, tokens_out: float, read: int = 0, written: int = 0) -> float:
        usage = PricedUsage(
            input_tokens=tokens_in, output_tokens=tokens_out, cache_read_tokens=read, cache_write_tokens=written
        )
        return float(self.model.calc_price(usage, self.provider, genai_request_timestamp=self.clock()).total_price)


def table_price(base_url: str, model: str) -> TablePrice | None:
    """The price of `model` (the endpoint's name for it) in the table; None where the base URL is no provider's own, or
    the table does not have the model, or not all of its price can be counted."""
    provider = provider_of(base_url)
    found = provider.find_model(model) if provider else None
    if provider is None or found is None or not all(map(_is_countable, _prices(found))):
        return None
    return TablePrice(found, provider)


def table_context(base_url: str, model: str) -> int | None:
    """The size of the context of `model` in tokens, by the table; None where it does not say, or the base URL is no
    provider's own."""
    provider = provider_of(base_url)
    found = provider.find_model(model) if provider else None
    return found.context_window if found else None


def provider_of(base_url: str) -> Provider | None:
    """The provider at this URL, by the patterns of the table; None for any other host, proxies of a provider included.

    The patterns are matched from the start of a URL on. So that neither ``https://api.openai.com.example`` nor
    ``https://example/api.googleapis.com`` is a provider's, a match has to reach the end of the host, or its last label
    where the pattern ends with a dot, and the dots of the path are not shown to it.
    """
    url = urlsplit(base_url)
    if url.scheme != "https" or not url.hostname or url.netloc.lower().removesuffix(":443") != url.hostname:
        return None
    origin = f"https://{url.hostname}"
    address = origin + url.path.replace(".", "%2E")
    for provider in get_snapshot().providers:
        match = re.match(provider.api_pattern, address)
        if match and _is_whole(origin, match.end()):
            return None if provider.id in _OF_CUSTOMERS else provider
    return None


@cache
def table_name(day: date) -> str:
    """The table's name: the package with its version, and the newest day up to `day` from which a price of it holds.

    The package does not say when its table was made. It was made on that day or later, unless the price was announced
    ahead.
    """
    begun = (start for start in _starts() if start <= day)
    return f"genai-prices {table_version}, prices to {max(begun, default='no date')}"


def _is_whole(origin: str, end: int) -> bool:
    rest = origin[end:]
    return not rest or (origin[end - 1] == "." and "." not in rest)


def _prices(model: ModelInfo) -> Sequence[ModelPrice]:
    """All prices that a model has at some time."""
    return [model.prices] if isinstance(model.prices, ModelPrice) else [it.prices for it in model.prices]


def _conditional(model: ModelInfo) -> Sequence[ConditionalPrice]:
    return [] if isinstance(model.prices, ModelPrice) else model.prices


def _is_countable(prices: ModelPrice) -> bool:
    whole = prices.input_mtok is not None and prices.output_mtok is not None
    return whole and all(getattr(prices, key) is None for key in _NOT_COUNTED)


def _most(prices: ModelPrice, tokens_in: int, tokens_out: int) -> Decimal:
    paid_in = max(_dearest(getattr(prices, key), tokens_in) for key in _PAID_IN)
    paid = tokens_in * paid_in + tokens_out * _dearest(prices.output_mtok, tokens_in)
    return paid / 1_000_000 + _dearest(prices.requests_kcount, tokens_in) / 1_000


def _dearest(price: Decimal | TieredPrices | None, tokens_in: int) -> Decimal:
    """The highest price that a prompt of at most `tokens_in` tokens may have."""
    if isinstance(price, TieredPrices):
        return max([price.base, *(tier.price for tier in price.tiers if tier.start < tokens_in)])
    return price or Decimal(0)


def _moments(model: ModelInfo, now: datetime) -> Iterator[datetime]:
    """Now, and the moments of the day that begins now at which another price of the model may begin to hold."""
    yield now
    edges = {time(tzinfo=UTC)}
    for price in _conditional(model):
        if isinstance(price.constraint, TimeOfDateConstraint):
            edges |= {price.constraint.start_time, price.constraint.end_time}
    for day in (now.date(), now.date() + timedelta(days=1)) if _conditional(model) else ():
        for edge in edges:
            moment = datetime.combine(day, edge, edge.tzinfo or UTC)
            if now < moment <= now + timedelta(days=1):
                yield moment


@cache
def _starts() -> frozenset[date]:
    """The days from which prices of the table hold."""
    return frozenset(
        price.constraint.start_date
        for provider in get_snapshot().providers
        for model in provider.models
        for price in _conditional(model)
        if isinstance(price.constraint, StartDateConstraint)
    )
