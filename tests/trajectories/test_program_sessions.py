"""Agent programs that go on with their session, and observers that speak to programs: a toy, in folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import UsageError
from prchain.core.llm.model import Request
from tests.trajectories.rolloutworld import PolicyModel, PolicyReply, RolloutWorld, bash, rollout_world, works
from tests.trajectories.test_programs import finishes
from tests.trajectories.toyagent import install_toy
from trajectories.agents.observers.repetition import Repetition
from trajectories.agents.scaffolds.context import OLD_GUIDANCE
from trajectories.agents.scaffolds.scaffold import Advice, ObservedAttempt, Observer
from trajectories.branches import read_branches
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.masks import loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.model import AgentLimits, Entry, EntryKind
from trajectories.programs import sessions
from trajectories.recording.exchanges import unpacked
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

CHAIN: dict[str, Any] = {"scaffold": "toy"}
ALONE: dict[str, Any] = {"scaffold": "toy", "context": "stage", "refinements": 0}
START = ["system", "query", "turn", "observation", "turn", "observation", "turn"]


@dataclass
class Says:
    """An observer that says something new after each step, of which only the last is kept; and may end it."""

    ends_after: int = 100
    name = "says"
    version = "1"
    prompts: Mapping[str, str] = None  # type: ignore[assignment]
    purposes = ()

    def __post_init__(self) -> None:
        self.prompts, self.asked = {}, list[Sequence[Entry]]()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"ends_after": self.ends_after}

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        return {}

    def observe(self, attempt: ObservedAttempt) -> Observer:
        def advise(entries: Sequence[Entry]) -> Advice:
            self.asked.append(entries)
            step = entries[-1].step
            stop = step >= self.ends_after
            return Advice(f"You are at step {step}.", stop=stop, reason="enough" if stop else None, details=LAST)

        return advise


LAST = {"keep": "last"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2)]) as made:
        yield made


def rolled(
    world: RolloutWorld, model: PolicyModel, observers: Sequence[Any] = (), mode: str = "works", **options: Any
) -> tuple[str, list[Entry]]:
    install_toy(world.folder, mode)
    context = world.context(model, overrides={"observers": observers}, **options)
    name = roll(context, world.chains[0], 0)
    with world.store.reading() as tx:
        return name, read_entries(tx, name)


def of(entries: Sequence[Entry], position: int, attempt: int = 1) -> list[Entry]:
    return [entry for entry in entries if (entry.position, entry.attempt) == (position, attempt)]


def test_a_comment_and_the_next_query_are_the_next_turns_of_one_session(world: RolloutWorld) -> None:
    asked: list[Request] = []
    name, entries = rolled(world, PolicyModel(works, asked.append), **CHAIN)
    assert world.outcome(name)[0] == "accepted"
    assert [entry.ordinal for entry in entries] == list(range(len(entries)))
    kinds = [[str(entry.kind) for entry in of(entries, *place)] for place in ((1,), (2,), (2, 2))]
    assert kinds == [START, START[1:], ["comment", "turn", "observation", "turn"]]
    openings = [entry for entry in entries if entry.kind in {EntryKind.QUERY, EntryKind.COMMENT}]
    assert [entry.details["session"] for entry in openings] == ["new", "resumed", "resumed"]
    assert all(entry.content == f"Please do this:\n{entry.details['asked']}" for entry in openings)
    assert "<review>" in openings[2].content and not any("retold" in entry.details for entry in openings)
    turns = [entry for entry in entries if entry.kind is EntryKind.TURN]
    assert [entry.step for entry in turns] == list(range(1, 9)) and not any("loss" in entry.details for entry in turns)
    last = next(request for request in reversed(asked) if request.body is not None)
    told = [message.content for message in last.messages]
    assert told == [entry.content for entry in entries[:-1]], "its model has read all that is stored before"
    assert len([call for call in world.calls() if call[0] == "agent"]) == len(turns) == 8
    assert sum(decision.train for decision in loss_decisions(entries, {1: 1, 2: 2})) == 5


def test_a_branch_at_the_end_of_a_stage_goes_on_with_its_session(world: RolloutWorld) -> None:
    name, entries = rolled(world, PolicyModel(finishes), **CHAIN)
    (stage,) = {entry.step for entry in of(entries, 1)[-1:]}
    branch = roll(world.context(PolicyModel(finishes), **CHAIN), world.chains[0], 1, parent=(name, stage))
    with world.store.reading() as tx:
        own = of(read_entries(tx, branch), 2)
    assert world.outcome(branch)[0] == "accepted"
    assert (own[0].details["session"], [str(entry.kind) for entry in own]) == ("resumed", START[1:])


def test_comments_reach_it_where_each_stage_is_a_session(world: RolloutWorld) -> None:
    name, entries = rolled(world, PolicyModel(works), **CHAIN, context="stage")
    assert world.outcome(name)[0] == "accepted"
    assert [str(entry.kind) for entry in of(entries, 2)] == START
    assert [entry.details.get("session") for entry in entries if "asked" in entry.details] == ["new", "new", "resumed"]
    assert [entry.step for entry in of(entries, 2, 2)] == [6, 7, 7, 8]


def test_what_it_tells_anew_of_earlier_turns_is_not_stored_twice_and_the_record_says_so(world: RolloutWorld) -> None:
    name, entries = rolled(world, PolicyModel(works), mode="forgets", **CHAIN, context="stage")
    assert world.outcome(name)[0] == "accepted"
    (comment, *rest) = of(entries, 2, 2)
    assert comment.kind is EntryKind.COMMENT and comment.details["retold"] is True
    assert [str(entry.kind) for entry in rest] == ["turn", "observation", "turn"]
    assert [entry.step for entry in (comment, *rest)] == [6, 7, 7, 8]


def test_a_session_that_is_too_large_is_its_failure(world: RolloutWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LARGEST", 100)
    name, _ = rolled(world, PolicyModel(works), **CHAIN)
    outcome, _, reason = world.outcome(name)
    assert outcome == "agent_failed" and "its session has more than" in str(reason)


def test_one_that_cannot_go_on_says_which_options_it_takes(world: RolloutWorld) -> None:
    install_toy(world.folder, resumes=False)
    with pytest.raises(UsageError) as refused:
        world.context(**CHAIN)
    words = "toy cannot go on with a session, so a stage is one: add --agent context=stage --refinements 0"
    assert str(refused.value) == words
    roll(world.context(PolicyModel(finishes), **ALONE), world.chains[0], 0)


def test_an_observers_words_reach_the_model_and_stay_at_their_place(world: RolloutWorld) -> None:
    def repeats(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        """Looks until it is told that this does not help."""
        said = "\n".join(str(message["content"]) for message in messages)
        if "You review code" in said or "Task 2 of 2" in said:
            return finishes(messages)
        if "You have made this call 2 times" not in said:
            return bash("ls src")
        after = [message["role"] for message in messages].count("assistant")
        return finishes([messages[1]] + [{"role": "assistant", "content": ""}] * (after - 2))

    asked: list[Request] = []
    name, entries = rolled(world, PolicyModel(repeats, asked.append), [Repetition(times=2)], **CHAIN)
    assert world.outcome(name)[0] == "accepted"
    (guidance,) = [entry for entry in entries if entry.kind is EntryKind.GUIDANCE]
    assert guidance.role == "user" and guidance.details["observer"] == "repetition" and guidance.step == 2
    sent = [request for request in asked if request.body is not None]
    for request in sent[2:]:
        assert request.messages[guidance.ordinal].content == guidance.content, "also in the next stage"
        assert [it.content for it in request.messages] == [entry.content for entry in entries[: len(request.messages)]]
    position = entries.index(guidance)
    assert entries[position - 1].kind is EntryKind.OBSERVATION and entries[position + 1].kind is EntryKind.TURN
    bodies = [request.body for request in sent if request.body is not None]
    assert [len(body["messages"]) for body in bodies] == [len(request.messages) for request in sent]


def test_of_one_that_keeps_its_last_words_only_those_are_sent(world: RolloutWorld) -> None:
    asked: list[Request] = []
    says = Says()
    name, entries = rolled(world, PolicyModel(finishes, asked.append), [says], **ALONE)
    assert world.outcome(name)[0] == "accepted"
    own = of(entries, 1)
    assert [str(entry.kind) for entry in own] == [*START[:4], "guidance", "turn", "observation", "guidance", "turn"]
    third = [request for request in asked if request.body is not None][2]
    assert [it.content for it in third.messages if "step" in it.content] == ["You are at step 2."]
    assert [it.content for it in third.messages].count(OLD_GUIDANCE) == 1
    assert own[-1].details["dropped"] == {"below": 0, "observations": 0, "guidance": 1}
    assert [seen[-1].step for seen in says.asked] == [1, 2, 4, 5], "not after what ends an attempt"
    assert [entry.content for entry in says.asked[1]] == [entry.content for entry in own[:7]]


def test_an_observer_ends_it_and_what_it_told_last_is_kept(world: RolloutWorld) -> None:
    name, entries = rolled(world, PolicyModel(finishes), [Says(ends_after=2)], **ALONE)
    assert world.outcome(name)[::2] == ("stopped", "stage 1: stopped: enough")
    assert [str(entry.kind) for entry in entries] == [*START[:4], "guidance", "turn", "observation", "guidance"]
    assert entries[-1].details["stop"] is True


def test_guidance_stays_where_it_was_said_also_where_the_agent_begins_anew_with_a_summary(world: RolloutWorld) -> None:
    asked: list[Request] = []
    name, entries = rolled(world, PolicyModel(finishes, asked.append), [Says()], "compacts later", **ALONE)
    assert world.outcome(name)[0] == "accepted"
    own = of(entries, 1)
    assert own[1].content.startswith("You have begun.")
    sent = [[it.content for it in request.messages] for request in asked if request.body is not None]
    assert sent[1][-1] == "You are at step 1.", "behind what it was said of"
    assert sent[2] == [entry.content for entry in own[:2]], "the summary has a conversation of its own"
    assert [it.content for it in own if it.kind is EntryKind.GUIDANCE] == [f"You are at step {n}." for n in (1, 2)]
    with world.store.reading() as tx:
        (left,) = [it for it in read_branches(tx, name) if it.position == 1]
    assert len(unpacked(left.exchanges)) == left.replies == 2, "what stood before the summary"


def test_a_branch_keeps_what_its_model_was_sent_with_the_words_of_observers_and_names_them(world: RolloutWorld) -> None:
    asked: list[Request] = []

    def goes_on_looking(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        """Takes a step more than the summary comes after."""
        looks = sum(message["role"] == "assistant" for message in messages) == 2
        return bash("ls") if looks and "You have begun" not in str(messages) else finishes(messages)

    model = PolicyModel(goes_on_looking, asked.append)
    name, _ = rolled(world, model, [Says()], "compacts last", **ALONE)
    assert world.outcome(name)[0] == "accepted"
    with world.store.reading() as tx:
        (left,) = [it for it in read_branches(tx, name) if it.position == 1]
    kept = unpacked(left.exchanges)
    assert [it.body["messages"] for it in kept] == [it.body["messages"] for it in asked[:3] if it.body is not None]
    assert [it.words for it in kept] == [(), (4,), (4, 7)]
    assert [it.known for it in kept] == [0, 3, 6]
    said = [[it.body["messages"][at]["content"] for at in it.words] for it in kept]
    assert said == [[], ["You are at step 1."], [OLD_GUIDANCE, "You are at step 2."]]
    out = world.folder / "out.jsonl"
    for guidance in ("keep", "drop"):
        options = ExportOptions(branches="all", guidance=guidance)
        export(world.store, chosen_format("slime", options), options, out, force=True)
        (sample,) = [
            it for it in map(json.loads, out.read_text().splitlines()) if it["metadata"]["sample_id"] == f"{name}.1.1.0"
        ]
        messages = sample["messages"]
        assert sum(it["step_loss_mask"] for it in messages) == 3
        told = [it["content"] for it in messages if it["role"] == "user"][1:]
        assert told == (["You are at step 1.", "You are at step 2."] if guidance == "keep" else [])


def test_titles_are_not_watched(world: RolloutWorld) -> None:
    says = Says()
    rolled(world, PolicyModel(finishes), [says], mode="titles", **ALONE)
    assert len(says.asked) == 4


@pytest.mark.parametrize(("limits", "ending"), [({"calls": 2}, "call_limit"), ({"tokens": 150}, "token_limit")])
def test_limits_count_what_was_answered_and_what_it_told_last_is_kept(
    world: RolloutWorld, limits: dict[str, Any], ending: str
) -> None:
    _, entries = rolled(world, PolicyModel(finishes), stage_limits=AgentLimits(**limits), **ALONE)
    own = of(entries, 1)
    assert own[-1].kind is EntryKind.OBSERVATION and own[-1].details["program"]["ending"] == ending
