"""One run over many units: how each ends, who holds it, when the run ends, and what is told meanwhile."""

from __future__ import annotations

import errno
import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.console.progress import SILENT, open_progress
from prchain.core.errors import (
    BudgetExceeded,
    ChainGone,
    DiskFull,
    EndpointRefused,
    EndpointUnreachable,
    EngineUnavailable,
    PromptError,
    RateLimited,
    StoreInUse,
    TaskSuperseded,
    UsageError,
    infrastructure_failures,
)
from prchain.core.llm.ledger import Spending
from prchain.core.runs import DEFECT, MAX_FAILURES_IN_A_ROW, TAKEN, RunResult, StopRule, Tell, UnitResult, run_units
from tests.prchain.secrets_table import DRAWN_TOKEN


@dataclass(frozen=True, slots=True)
class Unit:
    key: str
    group: str


def units(count: int, *, groups: int | None = None) -> list[Unit]:
    return [Unit(f"u{n}", f"g{n % groups if groups else n}") for n in range(count)]


@dataclass
class Work:
    """Ends each unit as `act` says: with a result's outcome, or by raising."""

    act: Callable[[Unit], str | BaseException]
    taken_units: frozenset[str] = frozenset()
    spending: Spending | None = None
    started_units: list[str] = field(default_factory=list)
    stored: list[tuple[str, str, str]] = field(default_factory=list)
    title: str = "things"

    @contextmanager
    def holding(self, unit: Unit) -> Iterator[None]:
        if unit.key in self.taken_units:
            raise StoreInUse("somebody has it")
        yield

    def work_on(self, unit: Unit, tell: Tell) -> UnitResult[Unit]:
        self.started_units.append(unit.key)
        tell("at it")
        outcome = self.act(unit)
        if isinstance(outcome, BaseException):
            raise outcome
        return UnitResult(unit, outcome, None, unit.key)

    def failed(self, unit: Unit, outcome: str, reason: str) -> UnitResult[Unit]:
        if reason == "its row is another run's":
            raise TaskSuperseded("ended meanwhile")
        self.stored.append((unit.key, outcome, reason))
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        return self.spending


def run(work: Work, todo: list[Unit], **options: Any) -> RunResult[Unit]:
    return run_units(work, todo, **{"workers": 1, "progress": SILENT, **options})


def workers_are_gone() -> None:
    """A run that raises waits for none of them."""
    for thread in threading.enumerate():
        if thread.name.startswith("worker"):
            thread.join(30)
            assert not thread.is_alive()


def test_every_unit_ends_once_and_the_sums_add_up() -> None:
    work = Work(lambda unit: "done" if unit.key != "u2" else ChainGone("gone"))
    result = run(work, units(5), workers=3)
    assert result.counts == {"chain_gone": 1, "done": 4} and (result.left, result.stopped) == (0, None)
    assert sorted(work.started_units) == [f"u{n}" for n in range(5)]
    assert work.stored == [("u2", "chain_gone", "gone")]
    assert run(work, []) == RunResult()


def test_a_defect_stays_with_its_unit_is_told_with_its_place_and_never_ends_a_run() -> None:
    work = Work(lambda unit: ValueError(f"no such thing as {DRAWN_TOKEN}\nat all, my-secret"))
    result = run(work, units(8), secrets=("my-secret",))
    assert result.counts == {DEFECT: 8} and result.stopped is None
    reason = work.stored[0][2]
    assert "ghp_" not in reason and "my-secret" not in reason and "\n" not in reason
    assert reason.startswith("ValueError: no such thing") and "(test_runs.py:" in reason


def test_a_reason_is_cut_and_still_names_the_place() -> None:
    work = Work(lambda unit: ValueError("x" * 10_000))
    assert run(work, units(1)).results[0].reason is not None
    assert len(work.stored[0][2]) <= 500 and work.stored[0][2].endswith(")")


