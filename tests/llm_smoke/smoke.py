"""Run by `make test-llm` alone, which names this file to pytest: its name is none that `make test` collects.

The model is far too small to answer well, so nothing here looks at what it says, but at how it arrives.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from prchain.errors import ContextTooLong, EndpointTimeout
from prchain.llm.gateway import Gateway, Question
from prchain.llm.prompts import Prompt
from prchain.llm.setup import make_gateway
from prchain.settings import Settings
from sql.ledger import SqlLedger
from sql.store import Store
from tests.memory_ledger import MemoryLedger

SERVER_PYTHON = "PRCHAIN_TEST_LLM_PYTHON"
"""The Python that has the server and the model; `make test-llm` sets it."""

PROMPT = Prompt.from_source(
    "smoke", b"{% block system %}You are brief.{% endblock %}{% block user %}{{ text }}{% endblock %}"
)


class Colour(BaseModel):
    name: Literal["red", "green", "blue"]
    warm: bool


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running server."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as errors:
        command = [os.environ[SERVER_PYTHON], str(Path(__file__).with_name("server.py")), str(port)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert server.stdout is not None
        said = server.stdout.readline()
    assert said == "ready\n", log.read_text()[-2000:]
    yield f"http://127.0.0.1:{port}/v1"
    server.send_signal(signal.SIGTERM)
    try:
        server.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()


@pytest.fixture
def settings(url: str) -> Settings:
    return Settings.load(
        llm_base_url=url, llm_model="smollm2", llm_price_input=1.0, llm_price_output=2.0, llm_timeout_seconds=240.0
    )


@pytest.fixture
def gateway(settings: Settings, tmp_path: Path) -> Iterator[Gateway]:
    store = Store.open(f"sqlite:///{tmp_path / 'x.db'}")
    made = make_gateway(settings, SqlLedger(store, "smoke"), budget_usd=1.0)
    yield made
    made.close()
    store.close()


def question(text: str, max_tokens: int = 32) -> Question:
    return Question("smoke", "smoke", PROMPT, PROMPT.render(text=text), max_tokens=max_tokens, temperature=0.0)


def test_a_question_is_answered_counted_priced_and_stored(gateway: Gateway) -> None:
    asked = question("Say hello in three words.", 128)
    answer = gateway.ask(asked)
    usage = answer.reply.usage
    assert answer.value
    assert answer.reply.finish == "stop"
    assert usage.tokens_in is not None
    assert usage.tokens_out is not None
    assert 5 < usage.tokens_in < 100
    assert 0 < usage.tokens_out <= 128
    assert answer.usd == pytest.approx((usage.tokens_in * 1.0 + usage.tokens_out * 2.0) / 1e6)
    assert gateway.spending().usd == answer.usd
    again = gateway.ask(asked)  # the ledger keeps times in whole seconds
    assert replace(again, usd=answer.usd, seconds=answer.seconds, stored=False) == answer
    assert gateway.spending().calls == 1


def test_an_estimate_is_of_the_right_size(gateway: Gateway) -> None:
    asked = question("List the planets of the solar system, with one word on each of them, in any order. " * 4)
    estimate = gateway.estimate(asked)
    used = gateway.complete(asked).reply.usage.tokens_in
    assert used is not None
    assert used / 2 < estimate.tokens_in < used * 3


def test_a_shape_comes_back_as_its_schema_says(gateway: Gateway) -> None:
    answer = gateway.ask_for(question("Which colour is a tomato? Reply in JSON.", 64), Colour)
    assert isinstance(answer.value, Colour)
    assert answer.reply.text.lstrip().startswith("{")


def test_a_prompt_that_does_not_fit_is_named_and_costs_nothing(gateway: Gateway) -> None:
    with pytest.raises(ContextTooLong, match="context"):
        gateway.ask(question("word " * 4000))
    assert gateway.spending().calls == 0


def test_a_reply_that_takes_too_long_is_named_and_may_be_paid(settings: Settings) -> None:
    hasty = make_gateway(settings.model_copy(update={"llm_timeout_seconds": 0.3}), MemoryLedger())
    hasty.repeats = 0
    with pytest.raises(EndpointTimeout) as caught:
        hasty.ask(question("Tell me a very long story. " * 20, 600))
    assert caught.value.billed
    assert hasty.spending().usd > 0
    hasty.close()
