"""The commands of environments: exit codes, one line for failures, JSON for machines. The engine is made up here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import update

from environments.images.build_run import Build
from environments.images.image_plan import ImagePlan
from environments.images.images import Image
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.proofs.proof_rows import ChainProof, forget, needed_images, own_images, write_stage_image
from environments.proofs.validations import ProofUnit, ValidateReport
from environments.report import BuildHelp, print_builds, print_validations, size_text
from environments.sandboxes import leftovers
from environments.stages import Stage
from environments.suites.testruns import TEST_SECONDS
from environments.workplace import TEST_TIMEOUT
from prchain.cli import run
from prchain.core.errors import BuildFailed, EngineUnavailable
from prchain.core.runs import UnitResult
from sql.store import Store
from sql.tables import BuiltImage, Repository, StageTests, Validation
from tests.environments.stageworld import RECIPE, StageWorld, stage_world

COMMANDS = ("build", "list", "prune", "gc", "base", "interpreters", "validate", "show", "survey")


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

    class volumes:  # noqa: N801  as the SDK has it
        @staticmethod
        def list(**named: Any) -> list[Any]:
            return []

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        monkeypatch.setattr("environments.sandboxes.engine.connect", lambda *a, **k: FakeEngine())
        monkeypatch.setattr("environments.images.provide.connect", lambda *a, **k: FakeEngine())
        monkeypatch.setattr("environments.backends.docker.connect", lambda *a, **k: FakeEngine())
        monkeypatch.setenv("PRCHAIN_DB", world.settings.db)
        monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.settings.data_dir))
        monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_RECIPES_DIR", str(world.settings.environments_recipes_dir))
        yield world


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
        ("build", "--chain", "zz"),
        ("build", "--budget", "1"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    world: StageWorld, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain(*arguments) == 2
    assert "rror: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", ["build", "list", "prune", "validate", "show 5f0c"])
def test_without_a_database_the_line_says_what_to_do(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain(*command.split(), "--db", str(tmp_path / "none.db")) == 1
    assert "prchain mine" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("list",), ("gc",), ("prune",), ("base",), ("build",), ("validate",)])
def test_without_an_engine_commands_end_with_one_line(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*args: object, **named: object) -> None:
        raise EngineUnavailable("the Docker engine does not answer; start it")

    monkeypatch.setattr("environments.sandboxes.engine.connect", gone)
    monkeypatch.setattr("environments.images.provide.connect", gone)
    monkeypatch.setattr("environments.backends.docker.connect", gone)
    assert prchain(*arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "prchain: error: the Docker engine does not answer; start it"


@pytest.mark.usefixtures("bubblewrap")
def test_validate_says_how_chains_ended_and_counts_their_tests(
    world: StageWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("validate", "--backend", "local", "--runs", "1")
    assert prchain(*arguments) == 0
    out = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"{world.chain_id} proved in \d+ s; F2P/P2P of stages 1: 1/0 canaries, 2: 1/2 canaries, 3: 1/3 canaries",
        out[0],
    )
    assert out[1:] == ["1 proved; 0 done before"]
    assert prchain(*arguments) == 0
    assert capsys.readouterr().out == "nothing new to do; 1 done before\n"
    monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_BACKEND", "local")
    assert prchain("validate", "--runs", "1") == 0
    assert capsys.readouterr().out == "nothing new to do; 1 done before\n", "the settings name the backend, too"
    monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_BACKEND", "nowhere")
    assert prchain("validate", "--runs", "1") == 2
    assert "there is no backend 'nowhere'; known are docker, local" in capsys.readouterr().err
    world.add_chain((1,), strategy="single")
    assert prchain(*arguments, "--strategy", "single", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert row["outcomes"] == {"proved": 1} and row["chains"][0]["stages"][0]["classes"]["f2p"] == 1


def test_validate_ends_with_1_where_a_chain_has_no_outcome_and_where_all_failed(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error: Exception = BuildFailed("the step x failed")

    def fails(*args: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(Provider, "provide", fails)
    for standing in (0, 1):  # what failed before is no success of now
        assert prchain("validate", "--backend", "local") == 1
        output = capsys.readouterr()
        assert f"; {standing} done before" in output.out and output.err.endswith("no chain was proved\n")
    with world.store.transaction() as tx:
        tx.connection.execute(update(Validation).values(outcome="proved"))
    assert prchain("validate", "--backend", "local") == 0
    assert "nothing new to do; 1 done before" in capsys.readouterr().out
    with world.store.transaction() as tx:
        tx.connection.execute(update(Validation).values(outcome="build_failed"))
    error = EngineUnavailable("gone")
    assert prchain("validate", "--backend", "local", "--retry") == 1
    output = capsys.readouterr()
    assert "run the same command again" in output.err and "--repair" not in output.err
    assert output.out == "0 done, 1 engine_unavailable; 0 done before\n"
    assert world.rows(Validation, "outcome") == []


def test_validate_says_what_happened_to_chains_that_did_not_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ended = (("5f0c", "image_missing", "no base"), ("6a1b", "defect", "?"), ("7", "defect", "?"))
    gone = tuple(UnitResult(ProofUnit(chain), outcome, why) for chain, outcome, why in ended)
    proved = UnitResult(ProofUnit("81c2"), "proved", None, ChainProof("81c2", "proved"))
    build_help = BuildHelp(tmp_path, tmp_path, repaired=False)
    for report, says in (
        (ValidateReport(before={"proved": 4}), "nothing new to do; 4 done before"),
        (ValidateReport(gone[:1]), "0 done, 1 image_missing; 0 done before"),
        (ValidateReport(gone, 3), "0 done, 2 defect, 1 image_missing, 3 not begun; 0 done before"),
        (ValidateReport((proved, *gone[:1]), before={"proved": 1}), "1 proved, 1 image_missing; 1 done before"),
    ):
        print_validations(report, build_help)
        assert capsys.readouterr().out.splitlines()[-1] == says


@pytest.mark.parametrize("command", ["build", "validate"])
def test_a_build_that_failed_comes_with_what_can_be_done_about_it(
    world: StageWorld, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*args: object, **named: object) -> None:
        raise BuildFailed("the step check failed: AttributeError: __spec__", lines=["KeyError: 'x'"])

    monkeypatch.setattr(Provider, "provide", fails)
    prchain(command, *(("--backend", "local") if command == "validate" else ()))
    hint = capsys.readouterr().err.splitlines()[-1 if command == "build" else -2]
    assert hint.startswith("of build_failed: read what the step printed; --repair lets a model")
    assert f"OWNER--NAME.toml, with keys of a recipe of your own, into {world.folder}/recipes (environments_" in hint
    (world.settings.data_dir / "build_logs").mkdir(parents=True)
    build_help = BuildHelp(world.settings.data_dir / "build_logs", world.folder / "recipes", repaired=True)
    print_builds([Build("o/n", "build_failed", reason="x")], build_help)
    hint = capsys.readouterr().err.splitlines()[-1]
    assert "--repair" not in hint and f"read the log in {world.settings.data_dir}/build_logs; or" in hint


def test_build_takes_one_chain_by_the_beginning_of_its_id_whatever_chose_it(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: ImagePlan = world.workplace().provided.plan
    monkeypatch.setattr(Provider, "provide", lambda *a, **k: StageImage(plan, "prchain/shop--till:1"))
    single = world.add_chain((2,), strategy="single")
    assert prchain("build", "--chain", single[:4], "--json") == 0
    assert [load["stages"] for load in json.loads(capsys.readouterr().out)] == [1]
    assert prchain("build", "--json") == 0
    assert [load["stages"] for load in json.loads(capsys.readouterr().out)] == [3]


def test_build_names_each_image_once_with_the_stages_that_it_serves(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: ImagePlan = world.workplace().provided.plan

    def provide(self: Provider, repository: str, trees: Any, git: Any, stage: Stage, *, rebuild: bool) -> StageImage:
        if stage.position == 3 and not rebuild:
            raise BuildFailed("the step x failed: y", lines=["error: y"])
        return StageImage(plan, "prchain/shop--till:1", ("dated",), 2.0, cached=stage.position > 1)

    monkeypatch.setattr(Provider, "provide", provide)
    assert prchain("build") == 1
    output = capsys.readouterr()
    assert "built in 2 s: prchain/shop--till:1 (2 stages); dated" in output.out
    assert "shop/till (1 stage): build_failed: the step x failed: y | error: y" in output.err
    assert prchain("build", "--rebuild", "--json") == 0
    assert [(load["outcome"], load["stages"]) for load in json.loads(capsys.readouterr().out)] == [("built", 3)]


def an_image(name: str, **fields: Any) -> Image:
    image = Image(name, "sha256:1", "shop/till", "python", 3_000_000_000, "2026-01-02T03:04:05+00:00", None, ("dated",))
    return replace(image, own_bytes=1_234_000_000, **fields)


def image_row(name: str, **fields: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "repository": "shop/till",
        "recipe": "python",
        "outcome": "built",
        "reason": None,
        "notes": [],
        "as_of": None,
        "size_bytes": None,
        "seconds": 1.0,
        "repairs": 0,
        "built_at": "2026-01-01T00:00:00Z",
    }
    return {**row, **fields}


def stage_row(chain_id: str, **fields: Any) -> dict[str, Any]:
    row = {
        "chain_id": chain_id,
        "position": 1,
        "outcome": "proved",
        "files": [],
        "classes": {},
        "removed": [],
        "tampered": [],
        "seconds": 1.0,
    }
    return {**row, **fields}


def test_list_shows_disk_use_and_failed_builds(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images = [an_image("prchain/shop--till:1"), an_image("prchain/other--x:1", repository="other/x")]
    monkeypatch.setattr("environments.images.images.list_images", lambda engine: images)
    reason = {"message": "no compiler"}
    rows = [image_row(image.name, repository=image.repository) for image in images]
    with world.store.transaction() as tx:
        tx.upsert(BuiltImage, [*rows, image_row("prchain/shop--till:2", outcome="build_failed", reason=reason)])
    assert prchain("list") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        "  size  image                 recipe",
        "1.2 GB  prchain/shop--till:1  python, 2026-01-02; dated",
    ]
    assert out[3:] == [
        "     -  prchain/shop--till:2  failed: python, no compiler",
        "2 images, 2.5 GB beyond what they share; 1 failed build",
    ]
    assert prchain("list", "--repository", "Other/X", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert [image["name"] for image in output["images"]] == ["prchain/other--x:1"] and output["failed"] == []


class Shelf(FakeEngine):
    """An engine with images: two that a validated stage needs, one that it does not, a failed rebuild's old one, those
    of another database, and two of which nobody can know whose they are."""

    def __init__(self) -> None:
        self.names = [
            f"prchain/{name}"
            for name in (
                "shop--till:1",
                "shop--till:s",
                "shop--till:2",
                "shop--till:old",
                "shop--till:theirs",
                "other--x:1",
            )
        ]
        self.names += ["<none>", "prchain/shop--till:2-0a1b2c3d"]
        self.api = SimpleNamespace(df=self.df, images=lambda **named: [])  # type: ignore[assignment]
        self.images = self

    def df(self) -> dict[str, Any]:
        label = json.dumps({"repository": "shop/till", "recipe": "python"})
        return {
            "Images": [
                {
                    "Id": f"id of {name}",
                    "RepoTags": None if name == "<none>" else [name],
                    "Size": 10,
                    "Created": "2026-01-02T03:04:05Z",
                    "Labels": {"prchain.image": label},
                }
                for name in self.names
            ]
        }

    def remove(self, name: str) -> None:
        self.names.remove(name.removeprefix("id of "))


@pytest.fixture
def shelf(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    engine = Shelf()
    monkeypatch.setattr("environments.sandboxes.engine.connect", lambda *a, **k: engine)
    with world.store.transaction() as tx:
        tx.upsert(BuiltImage, [image_row("prchain/shop--till:1"), image_row("prchain/shop--till:2")])
        tx.upsert(BuiltImage, [image_row("prchain/shop--till:old", outcome="build_failed", reason={})])
        tx.upsert(StageTests, [stage_row(world.chain_id, image=engine.names[0], stage_image=engine.names[1])])
    return engine


OTHERS = ["prchain/shop--till:theirs", "prchain/other--x:1", "<none>", "prchain/shop--till:2-0a1b2c3d"]
NEEDED = ["prchain/shop--till:1", "prchain/shop--till:s"]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ((), [*NEEDED, *OTHERS]),
        (("--all",), OTHERS),
        (("--all", "--repository", "shop/till"), OTHERS),
        (("--everybody",), NEEDED),
        (("--all", "--everybody"), []),
    ],
)
def test_prune_removes_only_what_this_database_had_built_and_does_not_need_unless_told_otherwise(
    shelf: Shelf, arguments: tuple[str, ...], left: list[str]
) -> None:
    assert prchain("prune", *arguments) == 0
    assert shelf.names == left


def test_prune_of_an_empty_database_removes_nothing_of_other_databases(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Shelf()
    monkeypatch.setattr("environments.sandboxes.engine.connect", lambda *a, **k: engine)
    assert prchain("prune", "--all") == 0
    assert len(engine.names) == 8
    assert capsys.readouterr().out == "0 images removed, 0 bytes\n"


def test_prune_spares_what_is_too_young_and_forgets_the_rows_of_what_is_gone(
    world: StageWorld, shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain("prune", "--older-than", "36500") == 0
    assert len(shelf.names) == 8 and capsys.readouterr().out == "0 images removed, 0 bytes\n"
    assert prchain("prune", "--older-than", "0") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 images removed, 20 bytes"
    assert world.rows(BuiltImage, "name") == [("prchain/shop--till:1",)]


def test_list_shows_this_databases_images_and_tells_how_many_others_there_are(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prchain("list") == 0
    out = capsys.readouterr().out
    assert "theirs" not in out and "other--x" not in out and "<none>" not in out
    assert "4 images," in out and "4 more images of prchain on the engine, not of this database; --everybody" in out
    assert prchain("list", "--everybody") == 0
    out = capsys.readouterr().out
    assert re.search(r"shop--till:theirs \(not of this database\) +python", out) and "more image" not in out
    assert re.search("prchain/shop--till:1 +python", out)
    assert prchain("list", "--everybody", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["images"]
    assert {row["name"] for row in rows if not row["of_database"]} == set(OTHERS)


def test_the_row_of_a_stage_image_outlives_its_chain_so_that_prune_finds_it(world: StageWorld) -> None:
    with world.store.transaction() as tx:
        tx.upsert(StageTests, [stage_row(world.chain_id, stage_image="prchain/shop--till:s")])
        write_stage_image(tx, "prchain/shop--till:s", "shop/till", "python", 2.0)
        forget(tx, [world.chain_id])
    with world.store.reading() as tx:
        assert own_images(tx) == {"prchain/shop--till:s"} and needed_images(tx) == set()


def test_gc_tells_what_it_removed_and_what_it_could_not(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(leftovers, "clear_local", dict)
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
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (12_345_678, "12.3 MB"), (None, "?")]
)
def test_sizes_are_for_people(count: int | None, text: str) -> None:
    assert size_text(count) == text


def test_what_a_test_run_may_take_is_one_default_and_the_help_says_what_is_limited(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert prchain("validate", "--help") == 0
    text = " ".join(capsys.readouterr().out.split()).partition("--timeout SECONDS ")[2].partition(" --")[0]
    assert f"[default: {TEST_TIMEOUT:.0f}]" in text and f"ended after {TEST_SECONDS:.0f} s" in text
    assert "all test files of a stage" in text and "environments_build_timeout_seconds limits builds" in text


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
            "DB": world.settings.db,
            "DATA_DIR": world.settings.data_dir,
            "ENVIRONMENTS_RECIPES_DIR": world.settings.environments_recipes_dir,
            "ENVIRONMENTS_BASE_IMAGE": os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm"),
            "ENVIRONMENTS_BUILD_NETWORK": "none",
        }.items():
            monkeypatch.setenv(f"PRCHAIN_{setting}", str(value))
        try:
            assert prchain("build") == 0
            assert "1 image there for 3 stages, 0 failed" in capsys.readouterr().out
            assert prchain("validate", "--runs", "1", "--workers", "2", "--stage-images", "--json") == 0
            row = json.loads(capsys.readouterr().out)
            assert row["outcomes"] == {"proved": 1}
            assert [stage["classes"]["f2p"] for stage in row["chains"][0]["stages"]] == [1, 1, 1]
            images = {stage["image"] for stage in row["chains"][0]["stages"]}
            images |= {stage["stage_image"] for stage in row["chains"][0]["stages"]}
            assert len(images) == 4
            assert prchain("list", "--repository", name, "--json") == 0
            assert {image["name"] for image in json.loads(capsys.readouterr().out)["images"]} == images
            assert {name for (name,) in world.rows(BuiltImage, "name")} == images, "stage images have rows, too"
            assert prchain("prune", "--repository", name, "--json") == 0
            assert json.loads(capsys.readouterr().out) == []
            strange = str(tmp_path / "strange.db")
            Store.open(strange).close()
            assert prchain("prune", "--all", "--repository", name, "--json", "--db", strange) == 0
            assert json.loads(capsys.readouterr().out) == [], "another database's images are not its own"
        finally:
            assert prchain("prune", "--all", "--repository", name, "--json") == 0
        gone = json.loads(capsys.readouterr().out)
        assert {image["name"] for image in gone} == images and all(image["of_database"] for image in gone)
        assert world.rows(BuiltImage, "name") == []
