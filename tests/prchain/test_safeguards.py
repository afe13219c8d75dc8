"""What guards grades, by what a proof has stored."""

from __future__ import annotations

import json

import pytest

from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.duels import HeldTest
from prchain.core.safeguards import MASK_RULES, PLANTING, SURE_RULES, Safeguard, safeguard_of

CANARIES = RunnerBaseline(canaries=("a:1",), planting=PLANTING)
FALSE = HeldTest("a", "one", (28, 29))
LIKELY = HeldTest("a", "two", (), ((0, "=True"),))
TELLING = HeldTest("a", "three", (), ((0, "=text"),), tells=True)
SURE = TELLING._replace(sure_by=SURE_RULES)
OLD = SURE._replace(rules=MASK_RULES - 1)


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (RunnerBaseline(), Safeguard.NONE),
        (CANARIES, Safeguard.CANARIES),
        (RunnerBaseline(canaries=("a:1",), planting=PLANTING + 1), Safeguard.NONE),
        (RunnerBaseline(held=(FALSE,)), Safeguard.HELD),
        (RunnerBaseline(held=(LIKELY,)), Safeguard.HELD),
        (RunnerBaseline(held=(LIKELY._replace(masks=()),)), Safeguard.NONE),
        (RunnerBaseline(held=(LIKELY, FALSE, TELLING)), Safeguard.HELD),
        (RunnerBaseline(held=(LIKELY, FALSE, SURE)), Safeguard.TOLD),
        (RunnerBaseline(held=(TELLING._replace(sure_by=True),)), Safeguard.HELD),  # as the first such rules were stored
        (RunnerBaseline(held=(OLD,)), Safeguard.NONE),
        (RunnerBaseline(held=(OLD, FALSE)), Safeguard.HELD),
    ],
)
def test_what_guards_grades_is_what_todays_rules_hold(known: RunnerBaseline, wanted: Safeguard) -> None:
    assert known.safeguard is wanted
    stored = json.loads(json.dumps(known.row()))
    assert safeguard_of(stored) is wanted and RunnerBaseline.from_row((), stored).safeguard is wanted


def test_a_row_of_before_there_were_safeguards_has_none() -> None:
    assert safeguard_of({}) is Safeguard.NONE
    assert safeguard_of({"held": [["a", "one", [16]]]}) is Safeguard.HELD
    without_sureness = [*SURE][:-1]
    assert safeguard_of({"held": [without_sureness]}) is Safeguard.HELD
    assert HeldTest.of(without_sureness) == TELLING and HeldTest.of([*SURE]) == SURE
