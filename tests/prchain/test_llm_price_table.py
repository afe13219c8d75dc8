from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from genai_prices import __version__ as table_version
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import Usage
from prchain.core.llm.price_table import TablePrice, provider_of, table_name, table_price

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

HOSTS = {
    "https://api.openai.com/v1": "openai",
    "https://API.OpenAI.com:443/v1": "openai",
    "https://api.anthropic.com/v1": "anthropic",
    "https://api.deepseek.com": "deepseek",
    "https://openrouter.ai/api/v1": "openrouter",
    "https://generativelanguage.googleapis.com/v1beta/openai": "google",
    "https://router.huggingface.co/together/v1": "huggingface_together",
    "https://api.moonshot.cn/v1": "moonshotai",
}

NO_PROVIDERS = (
    "http://localhost:4000/v1",
    "http://127.0.0.1:8000/v1",
    "https://127.0.0.1/v1",
    "https://models.example/v1",
    "http://api.openai.com/v1",
    "https://api.openai.com:8443/v1",
    "https://api.openai.com:99999/v1",
    "https://api.openai.com.example/v1",
    "https://api.openai.community/v1",
    "https://proxy.example/api.openai.com/v1",
    "https://proxy.example/https://api.openai.com/v1",
    "https://proxy.example/v1/models.googleapis.com",
    "https://api.moonshot.models.example/v1",
    "https://user@api.openai.com/v1",
    "https://mine.openai.azure.com/openai/v1",
    "https://gateway.azure-api.net/v1",
    "https://me--server.modal.run/v1",
)


def price_of(prices: ModelPrice | list[ConditionalPrice], now: datetime = NOON) -> TablePrice:
    model = ModelInfo(id="m", match=ClauseEquals("m"), prices=prices)
    return TablePrice(model, Provider("p", "P", "https://p", models=[model]), lambda: now)


def tiered(base: str, above: str) -> TieredPrices:
    return TieredPrices(Decimal(base), [Tier(200_000, Decimal(above))])


LONG = price_of(
    ModelPrice(
        input_mtok=tiered("3", "6"),
        cache_read_mtok=tiered("0.3", "0.6"),
        cache_write_mtok=tiered("3.75", "7.5"),
        output_mtok=tiered("15", "22.5"),
    )
)


def hours(first: int, last: int, prices: ModelPrice) -> ConditionalPrice:
    return ConditionalPrice(TimeOfDateConstraint(time(first, tzinfo=UTC), time(last, tzinfo=UTC)), prices=prices)


def flat(paid_in: str, paid_out: str) -> ModelPrice:
    return ModelPrice(input_mtok=Decimal(paid_in), output_mtok=Decimal(paid_out))


@pytest.mark.parametrize(("url", "name"), HOSTS.items())
def test_a_providers_own_address_is_its(url: str, name: str) -> None:
    found = provider_of(url)
    assert found is not None and found.id == name


@pytest.mark.parametrize("url", NO_PROVIDERS)
def test_a_proxy_a_customers_address_and_what_only_looks_alike_are_no_providers(url: str) -> None:
    assert provider_of(url) is None
    assert table_price(url, "gpt-5") is None


LABEL = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)


@given(st.sampled_from(sorted(HOSTS)), LABEL, LABEL, st.sampled_from(["https", "http"]))
def test_no_other_host_gets_a_providers_prices_whatever_its_name_and_path_hold(
    url: str, label: str, domain: str, scheme: str
) -> None:
    address = url.lower().removeprefix("https://").replace(":443", "")
    host, _, path = address.partition("/")
    for other in (f"{host}.{label}.{domain}", f"{label}{domain}.example", f"{host}x{label}.{domain}"):
        assert provider_of(f"{scheme}://{other}/{path}") is None
        assert provider_of(f"{scheme}://{other}/{address}") is None


def test_tokens_of_the_cache_have_prices_of_their_own() -> None:
    assert LONG.of(Usage(100_000, None, 1_000)) == pytest.approx(0.3 + 0.015)
    assert LONG.of(Usage(100_000, 90_000, 1_000)) == pytest.approx(0.03 + 0.027 + 0.015)
    assert LONG.of(Usage(100_000, 50_000, 0, 40_000)) == pytest.approx(0.03 + 0.015 + 0.15)
    assert price_of(flat("2", "8")).of(Usage(100_000, 90_000, 0, 10_000)) == pytest.approx(0.2), "no price of its own"


def test_above_a_tiers_start_the_whole_call_has_the_tiers_prices() -> None:
    assert LONG.of(Usage(200_000, 0, 10_000)) == pytest.approx(0.6 + 0.15)
    assert LONG.of(Usage(200_001, 0, 10_000)) == pytest.approx(1.200006 + 0.225)
    assert LONG.of(Usage(300_000, 200_000, 10_000)) == pytest.approx(0.6 + 0.12 + 0.225)


def test_what_an_endpoint_miscounts_is_cut_to_the_prompt() -> None:
    assert LONG.of(Usage(1_000, 5_000, 0, 5_000)) == LONG.of(Usage(1_000, 1_000, 0))
    assert LONG.of(Usage(1_000, 600, 0, 600)) == LONG.of(Usage(1_000, 600, 0, 400))
    assert LONG.of(Usage(None, 5, 5)) is None
    assert LONG.of(Usage(5, None, None)) is None


