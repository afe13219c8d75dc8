"""One conformance test for every ledger, and what only the one in the database can do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from prchain.core.errors import BudgetExceeded, StoreUnavailable
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.ledger import CallKey, CallNote, Ledger, Spending, StoredReply
from prchain.core.llm.model import Reply, ToolCall, Usage
from prchain.core.llm.price_table import table_price
from prchain.core.llm.prompts import Prompt
from sql.ledger import SqlLedger
from sql.store import Store, Transaction
from sql.tables import LlmCall
from tests.databases import new_database, open_new
from tests.endpoint import FakeEndpoint, raw
from tests.memory_ledger import MemoryLedger

ROOT = Path(__file__).parents[2]

NOTE = CallNote("query", "0123456789abcdef", "small")

REPLY = Reply(
    "naïve \x01 {} 🐍",
    "small",
    "tool_calls",
    "no",
    "because",
    (ToolCall("1", "bash", "{not json"),),
    Usage(100, 20, 30),
)


def key(ordinal: int = 0, **changes: Any) -> CallKey:
    fields: dict[str, Any] = {"purpose": "query", "subject": "c:1", "sample": 0, "attempt": 0, "request_hash": "a" * 64}
    return CallKey(**fields | {"ordinal": ordinal} | changes)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    sqlite = request.param == "sqlite"
    store = Store.open(new_database(tmp_path / "x.db") if sqlite else request.getfixturevalue("postgres_url"))
    yield SqlLedger(store, "this run")
    store.close()


def _reply(ledger: Ledger, where: CallKey) -> Reply | None:
    found = ledger.find(where)
    return found.reply if found is not None else None


def test_a_stored_reply_is_found_again_as_it_was_with_what_it_cost(ledger: Ledger) -> None:
    ledger.settle(ledger.reserve(key(), NOTE, 0.5, None), REPLY, 0.25)
    assert ledger.find(key()) == StoredReply(REPLY, 0.25)


def test_a_stored_reply_of_unknown_usage_counts_with_what_was_reserved_for_it(ledger: Ledger) -> None:
    ledger.settle(ledger.reserve(key(), NOTE, 0.5, None), REPLY, None)
    assert ledger.find(key()) == StoredReply(REPLY, 0.5)


def test_a_stored_reply_tells_how_long_it_took_to_come(store: Store) -> None:
    ledger = SqlLedger(store, "run")
    ledger.settle(ledger.reserve(key(), NOTE, 0.5, None), REPLY, 0.25)
    times = {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:01:05Z"}
    for values, seconds in ((times, 65.0), ({**times, "finished_at": "2025-12-31T00:00:00Z"}, 0.0)):
        with store.transaction() as tx:
            tx.connection.execute(update(LlmCall).values(**values))
        found = ledger.find(key())
        assert found is not None and found.seconds == seconds


@pytest.mark.parametrize(
    "other",
    [
        {"purpose": "judge"},
        {"subject": "c:2"},
        {"sample": 1},
        {"attempt": 1},
        {"ordinal": 1},
        {"request_hash": "b" * 64},
    ],
)
def test_every_part_of_the_key_keeps_replies_apart(ledger: Ledger, other: dict[str, Any]) -> None:
    ledger.settle(ledger.reserve(key(), NOTE, None, None), REPLY, None)
    assert ledger.find(key(**other)) is None


def test_a_call_without_a_reply_is_not_found(ledger: Ledger) -> None:
    reserved, released, lost = (ledger.reserve(key(i), NOTE, 1.0, None) for i in range(3))
    ledger.release(released, "rate_limited")
    ledger.lose(lost, "endpoint_timeout")
    assert [_reply(ledger, key(i)) for i in range(3)] == [None] * 3
    ledger.settle(reserved, REPLY, 1.0)
    assert _reply(ledger, key(0)) == REPLY


def test_of_two_replies_under_one_key_the_first_is_found(ledger: Ledger) -> None:
    first, second = (ledger.reserve(key(), NOTE, 1.0, None) for _ in range(2))
    ledger.settle(second, Reply("second", "m"), 0.0)
    ledger.settle(first, Reply("first", "m"), 0.0)
    assert _reply(ledger, key()) == Reply("first", "m")


def test_spending_counts_what_was_or_may_have_been_paid(ledger: Ledger) -> None:
    assert ledger.spending() == Spending()
    settled, _, lost, released, unsaid, unpriced = (
        ledger.reserve(key(i), NOTE, usd, None) for i, usd in enumerate([1.0, 2.0, 4.0, 8.0, 16.0, None])
    )
    ledger.settle(settled, REPLY, 0.5)
    ledger.lose(lost, "cut")
    ledger.release(released, "429")
    ledger.settle(unsaid, Reply("x", "m"), None)
    ledger.settle(unpriced, REPLY, None)
    assert ledger.spending() == Spending(
        calls=5, usd=0.5 + 2 + 4 + 16, unpriced=1, tokens_in=200, tokens_cached=40, tokens_out=60, refused=1
    )


def test_what_is_said_of_a_run_under_way_counts_what_has_ended_and_never_goes_back(store: Store) -> None:
    ledger = SqlLedger(store, "run")
    first, second = (ledger.reserve(key(i), NOTE, 4.0, None) for i in range(2))
    said = [ledger.spending().words_so_far()]
    ledger.settle(first, REPLY, 0.5)
    said.append(ledger.spending().words_so_far())
    ledger.settle(second, REPLY, 0.25)
    said.append(ledger.spending().words_so_far())
    assert said == [
        "0 calls, 0.0000 USD; 2 calls under way",
        "1 call, 0.5000 USD; 1 call under way",
        "2 calls, 0.7500 USD",
    ]


def test_a_call_over_the_budget_is_refused_and_not_booked(ledger: Ledger) -> None:
    call = ledger.reserve(key(0), NOTE, 0.75, 1.0)
    with pytest.raises(BudgetExceeded, match=r"1 USD has 0\.2500 left.*0\.5000"):
        ledger.reserve(key(1), NOTE, 0.5, 1.0)
    assert ledger.spending().calls == 1
    ledger.settle(call, REPLY, 0.25)
    ledger.reserve(key(1), NOTE, 0.75, 1.0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(key(2), NOTE, 0.01, 1.0)


def test_a_budget_can_be_spent_to_the_last_cent_and_a_free_call_needs_none(ledger: Ledger) -> None:
    ledger.reserve(key(0), NOTE, 1.0, 1.0)
    ledger.reserve(key(1), NOTE, 0.0, 1.0)
    assert ledger.spending().usd == 1.0


def test_a_reply_that_cost_more_than_was_reserved_is_recorded_as_it_is_and_counts(ledger: Ledger) -> None:
    ledger.settle(ledger.reserve(key(0), NOTE, 0.25, 1.0), REPLY, 2.0)
    assert ledger.spending().usd == 2.0
    with pytest.raises(BudgetExceeded, match=r"has 0\.0000 left"):
        ledger.reserve(key(1), NOTE, 0.0, 1.0)


def test_eight_threads_reserve_no_more_than_the_budget(ledger: Ledger) -> None:
    def work(number: int) -> int:
        try:
            call = ledger.reserve(key(number), NOTE, 0.25, 2.0)
        except BudgetExceeded:
            return 0
        if number % 3 == 0:
            ledger.release(call, "429")
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        booked = sum(pool.map(work, range(48)))
    assert booked <= 8
    assert ledger.spending().usd == booked * 0.25


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "settle_unsaid", "release", "lose", "kill"]),
        st.integers(0, 9),
        st.integers(0, 100),
    ),
    max_size=40,
)


def walk(ledger: Ledger, budget: float, operations: list[tuple[str, int, int]]) -> None:
    """Do the operations, and compare with plain arithmetic in 64ths of a dollar, which floats hold exactly."""
    counted: dict[int, float] = {}
    flying: dict[int, float] = {}
    for what, which, amount in operations:
        usd = amount / 64
        if what == "reserve":
            if sum(counted.values()) + usd > budget:
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(key(which), NOTE, usd, budget)
            else:
                call = ledger.reserve(key(which), NOTE, usd, budget)
                counted[call] = flying[call] = usd
        elif flying:
            call = list(flying)[which % len(flying)]
            reserved = flying.pop(call)
            if what == "settle":
                counted[call] = min(usd, reserved)
                ledger.settle(call, REPLY, counted[call])
            elif what == "settle_unsaid":
                ledger.settle(call, REPLY, None)
            elif what == "release":
                del counted[call]
                ledger.release(call, "x")
            elif what == "lose":
                ledger.lose(call, "x")
        spending = ledger.spending()
        assert spending.usd == sum(counted.values()) <= budget
        assert spending.calls == len(counted)


@given(st.integers(0, 200), OPERATIONS)
def test_whatever_happens_spending_keeps_the_budget_in_memory(
    budget: int, operations: list[tuple[str, int, int]]
) -> None:
    walk(MemoryLedger(), budget / 64, operations)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 200), OPERATIONS)
def test_whatever_happens_spending_keeps_the_budget_in_the_database(
    shared: Store, budget: int, operations: list[tuple[str, int, int]]
) -> None:
    with shared.transaction() as tx:
        tx.delete(LlmCall)
    walk(SqlLedger(shared, "run"), budget / 64, operations)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_new(tmp_path_factory.mktemp("ledger") / "x.db")
    yield opened
    opened.close()


def test_a_row_tells_of_its_call_from_its_start_to_its_end(store: Store) -> None:
    ledger = SqlLedger(store, "this run")
    call = ledger.reserve(key(3), NOTE, 0.5, None)
    columns = ["state", "run", "ordinal", "prompt", "prompt_hash", "model", "reserved_usd", "usd", "tokens_in", "error"]
    columns += ["priced_by"]
    with store.reading() as tx:
        assert list(tx.rows(LlmCall, *columns)) == [
            ("reserved", "this run", 3, "query", "0123456789abcdef", "small", 0.5, None, None, None, None)
        ]
    ledger.lose(call, "cut \x00 off")
    with store.reading() as tx:
        assert list(tx.rows(LlmCall, "state", "reserved_usd", "error")) == [("lost", 0.5, "cut \ufffd off")]
        ((started, finished),) = tx.rows(LlmCall, "started_at", "finished_at")
    assert started <= finished
    assert len(finished) == len("2026-01-01T00:00:00Z")


def test_each_call_has_the_table_that_its_price_is_from_and_what_that_table_says_of_its_usage(store: Store) -> None:
    price = table_price("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert price is not None
    prompt = Prompt.from_source("greet", b"{% block user %}Hi.{% endblock %}")
    details = {"cached_tokens": 200_000, "cache_write_tokens": 1_000}
    usage = {"prompt_tokens": 250_000, "completion_tokens": 2_000, "prompt_tokens_details": details}
    choices = [{"message": {"content": "fine"}}]
    with FakeEndpoint() as fake, closing(Endpoint(fake.url)) as endpoint:
        fake.part = raw({"choices": choices, "usage": usage})
        gateway = Gateway(SqlLedger(store, "run"), Route(OpenAIModel("claude-sonnet-4-5", endpoint), price))
        answer = gateway.ask(Question("query", "s", prompt, prompt.render()))
    expected = price.of(Usage(250_000, 200_000, 2_000, 1_000))
    assert answer.usd == expected
    with store.reading() as tx:
        assert list(tx.rows(LlmCall, "usd", "priced_by")) == [(expected, price.source)]


def test_replies_are_shared_between_runs_and_budgets_are_not(store: Store) -> None:
    first, second = SqlLedger(store, "first"), SqlLedger(store, "second")
    first.settle(first.reserve(key(), NOTE, 1.0, 1.0), REPLY, 1.0)
    assert _reply(second, key()) == REPLY
    assert second.spending() == Spending()
    second.reserve(key(1), NOTE, 1.0, 1.0)


def test_a_call_that_a_killed_run_left_in_flight_stays_spent_and_unfound(database_url: str) -> None:
    for _ in range(2):
        store = Store.open(database_url)
        ledger = SqlLedger(store, "run")
        assert ledger.find(key()) is None
        ledger.reserve(key(), NOTE, 0.5, 1.0)
        store.close()
    store = Store.open(database_url)
    assert SqlLedger(store, "run").spending() == Spending(calls=2, usd=1.0)
    store.close()


def test_a_database_that_is_gone_is_a_named_failure(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'folder' / 'x.db'}")
    ledger = SqlLedger(store, "run")
    store.close()
    (tmp_path / "folder").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable):
        ledger.reserve(key(), NOTE, None, None)


def test_two_writers_of_one_run_never_add_up_at_the_same_time(database_url: str) -> None:
    class Slow(SqlLedger):
        def _spent(self, tx: Transaction) -> float:
            spent = super()._spent(tx)
            time.sleep(0.2)  # long enough for the other one to add up too, were it let
            return spent

    # Two stores have no lock in common, as if they were of two processes.
    stores = [Store.open(database_url) for _ in range(2)]

    def reserve(store: Store) -> bool:
        try:
            Slow(store, "run").reserve(key(), NOTE, 0.75, 1.0)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(reserve, stores)) == [False, True]
    for store in stores:
        store.close()


SPENDER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from prchain.core.errors import BudgetExceeded
from prchain.core.llm.ledger import CallKey, CallNote
from sqlalchemy import update

from sql.ledger import SqlLedger
from sql.store import Store

ledger = SqlLedger(Store.open(sys.argv[1]), "shared run")
print("ready", flush=True)
sys.stdin.readline()

def spend(number):
    try:
        ledger.reserve(CallKey("p", sys.argv[2], 0, 0, number, "h"), CallNote("n", "h", "m"), 0.25, 4.0)
        return 1
    except BudgetExceeded:
        return 0

with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(spend, range(20))))
"""


@pytest.mark.drawn(2)
def test_several_processes_of_one_run_keep_its_budget_together(database_url: str) -> None:
    Store.open(database_url).close()
    spenders = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, database_url, str(number)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for spender in spenders:
        assert spender.stdout is not None
        assert spender.stdout.readline() == "ready\n"
    for spender in spenders:
        assert spender.stdin is not None
        spender.stdin.write("go\n")
        spender.stdin.flush()
    booked = [int(spender.communicate(timeout=60)[0]) for spender in spenders]
    assert sum(booked) == 16
    store = Store.open(database_url)
    assert SqlLedger(store, "shared run").spending() == Spending(calls=16, usd=4.0)
    store.close()
