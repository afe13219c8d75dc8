"""From settings to a gateway."""

from __future__ import annotations

from prchain.core.errors import SettingsError, UsageError
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.ledger import Ledger
from prchain.core.llm.price import Price, Pricing
from prchain.core.llm.price_table import table_context, table_price
from prchain.core.llm.scripted import ScriptedModel
from prchain.core.settings import PurposeSettings, Settings

_Address = tuple[str, str | None]
"""An endpoint's URL and the key for it: what a limit belongs to."""


def make_gateway(settings: Settings, ledger: Ledger, budget_usd: float | None = None) -> Gateway:
    """A gateway that asks the models of the settings, or the script that replaces all of them.

    `budget_usd` is what the ledger's run may spend; None is no limit. `Gateway.check` tells before anything is sent
    whether the purposes of a command have models and, with a budget, prices. Raises `UsageError` where no model is
    configured at all, and `SettingsError`.
    """
    if settings.llm_script is not None:
        free = Route(ScriptedModel.load(settings.llm_script), Price(input=0.0, output=0.0, source="script"))
        return Gateway(ledger, default=free, budget_usd=budget_usd)
    common = PurposeSettings()
    if settings.llm_model is None and not any(purpose.model for purpose in settings.purposes.values()):
        raise UsageError(
            "no model is configured; set PRCHAIN_LLM_MODEL (and OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint of "
            "your own), or llm_model in prchain.toml"
        )
    endpoints = _endpoints(settings, (common, *settings.purposes.values()))
    routes = {name: _route(settings, purpose, endpoints, name) for name, purpose in settings.purposes.items()}
    gateway = Gateway(
        ledger,
        default=_route(settings, common, endpoints, "") if settings.llm_model else None,
        routes={name: route for name, route in routes.items() if route is not None},
        budget_usd=budget_usd,
    )
    for endpoint in endpoints.values():
        gateway.cleanup.callback(endpoint.close)
    return gateway


def _endpoints(settings: Settings, purposes: tuple[PurposeSettings, ...]) -> dict[_Address, Endpoint]:
    limits: dict[_Address, int] = {}
    for purpose in purposes:
        address = _address(settings, purpose)
        limit = purpose.concurrency or settings.llm_concurrency
        limits[address] = min(limit, limits.get(address, limit))
    return {
        (url, key): Endpoint(
            url,
            key,
            concurrency=limit,
            timeout_seconds=settings.llm_timeout_seconds,
            max_tries=settings.llm_max_tries,
            max_wait_seconds=settings.max_wait_seconds,
        )
        for (url, key), limit in limits.items()
    }


def _address(settings: Settings, purpose: PurposeSettings) -> _Address:
    if purpose.api_key_env is not None and purpose.api_key is None:
        raise SettingsError(f"prchain.toml: api_key_env names {purpose.api_key_env}, which is not set")
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    if purpose.base_url is not None:
        return purpose.base_url, purpose.api_key
    return settings.llm_base_url, purpose.api_key or key


def _route(
    settings: Settings, purpose: PurposeSettings, endpoints: dict[_Address, Endpoint], name: str
) -> Route | None:
    model = purpose.model or settings.llm_model
    if model is None:
        return None
    address = _address(settings, purpose)
    return Route(
        OpenAIModel(model, endpoints[address]),
        _set_price(settings, purpose, name) or table_price(address[0], model),
        temperature=purpose.temperature,
        top_p=purpose.top_p,
        max_tokens=purpose.max_tokens,
        context_tokens=table_context(address[0], model),
        token_ids=purpose.token_ids,
    )


def _set_price(settings: Settings, purpose: PurposeSettings, name: str) -> Pricing | None:
    """The price that the settings name; None where they name none for the model and the endpoint of the purpose."""
    own = purpose.model is not None or purpose.base_url is not None
    prices = (purpose.price_input, purpose.price_output, purpose.price_cached)
    of_all = not own and prices == (None, None, None)
    if of_all:
        prices = (settings.llm_price_input, settings.llm_price_output, settings.llm_price_cached)
    paid_in, paid_out, cached = prices
    if paid_in is not None and paid_out is not None:
        return Price(paid_in, paid_out, cached)
    if prices == (None, None, None):
        return None
    where, prefix = ("", "llm_price_") if of_all else (f"[purposes.{name}]: ", "price_")
    part = f"only {prefix}cached" if paid_in is None and paid_out is None else "only one"
    raise SettingsError(f"{where}{prefix}input and {prefix}output go together; {part} is set")
