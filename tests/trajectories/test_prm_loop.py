"""A process reward model in the loop: what its words change, what is stored, and what a run without it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run as run_command
from prchain.core import errors
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request
from prchain.core.llm.price import Price
from sql.tables import LlmCall, PrmFinding, PrmWindow, Trajectory, TrajectoryMessage
from tests.trajectories.prmmodels import LOOK, TOLD, is_prm, looping, prm_reply
from tests.trajectories.rolloutworld import PolicyModel, RolloutWorld, rollout_world
from trajectories.agents.guidance.observer import PrmKind, make_prm
from trajectories.agents.guidance.settings import PURPOSE, PrmSettings
from trajectories.agents.scaffolds.scaffold import ObserverKind, SampledKind
from trajectories.model import AgentLimits
from trajectories.rollouts.rollout import RunContext, roll

LIMIT = 12


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1,), (1, 2)], url=database_url) as rollouts:
        yield rollouts


def context(world: RolloutWorld, model: Any, *kinds: PrmKind, **options: Any) -> RunContext:
    chosen: dict[str, Any] = {"min_length": 1, "stage_limits": AgentLimits(steps=LIMIT), "refinements": 0} | options
    return world.context(model, overrides={"observers": kinds}, **chosen)


def guided(world: RolloutWorld, prm: Callable[..., str] | None = None, chain: int = 0, **settings: str) -> str:
    """A rollout with a process reward model; the trajectory's id."""
    policy = looping() if prm is None else looping(prm)
    return roll(context(world, PolicyModel(policy), make_prm(**settings)), world.chains[chain], 0)


def steps(world: RolloutWorld, trajectory: str) -> int:
    ((count,),) = world.rows(Trajectory, "steps", id=trajectory)
    return int(count)


def end_tree(world: RolloutWorld, trajectory: str) -> Any:
    return [row[0] for row in world.rows(TrajectoryMessage, "tree", trajectory_id=trajectory) if row[0]][-1:]


class TestWhatItsWordsChange:
    def test_an_agent_that_loops_is_brought_back_and_needs_fewer_steps_for_the_tree(self, world: RolloutWorld) -> None:
        slow = PolicyModel(looping(until=20))
        alone = roll(context(world, slow, stage_limits=AgentLimits(steps=40)), world.chains[0], 0)
        name = guided(world)
        assert world.outcome(name)[0] == "accepted"
        assert steps(world, name) == 5 + 3 < steps(world, alone)
        assert end_tree(world, name) == end_tree(world, alone) != []

    def test_it_loops_on_where_nobody_is_asked_or_says_something_else(self, world: RolloutWorld) -> None:
        silent = guided(world, schedule="none")
        altered = guided(world, lambda messages: prm_reply("Go on as you do."))
        for name in (silent, altered):
            assert world.outcome(name)[0] == "rejected" and steps(world, name) == LIMIT
        assert world.rows(PrmWindow, "id", trajectory_id=silent) == []
        assert world.rows(LlmCall, "id", purpose=PURPOSE, subject=f"{silent}/1") == []

    def test_it_is_asked_after_every_fifth_step_but_the_last(self, world: RolloutWorld) -> None:
        name = guided(world, lambda messages: prm_reply("Go on as you do."), every="4")
        windows = world.rows(PrmWindow, "first_step", "last_step", trajectory_id=name)
        assert sorted(windows) == [(1, 4), (1, 8)], "step 12 is the last"


