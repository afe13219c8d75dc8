"""Identities: what changes an id, how an old row is recognised, and which stored trajectories match."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy import select, update

from environments.backends import BACKENDS
from prchain.core.errors import EndpointRefused, UsageError
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.prompts import Prompt
from prchain.core.settings import Settings
from sql.lock import exclusive_lock
from sql.store import Store
from sql.tables import StageTests, Task, TaskStage, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from tests.trajectories.rolloutworld import PolicyModel, RolloutWorld, rollout_world
from tests.trajectories.test_rollout import suited
from trajectories.agents.observers.repetition import Repetition
from trajectories.identity import CHOICES, INPUTS, PLACE, Identity, differences, stored
from trajectories.model import AgentLimits, Entry, EntryKind
from trajectories.options import DEFAULTS, ELSEWHERE, RolloutOptions
from trajectories.outcomes import FINAL, KEPT, SUPERSEDED
from trajectories.rollouts import standing
from trajectories.rollouts.rollout import RunContext, roll
from trajectories.rollouts.run import RolloutRun
from trajectories.rollouts.standing import StoredTrajectory
from trajectories.rows import write_entries

OTHER_OPTIONS: dict[str, Any] = {
    "scaffold": "mini",
    "tools": "bash",
    "context": "stage",
    "carry": "none",
    "history": 1,
    "gate": "both",
    "threshold": 0.5,
    "refinements": 1,
    "on_fail": "continue",
    "min_length": 3,
    "stage_limits": AgentLimits(steps=7),
    "chain_limits": AgentLimits(usd=1.0),
    "temperature": 1.0,
    "top_p": 0.5,
    "max_tokens": 5,
    "context_tokens": 8193,
    "overflow": "elide",
    "observation_chars": 5,
    "command_timeout": 5.0,
    "test_timeout": 5.0,
    "track_steps": False,
    "interface": "paper",
    "tests": "gate",
    "judge_sees": "tests",
    "audited_by": "model",
    "calls": "text",
    "shell": "swe-agent",
    "backend": "local",
    "observers": ("repetition",),
}

WHOLE = Identity(
    "5f0c" * 4,
    1,
    ("81c2" * 4, 17),
    models={"agent": {"model": "m", "max_tokens": 8192, "temperature": 0.5}, "judge": {"model": "j", "max_tokens": 4}},
    scaffold="react",
    observers=({"name": "repetition", "settings": {"times": 3}},),
    options={"gate": "both"},
    task="aa",
    proof="bb",
    prompts={"judge": "1", "query": "2"},
    tools="cc",
    versions={"react": "1", "repetition": "1"},
)


class TestRule:
    def test_ids_are_those_that_were_made_when_the_rule_was_written(self) -> None:
        # A change here is a change of every stored id: then a run would pay for everything anew.
        assert Identity("5f0c" * 4, 0).id == "1c6339af7ae6b981"
        assert WHOLE.id == "68945dec1a8a20db"

    @pytest.mark.parametrize("name", [field.name for field in fields(Identity)])
    def test_each_field_decides_the_id_and_is_named_where_it_differs(self, name: str) -> None:
        value = getattr(WHOLE, name)
        other: Any = {"more": "x"} if isinstance(value, Mapping) else "other"
        other = 2 if name == "sample" else ("p", 3) if name == "parent" else () if name == "observers" else other
        changed = replace(WHOLE, **{name: other})
        assert changed.id != WHOLE.id
        assert differing_fields(WHOLE, changed) == {name}
        assert differing_fields(changed, WHOLE) == {name}

    def test_every_field_is_a_place_a_choice_or_an_input(self) -> None:
        assert sorted((*PLACE, *CHOICES, *INPUTS)) == sorted(field.name for field in fields(Identity))

    def test_a_field_that_is_empty_is_not_named_so_that_a_new_one_changes_no_id(self) -> None:
        assert Identity("c", 0).row() == {"rule": 2, "chain": "c", "sample": 0, "scaffold": "react"}

    def test_a_proof_that_came_later_matters_where_the_judge_sees_tests(self) -> None:
        known = stored(replace(WHOLE, proof=None, options={}).row())
        assert differences(known, stored(replace(WHOLE, options={}).row())) == set()
        sees = {"judge_sees": "tests"}
        known = stored(replace(WHOLE, proof=None, options=sees).row())
        assert differences(known, stored(replace(WHOLE, options=sees).row())) == {"proof"}

    def test_what_is_partly_known_counts_as_equal_in_the_rest(self) -> None:
        current = stored(WHOLE.row())
        known: dict[str, Any] = {"models": {"agent": {"model": "m"}}, "prompts": {"query": "2"}}
        assert differences(known, current, whole=False) == set()
        assert differences({"prompts": {"query": "3"}}, current, whole=False) == {"prompts"}
        assert differences({"prompts": {"gone": "1"}}, current, whole=False) == {"prompts"}
        assert differences({"models": {"judge": None}}, current, whole=False) == {"models"}


def differing_fields(known: Identity, current: Identity) -> set[str]:
    return differences(stored(known.row()), stored(current.row()))


Rolled = tuple[RolloutWorld, str]
"""A world whose chain is rolled out, and the trajectory."""


@pytest.fixture(scope="module")
def first_world(tmp_path_factory: pytest.TempPathFactory) -> RolloutWorld:
    """A world that is closed: tests work on copies of its database, and beside each other in its folder."""
    with rollout_world(tmp_path_factory.mktemp("world"), [(1, 2, 3)]) as rollouts:
        return rollouts


@pytest.fixture(scope="module")
def first_rolled(tmp_path_factory: pytest.TempPathFactory) -> Rolled:
    """As `first_world`."""
    with rollout_world(tmp_path_factory.mktemp("rolled"), [(1, 2, 3)]) as rollouts:
        return rollouts, roll(rollouts.context(), rollouts.chains[0], 0)


@contextmanager
def copied(made: RolloutWorld, database: Path) -> Iterator[RolloutWorld]:
    """A closed world, with a copy of its database."""
    store = Store.open(str(shutil.copy(made.database, database)))
    yield replace(made, store=store)
    store.close()


@pytest.fixture
def world(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[RolloutWorld]:
    """The test's own."""
    if database_kind == "sqlite":
        with copied(request.getfixturevalue("first_world"), tmp_path / "prchain.db") as rollouts:
            yield rollouts
    else:
        with rollout_world(tmp_path, [(1, 2, 3)], url=request.getfixturevalue("postgres_url")) as rollouts:
            yield rollouts


