"""Prices from the table of a package: of which endpoints, and how they are reckoned."""

from __future__ import annotations

import genai_prices
import pytest

from prchain.llm.model import Usage
from prchain.llm.price_table import TABLE, TablePrice, find_price

OPENAI = "https://api.openai.com/v1"


def test_a_provider_s_own_address_has_its_prices() -> None:
    price = find_price(OPENAI, "gpt-4.1")
    assert (
        price == TablePrice("openai", "gpt-4.1") and price.source == TABLE == f"genai-prices {genai_prices.__version__}"
    )
    assert price.about(1_000_000, 0) == pytest.approx(2.0)
    assert price.of(Usage(tokens_in=1_000_000, tokens_out=0, tokens_cached=0)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1/https://api.openai.com/v1",
        "https://api.openai.com.example.org/v1",
        "https://api.openai.com@example.org/v1",
        "https://proxy.example.org/api.openai.com/v1",
        "",
    ],
)
def test_an_endpoint_elsewhere_has_no_known_price(url: str) -> None:
    assert find_price(url, "gpt-4.1") is None


def test_a_model_that_the_table_lacks_has_no_known_price() -> None:
    assert find_price(OPENAI, "no-such-model") is None


@pytest.mark.parametrize(
    "url", ["https://api.openai.com", "https://api.openai.com/", "https://api.openai.com:443/v1", f"{OPENAI}/"]
)
def test_an_address_may_be_written_in_several_ways(url: str) -> None:
    assert find_price(url, "gpt-4.1") is not None


def test_cached_tokens_and_long_requests_have_prices_of_their_own() -> None:
    price = find_price("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-2.5-pro")
    assert price is not None
    fresh, cached = (
        price.of(Usage(tokens_in=100_000, tokens_out=0, tokens_cached=0)),
        price.of(Usage(tokens_in=100_000, tokens_out=0, tokens_cached=100_000)),
    )
    assert fresh is not None and cached is not None and cached < fresh / 2
    assert price.about(300_000, 0) > 3 * price.about(100_000, 0), "a request above 200,000 tokens costs more a token"


def test_the_most_that_a_request_costs_is_no_less_than_what_it_costs() -> None:
    price = TablePrice("openai", "gpt-4.1")
    paid = price.of(Usage(tokens_in=5_000, tokens_out=800, tokens_cached=100))
    assert paid is not None and price.most(5_000, 800) >= paid


def test_a_usage_that_the_endpoint_did_not_tell_has_no_cost() -> None:
    price = TablePrice("openai", "gpt-4.1")
    assert (
        price.of(Usage(tokens_in=None, tokens_out=5, tokens_cached=None)) is None
        and price.of(Usage(tokens_in=5, tokens_out=None, tokens_cached=None)) is None
    )