class TestWhatIsStored:
    def test_a_window_with_its_findings_its_guidance_and_what_it_cost(self, world: RolloutWorld) -> None:
        name = guided(world)
        columns = ("position", "attempt", "subject", "first_step", "last_step", "variant", "model", "status")
        ((*place, id_, suboptimal, guidance, sent, why_not, fault, tokens, usd),) = world.rows(
            PrmWindow,
            *columns,
            "id",
            "suboptimal",
            "guidance",
            "sent",
            "why_not",
            "fault",
            "tokens_in",
            "usd",
            trajectory_id=name,
        )
        assert place == [1, 1, f"{name}/1", 1, 5, "D", "fake", "needs_correction"]
        assert (bool(suboptimal), guidance, bool(sent), why_not, fault) == (True, TOLD + " now.", True, None, None)
        assert (tokens, usd) == (100, pytest.approx(120 / 1e6))
        found = world.rows(PrmFinding, "category", "found_by", "step", "kept", window_id=id_)
        assert ("step_repetition", "model", 5, True) in [(*row[:3], bool(row[3])) for row in found]
        assert {by for _, by, *_ in found} > {"model"}, "detectors found it, too"
        ((details, content),) = world.rows(TrajectoryMessage, "details", "content", trajectory_id=name, kind="guidance")
        assert details == {"observer": "prm", "window": id_}
        assert LOOK in content and TOLD in content and "needs correction" in content

    def test_a_quote_that_stands_nowhere_is_dropped_and_counted(self, world: RolloutWorld) -> None:
        name = guided(world, lambda messages: prm_reply(evidence="cat CONTRIBUTING.md"))
        ((id_, suboptimal),) = world.rows(PrmWindow, "id", "suboptimal", trajectory_id=name)
        assert suboptimal, "its status is not on track"
        ((kept, why, step),) = world.rows(PrmFinding, "kept", "why", "step", window_id=id_, found_by="model")
        assert (bool(kept), why, step) == (False, "unquoted", None)
        ((content,),) = world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="guidance")
        assert "CONTRIBUTING" not in content and TOLD in content

    def test_with_any_evidence_what_is_no_quote_is_told_and_counts_too(self, world: RolloutWorld) -> None:
        def watched(messages: Sequence[Mapping[str, Any]]) -> str:
            return prm_reply(evidence="Agent ran the same command three times.", status="On track")

        quoted, any_ = (guided(world, watched, evidence=evidence) for evidence in ("quoted", "any"))
        assert quoted != any_
        for name, counts in ((quoted, False), (any_, True)):
            for id_, suboptimal in world.rows(PrmWindow, "id", "suboptimal", trajectory_id=name):
                ((kept, why),) = world.rows(PrmFinding, "kept", "why", window_id=id_, found_by="model")
                assert (bool(suboptimal), bool(kept), why) == (counts, counts, None if counts else "unquoted")
            contents = [row[0] for row in world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="guidance")]
            assert contents and all(("three times" in content) is counts for content in contents)

    def test_the_default_of_evidence_is_in_no_id(self) -> None:
        assert PrmSettings(evidence="quoted").decided == PrmSettings().decided
        assert PrmSettings(evidence="any").decided == {**PrmSettings().decided, "evidence": "any"}
        simple, with_any = (PrmSettings.model_validate({"variant": "S", **more}) for more in ({}, {"evidence": "any"}))
        assert with_any.decided == simple.decided, "it has no findings"

    @pytest.mark.parametrize(
        ("reply", "fault"),
        [
            ("I think all is well.", "unreadable"),
            (prm_reply(status="Perhaps"), "unreadable"),
            (prm_reply(guidance=""), "unreadable"),
            ("", "bad_reply"),
        ],
    )
    def test_a_reply_that_cannot_be_read_is_not_inserted_and_counted(
        self, world: RolloutWorld, reply: str, fault: str
    ) -> None:
        name = guided(world, lambda messages: reply)
        rows = world.rows(PrmWindow, "fault", "sent", "why_not", "suboptimal", trajectory_id=name)
        assert rows == [(fault, False, fault, None)] * 2, "of steps 5 and 10"
        assert world.rows(TrajectoryMessage, "ordinal", trajectory_id=name, kind="guidance") == []
        assert world.outcome(name)[0] == "rejected", "the rollout goes on to its limit"

    def test_replies_can_be_told_as_they_came_whether_or_not_they_can_be_read(self, world: RolloutWorld) -> None:
        """SWE-PRM, section 3.2.2, tells of no frame, and of no check."""

        def told(reply: str, **settings: str) -> list[str]:
            name = guided(world, lambda messages: reply, 0, words="raw", **settings)
            rows = world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="guidance")
            sent = [bool(row[0]) for row in world.rows(PrmWindow, "sent", trajectory_id=name)]
            assert sent == ([True] * len(rows) or [False] * len(sent))
            return [row[0] for row in rows]

        reply = prm_reply("Go on.", action="press the button")
        assert told(reply, variant="DR") == [reply] * 2, "the call, too, which is none of the agent's"
        assert told(prm_reply("Go on."), variant="DG") == ["Go on."] * 2
        assert told("I think all is well.") == ["I think all is well."] * 2
        assert told("I think all is well.", variant="CG") == [], "it reads guidance alone, and there is none"
        assert "words" not in PrmSettings(words="framed").decided

    def test_a_window_that_is_on_track_is_told_or_not(self, world: RolloutWorld) -> None:
        def fine(messages: Sequence[Mapping[str, Any]]) -> str:
            return prm_reply("Go on.", status="On track", category="")

        told = guided(world, fine)
        assert [bool(row[0]) for row in world.rows(PrmWindow, "sent", trajectory_id=told)] == [True, True]
        silent = guided(world, fine, send="suboptimal")
        assert set(world.rows(PrmWindow, "sent", "why_not", "suboptimal", trajectory_id=silent)) == {
            (False, "on_track", False)
        }
        assert world.rows(TrajectoryMessage, "ordinal", trajectory_id=silent, kind="guidance") == []

    def test_a_recommended_action_is_kept_where_it_is_a_call_of_the_agent_s(self, world: RolloutWorld) -> None:
        for action, kept in ((f"bash {LOOK}", 'bash {"command": "cat README.md"}'), ("press the button", None)):
            reply = prm_reply(action=action)
            name = guided(world, lambda messages, reply=reply: reply, chain=0, variant="DR", every="5" if kept else "4")
            ((action_row, sent),) = world.rows(PrmWindow, "recommended_action", "sent", trajectory_id=name)
            assert (action_row, bool(sent)) == (kept, True)
            ((content,),) = world.rows(TrajectoryMessage, "content", trajectory_id=name, kind="guidance")
            assert ("It recommends" in content) == bool(kept)

    def test_it_is_sampled_as_in_the_paper_where_the_settings_do_not_say(self, world: RolloutWorld) -> None:
        model = PolicyModel(looping())
        name = roll(context(world, model, make_prm()), world.chains[0], 0)
        (asked,) = [request for request in model.asked if request.purpose == PURPOSE]
        assert (asked.temperature, asked.top_p) == (0.0, 1.0)
        ((decided,),) = world.rows(Trajectory, "decided_by", id=name)
        assert decided["models"][PURPOSE] == {
            "model": "fake",
            "max_tokens": 4096,
            "temperature": 0.0,
            "top_p": 1.0,
        }

    def test_a_guess_of_what_the_reference_has_is_sent_and_noted(self, world: RolloutWorld) -> None:
        name = guided(world, lambda messages: prm_reply(f"{TOLD}: define part_number_1 there."))
        ((leaks, sent),) = world.rows(PrmWindow, "leaks", "sent", trajectory_id=name)
        assert sent and "part_number_1" in str(leaks)
        clean = guided(world, every="6")
        assert world.rows(PrmWindow, "leaks", trajectory_id=clean) == [([],)]


