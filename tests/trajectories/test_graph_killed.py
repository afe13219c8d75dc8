"""Process graphs whose process is killed at any moment: the rows at the end, and what is paid.

The first test ends processes by SIGKILL, each at another point; they are forked from one that has
loaded all modules (`tests.trajectories.graphkills`), and their model and sandboxes are in the process. The others start
the command itself, with sockets and bubblewrap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import Answer, Call, FakeEndpoint, wait_for
from tests.trajectories.graphworld import FALLEN, KEPT, distilling, graph_world, is_critic
from tests.trajectories.kills import ENOUGH
from tests.trajectories.rolloutworld import answering
from tests.trajectories.test_rollout_killed import billed
from trajectories.curation.graphs.report import list_graphs

ROOT = Path(__file__).parents[2]


def test_killed_at_points_in_turn_a_run_leaves_the_rows_of_a_calm_one_and_pays_no_stored_reply_twice(
    tmp_path: Path,
) -> None:
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with graph_world(tmp_path / "calm") as calm, graph_world(tmp_path / "rough") as rough:
        assert calm.run().run(1).counts == {"converged": 1}
        process = subprocess.run(
            [sys.executable, "-m", "tests.trajectories.graphkills", str(rough.folder)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        points = [json.loads(line) for line in (rough.folder / "points").read_text().splitlines()]
        assert len(points) >= ENOUGH
        assert {point[0] for point in points} >= {"before", "after", "request", "exec", "write", "snapshot", "restore"}
        assert rough.whole() == calm.whole()
        (name,) = rough.ids()
        assert rough.verdicts(name) == dict.fromkeys(KEPT, "keep") | FALLEN
        assert max(Counter(rough.calls()).values()) == 1
        assert Counter(rough.calls()) == Counter(calm.calls())
        assert rough.calls("reserved"), "what was in flight counts as spent"
        rough.assert_sums()


PRICES = ("1.0", "4.0")


def start(folder: Path, endpoint: FakeEndpoint, *arguments: str) -> subprocess.Popen[str]:
    """Start `prchain curate graphs` as a user does."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_BASE_URL": endpoint.url,
        "PRCHAIN_LLM_MODEL": "fake",
        "PRCHAIN_LLM_PRICE_INPUT": PRICES[0],
        "PRCHAIN_LLM_PRICE_OUTPUT": PRICES[1],
        "PRCHAIN_DATA_DIR": "data",
        "PRCHAIN_LLM_TIMEOUT_SECONDS": "20",
        "OPENAI_API_KEY": "",
    }
    command = [sys.executable, "-m", "prchain.cli", "curate", "graphs", "--db", "prchain.db", "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, "--backend", "local", *arguments], cwd=folder, env=environment, text=True, stdout=pipe, stderr=pipe
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    """Wait for the end of a run; its report."""
    output, err = process.communicate(timeout=400)
    assert process.returncode == code, err
    report = json.loads(output)
    assert isinstance(report, dict)
    return report


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.whole
def test_the_command_itself_killed_while_it_waits_goes_on_and_only_the_call_in_flight_is_paid_again(
    tmp_path: Path,
) -> None:
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with graph_world(tmp_path / "calm") as calm, graph_world(tmp_path / "rough") as rough:
        with FakeEndpoint(answering(distilling())) as endpoint:
            assert finish(start(calm.folder, endpoint))["outcomes"] == {"converged": 1}
            expected = billed(endpoint)
        reached, killed = threading.Event(), threading.Event()
        inner = answering(distilling())

        def holds(call: Call) -> Answer:
            """Holds back the critic's answer until the asking process is dead."""
            messages = call.body["messages"]
            if not reached.is_set() and is_critic(messages) and len(messages) > 2:
                reached.set()
                killed.wait(60)
            return inner(call)

        with FakeEndpoint(holds) as endpoint:
            run = start(rough.folder, endpoint)
            assert reached.wait(120)
            run.kill()
            run.communicate()
            killed.set()
            wait_for(lambda: endpoint.idle)
            (name,) = rough.ids()
            assert rough.outcome(name) == ("running", None)
            (row,) = list_graphs(rough.store)
            assert row["outcome"] == "interrupted"
            assert finish(start(rough.folder, endpoint))["outcomes"] == {"converged": 1}
            bill = billed(endpoint)
            assert finish(start(rough.folder, endpoint))["stood_before"] == 1
        assert bill.keys() == expected.keys(), "the same questions, and no others"
        (twice,) = [json.loads(request) for request, count in bill.items() if count > 1]
        assert is_critic(twice["messages"]) and sum(bill.values()) == len(bill) + 1
        assert rough.whole() == calm.whole()
        rough.assert_sums()
        assert not list(rough.folder.glob("*.graph-*.lock")), "locks of single graphs do not pile up"


@pytest.mark.whole
@pytest.mark.usefixtures("bubblewrap")
def test_the_command_with_a_budget_that_is_too_small_exits_with_1_and_a_larger_one_finishes(tmp_path: Path) -> None:
    chains = [(1 + number % 5,) for number in range(8)]
    with graph_world(tmp_path, chains) as world, FakeEndpoint(answering(distilling())) as endpoint:
        run = start(tmp_path, endpoint, "--workers", "8", "--budget", "0.15")
        output, err = run.communicate(timeout=400)
        report = json.loads(output)
        assert run.returncode == 1 and "Traceback" not in err
        assert report["outcomes"]["budget_exceeded"] >= 1 and "budget" in report["stopped"]
        assert endpoint.billed_usd(*map(float, PRICES)) <= report["usd"] + 1e-9
        assert report["usd"] <= 0.15
        report = finish(start(tmp_path, endpoint, "--workers", "8", "--budget", "9"))
        assert set(report["outcomes"]) == {"converged"} and set(world.outcomes().values()) == {"converged"}
        assert len(world.ids()) == 8
        assert len(endpoint.bill) == len(world.calls()), "no stored reply was paid twice"
