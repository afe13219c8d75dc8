"""Reasoning in requests to an endpoint: in the body, and left out where the endpoint refuses it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from prchain.core import errors
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Message, Request
from tests.endpoint import Answer, FakeEndpoint, completion, error

ASKED = Request(
    (Message("user", "Go."), Message("assistant", "Yes.", reasoning="hm"), Message("user", "On.")), max_tokens=9
)


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def model(fake: FakeEndpoint) -> Iterator[OpenAIModel]:
    endpoint = Endpoint(fake.url, "made-up", sleep=lambda _: None, random=random.Random(0).random)
    yield OpenAIModel("small", endpoint)
    endpoint.close()


def sent_reasoning(fake: FakeEndpoint) -> list[list[str | None]]:
    return [[message.get("reasoning_content") for message in call.body["messages"]] for call in fake.calls]


def test_reasoning_stands_in_its_message_and_in_no_other(fake: FakeEndpoint, model: OpenAIModel) -> None:
    fake.part = completion()
    model.complete(ASKED)
    assert sent_reasoning(fake) == [[None, "hm", None]]


def test_an_endpoint_that_refuses_it_is_not_sent_it_from_then_on(fake: FakeEndpoint, model: OpenAIModel) -> None:
    def part(call: Any) -> Answer:
        refuses = any("reasoning_content" in message for message in call.body["messages"])
        words = "property 'reasoning_content' is unsupported"
        return (error(400, words) if refuses else completion())(call)

    fake.part = part
    model.complete(ASKED)
    model.complete(ASKED)
    assert sent_reasoning(fake) == [[None, "hm", None], [None] * 3, [None] * 3]


def test_an_endpoint_that_misses_it_elsewhere_is_not_sent_less(fake: FakeEndpoint, model: OpenAIModel) -> None:
    fake.part = error(400, "The reasoning_content in the thinking mode must be passed back to the API.")
    with pytest.raises(errors.EndpointRefused):
        model.complete(ASKED)
    assert len(fake.calls) == 1
