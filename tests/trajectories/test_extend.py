"""Accepted prefixes that are taken up where they end: which ones, with what, and what becomes of a try."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from prchain.cli import run as run_command
from prchain.core.llm.scripted import NAME
from sql.tables import LlmCall, TaskStage, Trajectory, TrajectoryMessage, TrajectoryStage
from tests.trajectories.rolloutworld import (
    OVERVIEW,
    SHORTER,
    SUBMIT,
    PolicyModel,
    PolicyReply,
    RolloutWorld,
    bash,
    part_of,
    place_of,
    rollout_world,
    works,
)
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.options import RolloutOptions
from trajectories.outcomes import outcome_of
from trajectories.rollouts.extend import ChangedOptions, ExtensionRun
from trajectories.rollouts.prefixes import Obstacle, by_options, read_prefixes
from trajectories.rollouts.rollout import roll


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RolloutWorld]:
    monkeypatch.chdir(tmp_path)
    with rollout_world(tmp_path, [(1, 2, 3, 4, 5)]) as rollouts_world:
        yield rollouts_world


def diligent(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    """The policy of the world without its draft of stage 2, so that no stage needs a refinement."""
    if "<task>" not in str(messages) or any(words in str(messages[0]["content"]) for words in ("You review", "You re")):
        return works(messages)
    return part_of(*place_of(messages))


def drafting(*positions: int) -> Any:
    """The policy of the world that hands in drafts of some stages, whatever the review says."""

    def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        position, turns, _ = place_of(messages)
        if "<task>" not in str(messages) or position not in positions:
            return diligent(messages)
        return [bash(f"echo 'value = {position}  # draft' > src/part_{position}.py"), SUBMIT][min(turns, 1)]

    return policy


def prefix_of(world: RolloutWorld, failing: int, sample: int = 0, **options: Any) -> str:
    """A rollout that ends as an accepted prefix before the stage `failing`."""
    name = roll(world.context(PolicyModel(drafting(failing)), refinements=0, **options), world.chains[0], sample)
    assert world.outcome(name)[:2] == ("accepted_prefix", failing - 1)
    return name


def extension(world: RolloutWorld, model: Any = None, changed: ChangedOptions | None = None) -> ExtensionRun:
    """A run over all prefixes, with a model of this process."""
    with world.store.reading() as tx:
        prefixes = read_prefixes(tx)
    if changed is not None:
        prefixes = [type(it)(**{**fields(it), "options": changed.of(it.options)}) for it in prefixes]
    asked = model or PolicyModel(diligent)
    runs = {
        options: world.run(world.context(asked, **{name: getattr(options, name) for name in options.__slots__}))
        for options in by_options(prefixes)
    }
    return ExtensionRun(runs, prefixes)


def fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def test_every_accepted_prefix_is_taken_up_where_it_ends_and_pays_only_for_what_follows(world: RolloutWorld) -> None:
    short, longer = prefix_of(world, 3), prefix_of(world, 5, sample=1)
    model = PolicyModel(diligent)
    report = extension(world, model).run(1, 1)
    assert report.counts == {"accepted": 2} and report.done
    assert model.count("agent") == 3 * 3 + 1 * 3, "three stages of one, one of the other"
    parents = {row[0]: row[1:] for row in world.rows(Trajectory, "parent_id", "accepted", "outcome")}
    assert parents[short] == parents[longer] == (5, "accepted")
    for prefix in (short, longer):
        ((name, step),) = world.rows(Trajectory, "id", "parent_step", parent_id=prefix)
        theirs = [row for row in world.whole(prefix)["messages"] if row["step"] <= step and row["position"] <= 4]
        shared = [row for row in theirs if row["position"] <= world.outcome(prefix)[1]]
        assert world.whole(name)["messages"][: len(shared)] == shared


def test_a_prefix_that_was_extended_is_left_alone(world: RolloutWorld) -> None:
    prefix_of(world, 4)
    assert extension(world).run(1, 1).counts == {"accepted": 1}
    with world.store.reading() as tx:
        assert read_prefixes(tx) == []
    again = extension(world).run(1, 3)
    assert again.counts == {} and again.done


def test_a_try_that_adds_no_stage_ends_as_that_stage_did_and_is_no_second_prefix(world: RolloutWorld) -> None:
    prefix = prefix_of(world, 3)
    report = extension(world, PolicyModel(drafting(3))).run(1, 1)
    assert report.counts == {"rejected": 1} and report.done
    ((name, accepted),) = world.rows(Trajectory, "id", "accepted", parent_id=prefix)
    assert accepted == 2 and world.rows(LlmCall, "id", purpose="prefix", subject=f"{name}/0") == []
    with world.store.reading() as tx:
        assert [it.id for it in read_prefixes(tx)] == [prefix]
    run = extension(world, PolicyModel(diligent))
    assert run.pending([0]).units == () and run.pending([0]).standing == 1, "that try is over"
    assert run.run(1, 2).counts == {"accepted": 1}, "a second one is another sample"


def test_tries_end_with_the_first_that_extends_its_prefix(world: RolloutWorld) -> None:
    prefix_of(world, 3)
    model = PolicyModel(diligent)
    report = extension(world, model).run(1, 3)
    assert report.counts == {"accepted": 1} and model.count("agent") == 9


def test_a_longer_prefix_takes_the_place_of_the_one_it_extends(world: RolloutWorld) -> None:
    first = prefix_of(world, 3)
    assert extension(world, PolicyModel(drafting(5))).run(1, 1).counts == {"accepted_prefix": 1}
    with world.store.reading() as tx:
        (second,) = read_prefixes(tx)
    assert second.id != first and second.accepted == 4
    assert extension(world).run(1, 1).counts == {"accepted": 1}
    with world.store.reading() as tx:
        assert read_prefixes(tx) == []


def test_one_that_stopped_at_a_limit_of_its_chain_goes_on_under_a_higher_one(world: RolloutWorld) -> None:
    context = world.context(PolicyModel(diligent), chain_limits=limits(6))
    name = roll(context, world.chains[0], 0)
    assert world.outcome(name)[:2] == ("accepted_prefix", 2) and world.stages(name)[2] == (3, "not_reached")
    assert extension(world).obstacles == {Obstacle.LIMITS: 1}
    raised = extension(world, PolicyModel(diligent), ChangedOptions({}, {"steps": 60}))
    assert raised.obstacles == {} and raised.run(1, 1).counts == {"accepted": 1}


def limits(steps: int) -> Any:
    from trajectories.model import AgentLimits

    return AgentLimits(steps)


def test_extensions_have_the_options_of_their_prefixes_and_the_run_one_budget(world: RolloutWorld) -> None:
    prefix_of(world, 3)
    prefix_of(world, 3, threshold=0.5)
    run = extension(world)
    assert len(run.runs) == 2 and run.run(2, 1).counts == {"accepted": 2}
    rows = world.rows(Trajectory, "parent_id", "options")
    thresholds = {parent: options["threshold"] for parent, options in rows if parent}
    own = {name: options["threshold"] for name, options in world.rows(Trajectory, "id", "options")}
    assert len(thresholds) == 2 and all(own[parent] == value for parent, value in thresholds.items())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((TaskStage, {"query": "Another query."}), Obstacle.TEXTS),
        ((Trajectory, {"prompts": {"system": "0"}}), Obstacle.TEXTS),
        ((Trajectory, {"model": "another"}), Obstacle.MODEL),
        ((Trajectory, {"judge": "another"}), Obstacle.MODEL),
    ],
)
def test_what_would_mix_two_models_or_two_texts_is_not_taken_up_and_counted(
    world: RolloutWorld, change: tuple[Any, dict[str, Any]], expected: Obstacle
) -> None:
    prefix_of(world, 3)
    with world.store.transaction() as tx:
        tx.connection.execute(update(change[0]).values(**change[1]))
    run = extension(world)
    assert run.obstacles == {expected: 1} and run.run(1, 1).counts == {}


def test_a_stage_without_a_state_is_not_tried_again(world: RolloutWorld) -> None:
    prefix_of(world, 3)
    with world.store.transaction() as tx:
        where = TrajectoryStage.position == 3
        tx.connection.execute(update(TrajectoryStage).where(where).values(outcome="merge_unsupported"))
    assert extension(world).obstacles == {Obstacle.STATE: 1}


def test_the_estimate_is_of_the_stages_that_are_left(world: RolloutWorld) -> None:
    prefix_of(world, 4)
    run = extension(world)
    left = run.estimate(run.pending([0]).units)
    whole = world.run(world.context(), samples=2).forecast().estimate
    assert left.calls == 2 * 30 + 2 and left.tokens_in > 0
    assert left.calls < whole.calls and left.tokens_in / left.calls > whole.tokens_in / whole.calls, "prompts are long"


def test_prefixes_and_extensions_are_exported_as_two_sets_of_the_same_chains(
    world: RolloutWorld, tmp_path: Path
) -> None:
    short, whole = prefix_of(world, 3), roll(world.context(PolicyModel(works)), world.chains[0], 1)
    assert extension(world).run(1, 1).counts == {"accepted": 1}
    ((long,),) = world.rows(Trajectory, "id", parent_id=short)
    options = ExportOptions(pairs="short-long", retell=True)
    report = export(world.store, chosen_format("slime", options), options, tmp_path / "sft.jsonl")
    sets = {
        name: [json.loads(line) for line in (tmp_path / f"sft.{name}.jsonl").read_text().splitlines()]
        for name in ("short", "long")
    }
    ids = {name: [row["metadata"]["trajectory_id"] for row in rows] for name, rows in sets.items()}
    assert ids == {"short": [short, whole], "long": [long, whole]} and report.left_out == {}
    queries = {
        name: [it["content"] for it in rows[0]["messages"] if it["role"] == "user"] for name, rows in sets.items()
    }
    assert "Task 2 of 2" in queries["short"][1] and "Task 2 of 5" in queries["long"][1], "each is told as it is"
    assert SHORTER in queries["short"][0] and OVERVIEW in queries["long"][0]
    assert len(queries["short"]) == 2 and len(queries["long"]) == 5


@pytest.mark.parametrize(
    ("stages", "shared", "expected"),
    [
        (["accepted", "accepted", "rejected"], 2, ("rejected", 2)),
        (["accepted", "accepted", "not_reached"], 2, ("accepted_prefix", 2)),
        (["accepted", "accepted", "rejected"], 1, ("accepted_prefix", 2)),
        (["accepted", "accepted", "rejected"], 0, ("accepted_prefix", 2)),
        (["accepted", "accepted", "accepted"], 2, ("accepted", 3)),
        (["accepted", "rejected", "not_reached"], 1, ("rejected", 1)),
        (["accepted", "done_early", "rejected"], 1, ("rejected", 1)),
        (["accepted", "done_early", "done_early"], 1, ("done_early", 1)),
        (["accepted", "done_early", "accepted"], 1, ("accepted", 3)),
        (["accepted", "done_early", "done_early"], 0, ("too_short", 1)),
        (["accepted", "suspected", "not_reached"], 0, ("suspected", 1)),
        (["accepted", "rejected", "not_reached"], 0, ("too_short", 1)),
    ],
)
def test_a_branch_ends_by_what_it_adds(stages: list[str], shared: int, expected: tuple[str, int]) -> None:
    assert outcome_of(stages, length=3, min_length=2, shared=shared) == expected


def test_a_branch_from_the_middle_of_a_stage_is_a_prefix_of_its_own(world: RolloutWorld) -> None:
    prefix = prefix_of(world, 3)
    steps = [row[0] for row in world.rows(TrajectoryMessage, "step", trajectory_id=prefix, position=2)]
    name = roll(
        world.context(PolicyModel(drafting(3)), refinements=0), world.chains[0], 0, parent=(prefix, max(steps) - 1)
    )
    assert world.outcome(name)[:2] == ("accepted_prefix", 2)


class TestCommand:
    @pytest.fixture
    def scripted(self, world: RolloutWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RolloutWorld:
        """A prefix, with a scripted model of its name that works on and a judge that accepts."""
        prefix_of(world, 4, backend="local")
        with world.store.transaction() as tx:
            tx.connection.execute(update(Trajectory).values(model=NAME, judge=NAME))
        lines = [
            {"purpose": "agent", "contains": "Task", "tool_calls": [{"name": "submit"}], "repeat": True},
            {"purpose": "judge", "reply": {"comment": "Good.", "score": 1.0}, "repeat": True},
        ]
        (tmp_path / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(tmp_path / "script.jsonl"))
        return world

    def test_a_dry_run_says_what_it_would_take_and_asks_nothing(
        self, scripted: RolloutWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = len(scripted.calls())
        command = ["rollouts", "extend", "--db", scripted.database, "--dry-run"]
        assert run_command([*command, "--samples", "2"]) == 0
        output = capsys.readouterr().out
        assert output.startswith("1 accepted prefix to extend\n  at most 2 rollouts\n  about ")
        assert run_command([*command, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)
        assert (row["prefixes"], row["rollouts"], row["not_taken_up"]) == (1, 1, {})
        assert len(scripted.calls()) == before

    def test_it_extends_and_a_second_run_finds_nothing_to_do(
        self, scripted: RolloutWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = ["rollouts", "extend", "--db", scripted.database]
        code = run_command(command)
        output, err = capsys.readouterr()
        ((outcome, accepted),) = [
            row[1:] for row in scripted.rows(Trajectory, "parent_id", "outcome", "accepted") if row[0]
        ]
        assert code == 1 and f"1 {outcome}; 0 done before" in output
        assert (outcome, accepted) == ("rejected", 3), "an empty patch is not accepted"
        assert err.endswith("no prefix was extended\n")
        assert run_command(command) == 1
        assert "nothing new to do; 1 done before" in capsys.readouterr().out

    def test_without_a_prefix_there_is_nothing_to_do(
        self, world: RolloutWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run_command(["rollouts", "extend", "--db", world.database]) == 0
        assert "nothing new to do; 0 done before" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--repository", "no/such"], "has not been mined"),
            (["--chain", "ffff"], "no chain's id begins with"),
            (["--unsafe-local"], "give both"),
        ],
    )
    def test_what_cannot_be_meant_is_one_line_and_exit_code_2(
        self, scripted: RolloutWorld, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
    ) -> None:
        assert run_command(["rollouts", "extend", "--db", scripted.database, *arguments]) == 2
        err = capsys.readouterr().err
        assert said in err and len(err.strip().splitlines()) == 1


def test_changed_limits_leave_the_others_as_they_are() -> None:
    options = RolloutOptions(stage_limits=limits(50), temperature=0.5)
    changed = ChangedOptions({"tokens": 9}, {"usd": 1.0}).of(options)
    assert (changed.stage_limits.steps, changed.stage_limits.tokens, changed.chain_limits.usd) == (50, 9, 1.0)
    assert changed.temperature == 0.5 and ChangedOptions({}, {}, 1.0, "local").of(options).backend == "local"
