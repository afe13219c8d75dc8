"""Outcomes are coloured by what the packages themselves say of them."""

from __future__ import annotations

import re

import pytest

from prchain.view.funnel import _Shades
from prchain.view.html import asset
from prchain.view.tones import tone
from tests.test_outcomes_page import names_of
from trajectories import outcomes


def test_what_is_exported_is_good_and_what_says_nothing_of_an_agent_is_neither_good_nor_bad() -> None:
    names = names_of(outcomes) | outcomes.FINAL | outcomes.INFRASTRUCTURE
    assert {name for name in names if tone(name) == "good"} == outcomes.KEPT
    assert {name for name in names if tone(name) == "bad"} == {outcomes.REJECTED, outcomes.STATE_BROKEN}
    assert {name for name in names if tone(name) == "dull"} == {
        *outcomes.WITHOUT_CHAIN,
        outcomes.RUNNING,
        outcomes.NOT_REACHED,
        outcomes.SUPERSEDED,
        outcomes.UNSCORED,
    }


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("landed", "good"),
        ("proved", "good"),
        ("kept", "good"),
        ("capped", "good"),
        ("tampered", "bad"),
        ("error", "bad"),
        ("retired", "dull"),
        ("none yet", "dull"),
        ("below_floor", "odd"),
        ("disk_full", "odd"),
        (None, "odd"),
    ],
)
def test_outcomes_of_other_steps_are_coloured_too(outcome: str | None, expected: str) -> None:
    assert tone(outcome) == expected


def test_an_outcome_has_one_colour_in_every_bar_and_no_neighbour_has_it() -> None:
    bars = [
        [("landed", True), ("unlanded", False)],
        [("chained", True), ("unlinked", False), ("revert", False), ("reverted", False)],
        [("frozen", True), ("revert", False), ("reverted", False), ("unlinked", False)],
        [("accepted", True), ("rejected", False)],
    ]
    shades, found = _Shades(), []
    for bar in bars:
        beside: set[str] = set()
        for name, kept in bar:
            shade = shades.of(name, kept, beside)
            assert shade not in beside
            beside.add(shade)
            found.append(((name, kept), shade))
    assert len(set(found)) == len({name for name, _ in found})
    assert dict(found)[("rejected", False)] == "d3" and dict(found)[("unlinked", False)] == "d1"


def test_dark_by_choice_is_dark_by_the_system() -> None:
    style = asset("view.css").decode()
    chosen, of_system = (
        re.findall(r"[\w-]+: [^;]+;", style.partition(mark)[2].partition("}")[0])
        for mark in (':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {')
    )
    assert chosen == of_system and len(chosen) > 30
