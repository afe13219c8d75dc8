"""A run that is killed in the middle of many tasks, or runs out of its budget: what the next one pays and ends with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sql.tables import LlmCall, Task, TaskStage
from tests.chains.taskworld import OVERVIEW, PLAN, crowd, crowd_query, mined
from tests.endpoint import Answer, Call, FakeEndpoint, completion, wait_for

ROOT = Path(__file__).parents[2]
TASKS, WORKERS = 80, 8
CALLS = 3 * TASKS
PRICES = (1.0, 4.0)
KEY = ("purpose", "subject", "sample", "attempt", "ordinal", "request_hash")


def writes_well(call: Call) -> Answer:
    """What a well-behaved model behind an endpoint says about `crowd`."""
    reply: dict[str, str] = PLAN
    if "Write the overview" in call.last:
        reply = {"overview": OVERVIEW}
    elif match := re.search(r"<<<files \w+\nsrc/part(\d+)\.py", call.last):
        reply = {"query": crowd_query(int(match[1]))}
    return completion(json.dumps(reply))(call)


def build(folder: Path, endpoint: FakeEndpoint, *arguments: str) -> subprocess.Popen[str]:
    """Start `prchain tasks build` as a user does."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_BASE_URL": endpoint.url,
        "PRCHAIN_LLM_MODEL": "fake",
        "PRCHAIN_LLM_PRICE_INPUT": str(PRICES[0]),
        "PRCHAIN_LLM_PRICE_OUTPUT": str(PRICES[1]),
    }
    command = [sys.executable, "-m", "prchain.cli", "tasks", "build", "--db", "prchain.db", "--json", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=pipe, stderr=pipe)


def billed(endpoint: FakeEndpoint) -> Counter[str]:
    """How often each different request was billed."""
    return Counter(json.dumps(call.body, sort_keys=True) for call, _ in endpoint.bill)


def test_killed_in_the_middle_of_many_tasks_nothing_is_paid_twice_and_no_task_is_lost(tmp_path: Path) -> None:
    """Every stored reply was billed once. Beside them the bill may hold calls whose answer nobody waited for.

    Those in flight at the kill stay `reserved`; those that came too late on a busy machine are `lost`. Each has
    a row of its own and is billed once at most.
    """
    numbers = [[number] for number in range(1, TASKS + 1)]
    with mined(tmp_path, crowd(tmp_path, TASKS), numbers) as world, FakeEndpoint(writes_well) as endpoint:
        run = build(tmp_path, endpoint, "--workers", str(WORKERS))
        wait_for(lambda: len(endpoint.bill) >= CALLS // 2, seconds=120)
        run.kill()
        run.communicate()
        wait_for(lambda: endpoint.idle)
        done = len(world.rows(Task, "chain_id"))
        assert 0 < done < TASKS
        assert len(world.rows(TaskStage, "chain_id")) == done, "a task is written whole or not at all"
        in_flight = len(world.rows(LlmCall, "id", state="reserved"))
        assert in_flight <= WORKERS

        run = build(tmp_path, endpoint, "--workers", str(WORKERS))
        output, err = run.communicate(timeout=240)
        assert run.returncode == 0, err
        report = json.loads(output)
        assert (report["stood_before"], report["left"], report["outcomes"]) == (done, 0, {"ready": TASKS - done})
        bill = billed(endpoint)
        stored = Counter(world.rows(LlmCall, *KEY, state="stored"))
        assert len(stored) == stored.total() == len(bill) == CALLS, "no stored reply was asked for again"
        assert len(world.rows(LlmCall, "id", state="reserved")) == in_flight, "the second run left none"
        unanswered = in_flight + len(world.rows(LlmCall, "id", state="lost"))
        assert bill.total() <= CALLS + unanswered, "no call was billed that the ledger does not hold"
        assert world.rows(Task, "outcome") == [("ready",)] * TASKS
        assert world.rows(TaskStage, "outcome", "attempts") == [("ready", 1)] * TASKS


@pytest.mark.whole
def test_a_budget_is_kept_with_many_workers_and_the_next_run_goes_on(tmp_path: Path) -> None:
    numbers = [[number] for number in range(1, 13)]
    with mined(tmp_path, crowd(tmp_path, 12), numbers) as world, FakeEndpoint(writes_well) as endpoint:
        run = build(tmp_path, endpoint, "--workers", str(WORKERS), "--budget", "0.08")
        output, err = run.communicate(timeout=120)
        report = json.loads(output)
        assert run.returncode == 1 and "budget" in report["stopped"], err
        assert 0 < endpoint.billed_usd(*PRICES) <= report["usd"] + 1e-9 <= 0.08
        assert "Traceback" not in err
        assert {outcome for (outcome,) in world.rows(Task, "outcome")} <= {"ready", "budget_exceeded"}
        run = build(tmp_path, endpoint, "--workers", str(WORKERS), "--budget", "5")
        output, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
        bill = billed(endpoint)
        assert len(bill) == bill.total() == 36
        assert world.rows(Task, "outcome") == [("ready",)] * 12