@pytest.fixture
def rolled(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[Rolled]:
    """The test's own."""
    if database_kind == "sqlite":
        made, name = request.getfixturevalue("first_rolled")
        with copied(made, tmp_path / "rolled.db") as rollouts:
            yield rollouts, name
    else:
        rollouts = request.getfixturevalue("world")
        yield rollouts, roll(rollouts.context(), rollouts.chains[0], 0)


def identity(world: RolloutWorld, context: RunContext | None = None, sample: int = 0) -> Identity:
    context = context or world.context()
    with world.store.reading() as tx:
        return context.find(tx, world.chains[0], sample)[0]


def with_options(world: RolloutWorld, **options: Any) -> RunContext:
    """A context with other options; the scaffold stays, since mini-swe-agent may not be installed."""
    base = world.context()
    return replace(base, options=replace(base.options, **options))


class TestTable:
    """Each input of a run: whether it changes the id."""

    @pytest.mark.parametrize("name", sorted(DEFAULTS))
    def test_an_option_changes_the_id(self, world: RolloutWorld, name: str) -> None:
        prove(world)
        needed = {"gate": "judge+audit"} if name == "audited_by" else {}
        base = identity(world, with_options(world, **needed))
        assert identity(world, with_options(world, **needed, **{name: OTHER_OPTIONS[name]})).id != base.id

    def test_options_that_are_named_elsewhere_do_so_there(self, world: RolloutWorld) -> None:
        assert OTHER_OPTIONS.keys() == {field.name for field in fields(RolloutOptions)}
        base = identity(world)
        for name in ELSEWHERE - {"scaffold", "observers"}:
            assert identity(world, with_options(world, **{name: OTHER_OPTIONS[name]})).models != base.models

    def test_no_line_of_the_frozen_table_has_changed(self) -> None:
        # Lines are added, with the value that held before there was the option; none is ever changed.
        frozen = {
            "backend": "docker",
            "carry": "agent",
            "chain_limits": {},
            "command_timeout": 120.0,
            "context": "chain",
            "context_tokens": None,
            "gate": "judge",
            "history": 0,
            "interface": "appended",
            "judge_sees": "patches",
            "audited_by": "rules",
            "calls": "native",
            "min_length": 2,
            "observation_chars": 10000,
            "on_fail": "stop",
            "overflow": "stop",
            "refinements": 3,
            "stage_limits": {"steps": 100},
            "test_timeout": 900.0,
            "tests": "always",
            "threshold": 0.8,
            "tools": "full",
            "track_steps": True,
        }
        assert {name: DEFAULTS[name] for name in frozen} == frozen

    def test_a_limit_that_is_added_later_changes_no_id(self) -> None:
        later = {**asdict(RolloutOptions())["stage_limits"], "calls": None}
        assert {unit: most for unit, most in later.items() if most is not None} == DEFAULTS["stage_limits"]

    def test_scaffold_and_its_version(self, world: RolloutWorld) -> None:
        base, context = identity(world), world.context()
        for name, value in (("name", "other"), ("version", "other")):
            other = world.context()
            setattr(other.scaffold, name, value)
            assert identity(world, other).id != base.id
        assert identity(world, context).id == base.id

    def test_tool_descriptions(self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        base, other = identity(world), world.context()
        schemas = json.loads(json.dumps([dict(tool) for tool in other.scaffold.tools]))
        schemas[0]["function"]["description"] += " Be careful."
        monkeypatch.setattr(type(other.scaffold), "tools", property(lambda self: tuple(schemas)))
        changed = identity(world, other)
        assert changed.tools != base.tools and changed.id != base.id

    @pytest.mark.parametrize("name", ["system_full", "query", "comment", "judge", "comment_again", "prefix"])
    def test_every_prompt(self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        base = identity(world)
        edit_prompt(monkeypatch, name)
        assert identity(world).id != base.id and identity(world).prompts[name] != base.prompts[name]

    def test_a_prompt_that_is_not_in_use_does_not(self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        prove(world)
        by_tests = identity(world, world.context(gate="tests"))
        never_cut = identity(world, world.context(min_length=3))
        for name in ("judge", "comment_again"):
            edit_prompt(monkeypatch, name)
        assert identity(world, world.context(gate="tests")).id == by_tests.id, "no judge is asked"
        monkeypatch.undo()
        edit_prompt(monkeypatch, "prefix")
        assert identity(world, world.context(min_length=3)).id == never_cut.id, "no overview is written anew"

    def test_models_and_their_sampling_settings(self, world: RolloutWorld) -> None:
        base = identity(world)
        gateway = world.context().gateway
        default = gateway.default
        assert default is not None
        for route in (
            Route(PolicyModel(name="other"), default.price),
            Route(default.model, default.price, temperature=0.3),
            Route(default.model, default.price, max_tokens=77),
            Route(default.model, default.price, top_p=0.9),
        ):
            context = replace(
                world.context(), gateway=Gateway(gateway.ledger, default=default, routes={"judge": route})
            )
            assert identity(world, context).id != base.id
        other = Gateway(gateway.ledger, default=Route(PolicyModel(name="other"), default.price))
        assert identity(world, replace(world.context(), gateway=other)).id != base.id

    def test_texts_of_the_task_and_the_proof_where_tests_gate(self, world: RolloutWorld) -> None:
        base, gated = identity(world), identity(world, world.context(gate="tests"))
        with world.store.transaction() as tx:
            tx.connection.execute(update(TaskStage).where(TaskStage.position == 2).values(query="Something else."))
        second = identity(world)
        assert second.id != base.id
        with world.store.transaction() as tx:
            tx.connection.execute(update(Task).values(overview="Another overview."))
        third = identity(world)
        assert third.id != second.id
        prove(world)
        assert identity(world, world.context(tests="gate")).proof is None, "tests do not run"
        proved = identity(world, world.context(gate="tests"))
        assert gated.proof is None and proved.proof is not None
        assert identity(world).id != third.id, "tests that run can end a stage whose state they find broken"
        prove(world, f2p="test_other")
        assert identity(world, world.context(gate="tests")).id != proved.id

    def test_names_that_the_agent_is_told_beside_the_query(self, world: RolloutWorld) -> None:
        base = identity(world)
        with world.store.transaction() as tx:
            tx.connection.execute(update(TaskStage).where(TaskStage.position == 1).values(interface=["part"]))
        assert identity(world).task != base.task
        assert identity(world, with_options(world, interface="paper")).task == base.task

    def test_observers_their_settings_versions_and_prompts(self, world: RolloutWorld) -> None:
        class Worded(Repetition):
            prompts: ClassVar[Mapping[str, str]] = {"watch": "aa"}

        class Newer(Repetition):
            version: ClassVar[str] = "2"

        kinds = [(), (Repetition(),), (Repetition(times=4),), (Worded(),), (Newer(),)]
        ids = [identity(world, replace(world.context(), observers=kind)).id for kind in kinds]
        assert len(set(ids)) == len(kinds) and ids[0] == identity(world).id

    def test_the_backend_decides_and_the_engine_that_it_talks_to_does_not(self, world: RolloutWorld) -> None:
        engines = [Settings(environments_engine=f"tcp://127.0.0.1:{port}") for port in (1, 2)]
        of_docker = with_options(world, backend="docker")
        ids = {identity(world, replace(of_docker, backend=BACKENDS["docker"].of(settings))).id for settings in engines}
        assert len(ids) == 1 and identity(world, with_options(world, backend="local")).id not in ids

    def test_chain_sample_and_parent(self, world: RolloutWorld) -> None:
        other = world.add_chain((1, 2))
        context = world.context()
        with world.store.reading() as tx:
            ids = {
                context.find(tx, chain, sample, parent)[0].id
                for chain in (world.chains[0], other)
                for sample in (0, 1)
                for parent in (None, ("p", 3), ("p", 4))
            }
        assert len(ids) == 12

    def test_machine_workers_budget_waits_and_display_do_not(self, world: RolloutWorld, tmp_path: Path) -> None:
        base = identity(world)
        same = [
            world.context(budget=3.0),
            world.context(run="another-run"),
            replace(world.context(), retries=9),
            replace(world.context(), data_dir=tmp_path / "elsewhere"),
            replace(world.context(), backend=BACKENDS["docker"].of(Settings(environments_engine="tcp://127.0.0.1:1"))),
            replace(world.context(), tell=lambda words: None),
            replace(world.context(), secrets=("secret",)),
        ]
        assert {identity(world, run_context).id for run_context in same} == {base.id}
        assert "workers" not in {field.name for field in fields(RolloutOptions)}


def edit_prompt(monkeypatch: pytest.MonkeyPatch, prompt_name: str) -> None:
    """Change the text of a prompt's file."""
    from prchain.core.llm import prompts

    real = prompts.load_prompt

    def load(package: str, name: str) -> Prompt:
        prompt = real(package, name)
        return replace(prompt, hash="edited") if prompt.name == prompt_name else prompt

    for module in ("agents.scaffolds.kinds.react", "verdicts.judge", "rollouts.rollout", "verdicts.comments"):
        monkeypatch.setattr(f"trajectories.{module}.load_prompt", load)


def prove(world: RolloutWorld, f2p: str = "test_part") -> None:
    rows: list[dict[str, Any]] = [
        {
            "chain_id": world.chains[0],
            "position": position,
            "outcome": "proved",
            "reason": None,
            "image": None,
            "recipe": None,
            "runner": None,
            "command": None,
            "files": [],
            "classes": {"f2p": [f"{f2p}_{position}"]},
            "removed": [],
            "tampered": [],
            "stage_image": None,
            "seconds": 0.0,
        }
        for position in (1, 2, 3)
    ]
    with world.store.transaction() as tx:
        tx.upsert(StageTests, rows)


OLD_ID = "0123456789abcdef"


def as_before(world: RolloutWorld, name: str, **columns: Any) -> None:
    """Give a trajectory the row of the time before identities were stored: another id, every option, fewer prompts."""
    ((prompts,),) = world.rows(Trajectory, "prompts", id=name)
    known = {key: value for key, value in prompts.items() if key != "prefix"}
    rename(world, name, OLD_ID)
    values = {"decided_by": None, "options_hash": "0" * 64, "prompts": known, **columns}
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).where(Trajectory.id == OLD_ID).values(**values))


def rename(world: RolloutWorld, name: str, to: str) -> None:
    with world.store.transaction() as tx:
        (row,) = tx.connection.execute(select(Trajectory.__table__).where(Trajectory.id == name)).mappings()
        tx.insert_new(Trajectory, [{**row, "id": to}])
        for model in (TrajectoryStage, Verdict, TrajectoryMessage):
            moved = tx.connection.execute(select(model.__table__).where(model.trajectory_id == name)).mappings()
            tx.upsert(model, [{**mapping, "trajectory_id": to} for mapping in moved])
        tx.delete(Trajectory, id=name)


class TestOldRows:
    def test_one_that_is_over_is_taken_for_what_it_is_and_nothing_is_asked(self, rolled: Rolled) -> None:
        world, name = rolled
        as_before(world, name)
        model = PolicyModel()
        run = world.run(world.context(model))
        assert (len(run.pending().units), run.pending().standing) == (0, 1)
        assert roll(world.context(model), world.chains[0], 0) == OLD_ID and model.asked == []
        assert world.rows(Trajectory, "id", "decided_by") == [(OLD_ID, None)]

    def test_one_that_is_half_done_is_gone_on_with_under_its_own_id(self, world: RolloutWorld) -> None:
        half_done(world)
        (name,) = (row[0] for row in world.rows(Trajectory, "id"))
        before = world.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=name)
        as_before(world, name)
        model = PolicyModel()
        assert roll(world.context(model), world.chains[0], 0) == OLD_ID
        assert world.outcome(OLD_ID)[0] == "accepted" and 0 < model.count("agent") < 11
        assert world.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=OLD_ID)[: len(before)] == before

    @pytest.mark.parametrize(
        "columns",
        [
            {"model": "another"},
            {"judge": "another"},
            {"options": asdict(RolloutOptions(refinements=2, backend="unsafe-local"))},
            {"parent_id": "p", "parent_step": 3},
            {"scaffold": "mini"},
        ],
        ids=lambda columns: next(iter(columns)),
    )
    def test_one_of_another_choice_is_another_trajectory(self, rolled: Rolled, columns: dict[str, Any]) -> None:
        world, name = rolled
        as_before(world, name, **columns)
        existing = find(world)
        assert existing.stored is None and existing.outdated == ()

    @pytest.mark.parametrize(
        ("columns", "field"), [({"prompts": {"judge": "as it was"}}, "prompts"), ({"tools": []}, "tools")]
    )
    def test_one_under_other_prompts_is_outdated(self, rolled: Rolled, columns: dict[str, Any], field: str) -> None:
        world, name = rolled
        as_before(world, name, **columns)
        existing = find(world)
        assert existing.stored is None and existing.standing is not None
        assert (existing.standing.stored.id, existing.standing.fields) == (OLD_ID, (field,))

    def test_one_whose_messages_show_another_task_is_outdated(self, rolled: Rolled) -> None:
        world, name = rolled
        as_before(world, name)
        with world.store.transaction() as tx:
            tx.connection.execute(update(TaskStage).where(TaskStage.position == 3).values(query="Something else."))
        assert [outdated.fields for outdated in find(world).outdated] == [("task",)]

    def test_one_that_an_observer_spoke_in_is_not_one_without(self, rolled: Rolled) -> None:
        world, name = rolled
        as_before(world, name)
        with world.store.transaction() as tx:
            write_entries(tx, OLD_ID, [Entry(99, 3, 1, 11, EntryKind.GUIDANCE, "user", "Look.")])
        assert find(world).stored is None

    def test_an_option_that_it_did_not_know_is_as_it_was_then(self, rolled: Rolled) -> None:
        world, name = rolled
        options = world.rows(Trajectory, "options", id=name)[0][0]
        for unknown in ("observers", "tests", "overflow"):
            del options[unknown]
        as_before(world, name, options=options)
        assert find(world).id == OLD_ID


