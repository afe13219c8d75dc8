"""Eight workers, an endpoint with all faults, and a budget: by the endpoint's own bill."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel

from prchain.core.errors import LlmError
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import Prompt
from tests.endpoint import Answer, Call, FakeEndpoint, Part, completion, cut, error, raw
from tests.memory_ledger import MemoryLedger

PROMPT = Prompt.from_source("greet", b"{% block user %}Greet {{ whom }}.{% endblock %}")

PRICE = Price(input=2.0, output=30.0)

MAX_TOKENS = 100


class Verdict(BaseModel):
    score: int


PARTS: dict[str, Part] = {
    "good": completion('{"score": 1}', out=MAX_TOKENS),
    "short": completion('{"score": 1}', out=3),
    "no usage": completion('{"score": 1}', out=MAX_TOKENS, usage=False),
    "prose": completion("no object here", out=MAX_TOKENS),
    "cut off": completion('{"score"', out=MAX_TOKENS, finish_reason="length"),
    "refusal": completion(None, refusal="no"),
    "empty": completion(""),
    "429": error(429),
    "500": error(500),
    "502": error(502, billed=True),
    "400": error(400),
    "cut": cut(),
    "cut in the body": cut(10),
    "broken body": raw({"choices": []}),
    "late": completion('{"score": 1}', delay=0.8),
}


@pytest.mark.parametrize("seed", range(6))
def test_with_a_budget_and_eight_workers_no_run_is_billed_more(seed: int) -> None:
    dice, lock = random.Random(seed), threading.Lock()

    def part(call: Call) -> Answer:
        with lock:
            chosen = dice.choices(list(PARTS), [8, 8, *[1] * (len(PARTS) - 2)])[0]
        return PARTS[chosen](call)

    ends: Counter[str] = Counter()
    with FakeEndpoint(part) as fake:
        endpoint = Endpoint(fake.url, timeout_seconds=0.5, max_tries=3, sleep=lambda seconds: None)
        # One reservation is about 0.005 USD, so the budget ends some runs early and some in the middle.
        budget = [0.0, 0.006, 0.02, 0.05, 0.1, 0.25][seed]
        ledger = MemoryLedger()
        route = Route(OpenAIModel("small", endpoint), PRICE)
        gateway = Gateway(ledger, route, budget_usd=budget, pause=lambda tries: None)

        def work(number: int) -> None:
            try:
                question = Question("judge", str(number), PROMPT, PROMPT.render(whom=number), max_tokens=MAX_TOKENS)
                gateway.ask_for(question, Verdict)
                end = "done"
            except LlmError as failure:
                end = failure.name
            with lock:
                ends[end] += 1

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(60)))
        endpoint.close()
    billed = fake.billed_usd(PRICE.input, PRICE.output)
    assert billed <= ledger.spending().usd + 1e-12  # added up in another order
    assert ledger.spending().usd <= budget
    assert ends.total() == 60
    assert ends["budget_exceeded"] > 0
    if budget >= 0.1:
        assert ends["done"] > 0
        assert billed > budget / 4