class TestIdentity:
    def test_each_choice_is_a_trajectory_of_its_own_and_equal_ones_are_the_same(self, world: RolloutWorld) -> None:
        names = {
            key: roll(context(world, PolicyModel(looping()), make_prm(**settings)), world.chains[0], 0)
            for key, settings in {
                "D": {},
                "axes": {"style": "detailed", "example": "yes", "reads": "all", "action": "no"},
                "named": {"variant": "D", "every": "5", "window": "8", "keep": "all"},
                "DN": {"variant": "DN"},
                "every": {"every": "6"},
            }.items()
        }
        assert names["D"] == names["axes"] == names["named"]
        assert len(set(names.values())) == 3

    def test_a_run_without_one_asks_and_stores_what_it_did_before(self, world: RolloutWorld) -> None:
        model = PolicyModel(looping(until=0))
        name = roll(context(world, model), world.chains[0], 0)
        ((decided,),) = world.rows(Trajectory, "decided_by", id=name)
        assert "prm" not in decided and "observers" not in decided
        assert {request.purpose for request in model.asked} == {"agent", "judge"}
        assert world.rows(PrmWindow, "id") == [] and "prm" not in world.context().purposes

    def test_the_kind_is_one_that_says_how_it_is_sampled(self) -> None:
        kind = make_prm(variant="S")
        assert isinstance(kind, ObserverKind) and isinstance(kind, SampledKind)
        assert kind.settings == {
            "style": "simple",
            "example": False,
            "reads": "all",
            "action": False,
            "every": 5,
            "window": 8,
        }

    def test_another_taxonomy_is_another_trajectory_by_its_content(self, tmp_path: Path) -> None:
        text = '[[families]]\nname="f"\ntitle="Ways"\nabout="x"\n[[families.categories]]\n'
        text += 'name="waste"\ntitle="Waste"\ndefinition="d"\nrecovery="r"\n'
        one, other = tmp_path / "one.toml", tmp_path / "other.toml"
        one.write_text(text)
        other.write_text(text)
        assert make_prm(taxonomy=str(one)).settings == make_prm(taxonomy=str(other)).settings
        assert make_prm(taxonomy=str(one)).settings != make_prm().settings