def test_what_another_run_holds_is_passed_over_and_said() -> None:
    work = Work(lambda unit: "done", taken_units=frozenset({"u0", "u1", "u2", "u3"}))
    result = run(work, units(5))
    assert result.counts == {TAKEN: 4, "done": 1} and result.stopped is None and work.started_units == ["u4"]


def test_that_a_unit_failed_and_its_row_was_another_runs_is_its_outcome() -> None:
    work = Work(lambda unit: EndpointRefused("its row is another run's"))
    result = run(work, units(1)).results[0]
    assert result.outcome == "task_superseded" and "before that endpoint_refused" in str(result.reason)


@pytest.mark.parametrize("error", [UsageError("wrong"), DiskFull("no room"), PromptError("no template")])
def test_what_is_no_units_fault_ends_the_run_at_once_as_an_error(error: Exception) -> None:
    work = Work(lambda unit: error)
    with pytest.raises(type(error)):
        run(work, units(20), workers=2)
    workers_are_gone()
    assert len(work.started_units) <= 2 and work.stored == []


def test_no_room_that_the_system_reports_is_a_full_disk_and_no_defect_of_a_unit() -> None:
    work = Work(lambda unit: OSError(errno.ENOSPC, "No space left on device", "/data/x"))
    with pytest.raises(DiskFull, match="/data/x; make room"):
        run(work, units(9))
    assert work.started_units == ["u0"] and work.stored == []


def test_after_such_an_error_no_unit_is_begun_and_nobody_waits_for_those_under_way() -> None:
    hangs = threading.Event()
    started = threading.Event()

    def act(unit: Unit) -> str | BaseException:
        if unit.key == "u0":
            started.set()
            hangs.wait(30)
            return "done"
        started.wait(10)
        return DiskFull("no room")

    work = Work(act)
    with pytest.raises(DiskFull):
        run(work, units(9), workers=2)
    hangs.set()
    workers_are_gone()
    assert len(work.started_units) == 2


