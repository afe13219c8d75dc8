"""The tables of what readers said of screened chains and of the tasks that were written of them."""

from __future__ import annotations

from research.task_reading.__main__ import SCREENED, WRITTEN, by_set, read_rows, screened_lines, written_line


def _screened(faults: str, whole: str) -> dict[str, str]:
    return {"set": "x", "repository": "o/r", "faults": faults, "whole": whole}


def test_the_accepted_are_those_without_a_fault_and_the_good_those_of_four_or_five() -> None:
    rows = [_screened("0", "5"), _screened("0", "3"), _screened("2", "4"), _screened("1", "2")]
    everything, accepted = screened_lines("x", rows)
    assert everything[:5] == ("x, all", "4", "1", "4", "3.50")
    assert accepted[:5] == ("x, screened", "4", "1", "2", "4.00")
    assert accepted[5].startswith("50.0%") and accepted[6].startswith("50.0%")


def test_a_set_of_which_nothing_was_accepted_has_no_mean() -> None:
    _, accepted = screened_lines("x", [_screened("1", "2")])
    assert accepted[4:] == ("-", "-", "-")


def test_stages_are_counted_one_by_one_and_wholes_by_task() -> None:
    rows = [
        {"set": "x", "stages": "4;5", "solvable": "yes;part", "leaks": "1", "whole": "4"},
        {"set": "x", "stages": "3;3;3", "solvable": "yes;no;yes", "leaks": "0", "whole": "3"},
    ]
    assert written_line("x", rows) == ("x", "2", "5", "3", "1", "1", "3.60", "3.50")


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
