from __future__ import annotations

from pathlib import Path

import pytest

from prchain.core.errors import SettingsError, UsageError
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.price import Price
from prchain.core.llm.price_table import table_price
from prchain.core.llm.prompts import Prompt
from prchain.core.llm.setup import make_gateway
from prchain.core.settings import Settings
from tests.endpoint import FakeEndpoint
from tests.memory_ledger import MemoryLedger

PROMPT = Prompt.from_source("greet", b"{% block user %}Hi.{% endblock %}")

FILE = """
llm_model = "small"
llm_api_key = "common-key"
llm_price_input = 1
llm_price_output = 2
llm_concurrency = 6

[purposes.judge]
model = "large"
price_input = 3
price_cached = 0.5
price_output = 4
concurrency = 2
max_tokens = 9

[purposes.overview]
temperature = 0.5
top_p = 0.95

[purposes.agent]
base_url = "http://127.0.0.1:9/v1"

[purposes.curator]
base_url = "https://elsewhere.example/v1"
api_key_env = "CURATOR_KEY"
"""


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATOR_KEY", "curators-key")
    (tmp_path / "prchain.toml").write_text(FILE)
    return make_gateway(Settings.load(), MemoryLedger())


def endpoint_of(gateway: Gateway, purpose: str) -> Endpoint:
    route = gateway.routes.get(purpose, gateway.default)
    assert route is not None
    assert isinstance(route.model, OpenAIModel)
    return route.model.endpoint


def test_a_purpose_takes_what_it_names_and_shares_the_rest(gateway: Gateway) -> None:
    judge, overview = gateway.routes["judge"], gateway.routes["overview"]
    assert (judge.model.name, judge.price, judge.max_tokens) == ("large", Price(3, 4, 0.5), 9)
    assert (overview.model.name, overview.price) == ("small", Price(1, 2))
    assert (overview.temperature, overview.top_p) == (0.5, 0.95)
    assert gateway.model_name("query") == "small"


def test_purposes_of_one_endpoint_share_its_smallest_limit(gateway: Gateway) -> None:
    assert endpoint_of(gateway, "judge") is endpoint_of(gateway, "query") is endpoint_of(gateway, "overview")
    assert endpoint_of(gateway, "query").concurrency == 2
    assert endpoint_of(gateway, "agent").concurrency == 6


def test_a_key_goes_to_no_endpoint_but_its_own(gateway: Gateway) -> None:
    assert endpoint_of(gateway, "query").api_key == "common-key"
    assert endpoint_of(gateway, "agent").api_key is None
    assert endpoint_of(gateway, "curator").api_key == "curators-key"


def test_prices_belong_to_a_model_and_an_endpoint(gateway: Gateway) -> None:
    assert gateway.routes["agent"].price is None
    assert gateway.routes["curator"].price is None


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ('llm_model = "x"\nllm_price_input = 1', "llm_price_input and llm_price_output go together"),
        ('[purposes.judge]\nmodel = "x"\nprice_output = 1', r"\[purposes\.judge\]: price_input and price_output"),
        ('llm_model = "x"\nllm_price_cached = 1', "llm_price_input and .* go together; only llm_price_cached is set"),
        ('llm_model = "x"\n[purposes.judge]\nprice_input = 1', r"\[purposes\.judge\]: price_input and price_output"),
        ('[purposes.judge]\nmodel = "x"\napi_key_env = "NOT_SET_HERE"', "NOT_SET_HERE, which is not set"),
    ],
)
def test_settings_that_do_not_go_together_are_named(
    file: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prchain.toml").write_text(file)
    with pytest.raises(SettingsError, match=words):
        make_gateway(Settings.load(), MemoryLedger())


PROVIDER = """
llm_model = "gpt-5"
llm_base_url = "https://api.openai.com/v1"

[purposes.judge]
model = "claude-sonnet-4-5"
base_url = "https://api.anthropic.com/v1"

[purposes.query]
price_input = 0
price_output = 0

[purposes.overview]
model = "gpt-5-of-our-own"

[purposes.agent]
base_url = "http://localhost:4000/v1"
"""


def test_where_no_price_is_set_it_is_that_of_the_providers_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prchain.toml").write_text(PROVIDER)
    gateway = make_gateway(Settings.load(), MemoryLedger(), budget_usd=1.0)
    assert gateway.default is not None
    assert gateway.default.price == table_price("https://api.openai.com/v1", "gpt-5") is not None
    assert gateway.routes["judge"].price == table_price("https://api.anthropic.com/v1", "claude-sonnet-4-5") is not None
    assert gateway.routes["query"].price == Price(0, 0), "what the settings name outranks the table"
    gateway.check("plan", "judge", "query")
    for purpose in ("overview", "agent"):
        assert gateway.routes[purpose].price is None, "not the provider's model, or not its endpoint"
        with pytest.raises(SettingsError, match=r"needs the price of gpt-5.*; no table has it"):
            gateway.check(purpose)


def test_a_price_of_the_settings_outranks_the_table() -> None:
    settings = Settings.load(llm_model="gpt-5", llm_price_input=3, llm_price_output=4)
    gateway = make_gateway(settings, MemoryLedger())
    assert gateway.default is not None
    assert (gateway.default.price, settings.llm_base_url) == (Price(3, 4), "https://api.openai.com/v1")


def test_behind_a_proxy_the_price_of_a_providers_model_is_not_known() -> None:
    with FakeEndpoint() as fake:
        gateway = make_gateway(Settings.load(llm_base_url=fake.url, llm_model="gpt-5"), MemoryLedger())
        answer = gateway.ask(Question("query", "s", PROMPT, PROMPT.render()))
        gateway.close()
    assert (answer.value, answer.usd) == ("fine", None)
    assert gateway.spending().unpriced == 1


def test_without_any_model_the_user_is_told_what_to_set() -> None:
    with pytest.raises(UsageError, match=r"PRCHAIN_LLM_MODEL.*OPENAI_API_KEY"):
        make_gateway(Settings.load(), MemoryLedger())


def test_a_model_for_one_purpose_alone_serves_that_purpose_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prchain.toml").write_text('[purposes.judge]\nmodel = "x"\n[purposes.query]\ntemperature = 1\n')
    gateway = make_gateway(Settings.load(), MemoryLedger())
    gateway.check("judge")
    with pytest.raises(UsageError, match="no model is configured for query"):
        gateway.check("judge", "query")


def test_a_script_answers_everything_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"purpose": "judge", "reply": "fine", "usage": {"in": 5, "out": 5}}\n')
    gateway = make_gateway(Settings.load(llm_script=path), MemoryLedger(), budget_usd=0.0)
    answer = gateway.ask(Question("judge", "s", PROMPT, PROMPT.render()))
    assert (answer.value, answer.usd, gateway.model_name("judge")) == ("fine", 0.0, "scripted")


def test_a_gateway_asks_the_endpoint_of_the_settings_and_closes_it() -> None:
    with FakeEndpoint() as fake:
        settings = Settings.load(llm_base_url=fake.url, llm_model="small", llm_price_input=1, llm_price_output=1)
        gateway = make_gateway(settings, MemoryLedger(), budget_usd=1.0)
        assert gateway.ask(Question("query", "s", PROMPT, PROMPT.render())).value == "fine"
        gateway.close()
    assert fake.calls[0].body["model"] == "small"