class TestChains:
    def test_a_later_stage_s_window_does_not_reach_back_into_the_one_before(self, world: RolloutWorld) -> None:
        name = guided(world, chain=1)
        windows = world.rows(PrmWindow, "position", "first_step", "last_step", trajectory_id=name)
        assert sorted(windows) == [(1, 1, 5), (2, 9, 13)]
        assert world.outcome(name)[0] == "accepted"

    def test_only_the_last_words_stay_where_that_is_wanted(self, world: RolloutWorld) -> None:
        words = iter(f"Go on, number {number}." for number in range(9))
        model = PolicyModel(looping(lambda messages: prm_reply(next(words))))
        roll(context(world, model, make_prm(keep="last", every="3")), world.chains[0], 0)
        last = [request for request in model.asked if request.purpose == "agent"][-1]
        told = [message.content for message in last.messages if "Go on, number" in message.content]
        assert len(told) == 1 and "number 2" in told[0]


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "outcome"),
        [
            (errors.ContextTooLong("too long"), None),
            (errors.EndpointUnreachable("gone"), "endpoint_unreachable"),
            (errors.EndpointRefused("bad key"), "endpoint_refused"),
            (errors.RateLimited("later"), "rate_limited"),
        ],
    )
    def test_what_a_call_raises_skips_the_window_or_ends_the_run_as_elsewhere(
        self, world: RolloutWorld, fault: errors.LlmError, outcome: str | None
    ) -> None:
        def fails(request: Request) -> None:
            if request.purpose == PURPOSE:
                raise fault

        name = roll(context(world, PolicyModel(looping(), fails), make_prm()), world.chains[0], 0)
        if outcome is not None:
            assert world.outcome(name)[0] == outcome
            after = roll(context(world, PolicyModel(looping()), make_prm()), world.chains[0], 0)
            assert after == name and world.outcome(name)[0] == "accepted"
        else:
            assert world.rows(PrmWindow, "fault", trajectory_id=name) == [("context_too_long",)] * 2
            assert world.outcome(name)[0] == "rejected"

    def test_a_refusal_skips_the_window(self, world: RolloutWorld) -> None:
        class Refusing(PolicyModel):
            def complete(self, request: Request) -> Reply:
                reply = super().complete(request)
                return Reply("", "fake", "stop", refusal="no") if request.purpose == PURPOSE else reply

        name = roll(context(world, Refusing(looping()), make_prm()), world.chains[0], 0)
        assert world.rows(PrmWindow, "fault", trajectory_id=name) == [("model_refused",)] * 2

    def test_a_spent_budget_ends_the_rollout_in_its_call(self, world: RolloutWorld) -> None:
        model = PolicyModel(looping())
        plain = context(world, model, make_prm())
        dear = {PURPOSE: Route(model, Price(1.0, 1000.0))}
        gateway = Gateway(plain.gateway.ledger, default=plain.gateway.default, routes=dear, budget_usd=1.0)
        name = roll(RunContext(**{**plain.__dict__, "gateway": gateway}), world.chains[0], 0)
        assert world.outcome(name)[0] == "budget_exceeded" and model.count(PURPOSE) == 0

    def test_the_ledger_and_the_trajectory_agree_on_what_was_paid(self, world: RolloutWorld) -> None:
        name = guided(world, chain=1)
        calls = world.rows(LlmCall, "usd", "tokens_in", "tokens_out")
        ((usd, tokens_in, tokens_out),) = world.rows(Trajectory, "usd", "tokens_in", "tokens_out", id=name)
        assert usd == pytest.approx(sum(row[0] for row in calls), abs=1e-9)
        assert (tokens_in, tokens_out) == (sum(row[1] for row in calls), sum(row[2] for row in calls))
        prm = sum(row[0] for row in world.rows(LlmCall, "usd", purpose=PURPOSE))
        assert prm == pytest.approx(sum(row[0] for row in world.rows(PrmWindow, "usd", trajectory_id=name)))


