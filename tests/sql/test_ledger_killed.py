"""kill -9 in the middle of 200 tasks, again and again: by the endpoint's bill and by the database."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sql.store import Store
from sql.tables import LlmCall
from tests.endpoint import Answer, Call, FakeEndpoint, completion, wait_for

ROOT = Path(__file__).parents[2]

TASKS, WORKERS, KILLS = 200, 8, 3

PRICE_INPUT, PRICE_OUTPUT = 1.0, 4.0

WORKER = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from pydantic import BaseModel
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import Prompt
from sql.ledger import SqlLedger
from sql.store import Store

class Verdict(BaseModel):
    score: int

url, database, run = sys.argv[1:]
route = Route(OpenAIModel("small", Endpoint(url)), Price({PRICE_INPUT}, {PRICE_OUTPUT}))
gateway = Gateway(SqlLedger(Store.open(database), run), route, budget_usd=1000.0)
prompt = Prompt.from_source("task", b"{{% block user %}}task {{{{ number }}}}{{% endblock %}}")

def work(number):
    question = Question("judge", str(number), prompt, prompt.render(number=number), max_tokens=20)
    answer = gateway.ask_for(question, Verdict)
    assert answer.value.score == number
    return answer.stored

with ThreadPoolExecutor({WORKERS}) as pool:
    print(sum(pool.map(work, range({TASKS}))))
"""


def answer(call: Call) -> Answer:
    """The task's number as its score; every tenth task says it in prose at first."""
    number = task_of(call)[0]
    first = len(call.body["messages"]) == 1
    reply = "no object" if first and number % 10 == 0 else f'{{"score": {number}}}'
    return completion(reply, delay=0.003)(call)


def task_of(call: Call) -> tuple[int, int]:
    """A task's number, and which reply to it the call asks for."""
    return int(call.body["messages"][0]["content"].split()[1]), len(call.body["messages"]) // 2


def rows(database: str, state: str) -> Counter[tuple[int, int]]:
    store = Store.open(database)
    with store.reading() as tx:
        found = Counter(
            (int(subject), ordinal) for subject, ordinal in tx.rows(LlmCall, "subject", "ordinal", state=state)
        )
    store.close()
    return found


def finish(process: subprocess.Popen[str]) -> int:
    """Let a worker come to its end; how many of its answers were stored already."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(output)


@pytest.mark.drawn(2)
def test_no_stored_reply_is_paid_twice_and_no_task_lost(database_url: str) -> None:
    Store.open(database_url).close()
    dice = random.Random(7)
    with FakeEndpoint(answer) as fake:

        def start(run: int) -> subprocess.Popen[str]:
            arguments = [sys.executable, "-c", WORKER, fake.url, database_url, f"run {run}"]
            return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)

        in_flight = 0
        for kill in range(KILLS):
            stored, billed = rows(database_url, "stored"), len(fake.bill)
            process = start(kill)
            enough = billed + dice.randrange(10, 60)
            wait_for(lambda enough=enough: len(fake.bill) >= enough, 30)  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=10)
            wait_for(lambda: fake.idle)
            paid_now = Counter(task_of(call) for call, _ in fake.bill[billed:])
            assert not paid_now.keys() & stored.keys()
            new = rows(database_url, "stored") - stored
            assert new
            assert not new - paid_now
            in_flight += (paid_now - new).total()
            assert (paid_now - new).total() <= WORKERS

        counted = finish(start(KILLS))
        calls = len(fake.calls)
        assert finish(start(KILLS + 1)) == TASKS
        assert len(fake.calls) == calls

    stored_replies = rows(database_url, "stored")
    assert set(stored_replies) == {(n, 0) for n in range(TASKS)} | {(n, 1) for n in range(0, TASKS, 10)}
    assert set(stored_replies.values()) == {1}
    assert 0 < counted < TASKS
    assert len(fake.bill) == stored_replies.total() + in_flight
    assert rows(database_url, "reserved").total() >= in_flight