def test_an_interrupted_run_leaves_what_is_under_way_and_begins_nothing_more() -> None:
    work = Work(lambda unit: KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(work, units(9))
    assert work.started_units == ["u0"] and work.stored == []


class TestStop:
    def test_three_in_a_row_with_one_kind_of_failure_end_the_run(self) -> None:
        kinds = [EndpointUnreachable("down"), RateLimited("too much"), EndpointRefused("bad key")]
        work = Work(lambda unit: kinds[int(unit.key[1:]) % 3])
        result = run(work, units(9))
        assert len(result.results) == MAX_FAILURES_IN_A_ROW and result.left == 6
        assert result.stopped == "3 things in a row ended endpoint_refused, as the others would: bad key"

    def test_what_fails_outside_of_the_work_stays_with_its_unit_too(self) -> None:
        class Breaks(Work):
            def failed(self, unit: Unit, outcome: str, reason: str) -> UnitResult[Unit]:
                raise OSError("no lock file")

        class Locked(Work):
            def holding(self, unit: Unit) -> Any:
                raise OSError("no lock file")

        result = run(Breaks(lambda unit: ChainGone("gone")), units(2))
        assert result.counts == {"chain_gone": 2} and "gone; not stored: OSError" in str(result.results[0].reason)
        assert run(Locked(lambda unit: "done"), units(2)).counts == {DEFECT: 2}

    def test_other_kinds_and_successes_in_between_end_nothing(self) -> None:
        turn: list[str | BaseException] = [
            EndpointUnreachable("down"),
            EndpointRefused("key"),
            EngineUnavailable("gone"),
            "done",
        ]
        assert run(Work(lambda unit: turn[int(unit.key[1:]) % 4]), units(16)).stopped is None

    def test_units_of_one_group_count_once_where_an_engine_fails_for_one_image_may_be_missing(self) -> None:
        todo = [Unit(f"u{n}", "one") for n in range(9)] + [Unit("v0", "two"), Unit("v1", "three")]
        assert run(Work(lambda unit: EngineUnavailable("gone")), todo[:10]).stopped is None
        stopped = run(Work(lambda unit: EngineUnavailable("gone")), todo).stopped
        assert stopped == "11 things in a row ended engine_unavailable, as the others would: gone"
        result = run(Work(lambda unit: EndpointUnreachable("down")), todo)
        assert len(result.results) == 3, "an endpoint is everybody's"

    def test_a_spent_budget_ends_it_with_the_first(self) -> None:
        result = run(Work(lambda unit: BudgetExceeded("the budget is spent")), units(9))
        assert (len(result.results), result.left, result.stopped) == (1, 8, "the budget is spent")

    def test_an_outcome_that_was_stored_counts_as_one_that_was_raised(self) -> None:
        assert run(Work(lambda unit: "engine_unavailable"), units(9)).left == 6

    def test_a_unit_that_another_run_has_says_nothing_of_the_machines(self) -> None:
        work = Work(lambda unit: EngineUnavailable("gone"), taken_units=frozenset({"u1"}))
        assert run(work, units(4)).stopped is not None

    @given(st.lists(st.sampled_from([*infrastructure_failures(), "ready", DEFECT, TAKEN, "rejected"]), max_size=40))
    def test_the_rule_is_what_a_slow_reading_of_it_says(self, outcomes: list[str]) -> None:
        rule = StopRule("things")
        for place, outcome in enumerate(outcomes):
            ended = rule.ends(UnitResult(Unit(f"u{place}", f"g{place}"), outcome))
            seen = [outcome for outcome in outcomes[: place + 1] if outcome != TAKEN]
            kinds = [infrastructure_failures().get(name) for name in seen[-MAX_FAILURES_IN_A_ROW:]]
            alike = len(kinds) == MAX_FAILURES_IN_A_ROW and kinds[0] is not None and len(set(kinds)) == 1
            spent = outcome == "budget_exceeded"
            assert ended == (outcome != TAKEN and (alike or spent))
            if ended:
                break

    def test_defects_and_refusals_of_ones_own_are_no_failures_of_infrastructure(self) -> None:
        kinds = infrastructure_failures()
        assert not kinds.keys() & {
            DEFECT,
            TAKEN,
            "clone_failed",
            "repository_not_found",
            "context_too_long",
            "disk_limit",
            "out_of_memory",
            "build_failed",
            "bad_answer",
        }
        assert kinds["endpoint_timeout"] == kinds["rate_limited"] == "endpoint" and kinds["sandbox_lost"] == "engine"


class TestTelling:
    def test_of_several_units_under_way_each_one_stays_in_sight(self) -> None:
        log, goes_on = io.StringIO(), threading.Event()

        def act(unit: Unit) -> str:
            if unit.key == "u0":
                assert goes_on.wait(30)
            if unit.key == "u2":
                goes_on.set()
            return "done"

        with open_progress(log, every=0) as progress:
            run(Work(act), units(3), workers=2, progress=progress)
        lines = log.getvalue().splitlines()
        assert any("(u0: at it; u1: at it" in line or "(u1: at it; u0: at it" in line for line in lines)
        assert "things: 1 of 3 (u0: at it; u2: at it; 1 done)" in lines

    def test_a_log_says_what_is_done_what_it_cost_and_how_it_ended(self) -> None:
        log = io.StringIO()
        with open_progress(log, every=0) as progress:
            run(Work(lambda unit: "done", spending=Spending(calls=3, usd=0.25)), units(2), progress=progress)
        lines = log.getvalue().splitlines()
        assert "things: 0 of 2 (u0: at it; 3 calls, 0.2500 USD)" in lines
        assert lines[-1] == "things: 2 of 2 ended"

    def test_no_line_counts_more_outcomes_than_units_that_have_ended(self) -> None:
        log = io.StringIO()
        with open_progress(log, every=0) as progress:
            run(Work(lambda unit: "done"), units(3), progress=progress)
        counts = [
            (int(match[1]), int(match[2] or 0))
            for match in re.finditer(r"(\d) of 3(?: \((?:.*?)(\d) done)?", log.getvalue())
        ]
        assert (3, 3) in counts and all(counted <= ended for ended, counted in counts)