def find(world: RolloutWorld, context: RunContext | None = None) -> Any:
    with world.store.reading() as tx:
        return (context or world.context()).find(tx, world.chains[0], 0)[1]


class Killed(BaseException):
    """Ends a rollout in the middle, as kill -9 would."""


def half_done(world: RolloutWorld) -> str:
    """The id of a rollout that is killed in stage 2."""

    def cut(request: Any) -> None:
        if request.purpose == "agent" and "Task 2 of" in str([message.content for message in request.messages]):
            raise Killed

    with pytest.raises(Killed):
        roll(world.context(PolicyModel(before=cut)), world.chains[0], 0)
    ((name, outcome),) = world.rows(Trajectory, "id", "outcome")
    assert outcome == "running"
    return str(name)


def end_by_another(world: RolloutWorld, name: str) -> None:
    """End a trajectory, as another process would."""
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).where(Trajectory.id == name).values(outcome="accepted"))


class TestProofThatDoesNotGate:
    def test_a_result_of_before_there_was_a_proof_stands_for_tests_had_no_part_in_it(self, rolled: Rolled) -> None:
        world, name = rolled
        prove(world)
        assert find(world).id == name and find(world).outdated == ()

    def test_a_result_under_another_proof_is_outdated(self, world: RolloutWorld) -> None:
        prove(world)
        name = roll(world.context(overrides=suited(world)), world.chains[0], 0)
        prove(world, f2p="test_other")
        existing = find(world)
        assert existing.stored is None and existing.standing is not None
        assert (existing.standing.stored.id, existing.standing.fields) == (name, ("proof",))


