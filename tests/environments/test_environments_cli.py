"""The commands of environments: exit codes, one line for failures, JSON for machines. The engine is made up here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from environments.images.images import Image
from environments.images.plans import Plan
from environments.images.provide import Backend, Provided, Provider
from environments.report import size_text
from environments.sandboxes import leftovers
from environments.stages import Stage
from prchain.cli import run
from prchain.errors import BuildFailed, EngineUnavailable
from sql.tables import BuiltImage, Repository, StageTests, Validation
from tests.environments.stageworld import RECIPE, StageWorld, stage_world, works

COMMANDS = ("build", "list", "prune", "gc", "base", "validate")


class FakeEngine:
    """An engine without a container or image."""

    class api:  # noqa: N801  as the SDK has it
        @staticmethod
        def containers(**named: Any) -> list[Any]:
            return []

        images = containers

        @staticmethod
        def df() -> dict[str, Any]:
            return {"Images": []}

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as made:
        monkeypatch.setattr("environments.sandboxes.engine.connect", lambda *a, **k: FakeEngine())
        monkeypatch.setattr("environments.images.provide.connect", lambda *a, **k: FakeEngine())
        monkeypatch.setenv("PRCHAIN_DB", made.settings.db)
        monkeypatch.setenv("PRCHAIN_DATA_DIR", str(made.settings.data_dir))
        monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_RECIPES_DIR", str(made.settings.environments_recipes_dir))
        yield made


def prchain(*arguments: str) -> int:
    return run(["environments", *arguments])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_speaks_json(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain(command, "--help") == 0
    out = capsys.readouterr().out
    assert f"prchain environments {command}" in out.partition("Example:")[2]
    assert "--db" in out and "--json" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "--backend", "unsafe-local"),
        ("validate", "--unsafe-local"),
        ("validate", "--backend", "local", "--stage-images"),
        ("validate", "--backend", "local", "--repository", "no/such"),
        ("validate", "--backend", "local", "--chain", "zz"),
        ("validate", "--runs", "0"),
        ("validate", "--strategy", "other"),
        ("build", "--repository", "no/such"),
        ("build", "--budget", "1"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    world: StageWorld, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain(*arguments) == 2
    assert "rror: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", ["build", "list", "prune", "validate"])
def test_without_a_database_the_line_says_what_to_do(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain(command, "--db", str(tmp_path / "none.db")) == 1
    assert "prchain mine" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("list",), ("gc",), ("prune",), ("base",), ("build",), ("validate",)])
def test_without_an_engine_commands_end_with_one_line(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*args: object, **named: object) -> None:
        raise EngineUnavailable("the Docker engine does not answer; start it")

    monkeypatch.setattr("environments.sandboxes.engine.connect", gone)
    monkeypatch.setattr("environments.images.provide.connect", gone)
    assert prchain(*arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "prchain: error: the Docker engine does not answer; start it"


def test_validate_says_how_chains_ended_and_counts_their_tests(
    world: StageWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    if not works():
        pytest.skip("bubblewrap is missing, or may not make namespaces")
    arguments = ("validate", "--backend", "local", "--runs", "1")
    assert prchain(*arguments) == 0
    out = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"{world.chain_id} proved in \d+ s; F2P/P2P of stages 1: 1/0, 2: 1/2, 3: 1/3", out[0]
    )  # fmt: skip
    assert out[1:] == ["1 proved; 0 stood before"]
    assert prchain(*arguments) == 0
    assert capsys.readouterr().out == "nothing new to do; 1 stood before\n"
    world.add_chain((1,), strategy="single")
    assert prchain(*arguments, "--strategy", "single", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert row["outcomes"] == {"proved": 1} and row["chains"][0]["stages"][0]["classes"]["f2p"] == 1


def test_validate_ends_with_1_where_a_chain_has_no_outcome_and_0_where_it_failed(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error: Exception = BuildFailed("the step x failed")

    def fails(*args: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(Provider, "provide", fails)
    assert prchain("validate", "--backend", "local") == 0
    said = capsys.readouterr()
    assert "1 build_failed" in said.out and "--retry" in said.out
    error = EngineUnavailable("gone")
    assert prchain("validate", "--backend", "local", "--retry") == 1
    assert "run the same command again" in capsys.readouterr().err
    assert world.rows(Validation, "outcome") == []


def test_build_names_each_image_once_with_the_stages_that_it_serves(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: Plan = world.workplace().provided.plan

    def provide(self: Provider, repository: str, trees: Any, git: Any, stage: Stage, *, rebuild: bool) -> Provided:
        if stage.position == 3 and not rebuild:
            raise BuildFailed("the step x failed: y", lines=["error: y"])
        return Provided(plan, "prchain/shop--till:1", ("dated",), 2.0, cached=stage.position > 1)

    monkeypatch.setattr(Provider, "provide", provide)
    assert prchain("build") == 1
    said = capsys.readouterr()
    assert "built in 2 s: prchain/shop--till:1 (2 stages); dated" in said.out
    assert "build_failed: shop/till (1 stage): the step x failed: y | error: y" in said.err
    assert prchain("build", "--rebuild", "--json") == 0
    assert [(one["outcome"], one["stages"]) for one in json.loads(capsys.readouterr().out)] == [("built", 3)]


def an_image(name: str, **fields: Any) -> Image:
    made = Image(name, "sha256:1", "shop/till", "python", 3_000_000_000, "2026-01-02T03:04:05+00:00", None, ("dated",))
    return replace(made, own_bytes=1_234_000_000, **fields)


def test_list_shows_disk_use_and_failed_builds(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images = [an_image("prchain/shop--till:1"), an_image("prchain/other--x:1", repository="other/x")]
    monkeypatch.setattr("environments.images.images.list_images", lambda engine: images)
    row = {"name": "prchain/shop--till:2", "repository": "shop/till", "recipe": "python", "outcome": "build_failed",
           "reason": json.dumps({"message": "no compiler"}), "notes": "[]", "as_of": None, "size_bytes": None,
           "seconds": 1.0, "repairs": 0, "built_at": "2026-01-01T00:00:00Z"}  # fmt: skip
    with world.store.transaction() as tx:
        tx.upsert(BuiltImage, [row])
    assert prchain("list") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "  1.2 GB  prchain/shop--till:1  python, 2026-01-02; dated"
    assert out[2:] == ["  failed  prchain/shop--till:2  python, no compiler",
                       "2 images, 2.5 GB beyond what they share; 1 failed builds"]  # fmt: skip
    assert prchain("list", "--repository", "Other/X", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in shown["images"]] == ["prchain/other--x:1"] and shown["failed"] == []


def test_prune_keeps_what_validated_stages_need_unless_told_otherwise(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def prune(engine: Any, **named: Any) -> list[Image]:
        asked.append(named)
        return [an_image("prchain/shop--till:9")]

    monkeypatch.setattr("environments.images.images.prune_images", prune)
    row = {"chain_id": world.chain_id, "position": 1, "outcome": "proved", "image": "prchain/shop--till:1",
           "files": "[]", "classes": "{}", "removed": "[]", "tampered": "[]", "stage_image": "prchain/shop--till:s",
           "seconds": 1.0}  # fmt: skip
    with world.store.transaction() as tx:
        tx.upsert(StageTests, [row])
    assert prchain("prune") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 image removed, 1.2 GB"
    assert prchain("prune", "--all", "--older-than", "3", "--repository", "shop/till") == 0
    assert asked[0] == {"keep": {"prchain/shop--till:1", "prchain/shop--till:s"}, "repository": None, "before": None}
    assert asked[1]["keep"] == frozenset() and asked[1]["before"] is not None


def test_gc_tells_what_it_removed_and_what_it_could_not(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(leftovers, "find_local", lambda: [])
    assert prchain("gc") == 0
    assert capsys.readouterr().out == "nothing was left behind\n"
    found = [leftovers.Leftover("container", "a", "1"), leftovers.Leftover("snapshot", "b", "2")]
    monkeypatch.setattr(leftovers, "find", lambda engine, everybody: found)
    monkeypatch.setattr(leftovers, "remove", lambda engine, items: items[1:])
    assert prchain("gc", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"removed": ["container a"], "left": ["snapshot b"]}


def test_base_names_the_image_and_the_setting(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("environments.images.base_image.make_base_image", lambda engine, name, **named: "sha256:9")
    assert prchain("base", "--name", "mine:1") == 0
    assert capsys.readouterr().out == "mine:1 is there; set environments_base_image to its name\n"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345_678, "12 MB"), (None, "?")]
)
def test_sizes_are_for_people(count: int | None, text: str) -> None:
    assert size_text(count) == text


def test_backends_are_named_alike_in_the_settings_and_on_the_command_line() -> None:
    assert [str(one) for one in Backend] == ["docker", "local", "unsafe-local"]


@pytest.mark.docker
def test_in_docker_a_chain_is_built_validated_listed_and_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = RECIPE + "test = 'python3 {tools}/python_reporter.py'\n"
    name = f"test/till-{os.getpid()}"
    with stage_world(tmp_path, recipe=recipe) as world:
        with world.store.transaction() as tx:
            owner, _, own = name.partition("/")
            tx.connection.execute(update(Repository).values(owner=owner, name=own))
        for setting, value in {
            "DB": world.settings.db, "DATA_DIR": world.settings.data_dir,
            "ENVIRONMENTS_RECIPES_DIR": world.settings.environments_recipes_dir,
            "ENVIRONMENTS_BASE_IMAGE": os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm"),
            "ENVIRONMENTS_BUILD_NETWORK": "none",
        }.items():  # fmt: skip
            monkeypatch.setenv(f"PRCHAIN_{setting}", str(value))
        try:
            assert prchain("build") == 0
            assert "1 image there for 3 stages, 0 failed" in capsys.readouterr().out
            assert prchain("validate", "--runs", "1", "--workers", "2", "--stage-images", "--json") == 0
            row = json.loads(capsys.readouterr().out)
            assert row["outcomes"] == {"proved": 1}
            assert [one["classes"]["f2p"] for one in row["chains"][0]["stages"]] == [1, 1, 1]
            images = {one["image"] for one in row["chains"][0]["stages"]}
            images |= {one["stage_image"] for one in row["chains"][0]["stages"]}
            assert len(images) == 4
            assert prchain("list", "--repository", name, "--json") == 0
            assert {one["name"] for one in json.loads(capsys.readouterr().out)["images"]} == images
            assert prchain("prune", "--repository", name, "--json") == 0
            assert json.loads(capsys.readouterr().out) == []
        finally:
            assert prchain("prune", "--all", "--repository", name, "--json") == 0
        assert {one["name"] for one in json.loads(capsys.readouterr().out)} == images
        assert world.rows(BuiltImage, "name") == []
