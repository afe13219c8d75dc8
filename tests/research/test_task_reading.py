"""The tables of what readers said of screened chains and of the tasks that were written of them."""

from __future__ import annotations

from research.task_reading.__main__ import (
    SCREENED,
    WRITTEN,
    agreement_lines,
    by_set,
    read_rows,
    screened_lines,
    written_line,
)


def _screened(faults: str, whole: str, numbers: str = "", worth: str = "4") -> dict[str, str]:
    return {"set": "x", "repository": "o/r", "numbers": numbers, "worth": worth, "faults": faults, "whole": whole}


def _written(numbers: str, **values: str) -> dict[str, str]:
    return {"set": "x", "repository": "o/r", "numbers": numbers, **values}


def test_the_accepted_are_those_without_a_fault_and_the_good_those_of_four_or_five() -> None:
    rows = [_screened("0", "5", "1"), _screened("0", "3", "2"), _screened("2", "4", "3"), _screened("1", "2", "4")]
    everything, accepted, _ = screened_lines("x", rows)
    assert everything[:5] == ("x, all", "4", "1", "4", "3.50")
    assert accepted[:5] == ("x, screened", "4", "1", "2", "4.00")
    assert accepted[5].startswith("50.0%") and accepted[6].startswith("50.0%")


def test_a_set_of_which_nothing_was_accepted_has_no_mean() -> None:
    _, accepted, _ = screened_lines("x", [_screened("1", "2")])
    assert accepted[4:] == ("-", "-", "-")


def test_stages_are_counted_one_by_one_and_wholes_by_task() -> None:
    rows = [
        _written("1 2", stages="4;5", solvable="yes;part", leaks="1", whole="4"),
        _written("3 4 5", stages="3;3;3", solvable="yes;no;yes", leaks="0", whole="3"),
    ]
    assert written_line("x", rows) == ("x", "2", "5", "3", "1", "1", "3.60", "3.50")


def test_of_two_readers_scores_are_the_mean_and_what_is_worse_counts() -> None:
    rows = [
        _written("1 2", stages="4;5", solvable="yes;part", leaks="0", whole="4"),
        _written("3 4", stages="4;4", solvable="yes;yes", leaks="0", whole="4"),
        _written("1 2", stages="3;4", solvable="yes;yes", leaks="1", whole="5"),
    ]
    assert written_line("x", rows) == ("x", "2", "4", "3", "1", "1", "4.00", "4.25")


def test_a_chain_is_good_by_the_mean_of_its_readers() -> None:
    rows = [_screened("0", "5", "1"), _screened("0", "3", "1"), _screened("0", "4", "2"), _screened("0", "3", "2")]
    _, accepted, _ = screened_lines("x", rows)
    assert accepted[:5] == ("x, screened", "2", "1", "2", "3.75") and accepted[6].startswith("50.0%")


def test_readers_agree_where_both_or_none_call_a_chain_good() -> None:
    rows = [
        *(_screened("0", whole, "1") for whole in "54"),
        *(_screened("0", whole, "2") for whole in "43"),
        *(_screened("0", whole, "3") for whole in "13"),
        _screened("0", "1", "4"),
    ]
    [(name, count, same, near)] = agreement_lines("x", rows)
    assert (name, count) == ("x", "3") and same.startswith("66.7%") and near.startswith("66.7%")
    assert list(agreement_lines("x", rows[-1:])) == []


def test_the_committed_rows_are_of_the_scale_and_complete() -> None:
    for _, rows in by_set(read_rows(SCREENED)):
        for row in rows:
            scores = [*row["stages"].split(";"), row["whole"], row["worth"]]
            assert set(scores) <= set("12345") and int(row["faults"]) >= 0
            assert len(row["stages"].split(";")) == len(row["numbers"].split())
    for _, rows in by_set(read_rows(WRITTEN)):
        for row in rows:
            stages, solvable = row["stages"].split(";"), row["solvable"].split(";")
            assert {*stages, row["whole"]} <= set("12345") and set(solvable) <= {"yes", "part", "no"}
            assert len(stages) == len(solvable) == len(row["numbers"].split())


def test_a_chain_of_one_fault_and_a_worth_of_three_is_rejected_for_its_worth_alone() -> None:
    rows = [_screened("1", "4", "1", "3"), _screened("1", "4", "2", "4"), _screened("2", "4", "3", "3")]
    *_, near = screened_lines("x", rows)
    assert near[0] == "x, worth 3" and near[3] == "1"
