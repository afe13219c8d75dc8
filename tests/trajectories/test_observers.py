"""Observers: made for each attempt, asked again after a kill, paid from the run's budget, named on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar

import pytest

from prchain.cli import run as run_command
from prchain.core.errors import ObserverFailed, UsageError
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.model import Message, Request, ToolCall
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import Prompt
from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.trajectories.rolloutworld import SUBMIT, PolicyModel, PolicyReply, RolloutWorld, bash, rollout_world, works
from trajectories.agents.observers.repetition import Repetition
from trajectories.agents.observers.setup import GROUP, make_observers
from trajectories.agents.scaffolds.scaffold import Advice, ObservedAttempt, Observer, ObserverKind
from trajectories.model import Entry, EntryKind
from trajectories.rollouts.rollout import roll

ATTEMPT = ObservedAttempt(None, "t/1", 0, 1, 1, "overview", "query")  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2, 3)], url=database_url) as rollouts:
        yield rollouts


class Asking:
    """A kind that asks a model about every step, and passes on the reply after the first step of an attempt."""

    name = "asking"
    version = "1"
    settings: ClassVar[Mapping[str, Any]] = {"word": "look"}
    prompts: ClassVar[Mapping[str, str]] = {"watch": "aa"}
    purposes = ("watch",)

    def __init__(self) -> None:
        self.attempts: list[tuple[int, int]] = []

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        return {"watch": (steps, 100 * steps, 10 * steps)}

    def observe(self, attempt: ObservedAttempt) -> Observer:
        self.attempts.append((attempt.position, attempt.attempt))
        prompt = Prompt.from_source("watch", b"{% block user %}x{% endblock %}")

        def advise(entries: Sequence[Entry]) -> Advice | None:
            steps = sum(entry.kind is EntryKind.TURN for entry in entries)
            prompt_text = f"You watch an agent. {attempt.query} After {steps} steps."
            question = Question(
                "watch",
                attempt.subject,
                prompt,
                (Message("user", prompt_text),),
                sample=attempt.sample,
                attempt=attempt.attempt,
            )
            words = attempt.gateway.ask(question).value
            first = sum(entry.kind is EntryKind.TURN and entry.position == attempt.position for entry in entries) == 1
            return Advice(words, details={"steps": steps}) if first else None

        return advise


def watched(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    if "You watch an agent" in str(messages[0]["content"]):
        return PolicyReply("Look at the tests.")
    return works(messages)


class TestInARollout:
    def test_a_kind_is_made_for_each_attempt_and_its_calls_stand_under_the_stage(self, world: RolloutWorld) -> None:
        kind, model = Asking(), PolicyModel(watched)
        assert isinstance(kind, ObserverKind)
        name = roll(world.context(model, overrides={"observers": (kind,)}), world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"
        assert kind.attempts == [(1, 1), (2, 1), (2, 2), (3, 1)]
        calls = world.rows(LlmCall, "subject", "attempt", purpose="watch")
        assert set(calls) == {(f"{name}/1", 1), (f"{name}/2", 1), (f"{name}/2", 2), (f"{name}/3", 1)}
        ((usd, tokens),) = world.rows(Trajectory, "usd", "tokens_in", id=name)
        assert usd == pytest.approx(len(model.asked) * 120 / 1e6) and tokens == 100 * len(model.asked)

    def test_its_advice_is_a_user_s_turn_with_its_name_and_its_details(self, world: RolloutWorld) -> None:
        name = roll(world.context(PolicyModel(watched), overrides={"observers": (Asking(),)}), world.chains[0], 0)
        guidance = world.rows(TrajectoryMessage, "role", "content", "details", trajectory_id=name, kind="guidance")
        assert len(guidance) == 3
        assert guidance[0][:2] == ("user", "Look at the tests.")
        assert guidance[0][2] == {"observer": "asking", "steps": 1}

    def test_with_one_a_chain_is_rolled_out_beside_the_one_without(self, world: RolloutWorld) -> None:
        model = PolicyModel(watched)
        without = roll(world.context(model), world.chains[0], 0)
        kind = Asking()
        with_one = roll(world.context(model, overrides={"observers": (kind,)}), world.chains[0], 0)
        assert without != with_one and kind.attempts, "it is asked, though a trajectory without it stands"
        assert roll(world.context(model), world.chains[0], 0) == without

    def test_after_a_kill_it_is_asked_again_and_the_ledger_answers(self, world: RolloutWorld) -> None:
        class Killed(BaseException):
            pass

        def cut(request: Request) -> None:
            if request.purpose == "agent" and "Task 2 of" in str(request.messages) and not done:
                done.append(True)
                raise Killed

        done: list[bool] = []
        calm = roll(world.context(PolicyModel(watched), overrides={"observers": (Asking(),)}), world.chains[0], 1)
        model = PolicyModel(watched, before=cut)
        with pytest.raises(Killed):
            roll(world.context(model, overrides={"observers": (Asking(),)}), world.chains[0], 0)
        name = roll(world.context(model, overrides={"observers": (Asking(),)}), world.chains[0], 0)
        stored = world.rows(LlmCall, "subject", "attempt", "request_hash", purpose="watch", sample=0)
        assert len(stored) == len(set(stored)) == len(world.rows(LlmCall, "id", purpose="watch", sample=1))
        columns = ("kind", "position", "attempt", "step", "tool_calls", "tree")
        ours, theirs = (world.rows(TrajectoryMessage, *columns, trajectory_id=id_) for id_ in (name, calm))
        assert ours == theirs and sum(row[0] == "guidance" for row in ours) == 3

    def test_it_counts_in_a_dry_run_and_needs_a_price_where_there_is_a_budget(self, world: RolloutWorld) -> None:
        plain = world.run(world.context()).forecast().estimate
        context = world.context(overrides={"observers": (Asking(),)})
        estimate = world.run(context).forecast().estimate
        assert estimate.calls - plain.calls == 3 * 30 and estimate.tokens_in - plain.tokens_in == 3 * 30 * 100
        assert (estimate.usd or 0) > (plain.usd or 0)
        assert "watch" in context.purposes, "so that `Gateway.check` asks for its model and its price"

    def test_a_spent_budget_ends_the_rollout_in_its_call_as_in_the_agents(self, world: RolloutWorld) -> None:
        model = PolicyModel(watched)
        context = world.context(model, overrides={"observers": (Asking(),)})
        dear = {"watch": Route(model, Price(1.0, 1000.0))}
        gateway = Gateway(context.gateway.ledger, default=context.gateway.default, routes=dear, budget_usd=1.0)
        name = roll(replace(context, gateway=gateway), world.chains[0], 0)
        assert world.outcome(name)[0] == "budget_exceeded"
        assert (model.count("agent"), model.count("watch")) == (1, 0)

    def test_one_that_breaks_ends_the_rollout_by_its_name_and_a_later_run_goes_on(self, world: RolloutWorld) -> None:
        def breaks(attempt: ObservedAttempt) -> Observer:
            def advise(entries: Sequence[Entry]) -> Advice | None:
                raise KeyError("no such key")

            return advise

        kind = Asking()
        kind.observe = breaks  # type: ignore[method-assign]
        report = world.run(world.context(PolicyModel(watched), overrides={"observers": (kind,)}), limit=1).run(1)
        assert report.counts == {"observer_failed": 1}
        assert str(report.results[0].reason).startswith("the observer asking failed: KeyError: 'no such key' (test_")
        report = world.run(world.context(PolicyModel(watched), overrides={"observers": (Asking(),)}), limit=1).run(1)
        assert report.counts == {"accepted": 1} and len(world.rows(Trajectory, "id")) == 1

    def test_one_that_cannot_be_forecast_is_named(self, world: RolloutWorld) -> None:
        def breaks(steps: float) -> Mapping[str, tuple[float, float, float]]:
            raise ZeroDivisionError

        kind = Asking()
        kind.calls = breaks  # type: ignore[method-assign]
        with pytest.raises(ObserverFailed, match="the observer asking failed: ZeroDivisionError"):
            world.run(world.context(overrides={"observers": (kind,)})).forecast()


def turn(step: int, arguments: str, result: str, *, attempt: int = 1) -> list[Entry]:
    ordinal = 2 * step
    call = ToolCall(f"c{step}", "bash", arguments)
    return [
        Entry(ordinal, 1, attempt, step, EntryKind.TURN, "assistant", "", tool_calls=(call,)),
        Entry(
            ordinal + 1, 1, attempt, step, EntryKind.OBSERVATION, "tool", result, tool_call_id=call.id, tool_name="bash"
        ),
    ]


def steps_of_advice(entries: list[list[Entry]], times: int = 3) -> list[int]:
    """The steps after which it speaks."""
    observer = Repetition(times=times).observe(ATTEMPT)
    steps, so_far = [], list[Entry]()
    for step in entries:
        so_far += step
        if observer(so_far) is not None:
            steps.append(step[0].step)
    return steps


class TestRepetition:
    def test_it_speaks_at_the_third_equal_result_and_again_after_three_more(self) -> None:
        assert steps_of_advice([turn(n, "ls", "a") for n in range(1, 8)]) == [3, 6]
        assert steps_of_advice([turn(n, "ls", "a") for n in range(1, 5)], times=2) == [2, 4]

    def test_other_calls_in_between_do_not_hide_it(self) -> None:
        steps = [turn(1, "ls", "a"), turn(2, "pwd", "/"), turn(3, "ls", "a"), turn(4, "pwd", "/x"), turn(5, "ls", "a")]
        assert steps_of_advice(steps) == [5]

    def test_another_result_or_another_attempt_is_no_repetition(self) -> None:
        assert steps_of_advice([turn(n, "ls", str(n)) for n in range(1, 9)]) == []
        assert steps_of_advice([turn(n, "ls", "a", attempt=2) for n in range(1, 9)]) == []

    def test_it_names_the_call_cut_to_a_line_s_length(self) -> None:
        observer = Repetition(times=2).observe(ATTEMPT)
        advice = observer([*turn(1, "x" * 999, "a"), *turn(2, "x" * 999, "a")])
        assert advice is not None and advice.guidance is not None and len(advice.guidance) < 500
        assert advice.details == {"call": ("bash " + "x" * 999)[:200], "times": 2, "steps": [1, 2]}

    def test_an_agent_that_goes_round_in_circles_is_told(self, world: RolloutWorld) -> None:
        def circles(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            if "<task>" not in str(messages):
                return works(messages)
            repeated = any("each time it gave the same result" in str(message["content"]) for message in messages)
            return SUBMIT if repeated else bash("ls src")

        overrides = {"observers": (Repetition(),)}
        name = roll(world.context(PolicyModel(circles), refinements=0, overrides=overrides), world.chains[0], 0)
        kinds = [row[0] for row in world.rows(TrajectoryMessage, "kind", trajectory_id=name, position=1)]
        assert kinds == ["system", "query", *["turn", "observation"] * 3, "guidance", "turn", "observation"]


def cannot_be_made() -> None:
    raise KeyError("no such key")


class TestCommandLine:
    def test_ours_is_found_by_its_entry_point(self) -> None:
        assert [point.name for point in entry_points(group=GROUP)] == ["prm", "repetition"]
        assert make_observers(["repetition"]) == (Repetition(),)
        assert make_observers(["repetition:times=5"]) == (Repetition(times=5),)

    @pytest.mark.parametrize(
        ("wanted", "says"),
        [
            (["nobody"], "there is no observer 'nobody'; known are prm, repetition"),
            (["repetition:times"], "NAME:setting=value"),
            (["repetition:times=1"], "times: Input should be greater than or equal to 2"),
            (["repetition:often=1"], "often: Extra inputs are not permitted"),
            (["repetition", "repetition:times=4"], "named twice"),
        ],
    )
    def test_what_cannot_be_meant_is_one_line(self, wanted: list[str], says: str) -> None:
        with pytest.raises(UsageError) as caught:
            make_observers(wanted)
        assert says in str(caught.value) and "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("place", "says"),
        [("no.such:Thing", "cannot be loaded"), ("json:dumps", "the observer x"), ("builtins:dict", "is none")],
    )
    def test_a_strangers_that_does_not_work_is_one_line(
        self, monkeypatch: pytest.MonkeyPatch, place: str, says: str
    ) -> None:
        point = EntryPoint("x", place, GROUP)
        monkeypatch.setattr("trajectories.agents.observers.setup.entry_points", lambda group: [point])
        with pytest.raises(UsageError, match=says):
            make_observers(["x"])

    def test_a_strangers_that_cannot_be_made_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        point = EntryPoint("x", f"{__name__}:cannot_be_made", GROUP)
        monkeypatch.setattr("trajectories.agents.observers.setup.entry_points", lambda group: [point])
        with pytest.raises(ObserverFailed, match="the observer x failed: KeyError: 'no such key'"):
            make_observers(["x"])

    def test_it_is_named_in_run_list_and_card(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        script = tmp_path / "script.jsonl"
        lines = [
            {
                "purpose": "agent",
                "contains": "each time it gave the same result",
                "repeat": True,
                "tool_calls": [{"name": "submit"}],
            },
            {
                "purpose": "agent",
                "repeat": True,
                "tool_calls": [{"name": "bash", "arguments": {"command": "echo x >> new.py"}}],
            },
            {"purpose": "judge", "reply": {"comment": "Good.", "score": 1.0}, "repeat": True},
        ]
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(script))
        with rollout_world(tmp_path, [(1, 2, 3)]) as world:
            common = ["--db", world.database]
            flags = ["--backend", "local", "--agent", "context=stage", "--observer", "repetition:times=2"]
            assert run_command(["rollouts", "run", *common, *flags]) == 0
            assert "1 accepted" in capsys.readouterr().out
            assert run_command(["rollouts", "list", *common]) == 0
            assert "observed by repetition:times=2" in capsys.readouterr().out
            assert (
                run_command(["export", *common, "--format", "openai", "--out", "x.jsonl", "--outcome", "accepted"]) == 0
            )
            card = json.loads((tmp_path / "x.jsonl.card.json").read_text())
            assert card["settings"][0]["observers"] == ["repetition:times=2"]
            assert "repetition:times=2" in (tmp_path / "x.jsonl.card.md").read_text()
