"""What `prchain tasks build` says of a run."""

from __future__ import annotations

from typing import Any

import pytest

from chains.tasks.run_report import TaskRunReport, print_run, run_row
from prchain.core.llm.ledger import Spending
from prchain.core.runs import UnitResult
from sql.chosen import ChainUnit

IDS = [f"{number:016x}" for number in range(20)]
NO_JSON = "no usable reply, asked 3 times; the last fault: Your reply holds no JSON object."
BUDGET = "the budget of 0.0001 USD has 0.0001 left and the next call may cost 0.0047"


def ended(outcome: str, *reasons: str | None) -> tuple[UnitResult[Any], ...]:
    return tuple(
        UnitResult(ChainUnit(chain_id), outcome, reason) for chain_id, reason in zip(IDS, reasons, strict=False)
    )


def output_of(
    capsys: pytest.CaptureFixture[str], report: TaskRunReport, spent: Spending | None = None
) -> tuple[str, str]:
    print_run(report, spent or Spending())
    out, err = capsys.readouterr()
    return out, err


def test_nothing_new_names_what_stands_as_what_and_how_to_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = output_of(capsys, TaskRunReport((), 0, None, {"query_rejected": 13, "ready": 1, "bad_reply": 1}))
    assert out.splitlines() == [
        "nothing new to do; 15 done before (1 ready, 1 bad_reply, 13 query_rejected); 0 calls, 0.0000 USD",
        "14 tasks rejected or given up: `prchain tasks show ID` says why, `prchain tasks build --retry` begins another "
        "round",
    ]
    assert err == ""


def test_a_retry_is_not_offered_where_it_helps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = ended("ready", None) + ended("endpoint_unreachable", "overview: x cannot be reached")
    assert "--retry" not in "".join(output_of(capsys, TaskRunReport(tasks, 0, None, {"ready": 3})))


def test_the_commonest_reasons_are_told_with_their_counts(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [f"stage 1: plan of {id_}/1: {NO_JSON}" for id_ in IDS[:12]]
    reasons += [f"stage 2: query of {IDS[0]}/2: other", f"overview: overview of {IDS[0]}/overview: other"]
    out, err = output_of(capsys, TaskRunReport(ended("bad_reply", *reasons), 0, "5 tasks in a row ended bad_reply"))
    assert err.splitlines() == [
        f"{IDS[0]} and 11 more: bad_reply: {NO_JSON}",
        f"{IDS[12]} and 1 more: bad_reply: other",
        "stopped early: 5 tasks in a row ended bad_reply",
    ]
    assert out.splitlines()[1].startswith("14 tasks rejected or given up: ")


def test_many_reasons_are_told_by_number_only(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = output_of(capsys, TaskRunReport(ended("query_rejected", *(f"stage 1: {n} path" for n in range(5)))))
    assert err.count("query_rejected") == 4 and "2 more: query_rejected: other reasons; `prchain tasks list`" in err


def test_a_budget_that_is_spent_is_said_once_with_what_was_not_begun(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = ended("budget_exceeded", f"stage 1: {BUDGET}", f"stage 1: {BUDGET}2")
    out, err = output_of(capsys, TaskRunReport(tasks, 13, BUDGET))
    assert out == "2 budget_exceeded, 13 not begun; 0 done before; 0 calls, 0.0000 USD\n"
    assert err.splitlines() == [
        f"stopped early: {BUDGET}",
        "15 tasks not done (13 of them not begun); a larger --budget goes on",
    ]


def test_calls_that_were_refused_are_said_to_be_and_are_no_paid_calls(capsys: pytest.CaptureFixture[str]) -> None:
    report = TaskRunReport(ended("endpoint_refused", "stage 1: 401"))
    out, err = output_of(capsys, report, Spending(refused=4))
    assert out == "1 endpoint_refused; 0 done before; 0 calls, 4 refused, 0.0000 USD\n"
    assert err.endswith("1 task not done; mend what is said above, then run the same command again\n")
    row = run_row(report, Spending(refused=4))
    assert (row["calls"], row["refused"], row["usd"]) == (0, 4, 0.0)
    assert row["reasons"] == {"endpoint_refused": [{"reason": "401", "tasks": 1}]}
