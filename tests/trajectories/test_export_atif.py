"""Exports in ATIF: that each of its rules holds of all that is written, and that nothing of ours is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from prchain.cli import run
from prchain.core import __version__
from prchain.core.llm.model import Role, ToolCall
from sql.store import Store
from sql.tables import Trajectory
from tests.trajectories.atifrules import broken_rules
from tests.trajectories.demoworld import Ran
from tests.trajectories.sampleworld import BASH, EDIT, SampleWorld, Talk, long_talk, sample_world
from trajectories.audit.finding import AuditFinding, CheatSign
from trajectories.export.format import Format
from trajectories.export.formats import FORMATS
from trajectories.export.options import ExportOptions
from trajectories.export.reading import candidates, read_sample
from trajectories.export.samples import Sample, SampleMessage, SampleStage, SampleVerdict, with_missing_answers
from trajectories.model import EntryKind, Reason
from trajectories.outcomes import FINAL

SMALL = Path(__file__).parent / "data" / "small.atif.json"

SAMPLE_FORMATS = {name: form for name, form in FORMATS.items() if isinstance(form, Format)}


def document(sample: Sample) -> dict[str, Any]:
    return dict(SAMPLE_FORMATS["atif"].row(sample))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as world:
        world.chain("c1")
        yield world


def sample_of(world: SampleWorld, **options: Any) -> Sample:
    chosen = ExportOptions(**options)
    with world.store.reading() as tx:
        (candidate,) = candidates(tx, chosen)
        sample = read_sample(tx, candidate, chosen, whole=True, audited=True)
    assert isinstance(sample, Sample)
    return sample


# ---- every rule, on whatever a trajectory may hold

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
"""Control characters, halves of surrogate pairs and all."""
ARGUMENTS = ANY_TEXT | st.sampled_from(
    ['{"command": "ls"}', '{"command": "broken', "[1]", "null", '{"a": NaN}', '{"a": 1e999}', '{"\\ud800": "\\udfff"}']
)
AMOUNT = st.none() | st.integers(0, 9)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    turns: list[SampleMessage] = []
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(list(EntryKind)))
        place: dict[str, Any] = {
            "position": draw(st.integers(1, 2)),
            "attempt": draw(st.integers(1, 2)),
            "step": number,
        }
        at = draw(st.sampled_from(["", "2026-01-02T03:04:05Z"]))
        told: dict[str, Any] = {**place, "at": at, "copied": draw(st.booleans()), "seconds": draw(st.floats(0, 9))}
        if kind is EntryKind.TURN:
            ids = draw(st.lists(ANY_TEXT, max_size=3))
            told |= {
                "reasoning": draw(st.none() | ANY_TEXT),
                "tool_calls": tuple(ToolCall(name, draw(ANY_TEXT), draw(ARGUMENTS)) for name in ids),
                "fault": draw(st.none() | st.just("bad_arguments")),
                **{name: draw(AMOUNT) for name in ("tokens_in", "tokens_cached", "tokens_out")},
                "usd": draw(st.none() | st.floats(0, 1)),
            }
            train = draw(st.booleans())
            reason = Reason.TURN if train else Reason.REFINEMENT
            turns.append(SampleMessage("assistant", draw(ANY_TEXT), kind, train, reason, **told))
            observed: dict[str, Any] = {"kind": EntryKind.OBSERVATION, "train": False, "reason": Reason.OBSERVATION}
            answered = draw(st.lists(st.sampled_from(ids), max_size=3)) if ids else []
            turns += [
                SampleMessage("tool", draw(ANY_TEXT), tool_call_id=name, **observed, **place) for name in answered
            ]
        else:
            role: Role = "system" if kind is EntryKind.SYSTEM else "user"
            told["tool_call_id"] = draw(st.none() | ANY_TEXT)
            turns.append(SampleMessage(role, draw(ANY_TEXT), kind, False, Reason.USER, **told))
    return Sample(
        "t1",
        "t1",
        "c1",
        with_missing_answers(turns),
        (SampleStage(1, 1), SampleStage(2, 1)),
        draw(st.sampled_from([(), (BASH, EDIT)])),
        draw(st.none() | ANY_TEXT),
        {"scaffold": draw(st.none() | st.just("react")), "model": draw(st.none() | ANY_TEXT), "usd": None},
        (SampleVerdict(1, 1, None, "both"),),
        draw(st.none() | st.just((AuditFinding(CheatSign.NETWORK, 1, 1, "curl", "it looks at the network"),))),
        draw(st.none() | st.just(("t0", 3))),
    )


@settings(max_examples=200)
@given(samples())
def test_no_rule_is_broken_and_no_message_or_loss_flag_is_lost(sample: Sample) -> None:
    written = document(sample)
    assert broken_rules(written) == []
    assert json.loads(json.dumps(written)) == written
    steps = written["steps"]
    agents = [turn for turn in sample.turns if turn.role == "assistant"]
    told = [step["extra"] for step in steps if step["source"] == "agent"]
    slime = [line for line in SAMPLE_FORMATS["slime"].row(sample)["messages"] if line["role"] == "assistant"]
    assert [(extra["train"], extra["reason"]) for extra in told] == [
        (bool(line["step_loss_mask"]), line["loss_reason"]) for line in slime
    ]
    results = [result for step in steps for result in step.get("observation", {}).get("results", [])]
    assert len(steps) + len(results) == len(sample.turns)
    calls = [call for step in steps for call in step.get("tool_calls", [])]
    for call, wrote in zip(calls, [call for turn in agents for call in turn.tool_calls], strict=True):
        faulty = call.get("extra") == {"fault": "bad_arguments"}
        assert call["arguments"].keys() == {"raw"} if faulty else call["arguments"] == json.loads(wrote.arguments)
    for step in steps:
        metrics = step.get("metrics", {})
        assert metrics.get("cached_tokens", 0) <= metrics.get("prompt_tokens", 9)


Change = Callable[[dict[str, Any]], Any]

FORBIDDEN: dict[str, Change] = {
    "an unknown key": lambda it: it.update(prchain={}),
    "an unknown key of a step": lambda it: it["steps"][0].update(stage=1),
    "no steps": lambda it: it.update(steps=[]),
    "no version": lambda it: it["agent"].pop("version"),
    "a version that is no text": lambda it: it["agent"].update(version=1),
    "another format": lambda it: it.update(schema_version="ATIF-v2.0"),
    "a gap in the numbers": lambda it: it["steps"].pop(1),
    "no message": lambda it: it["steps"][0].update(message=None),
    "another source": lambda it: it["steps"][0].update(source="tool"),
    "metrics of a user": lambda it: it["steps"][1].update(metrics={"prompt_tokens": 1}),
    "reasoning of a user": lambda it: it["steps"][1].update(reasoning_content="Hm."),
    "a model of a user": lambda it: it["steps"][1].update(model_name="agent-1"),
    "calls of a user": lambda it: it["steps"][1].update(tool_calls=[]),
    "arguments as text": lambda it: it["steps"][2]["tool_calls"][0].update(arguments="{}"),
    "a call without a name": lambda it: it["steps"][2]["tool_calls"][0].pop("function_name"),
    "an answer to another step's call": lambda it: it["steps"][3]["observation"]["results"][0].update(
        source_call_id="call_1_0"
    ),
    "metrics of no call": lambda it: it["steps"][2].update(llm_call_count=0),
    "tokens as text": lambda it: it["steps"][2]["metrics"].update(prompt_tokens="many"),
    "an unknown sum": lambda it: it["final_metrics"].update(usd=1),
    "no time": lambda it: it["steps"][0].update(timestamp="yesterday"),
    "half of a surrogate pair": lambda it: it["steps"][0].update(message="\ud800"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_rules_refuse_what_harbor_refuses(name: str) -> None:
    wrong = deepcopy(json.loads(SMALL.read_text(encoding="ascii")))
    FORBIDDEN[name](wrong)
    assert broken_rules(wrong)


# ---- what a document says


def small_talk() -> Talk:
    """Parallel calls, a faulty one, one that nobody answered, words without a call, a rejected round, guidance."""
    at: dict[str, Any] = {"at": "2026-01-02T03:04:05Z"}
    talk = Talk().system("You work.").query(1, "Do it.")
    paid: dict[str, Any] = {"tokens_in": 100, "tokens_cached": 60, "tokens_out": 7, "usd": 0.25, "seconds": 1.5, **at}
    talk.turn(
        "", ("bash", {"command": "ls"}), ("bash", {"command": "curl https://other.org/x"}), reasoning="Hm.", **paid
    )
    talk.observation("a b", call=0, seconds=0.5, **at)
    talk.turn("Now", ("bash", '{"command": "broken'), error="bad_arguments", **paid)
    talk.observation("No JSON.", error="bad_arguments", **at)
    talk.turn("I only talk.", error="no_call", **paid | {"tokens_cached": None}).observation("Call a tool.", **at)
    talk.comment("The total is wrong.").guide("Look again.")
    return talk.turn("Done.", ("submit", {}), details={"dropped": {"below": 1}}, **paid).observation("Submitted.", **at)


def test_a_small_document_byte_for_byte(world: SampleWorld) -> None:
    talk = small_talk()
    talk.entries = [replace(entry, at="2026-01-02T03:04:05Z") for entry in talk.entries]
    world.trajectory("t1", "c1", talk, tools=(BASH,))
    written = document(sample_of(world)) | {}
    written["agent"] |= {"version": "0"}
    text = json.dumps(written, indent=1) + "\n"
    assert text == SMALL.read_text(encoding="ascii")
    assert broken_rules(written) == []


def test_sums_are_told_of_what_every_turn_of_the_agent_tells(world: SampleWorld) -> None:
    world.trajectory("t1", "c1", small_talk())
    written = document(sample_of(world))
    assert written["agent"]["version"] == __version__
    assert written["final_metrics"] == {
        "total_prompt_tokens": 400,
        "total_completion_tokens": 28,
        "total_cost_usd": 1.0,
        "total_steps": len(written["steps"]),
    }


@pytest.mark.parametrize(("outcome", "accepted", "step", "copied"), [
    ("accepted", 3, 2, "since the query"), ("accepted_prefix", 1, 99, "nothing"), ("accepted_prefix", 1, 9, "all"),
])  # fmt: skip
def test_what_came_with_the_parent_is_copied_context_and_counts_in_no_sum(
    world: SampleWorld, outcome: str, accepted: int, step: int, copied: str
) -> None:
    world.trajectory("t1", "c1", outcome=outcome, accepted=accepted, overview="Over three stages")
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).values(parent_id="t0", parent_step=step))
    written = document(sample_of(world))
    marked = [step for step in written["steps"] if "is_copied_context" in step]
    assert broken_rules(written) == []
    assert written["extra"]["parent"] == {"trajectory_id": "t0", "turns": step}
    expected = {"since the query": 4, "nothing": 0, "all": len(written["steps"])}[copied]
    assert written["steps"][:expected] == marked
    assert written["final_metrics"]["total_steps"] == len(written["steps"]) - expected
    assert ("notes" in written) is bool(marked)


def test_signs_are_told_at_their_step_without_secrets_and_counted(world: SampleWorld) -> None:
    talk = Talk().system().query(1).bash("ls").bash("curl https://other.org/?mail=jo.doe@shop.org").submit()
    world.trajectory("t1", "c1", talk)
    written = document(sample_of(world))
    (sign,) = written["steps"][3]["extra"]["signs"]
    assert sign["sign"] == "network" and "jo.doe@" not in sign["evidence"]
    assert written["extra"]["signs"] == {"network": 1}
    assert "signs" not in document(replace(sample_of(world), signs=None))["extra"]


def test_verdicts_and_stages_are_told_by_steps(world: SampleWorld) -> None:
    world.trajectory("t1", "c1", long_talk())
    written = document(sample_of(world))
    steps = {step["step_id"]: step for step in written["steps"]}
    verdicts = written["extra"]["verdicts"]
    assert [(it["stage"], it["round"], it["accepted"]) for it in verdicts] == [
        (1, 1, True), (2, 1, False), (2, 2, True), (3, 1, True),
    ]  # fmt: skip
    for verdict in verdicts:
        extra = steps[verdict["last_step"]]["extra"]
        assert (extra["stage"], extra["round"]) == (verdict["stage"], verdict["round"])
    for stage in written["extra"]["stages"]:
        assert steps[stage["first_step"]]["extra"]["stage"] == stage["stage"]
        assert steps[stage["first_step"]]["source"] in {"system", "user"}


@pytest.mark.parametrize("form", [name for name in SAMPLE_FORMATS if name != "atif"])
def test_other_formats_are_the_same_with_and_without_tokens_cost_and_time(world: SampleWorld, form: str) -> None:
    world.trajectory("t1", "c1", small_talk())
    full = sample_of(world)
    names = ("fault", "copied", "tokens_in", "tokens_cached", "tokens_out", "usd", "seconds", "at")
    unset: dict[str, Any] = {name: SampleMessage.__dataclass_fields__[name].default for name in names}
    bare = replace(full, turns=tuple(replace(turn, **unset) for turn in full.turns), verdicts=(), signs=None)
    assert bare != full
    assert SAMPLE_FORMATS[form].row(full) == SAMPLE_FORMATS[form].row(bare)


def test_the_loss_of_the_demos_turns_is_that_of_slime(finished_demo: Ran) -> None:
    options = ExportOptions(outcomes=FINAL, duplicates="keep")
    store = Store.open(str(finished_demo.folder / "prchain.db"), create=False)
    try:
        with store.reading() as tx:
            found = candidates(tx, options)
            pairs = [
                [read_sample(tx, it, options, whole=whole, audited=whole) for whole in (False, True)] for it in found
            ]
    finally:
        store.close()
    compared = 0
    for cut, whole in pairs:
        assert isinstance(cut, Sample) and isinstance(whole, Sample)
        turns = [it for it in SAMPLE_FORMATS["slime"].row(cut)["messages"] if it["role"] == "assistant"]
        written = document(whole)
        assert broken_rules(written) == []
        steps = [step for step in written["steps"] if step["source"] == "agent"]
        assert [it["content"] for it in turns] == [step["message"] for step in steps[: len(turns)]]
        slime = [(bool(it["step_loss_mask"]), it["loss_reason"]) for it in turns]
        assert slime == [(step["extra"]["train"], step["extra"]["reason"]) for step in steps[: len(turns)]]
        assert not any(step["extra"]["train"] for step in steps[len(turns) :])
        compared += len(turns)
    assert len(pairs) >= 5 and compared > 20


def test_the_command_writes_a_file_a_trajectory(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_DB", "prchain.db")
    world.trajectory("t1", "c1")
    assert run(["export", "--format", "atif", "--out", "runs/"]) == 0
    (path,) = Path("runs").glob("*.json")
    written = json.loads(path.read_text(encoding="ascii"))
    assert (path.name, written["schema_version"]) == ("t1.atif.json", "ATIF-v1.8")
    assert broken_rules(written) == []
    assert written["extra"]["signs"] == {}
