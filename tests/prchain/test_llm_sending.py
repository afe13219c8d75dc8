"""A call that something ends has its reservation back unless it was sent, wherever on its way that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from prchain.core.llm import client
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import Prompt
from prchain.core.llm.sending import mark_sent, sending
from tests.endpoint import FakeEndpoint, error
from tests.memory_ledger import MemoryLedger

PROMPT = Prompt.from_source("greet", b"{% block user %}Greet {{ whom }}.{% endblock %}")


class Fault(Exception):
    """Nobody names it."""


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as endpoint:
        yield endpoint


def broken(*_: Any, **__: Any) -> Any:
    raise Fault


def state_after(fake: FakeEndpoint, patch: Callable[[Endpoint], None]) -> str:
    """What the ledger has of a call that a fault ended."""
    endpoint = Endpoint(fake.url, "key", sleep=lambda seconds: None)
    patch(endpoint)
    gateway = Gateway(MemoryLedger(), Route(OpenAIModel("small", endpoint), Price(1.0, 10.0)))
    try:
        with pytest.raises(Fault):
            gateway.ask(Question("query", "c", PROMPT, PROMPT.render(whom="me")))
    finally:
        endpoint.close()
    ledger = gateway.ledger
    assert isinstance(ledger, MemoryLedger)
    [call] = ledger.calls
    assert (gateway.spending().usd == 0) == (call.state == "released")
    return call.state


@pytest.mark.parametrize(
    ("where", "state", "posts"),
    [("body_of", "released", 0), ("reply_of", "reserved", 1)],
    ids=["before the request is written", "while the answer is read"],
)
def test_a_fault_of_ours(
    where: str, state: str, posts: int, fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, where, broken)
    assert state_after(fake, lambda endpoint: None) == state
    assert len(fake.calls) == posts


def test_a_fault_that_makes_no_connection_possible(fake: FakeEndpoint) -> None:
    assert state_after(fake, lambda endpoint: setattr(endpoint, "_client", broken)) == "released"


def test_a_fault_in_the_midst_of_the_answer(fake: FakeEndpoint) -> None:
    def breaking_when_bytes_are_there(endpoint: Endpoint) -> None:
        endpoint.clock = lambda: broken() if fake.calls else 0.0

    assert state_after(fake, breaking_when_bytes_are_there) == "reserved"


def test_a_fault_in_the_pause_after_an_answer_that_cost_nothing(fake: FakeEndpoint) -> None:
    fake.part = error(429)
    assert state_after(fake, lambda endpoint: setattr(endpoint, "sleep", broken)) == "released"
    assert len(fake.calls) == 1


def test_a_call_knows_only_what_is_told_within_it() -> None:
    mark_sent()
    with sending() as outer:
        with sending() as inner:
            mark_sent()
        assert (outer.sent, inner.sent) == (False, True)
        mark_sent()
        mark_sent(False)
        assert not outer.sent
