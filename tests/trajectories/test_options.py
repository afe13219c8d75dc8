"""What decides a rollout: options, their hash, and the id that a trajectory is found by."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.backends import BACKENDS
from environments.checkouts.carry import Carry
from prchain.core.errors import UsageError
from trajectories.model import AgentLimits
from trajectories.options import DEFAULTS, ELSEWHERE, MAX_TOKENS, Gate, OnFail, RolloutOptions
from trajectories.outcomes import (
    ACCEPTED,
    DONE_EARLY,
    FINAL,
    INFRASTRUCTURE,
    KEPT,
    NOT_REACHED,
    OF_THE_AGENT,
    outcome_of,
)

amounts = st.none() | st.integers(1, 1000)
options = st.builds(
    RolloutOptions,
    carry=st.sampled_from(Carry),
    gate=st.sampled_from(Gate),
    on_fail=st.sampled_from(OnFail),
    backend=st.sampled_from(list(BACKENDS)),
    threshold=st.floats(0, 1),
    refinements=st.integers(0, 9),
    stage_limits=st.builds(
        AgentLimits, steps=amounts, tokens=amounts, usd=st.none() | st.floats(0, 9, exclude_min=True)
    ),
    temperature=st.none() | st.floats(0, 2),
)


@given(options)
def test_options_come_back_from_their_json_and_equal_ones_have_equal_hashes(rollout_options: RolloutOptions) -> None:
    restored = RolloutOptions.from_row(json.loads(json.dumps(asdict(rollout_options))))
    assert restored == rollout_options and restored.hash() == rollout_options.hash()


def test_every_option_is_named_by_identities_in_one_place() -> None:
    assert not DEFAULTS.keys() & ELSEWHERE
    assert DEFAULTS.keys() | ELSEWHERE == {field.name for field in fields(RolloutOptions)}


def test_today_s_defaults_are_still_those_that_ids_leave_out() -> None:
    # One that differs is no fault: ids then name it where it is used. Then say so here.
    assert RolloutOptions().chosen == {}


def test_words_are_taken_for_the_values_they_name() -> None:
    assert RolloutOptions(gate="tests", on_fail="reference").gate is Gate.TESTS  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="neither"):
        RolloutOptions(gate="neither")  # type: ignore[arg-type]


def test_what_an_older_version_stored_is_read_as_it_was_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = asdict(RolloutOptions(refinements=1))
    del stored["tests"]
    assert RolloutOptions.from_row(stored | {"long_gone": 1}) == RolloutOptions(refinements=1)
    monkeypatch.setitem(DEFAULTS, "tests", "gate")
    assert RolloutOptions.from_row(stored).tests == "gate", "not what is the default today"


@pytest.mark.parametrize(
    "wrong",
    [
        {"context_tokens": MAX_TOKENS},
        {"gate": "tests", "judge_sees": "tests"},
        {"gate": "tests", "audited_by": "model"},
        {"context_tokens": 100, "max_tokens": 100},
        *(
            {f"{whose}_limits": AgentLimits(**{unit: most})}  # type: ignore[arg-type]
            for whose in ("stage", "chain")
            for unit in ("steps", "tokens", "usd", "seconds")
            for most in (0, -1, float("nan"), float("inf"))
        ),
    ],
)
def test_settings_under_which_nothing_can_be_asked_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"no room for a prompt|must be above 0|asks no judge|audits nothing"):
        RolloutOptions(**wrong)


@pytest.mark.parametrize("wrong", [{"threshold": 1.5}, {"refinements": -1}, {"min_length": 0}, {"max_tokens": 0}])
def test_what_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        RolloutOptions(**wrong)  # type: ignore[arg-type]


outcomes = st.sampled_from([ACCEPTED, "rejected", "unscored", "state_broken", DONE_EARLY, NOT_REACHED])


@given(st.lists(outcomes, min_size=1, max_size=8), st.integers(1, 5))
def test_a_trajectory_has_one_outcome_that_its_accepted_prefix_decides(stages: list[str], least: int) -> None:
    outcome, accepted = outcome_of(stages, length=len(stages), min_length=least)
    worked_on = stages[:accepted].count(ACCEPTED)
    assert set(stages[:accepted]) <= {ACCEPTED, DONE_EARLY}
    assert not accepted or stages[accepted - 1] == ACCEPTED
    rest = [it for it in stages[accepted:] if it != DONE_EARLY]
    assert not rest or rest[0] != ACCEPTED
    if outcome in KEPT:
        assert worked_on == len(stages) or worked_on >= least, "a stage that was done early is none of the least length"
    elif accepted:
        assert outcome == "too_short" and worked_on < least
    else:
        assert outcome == (rest or [DONE_EARLY])[0]


def test_failures_of_machines_are_never_final_and_those_of_the_agent_are() -> None:
    assert not INFRASTRUCTURE & FINAL and OF_THE_AGENT <= FINAL