def test_a_fee_for_each_call_is_part_of_its_price_and_of_the_most() -> None:
    price = price_of(ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(1), requests_kcount=Decimal(12)))
    assert price.of(Usage(1_000, 0, 1_000)) == pytest.approx(0.012 + 0.002)
    assert price.most(1_000, 1_000) == pytest.approx(0.012 + 0.002512)
    assert price.estimate(10, 10_000, 10_000) == pytest.approx(10 * 0.014)


def test_an_estimate_of_calls_has_the_tier_of_one_of_them() -> None:
    assert LONG.estimate(10, 1_000_000, 10_000) == pytest.approx(3 + 0.15)
    assert LONG.estimate(1, 1_000_000, 10_000) == pytest.approx(6 + 0.225)
    assert LONG.estimate(0, 0, 0) == 0


def test_the_price_is_that_of_the_hour_and_the_most_that_of_the_dearest_hour_of_a_day() -> None:
    prices = [ConditionalPrice(prices=flat("1", "2")), hours(16, 18, flat("10", "20"))]
    cheap, dear = price_of(prices), price_of(prices, NOON.replace(hour=17))
    assert (cheap.of(Usage(10**6, 0, 0)), dear.of(Usage(10**6, 0, 0))) == (1, 10)
    assert cheap.most(10**6, 0) == dear.most(10**6, 0) == pytest.approx(10.00512)


def test_a_price_that_begins_tomorrow_is_reserved_and_one_that_is_over_is_not() -> None:
    starts = {date(2026, 1, 1): "1", date(2026, 11, 21): "2", date(2026, 11, 23): "5"}
    later = [ConditionalPrice(StartDateConstraint(start), prices=flat(usd, "0")) for start, usd in starts.items()]
    price = price_of([ConditionalPrice(prices=flat("9", "0")), *later])
    assert price.of(Usage(10**6, 0, 0)) == 1
    assert price.most(10**6, 0) == pytest.approx(2.001024)


PRICED = [
    (provider, model)
    for provider in get_snapshot().providers
    for model in provider.models
    if all(
        it.input_mtok is not None and it.output_mtok is not None
        for it in ([model.prices] if isinstance(model.prices, ModelPrice) else [each.prices for each in model.prices])
    )
]


@given(st.data(), st.sampled_from(PRICED), st.integers(0, 10**6), st.integers(0, 10**5))
def test_no_call_of_any_model_of_the_table_costs_more_than_was_reserved(
    data: st.DataObject, priced: tuple[Provider, ModelInfo], size: int, max_tokens: int
) -> None:
    provider, model = priced
    began = data.draw(st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1))).replace(tzinfo=UTC)
    ended = began + data.draw(st.timedeltas(timedelta(0), timedelta(days=1)))
    tokens_in = data.draw(st.integers(0, size))
    usage = Usage(
        tokens_in,
        data.draw(st.none() | st.integers(0, tokens_in)),
        data.draw(st.integers(0, max_tokens)),
        data.draw(st.none() | st.integers(0, tokens_in)),
    )
    cost = TablePrice(model, provider, lambda: ended).of(usage)
    assert cost is not None
    assert 0 <= cost <= TablePrice(model, provider, lambda: began).most(size, max_tokens) * (1 + 1e-12)


def test_the_table_knows_models_of_today_and_what_their_cache_and_their_length_cost() -> None:
    gpt = table_price("https://api.openai.com/v1", "gpt-5")
    sonnet = table_price("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert gpt is not None and sonnet is not None
    fresh, cached = gpt.of(Usage(10**5, 0, 0)), gpt.of(Usage(10**5, 10**5, 0))
    assert fresh and cached and 0 < cached < fresh / 2
    short, long = sonnet.of(Usage(200_000, 0, 0)), sonnet.of(Usage(200_001, 0, 0))
    assert short and long and long > short * 1.5


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("https://api.openai.com/v1", "no-such-model"),
        ("https://api.openai.com/v1", "claude-sonnet-4-5"),
        ("https://api.openai.com/v1", "whisper-1"),
        ("https://api.perplexity.ai", "sonar-deep-research"),
    ],
)
def test_a_model_that_the_provider_lacks_or_whose_price_cannot_be_counted_has_none(url: str, model: str) -> None:
    assert provider_of(url) is not None
    assert table_price(url, model) is None


def test_the_tables_name_has_its_version_and_the_newest_day_that_has_come() -> None:
    days = [
        table_name(date(year, 6, 1)).removeprefix(f"genai-prices {table_version}, prices to ") for year in (2025, 9999)
    ]
    first, last = map(date.fromisoformat, days)
    assert first <= date(2025, 6, 1) < last
    assert LONG.source == table_name(NOON.date()) and len(LONG.source) <= 64


def test_the_table_is_read_without_any_connection() -> None:
    script = """
import sys

def refuse(event, arguments):
    assert not event.startswith("socket."), event

sys.addaudithook(refuse)
from prchain.core.llm.price_table import table_price
from prchain.core.llm.model import Usage
price = table_price("https://api.openai.com/v1", "gpt-5")
assert price.of(Usage(1000, 0, 10)) > 0 and price.most(1000, 10) > 0
print(price.source)
import threading
assert threading.active_count() == 1
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"genai-prices {table_version}, prices to ")