class TestOutdated:
    def test_what_stands_under_other_prompts_is_told_with_its_price_before_anything_is_asked(
        self, rolled: Rolled, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world, first = rolled
        edit_prompt(monkeypatch, "judge")
        model = PolicyModel()
        run = world.run(world.context(model))
        anew = run.anew(run.pending())
        assert (anew.samples, anew.half_done, anew.fields) == (1, 0, ("prompts",))
        assert anew.estimate.calls > 0 and (anew.estimate.usd or 0) > 0 and model.asked == []
        report = run.run()
        assert report.outcomes == {"accepted": 1} and model.count("judge") > 0, "the edited prompt was asked"
        second = report.results[0].detail
        assert second != first and world.outcome(first)[0] == world.outcome(second)[0] == "accepted"
        assert run.anew(run.pending()).samples == 0

    def test_reuse_takes_what_stands_and_asks_nothing(self, rolled: Rolled, monkeypatch: pytest.MonkeyPatch) -> None:
        world, _ = rolled
        edit_prompt(monkeypatch, "query")
        model = PolicyModel()
        run = world.run(world.context(model), reuse=True, samples=2)
        pending = run.pending()
        assert (pending.standing, pending.reused, [unit.sample for unit in pending.units]) == (1, 1, [1])
        assert run.anew(pending).samples == 0

    def test_another_choice_is_not_what_stands(self, rolled: Rolled) -> None:
        world, _ = rolled
        run = world.run(world.context(threshold=0.7))
        assert run.anew(run.pending()).samples == 0
        assert len(world.run(world.context(threshold=0.7), reuse=True).pending().units) == 1

    def test_what_is_half_done_under_other_prompts_ends_superseded_and_is_never_gone_on_with(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = half_done(world)
        before = world.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=old)
        edit_prompt(monkeypatch, "system_full")
        run = world.run(world.context(), reuse=True)
        anew = run.anew(run.pending())
        assert (anew.samples, anew.half_done) == (1, 1), "it cannot be taken"
        report = run.run()
        new = report.results[0].detail
        outcome, _, reason = world.outcome(old)
        assert outcome == SUPERSEDED and reason == f"begun with other prompts; {new} takes its place"
        assert world.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=old) == before
        assert world.outcome(new)[0] == "accepted"
        assert run.anew(run.pending()).samples == 0
        assert SUPERSEDED not in FINAL | KEPT

    def test_one_that_was_superseded_is_gone_on_with_when_its_own_prompts_are_back(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = half_done(world)

        def down(request: Any) -> None:
            raise EndpointRefused("bad key")

        with monkeypatch.context() as patch:
            edit_prompt(patch, "system_full")
            roll(world.context(PolicyModel(before=down)), world.chains[0], 0)
        assert world.outcome(old)[0] == SUPERSEDED
        run = world.run(world.context())
        assert len(run.pending().units) == 1, "nothing is done of it"
        assert run.run().results[0].detail == old and world.outcome(old)[0] == "accepted"

    def test_one_that_ended_meanwhile_is_not_superseded(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from trajectories.rollouts import rollout

        old = half_done(world)
        real = rollout._supersede

        def late(context: RunContext, name: str, existing: Any) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(rollout, "_supersede", real)
                end_by_another(world, old)
            real(context, name, existing)

        edit_prompt(monkeypatch, "system_full")
        monkeypatch.setattr(rollout, "_supersede", late)
        roll(world.context(), world.chains[0], 0)
        assert world.outcome(old)[0] == "accepted"

    def test_one_that_somebody_else_works_on_is_left_to_them(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = half_done(world)
        edit_prompt(monkeypatch, "system_full")
        with exclusive_lock(world.store, f"rollout-{old}", "x"):
            roll(world.context(), world.chains[0], 0)
        assert world.outcome(old)[0] == "running"

    def test_one_in_which_nothing_was_said_yet_gives_way_and_leaves_nothing(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = roll(world.context(gate="tests"), world.chains[0], 0)
        assert world.outcome(name)[0] == "not_validated"
        edit_prompt(monkeypatch, "query")
        prove(world)
        assert find(world, world.context(gate="tests", tests="gate")).stored is None, "another option"
        new = roll(world.context(gate="tests", overrides=suited(world)), world.chains[0], 0)
        assert new != name and world.rows(Trajectory, "id") == [(new,)]
        ((decided_by,),) = world.rows(Trajectory, "decided_by", id=new)
        assert stored(decided_by)["prompts"]["query"] == "edited" and stored(decided_by)["proof"]

    def test_one_that_is_over_is_found_though_one_that_never_began_sorts_before_it(self, world: RolloutWorld) -> None:
        base = identity(world)
        known = stored(base.row())
        unbegun = StoredTrajectory("0" * 16, "image_missing", known | {"prompts": {"query": "old"}}, True, False)
        over = StoredTrajectory("1" * 16, "accepted", known, True, True)
        also = StoredTrajectory("0" * 15 + "1", "image_missing", known, True, False)
        existing = standing.find(base, [unbegun, also, over])
        assert existing.stored is over and [outdated.stored for outdated in existing.outdated] == [unbegun]

    def test_a_branch_of_a_conversation_under_other_prompts_is_refused(
        self, rolled: Rolled, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world, parent = rolled
        edit_prompt(monkeypatch, "comment")
        with pytest.raises(UsageError, match=r"made with other comment than there are now"):
            roll(world.context(), world.chains[0], 0, parent=(parent, 4))

    @pytest.mark.parametrize("old", [False, True])
    def test_a_branch_of_a_conversation_about_another_task_is_refused(self, rolled: Rolled, old: bool) -> None:
        world, parent = rolled
        if old:
            as_before(world, parent)
            parent = OLD_ID
        with world.store.transaction() as tx:
            tx.connection.execute(update(Task).values(overview="Another overview."))
        with pytest.raises(UsageError, match=r"made with other task than there are now"):
            roll(world.context(), world.chains[0], 0, parent=(parent, 4))


def test_what_decided_it_is_kept_whole_with_every_trajectory(world: RolloutWorld) -> None:
    context = world.context()
    name = roll(context, world.chains[0], 0)
    ((decided_by, options_hash),) = world.rows(Trajectory, "decided_by", "options_hash", id=name)
    known = stored(decided_by)
    assert known["models"]["agent"] == {"model": "fake", "max_tokens": 8192}
    assert set(known["prompts"]) == {"system_full", "query", "comment", "judge", "comment_again", "prefix"}
    assert known["options"] == {"backend": "unsafe-local"} and options_hash == context.options.hash()
    assert identity(world).id == name


def test_a_run_opened_from_settings_and_options_has_the_ids_of_one_made_by_hand(
    world: RolloutWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trajectories.rollouts.run import RolloutChoice, open_run

    script = tmp_path / "script.jsonl"
    script.write_text("")
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(script))
    settings = Settings.load(db=world.store.url.render_as_string(hide_password=False), data_dir=tmp_path / "data")
    options = RolloutOptions(backend="local")
    with open_run(settings, options, RolloutChoice()) as run:
        assert isinstance(run, RolloutRun)
        opened = identity(world, run.context)
    assert replace(opened, models=identity(world).models) == identity(world, with_options(world, backend="local"))
