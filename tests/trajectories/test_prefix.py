"""The overview of an accepted prefix: written again until it does not leak, and where it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from environments.stages import ChainStages, Stage
from prchain.core.errors import EndpointUnreachable
from prchain.core.leaks import Finding
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.scripted import ScriptedModel
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from trajectories.model import Entry, EntryKind
from trajectories.rollouts.prefix import REPEATS, neutral_overview, prefix_overview, retold
from trajectories.task import RolloutTask, StageTask

STAGES = tuple(Stage(n, n, f"b{n}", f"m{n}", "2026-01-01T00:00:00Z") for n in (1, 2, 3))
TASK = RolloutTask(
    ChainStages("c", 1, "shop/till", "github.com", "x", STAGES),
    "All three parts, and the third one above all.",
    tuple(StageTask(stage, f"Query {stage.position}.", (), None, None) for stage in STAGES),
)


def gateway(*replies: str) -> tuple[Gateway, ScriptedModel]:
    model = ScriptedModel([{"purpose": "prefix", "reply": {"overview": text}} for text in replies])
    return Gateway(MemoryLedger(), Route(model)), model


def leaks(text: str) -> Sequence[Finding]:
    return [Finding("introduced_name", "leak", "CouponLedger")] if "CouponLedger" in text else []


def test_an_overview_that_leaks_is_asked_for_again() -> None:
    prefix_gateway, model = gateway("The CouponLedger comes.", "Two parts.")
    assert prefix_overview(prefix_gateway, TASK, 2, leaks, subject="t/0") == ("Two parts.", None)
    assert model.unused == 0


def test_where_every_version_leaks_a_neutral_one_is_told_and_says_why() -> None:
    prefix_gateway, model = gateway(*["The CouponLedger comes."] * (REPEATS + 1))
    text, why = prefix_overview(prefix_gateway, TASK, 2, leaks, subject="t/0")
    assert text == neutral_overview("shop/till", 2) and "in 2 stages" in text
    assert why is not None and "leaked" in why and model.unused == 0


def test_the_model_reads_of_no_stage_that_is_gone_and_is_told_its_faults() -> None:
    script = ScriptedModel([{"reply": {"overview": text}} for text in ("CouponLedger", "Fine.")])
    model = FakeModel(script.complete)
    prefix_overview(Gateway(MemoryLedger(), Route(model)), TASK, 2, leaks, subject="t/0")
    prompts = model.prompts("prefix")
    assert len(prompts) == len(model.asked) == 2
    assert all("Query 1." in text and "Query 2." in text and "Query 3." not in text for text in prompts)
    assert "'CouponLedger'" not in prompts[0] and "'CouponLedger'" in prompts[1]


def test_a_model_that_cannot_say_it_costs_the_neutral_text_and_an_endpoint_that_fails_is_no_text() -> None:
    script = ScriptedModel([{"reply": "no JSON", "repeat": True}])
    text, why = prefix_overview(Gateway(MemoryLedger(), Route(script)), TASK, 2, leaks, subject="t/0")
    assert text == neutral_overview("shop/till", 2) and why == "overview of the prefix: bad_reply"

    down = FakeModel(lambda request: EndpointUnreachable("no route"))
    with pytest.raises(EndpointUnreachable):
        prefix_overview(Gateway(MemoryLedger(), Route(down)), TASK, 2, leaks, subject="t/0")


def test_only_queries_that_hold_another_telling_are_retold() -> None:
    plain = Entry(1, 1, 1, 0, EntryKind.QUERY, "user", "Old.", details={"overview": "Old."})
    details_entry = replace(plain, details={"retold": "New."})
    turn = Entry(2, 1, 1, 1, EntryKind.TURN, "assistant", "Old.")
    assert [entry.content for entry in retold([plain, details_entry, turn])] == ["Old.", "New.", "Old."]
