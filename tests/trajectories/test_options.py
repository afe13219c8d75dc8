"""What decides a rollout: options, their hash, and the id that a trajectory is found by."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.checkouts.state import Carry
from environments.images.provide import Backend
from prchain.errors import UsageError
from trajectories.identity import trajectory_id
from trajectories.model import Limits
from trajectories.options import MAX_TOKENS, Gate, OnFail, RolloutOptions
from trajectories.outcomes import ACCEPTED, FINAL, INFRASTRUCTURE, KEPT, NOT_REACHED, OF_THE_AGENT, outcome_of

amounts = st.none() | st.integers(1, 1000)
options = st.builds(
    RolloutOptions,
    carry=st.sampled_from(Carry),
    gate=st.sampled_from(Gate),
    on_fail=st.sampled_from(OnFail),
    backend=st.sampled_from(Backend),
    threshold=st.floats(0, 1),
    refinements=st.integers(0, 9),
    stage_limits=st.builds(Limits, steps=amounts, tokens=amounts, usd=st.none() | st.floats(0, 9, exclude_min=True)),
    temperature=st.none() | st.floats(0, 2),
)


@given(options)
def test_options_come_back_from_their_json_and_equal_ones_have_equal_hashes(one: RolloutOptions) -> None:
    again = RolloutOptions.from_json(one.to_json())
    assert again == one and again.hash() == one.hash()


def test_every_field_decides_the_hash() -> None:
    other = {
        "scaffold": "mini", "tools": "bash", "context": "stage", "carry": "none", "history": 1, "gate": "both",
        "threshold": 0.5, "refinements": 1, "on_fail": "continue", "min_length": 3, "stage_limits": Limits(steps=7),
        "chain_limits": Limits(usd=1.0), "temperature": 1.0, "max_tokens": 5, "context_tokens": 8193,
        "overflow": "elide", "observation_chars": 5, "command_timeout": 5.0, "test_timeout": 5.0,
        "track_steps": False, "interface": "paper", "tests": "gate", "backend": "local",
    }  # fmt: skip
    assert other.keys() == {field.name for field in fields(RolloutOptions)}
    hashes = {replace(RolloutOptions(), **{name: value}).hash() for name, value in other.items()}  # type: ignore[arg-type]
    assert len(hashes | {RolloutOptions().hash()}) == len(other) + 1


def test_words_are_taken_for_the_values_they_name() -> None:
    assert RolloutOptions(gate="tests", on_fail="reference").gate is Gate.TESTS  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="neither"):
        RolloutOptions(gate="neither")  # type: ignore[arg-type]


def test_what_an_older_version_stored_is_read_with_todays_defaults_for_the_rest() -> None:
    stored = json.loads(RolloutOptions(refinements=1).to_json())
    del stored["tests"]
    assert RolloutOptions.from_json(json.dumps(stored | {"long_gone": 1})) == RolloutOptions(refinements=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"context_tokens": MAX_TOKENS},
        {"context_tokens": 100, "max_tokens": 100},
        *(
            {f"{whose}_limits": Limits(**{unit: most})}  # type: ignore[arg-type]
            for whose in ("stage", "chain")
            for unit in ("steps", "tokens", "usd", "seconds")
            for most in (0, -1, float("nan"), float("inf"))
        ),
    ],
)
def test_settings_under_which_nothing_can_be_asked_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"no room for a prompt|must be above 0"):
        RolloutOptions(**wrong)


@pytest.mark.parametrize("wrong", [{"threshold": 1.5}, {"refinements": -1}, {"min_length": 0}, {"max_tokens": 0}])
def test_what_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        RolloutOptions(**wrong)  # type: ignore[arg-type]


def test_an_id_is_another_one_for_whatever_decides_the_trajectory() -> None:
    base: dict[str, Any] = {
        "chain_id": "c", "options": RolloutOptions(), "sample": 0, "model": "m", "judge": "j", "parent": None
    }  # fmt: skip
    others: list[dict[str, Any]] = [
        {"chain_id": "d"}, {"options": RolloutOptions(history=1)}, {"sample": 1}, {"model": "n"}, {"judge": None},
        {"parent": ("p", 3)}, {"parent": ("p", 4)},
    ]  # fmt: skip
    made = {trajectory_id(**{**base, **other}) for other in ({}, *others)}
    assert len(made) == len(others) + 1
    assert trajectory_id(**base) in made and len(trajectory_id(**base)) == 16


outcomes = st.sampled_from([ACCEPTED, "rejected", "unscored", "state_broken", NOT_REACHED])


@given(st.lists(outcomes, min_size=1, max_size=8), st.integers(1, 5))
def test_a_trajectory_has_one_outcome_that_its_accepted_prefix_decides(stages: list[str], least: int) -> None:
    outcome, accepted = outcome_of(stages, length=len(stages), min_length=least)
    assert stages[:accepted] == [ACCEPTED] * accepted
    assert accepted == len(stages) or stages[accepted] != ACCEPTED
    if outcome in KEPT:
        assert accepted == len(stages) or accepted >= least
    elif accepted:
        assert outcome == "too_short" and accepted < least
    else:
        assert outcome == stages[0]


def test_failures_of_machines_are_never_final_and_those_of_the_agent_are() -> None:
    assert not INFRASTRUCTURE & FINAL and OF_THE_AGENT <= FINAL
