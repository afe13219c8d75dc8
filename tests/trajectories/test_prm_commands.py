"""The commands of process reward models: replay, compare, sweep, report, labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run as run_command
from sql.tables import LlmCall, PrmFinding, PrmWindow, Trajectory
from tests.endpoint import FakeEndpoint
from tests.trajectories.prmmodels import is_prm, looping, prm_reply
from tests.trajectories.rolloutworld import PolicyModel, PolicyReply, RolloutWorld, answering, rollout_world, works
from trajectories.agents.guidance.observer import make_prm
from trajectories.model import AgentLimits
from trajectories.rollouts.rollout import roll


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RolloutWorld]:
    monkeypatch.chdir(tmp_path)
    with rollout_world(tmp_path, [(1,), (2,)]) as rollouts:
        yield rollouts


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    policy = looping(lambda messages: prm_reply())
    with FakeEndpoint(answering(policy)) as fake:
        for name, value in {
            "OPENAI_BASE_URL": fake.url,
            "OPENAI_API_KEY": "",
            "PRCHAIN_LLM_MODEL": "fake",
            "PRCHAIN_LLM_PRICE_INPUT": "1",
            "PRCHAIN_LLM_PRICE_OUTPUT": "2",
            "PRCHAIN_DATA_DIR": "data",
        }.items():
            monkeypatch.setenv(name, value)
        yield fake


class Commands:
    """Runs commands over a world's database."""

    def __init__(self, world: RolloutWorld, capsys: pytest.CaptureFixture[str]) -> None:
        self.db, self.capsys = world.database, capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        ended = run_command(["prm", *words, "--db", self.db])
        output = self.capsys.readouterr()
        assert ended == code, output.err
        return output.out if code == 0 else output.err

    def row(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def prm(world: RolloutWorld, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(world, capsys)


def stored(world: RolloutWorld, until: int = 14, chain: int = 0, **fields: Any) -> str:
    """A rollout without a process reward model, which loops for a while."""
    context = world.context(
        PolicyModel(looping(until=until)), min_length=1, stage_limits=AgentLimits(steps=20), refinements=0, **fields
    )
    return roll(context, world.chains[chain], 0)


class TestReplay:
    def test_the_windows_of_stored_trajectories_are_read_once(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        name = stored(world)
        before = world.whole(name)
        estimate = prm.row("replay", "--dry-run")
        assert estimate["settings"]["D, 3 windows"]["calls"] == 3 and endpoint.calls == []
        found = prm.row("replay")
        assert found["windows"] == 3 and found["suboptimal"] == 3 and found["by_outcome"] == {"accepted": 3}
        assert found["detected"]["model"] == {"step_repetition": {"accepted": 3}}
        asked = len(endpoint.calls)
        assert prm.row("replay")["windows"] == 3 and len(endpoint.calls) == asked
        assert world.whole(name) == before, "nothing is inserted"
        rows = world.rows(PrmWindow, "last_step", "sent", "why_not", "subject", "replay")
        assert {(row[0], bool(row[1]), row[2]) for row in rows} == {
            (5, False, "replay"),
            (10, False, "replay"),
            (15, False, "replay"),
        }
        assert {row[3] for row in rows} == {f"replay/{name}/1"} and {row[4] for row in rows} == {found["replay"]}
        ((usd,),) = world.rows(Trajectory, "usd", id=name)
        assert usd == pytest.approx(sum(row[0] for row in world.rows(LlmCall, "usd", subject=f"{name}/1")))

    @pytest.mark.parametrize("words", [[], ["--json"]])
    def test_where_no_reply_can_be_read_nothing_was_done_and_the_reason_is_told_once(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands, words: list[str]
    ) -> None:
        stored(world)
        endpoint.part = answering(looping(lambda messages: "I cannot say."))
        for _ in range(2):
            err = prm("replay", *words, code=1)
            assert err.splitlines()[-1] == "no window was read: 3 unreadable" and err.count("unreadable") == 1

    def test_what_has_no_window_is_done(self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands) -> None:
        stored(world, until=1)
        assert prm.row("replay")["windows"] == 0

    def test_its_windows_are_those_that_a_guided_run_would_have_had(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        asked = []

        def listening(messages: Any) -> str:
            asked.append(messages[-1]["content"])
            return "I cannot say."

        context = world.context(
            PolicyModel(looping(listening, until=14)),
            overrides={"observers": (make_prm(),)},
            min_length=1,
            stage_limits=AgentLimits(steps=20),
            refinements=0,
        )
        name = roll(context, world.chains[0], 0)
        prm("replay", "--trajectory", name[:6])
        replayed = [call.body["messages"][-1]["content"] for call in endpoint.calls]
        assert replayed == asked and len(asked) == 3
        found: dict[bool, set[tuple[Any, ...]]] = {True: set(), False: set()}
        for window, last, replay in world.rows(PrmWindow, "id", "last_step", "replay", trajectory_id=name):
            findings = world.rows(PrmFinding, "found_by", "step", "category", "evidence", window_id=window)
            found[replay is None] |= {(last, *row) for row in findings if row[0] != "model"}
        assert found[True] == found[False] and {row[0] for row in found[True]} == {5, 10, 15}

    def test_another_model_is_another_replay_and_two_can_be_compared(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        stored(world)
        Path("prchain.toml").write_text('[purposes.other]\nmodel = "other"\nprice_input = 1\nprice_output = 1\n')
        one, other = prm.row("replay"), prm.row("replay", "--model-purpose", "other", "--prm", "C")
        assert one["replay"] != other["replay"]
        agreement = prm.row("compare", "D", other["replay"][:8])
        assert agreement["suboptimal"]["windows"] == 3 and agreement["categories"]["step_repetition"]["both"] == 3
        assert "step_repetition" in prm("compare", "D", "C")
        assert "no replay 'S'" in prm("compare", "D", "S", code=2)

    def test_it_is_scored_by_labels(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands, tmp_path: Path
    ) -> None:
        name = stored(world)
        head = "trajectory,position,attempt,last_step,category,label\n"
        Path("labels.csv").write_text(f"{head}{name},1,1,5,step_repetition,yes\n{name},1,1,15,step_repetition,yes\n")
        scores = prm.row("replay", "--against", "labels.csv")["scores"]
        assert (scores["step_repetition"]["tp"], scores["step_repetition"]["fn"]) == (2, 0)
        Path("labels.csv").write_text(f"{head}{name},1,1,6,step_repetition,yes\n")
        assert "step 6" in prm("replay", "--against", "labels.csv", code=2)
        Path("labels.csv").write_text(f"{head}{name},1,1,5,laziness,yes\n")
        assert "laziness" in prm("replay", "--against", "labels.csv", code=2)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--outcome", "nonsense"], "no trajectory with the outcome 'nonsense'"),
            (["--prm", "Q"], "'Q' is not one of"),
            (["--prm", "every=0"], "every"),
            (["--against", "no.csv"], "no.csv"),
        ],
    )
    def test_bad_input_is_one_line(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands, words: list[str], says: str
    ) -> None:
        stored(world)
        line = prm("replay", *words, code=2)
        assert says in line and len(line.strip().splitlines()) == 1

    def test_without_a_model_or_a_price_for_a_budget_nothing_is_asked(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored(world)
        monkeypatch.delenv("PRCHAIN_LLM_PRICE_INPUT")
        monkeypatch.delenv("PRCHAIN_LLM_PRICE_OUTPUT")
        assert "price" in prm("replay", "--budget", "1", code=2)
        monkeypatch.delenv("PRCHAIN_LLM_MODEL")
        assert "no model is configured" in prm("replay", code=2)
        assert endpoint.calls == []


class TestSweep:
    def test_it_rolls_out_what_is_missing_under_each_setting_and_the_report_compares(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        words = ["sweep", "--variants", "base,D", "--gate", "judge", "--stage-limits", "steps=12"]
        words += ["--backend", "unsafe-local", "--unsafe-local", "--strategy", "reference"]
        estimate = prm.row(*words, "--dry-run")["settings"]
        assert estimate["D"]["calls"] > estimate["base"]["calls"] > 0
        # Sandboxes of this backend are folders of this machine, which the fixture's chains can do without an image.
        found = prm.row(*words, "--budget", "1")
        assert found["outcomes"] == {"accepted": 2, "rejected": 2} and found["left"] == 0
        again = prm.row(*words)
        assert again["outcomes"] == {} and again["stood_before"] == 4
        subjects = [row[0] for row in world.rows(Trajectory, "id")]
        assert len(subjects) == 4

    def test_one_sweep_asks_each_policy_and_each_guide_by_its_own_model(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        Path("prchain.toml").write_text('[purposes.other]\nmodel = "other"\n[purposes.expert]\nmodel = "expert"\n')
        words = ["sweep", "--policies", "agent,other", "--guides", "self,expert", "--variants", "base,D"]
        words += ["--gate", "judge", "--stage-limits", "steps=6", "--agent", "top_p=0.9", "--limit", "1"]
        words += ["--backend", "unsafe-local", "--unsafe-local", "--strategy", "reference"]
        assert list(prm.row(*words, "--dry-run")["settings"]) == [
            "agent: base", "agent: D by self", "agent: D by expert",
            "other: base", "other: D by self", "other: D by expert",
        ]  # fmt: skip
        assert sum(prm.row(*words)["outcomes"].values()) == 6
        asked = {name: {call.body["model"] for call in endpoint.calls if is_prm(call.body["messages"]) is guides}
                 for name, guides in (("agents", False), ("guides", True))}  # fmt: skip
        assert asked == {"agents": {"fake", "other"}, "guides": {"fake", "other", "expert"}}
        agents = [call.body for call in endpoint.calls if call.body.get("tools")]
        assert agents and {(body["temperature"], body["top_p"]) for body in agents} == {(0.0, 0.9)}
        pairs = {
            (row["models"]["agent"]["model"], row["models"].get("prm", {}).get("model"))
            for (row,) in world.rows(Trajectory, "decided_by")
        }
        assert pairs == {(policy, guide) for policy in ("fake", "other") for guide in (None, policy, "expert")}
        assert [group["model"] for group in prm.row("report")["groups"]] == ["fake", "other"]
        words[2] = "agent,expert"
        again = prm.row(*words, "--dry-run")
        assert again["stood_before"] == 3
        assert list(again["settings"])[3:] == ["expert: base", "expert: D by self"], "an expert guides itself once"

    def test_policies_that_ask_the_same_model_alike_are_refused(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        Path("prchain.toml").write_text('[purposes.other]\nmodel = "fake"\ntemperature = 1\n')
        line = prm("sweep", "--policies", "agent,other", "--variants", "base", "--gate", "judge", code=2)
        assert "the policies agent and other ask the same model alike" in line and endpoint.calls == []

    def test_where_no_rollout_has_a_verdict_nothing_was_done_now_and_later(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        def mute(messages: Any) -> PolicyReply:
            return PolicyReply("I cannot say.") if "You review code" in str(messages[0]) else works(messages)

        endpoint.part = answering(mute)
        words = ["sweep", "--variants", "base", "--gate", "judge", "--stage-limits", "steps=12"]
        words += ["--backend", "unsafe-local", "--unsafe-local", "--strategy", "reference"]
        for _ in range(2):
            assert prm(*words, code=1).splitlines()[-1] == "no rollout came to a verdict"
        assert {row[0] for row in world.rows(Trajectory, "outcome")} == {"unscored"}

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--variants", "base,Q"], "no variant 'Q'"),
            (["--variants", "D,D"], "named twice"),
            (["--variants", ","], "names no setting"),
            (["--prm", "S"], "it takes KEY=VALUE,..., not 'S'"),
            (["--guides", "nobody"], "no [purposes.nobody] in prchain.toml"),
        ],
    )
    def test_bad_input_is_one_line(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands, words: list[str], says: str
    ) -> None:
        line = prm("sweep", *words, code=2)
        assert says in line and len(line.strip().splitlines()) == 1


class TestLabels:
    def test_windows_are_written_with_what_became_of_the_stage(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        stored(world)
        prm("replay")
        prm("labels", "--out", "windows.jsonl")
        rows = [json.loads(line) for line in Path("windows.jsonl").read_text().splitlines()]
        assert [row["last_step"] for row in rows] == [5, 10, 15]
        assert rows[0]["became"]["stage"] and rows[0]["next_steps"] and rows[0]["findings"]
        assert "windows.jsonl" in prm("labels", "--out", "windows.jsonl", code=2), "it is there already"

    def test_without_a_pair_nothing_is_written_and_a_choice_of_windows_is_refused(
        self, world: RolloutWorld, endpoint: FakeEndpoint, prm: Commands
    ) -> None:
        stored(world)
        prm("labels", "--beginnings", "--out", "pairs.jsonl", code=1)
        assert not Path("pairs.jsonl").exists()
        assert "takes no" in prm("labels", "--beginnings", "--variant", "D", "--out", "x", code=2)
