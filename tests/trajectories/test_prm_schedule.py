"""After which steps a process reward model is asked, and what it is shown, against slow and obvious counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectories.prmworld import Attempt, stage
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import Schedule
from trajectories.agents.guidance.window import StepWindow, stage_entries
from trajectories.model import Entry, EntryKind

attempts = st.lists(st.integers(1, 12), min_size=1, max_size=4)


def due_by_hand(lengths: Sequence[int], every: int) -> list[int]:
    """Walk through a stage as the loop does, and note after which steps it asks."""
    asked = []
    count = 0
    for number, length in enumerate(lengths):
        for place in range(1, length + 1):
            count += 1
            goes_on = place < length or number == len(lengths) - 1
            if count % every == 0 and goes_on:
                asked.append(count)
    return asked


@given(attempts, st.integers(1, 9))
def test_every_nth_step_of_a_stage_is_asked_about_but_no_attempt_s_last(lengths: list[int], every: int) -> None:
    entries = stage(*(Attempt(length) for length in lengths))
    assert asked_after(entries, Schedule.EVERY, every) == due_by_hand(lengths, every)


@given(attempts, st.integers(1, 9))
def test_the_loop_asks_the_same_as_one_looks_back_on_the_whole(lengths: list[int], every: int) -> None:
    whole = stage(*(Attempt(length) for length in lengths))
    live = []
    for at, entry in enumerate(whole):
        ends = at + 1 == len(whole) or whole[at + 1].kind is EntryKind.TURN
        if (
            entry.kind is EntryKind.OBSERVATION
            and ends
            and asked_after(whole[: at + 1], Schedule.EVERY, every)[-1:] == [entry.step]
        ):
            live.append(entry.step)
    # The last step of all is one that the loop knows to be the last.
    assert [step for step in live if step != whole[-1].step] == [
        step for step in due_by_hand(lengths, every) if step != whole[-1].step
    ]


def test_a_stage_of_one_attempt_is_asked_about_as_often_as_steps_but_the_last_allow() -> None:
    for steps in range(1, 40):
        for every in range(1, 9):
            asked = asked_after(stage(Attempt(steps)), Schedule.EVERY, every)
            assert len([step for step in asked if step != steps]) == (steps - 1) // every


def test_nobody_is_asked_under_none() -> None:
    assert asked_after(stage(Attempt(20)), Schedule.NONE, 1) == []


@given(attempts, st.integers(1, 6), st.integers(1, 12))
def test_a_window_holds_the_last_steps_of_the_stage_and_what_was_said_between(
    lengths: list[int], every: int, size: int
) -> None:
    entries = stage(*(Attempt(length, guided=2) for length in lengths))
    for last in asked_after(entries, Schedule.EVERY, every):
        window = StepWindow.of(entries, size, last)
        assert window is not None
        numbers = list(range(max(1, last - size + 1), last + 1))
        assert [step.number for step in window.steps] == numbers and (window.first, window.last) == (numbers[0], last)
        kinds = {EntryKind.COMMENT, EntryKind.GUIDANCE}
        between = [entry for entry in entries if entry.kind in kinds and numbers[0] <= entry.step < last]
        assert [entry for entry in window.entries if entry.kind in kinds] == between
        assert window.entries[-1].kind is EntryKind.OBSERVATION and window.entries[-1].step == last


def test_a_window_is_of_its_stage_alone() -> None:
    one, two = stage(Attempt(4)), stage(Attempt(3), position=2, after=4)
    entries = [*one, *(replace(entry, ordinal=entry.ordinal + len(one)) for entry in two)]
    window = StepWindow.of(stage_entries(entries, 2), 8)
    assert window is not None and [step.number for step in window.steps] == [5, 6, 7]


class TestAdaptive:
    def asked(self, entries: list[Entry], *fired: int) -> list[int]:
        return asked_after(entries, Schedule.ADAPTIVE, 5, lambda: frozenset(fired))

    def test_it_asks_where_a_detector_fires(self) -> None:
        assert self.asked(stage(Attempt(9, changed=range(1, 10))), 4) == [4]

    def test_it_asks_after_three_failed_steps_in_a_row(self) -> None:
        assert self.asked(stage(Attempt(9, failed=(2, 4, 5, 6), changed=range(1, 10)))) == [6]

    def test_it_asks_after_ten_steps_without_a_changed_tree(self) -> None:
        assert self.asked(stage(Attempt(25, changed=(3,)))) == [13, 23]

    def test_it_does_not_ask_within_three_steps_of_the_last_time_but_does_not_forget(self) -> None:
        assert self.asked(stage(Attempt(12, changed=range(1, 13))), 4, 5, 9) == [4, 7, 10]

    def test_an_attempt_s_last_step_is_left_out(self) -> None:
        assert self.asked(
            stage(
                Attempt(4),
                Attempt(4),
            ),
            4,
        ) == [5]

    @pytest.mark.parametrize("length", [5, 30])
    def test_what_comes_later_changes_nothing_of_what_was_asked(self, length: int) -> None:
        whole = stage(Attempt(length, failed=(3, 4, 5, 9, 10, 11)))
        final = self.asked(whole, 7, 20)
        for entry in whole:
            if entry.kind is EntryKind.OBSERVATION:
                before = [other for other in whole if other.ordinal <= entry.ordinal]
                assert self.asked(before, 7, 20) == [step for step in final if step <= entry.step]
