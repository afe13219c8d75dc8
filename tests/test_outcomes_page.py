"""The page of outcomes names every outcome that the code can give."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from chains import outcomes as of_chains
from chains.lineage.outcomes import LINEAGE_OUTCOMES
from chains.meanings import MEANINGS
from chains.stages.filters import OUTCOMES as FILTERS
from chains.tasks import model as of_tasks
from environments.images import build_run, stage_image
from environments.proofs import proof
from environments.suites import outcomes as of_tests
from environments.suites.testlogs import Status
from miner.outcomes import OUTCOMES as OF_PULL_REQUESTS
from prchain.core import errors
from prchain.core.runs import DEFECT, TAKEN
from sql.strength import UndoingKind, UndoingOutcome, WhyNone, Worth
from tests.test_docs import ROOT
from trajectories import outcomes as of_trajectories
from trajectories.export import duplicates, lengths, reading, selection
from trajectories.model import Ending, TurnFault
from trajectories.privileged import DISCLOSED
from trajectories.verdicts.judge import _UNSCORED

PAGE = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")


def names_of(module: object) -> set[str]:
    """The values of a module's constants that are names of outcomes."""
    found = {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    return {value for value in found if re.fullmatch(r"[a-z0-9_]+", value)}


NAMES_IN_CODE = {
    "Runs": {DEFECT, TAKEN},
    "Pull requests": set(OF_PULL_REQUESTS),
    "Landed pull requests, when chains are chosen": {"chained", "frozen", "unlinked", "not_chosen", *FILTERS},
    "Lineage": set(LINEAGE_OUTCOMES),
    "Pairs and chains": names_of(of_chains) - {"chained", "frozen", "unlinked", "not_chosen"},
    "Tasks": names_of(of_tasks) | of_tasks.FINAL | of_tasks.SKIPPED,
    "Images": {build_run.BUILT, build_run.CACHED, stage_image.BUILT, "no_recipe", "build_failed"},
    "Proofs": names_of(proof)
    | {field.name for field in fields(of_tests.ClassifiedTests)}
    | set(Status)
    | {*Worth, *UndoingKind, *UndoingOutcome, *WhyNone},
    "Attempts": {*Ending, *TurnFault, *names_of(of_tests), *(error("").name for error in _UNSCORED)},
    "Trajectories": names_of(of_trajectories) | of_trajectories.FINAL | {"proof_outdated"},
    "Exports": names_of(duplicates)
    | names_of(lengths)
    | names_of(reading) - {"accepted", "accepted_prefix"}
    | names_of(selection) - {DISCLOSED},
    "Errors": {*errors.errors_by_name(), *filter(None, errors.infrastructure_failures().values())},
}
"""Heading of the page to the names in the code."""


@pytest.mark.parametrize("heading", NAMES_IN_CODE)
def test_a_heading_names_all_outcomes_of_the_code(heading: str) -> None:
    (text,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert sorted(name for name in NAMES_IN_CODE[heading] if not re.search(rf"\b{name}\b", text)) == []


def test_commands_tell_the_reasons_of_landed_pull_requests_in_the_words_of_the_page() -> None:
    assert list(FILTERS) == [name for name in MEANINGS if name in FILTERS]
    heading = "Landed pull requests, when chains are chosen"
    assert MEANINGS.keys() == NAMES_IN_CODE[heading]
    for name, words in MEANINGS.items():
        assert f"| {name} | {words} |\n" in PAGE
