"""What a unit waits for is told beside what is done for it, for as long as it lasts."""

from __future__ import annotations

import threading

import pytest

from prchain.core.waiting import telling, waiting_for


def test_what_is_waited_for_is_told_until_it_came() -> None:
    said: list[str] = []
    with telling(said.append) as tell:
        tell("stage 1, step 3")
        with waiting_for("gpt-x (agent)"):
            pass
        tell("stage 1, step 4")
    assert said == [
        "stage 1, step 3",
        "stage 1, step 3; waiting for gpt-x (agent)",
        "stage 1, step 3",
        "stage 1, step 4",
    ]


def test_a_wait_that_fails_is_over_too() -> None:
    said: list[str] = []
    with telling(said.append) as tell:
        tell("query")
        with pytest.raises(ValueError, match="gone"), waiting_for("gpt-x (query)"):
            raise ValueError("gone")
    assert said[-1] == "query"


def test_of_two_waits_the_inner_one_is_told() -> None:
    said: list[str] = []
    with telling(said.append), waiting_for("a lock"):
        with waiting_for("gpt-x (judge)"):
            pass
        assert said == ["waiting for a lock", "waiting for gpt-x (judge)"]


def test_nothing_is_told_outside_of_a_unit_nor_of_another_threads_unit() -> None:
    said: list[str] = []

    def wait() -> None:
        with waiting_for("gpt-x (agent)"):
            pass

    wait()
    with telling(said.append):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert said == []