class TestCommands:
    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--prm", "X"], "'X' is not one of"),
            (["--prm", "every=0"], "every"),
            (["--prm", "D:window=0"], "window"),
            (["--prm", "D:style=simple"], "variant D says what style is"),
            (["--prm", "S:reply=json"], "no reply in JSON"),
            (["--prm", "style=simple,example=on"], "free prose"),
            (["--prm", "D:evry=3"], "did you mean every?"),
            (["--prm", "taxonomy=no/such.toml"], "cannot be read"),
            (["--prm", "taxonomy=pyproject.toml"], "the taxonomy"),
        ],
    )
    def test_bad_input_is_one_line(
        self, world: RolloutWorld, flags: list[str], words: str, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        monkeypatch.setenv("PRCHAIN_LLM_MODEL", "fake")
        db = str(world.store.url.render_as_string(hide_password=False))
        code = run_command(["rollouts", "run", "--db", db, "--backend", "unsafe-local", "--unsafe-local", *flags])
        output = capsys.readouterr()
        assert code == 2 and words in output.err and len(output.err.strip().splitlines()) == 1, output.err

    def test_a_dry_run_counts_its_calls(self, world: RolloutWorld) -> None:
        plain = world.run(world.context()).forecast().estimate
        estimate = world.run(world.context(overrides={"observers": (make_prm(),)})).forecast().estimate
        stages = 3
        assert estimate.calls - plain.calls == stages * ((30 - 1) // 5)
        none = world.run(world.context(overrides={"observers": (make_prm(schedule="none"),)})).forecast().estimate
        assert none == plain

    def test_a_variant_cannot_be_asked_for_twice(self) -> None:
        with pytest.raises(UsageError, match="named twice"):
            from trajectories.agents.observers.setup import make_observers

            make_observers(("prm:variant=D", "prm:variant=S"))


def test_a_request_of_the_policy_is_told_from_one_of_the_model() -> None:
    assert is_prm([{"content": "You supervise a coding agent that ..."}]) and not is_prm([{"content": "You work"}])
