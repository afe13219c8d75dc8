"""Provider: one build an image, failures remembered, rows written, recipes repaired. The builds are scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import git
import pytest
from sqlalchemy import update

from environments.backends import BACKENDS
from environments.images import neighbours, provide
from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import Image
from environments.images.provide import Provider
from environments.images.published import offers
from environments.images.published.images import own_name
from environments.images.published.said import RULES, Published, is_outdated, is_published
from environments.images.recipes import choose, override_name
from environments.images.repair import Proposal
from environments.images.stage_image import StageImage
from environments.images.tags import tag_at, version_at
from prchain.core.errors import BuildFailed, EngineUnavailable, ImageMissing, IndexUnreachable, NoRecipe
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway
from prchain.core.settings import Settings
from sql.store import Store
from sql.tables import BuiltImage, Chain, ChainStage, ImportedTask, Repository, StageTests, Validation
from tests.databases import open_new

REPOSITORY = "o/n"
DAY = "2024-05-01T12:00:00Z"


@dataclass(frozen=True)
class Point:
    """A stage, with what a provider needs of it."""

    base: str
    landed_at: str = DAY
    landed: str = ""
    chain: str = ""
    position: int = 1


class Builds:
    """Stands for `build_image`: `verdict` raises or returns notes; images that were built are there afterwards."""

    def __init__(self) -> None:
        self.plans: list[ImagePlan] = []
        self.there: dict[str, Image] = {}
        self.verdict: Callable[[ImagePlan], tuple[str, ...]] = lambda plan: ()
        self.lacks: Callable[[Image], tuple[str, ...] | None] = lambda image: None
        """What a tree asks for that a neighbour's image has not; None: it cannot be put in there."""
        self.at_once = 0
        self.most_at_once = 0

    def __call__(
        self, engine: Any, plan: ImagePlan, tree: Any, settings: Any, *, as_of: Any, rebuild: bool = False
    ) -> Image:
        if plan.image in self.there and not rebuild:
            old = self.there[plan.image]
            return Image(**{**{name: getattr(old, name) for name in Image.__slots__}, "cached": True, "seconds": 0.0})
        self.plans.append(plan)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            notes = self.verdict(plan)
        finally:
            self.at_once -= 1
        image = Image(
            plan.image,
            "id",
            plan.repository,
            plan.recipe.name,
            10,
            "2024-06-01T00:00:00+00:00",
            as_of.isoformat(),
            notes,
            seconds=3.0,
            way=plan.way,
        )
        self.there[plan.image] = image
        return image


@dataclass
class Workshop:
    """A repository with commits, and what providers for it are made of."""

    folder: Path
    git: GitRepository
    trees: TreeStore
    builds: Builds
    store: Store

    def commit(self, tag: str = "", **files: str) -> Point:
        work = git.Repo(self.folder / "r")
        for name, text in files.items():
            (self.folder / "r" / name.replace("_dot_", ".")).write_text(text)
        work.git.add("-A")
        work.git.execute(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x", "--allow-empty"]
        )
        if tag:
            work.git.tag(tag)
        return Point(str(work.head.commit))

    def provider(self, *, near: bool = True, **options: Any) -> Provider:
        settings = Settings.load(data_dir=self.folder / "data", environments_neighbours=near)
        return Provider(settings, engine=object(), store=self.store, **options)

    def provide(self, provider: Provider, stage: Point, *, rebuild: bool = False, own: bool = False) -> StageImage:
        return provider.provide(REPOSITORY, self.trees, self.git, stage, rebuild=rebuild, own=own)

    def rows(self) -> dict[str, tuple[Any, ...]]:
        with self.store.transaction() as tx:
            found = tx.rows(BuiltImage, "name", "outcome", "reason", "notes", "seconds", "repairs", "as_of")
            return {row[0]: tuple(row[1:]) for row in found}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.chdir(tmp_path)
    git.Repo.init(tmp_path / "r")
    builds = Builds()
    monkeypatch.setattr(provide, "build_image", builds)
    monkeypatch.setattr(neighbours, "find_image", lambda engine, name: builds.there.get(name))
    monkeypatch.setattr(neighbours, "_lacks", lambda engine, image, plan, tree: builds.lacks(image))
    store = open_new(tmp_path / "p.db")
    yield Workshop(
        tmp_path,
        GitRepository.open(tmp_path / "r"),
        TreeStore.open(tmp_path / "trees", [tmp_path / "r"]),
        builds,
        store,
    )
    store.close()


def refuses(plan: ImagePlan) -> tuple[str, ...]:
    raise BuildFailed("the step dependencies failed: no x.h", step="dependencies", lines=("no x.h",), log="log")


def test_a_stage_whose_landing_adds_a_requirement_has_an_image_with_it_and_others_keep_theirs(shop: Workshop) -> None:
    before, after = (shop.commit(requirements_dot_txt=text) for text in ("a\n", "a\nb\n"))
    provider = shop.provider()
    alone = shop.provide(provider, before)
    same = shop.provide(provider, replace(before, landed=before.base))
    with_it = shop.provide(provider, replace(before, landed=after.base))
    assert (same.image, same.cached) == (alone.image, True)
    assert with_it.image != alone.image and shop.builds.plans[-1].added == ("b",)
    assert shop.provide(provider, after).plan.added == ()


class TestNeighbours:
    @pytest.fixture
    def pair(self, shop: Workshop) -> tuple[Point, Point]:
        return shop.commit(requirements_dot_txt="a>=1\n"), shop.commit(requirements_dot_txt="a>=2\n")

    def test_an_image_that_holds_all_that_a_stage_asks_for_serves_it(
        self, shop: Workshop, pair: tuple[Point, Point]
    ) -> None:
        shop.builds.lacks = lambda image: ()
        provider = shop.provider()
        first, second = (shop.provide(provider, stage) for stage in pair)
        assert (second.image, second.plan.image, second.cached) == (first.image, first.image, True)
        assert second.neighbour == "in a neighbour's image, of 0 days before the stage" and not first.neighbour
        assert len(shop.builds.plans) == 1

    @pytest.mark.parametrize("lacks", [None, ("a>=2",)])
    def test_one_that_does_not_hold_it_or_into_which_the_tree_cannot_be_put_does_not(
        self, shop: Workshop, pair: tuple[Point, Point], lacks: tuple[str, ...] | None
    ) -> None:
        shop.builds.lacks = lambda image: lacks
        provider = shop.provider()
        first, second = (shop.provide(provider, stage) for stage in pair)
        assert second.image != first.image and not second.neighbour

    @pytest.mark.parametrize("how", ["own", "rebuild", "setting", "far"])
    def test_none_serves_where_a_stage_is_to_have_its_own_or_is_far_in_time(
        self, shop: Workshop, pair: tuple[Point, Point], how: str
    ) -> None:
        shop.builds.lacks = lambda image: ()
        first, second = pair
        shop.provide(shop.provider(), first)
        stage = replace(second, landed_at="2024-08-01T12:00:00Z") if how == "far" else second
        found = shop.provide(shop.provider(near=how != "setting"), stage, rebuild=how == "rebuild", own=how == "own")
        assert not found.neighbour and len(shop.builds.plans) == 2

    def test_one_of_another_interpreter_does_not(self, shop: Workshop, pair: tuple[Point, Point]) -> None:
        shop.builds.lacks = lambda image: ()
        name = shop.provide(shop.provider(), pair[0]).image
        assert name is not None
        shop.builds.there[name] = replace(shop.builds.there[name], way="another")
        assert shop.provide(shop.provider(), pair[1]).image != name

    def test_the_nearest_one_into_which_the_tree_can_be_put_stands_in_for_one_that_does_not_build(
        self, shop: Workshop, pair: tuple[Point, Point]
    ) -> None:
        shop.builds.lacks = lambda image: ("a>=2",)
        provider = shop.provider()
        first = shop.provide(provider, pair[0])
        shop.builds.verdict = refuses
        later = replace(pair[1], landed_at="2024-09-01T12:00:00Z")
        found = shop.provide(provider, later)
        assert found.image == first.image
        assert found.neighbour == "in a neighbour's image, of 123 days before the stage; without a>=2"
        with pytest.raises(BuildFailed):
            shop.provide(provider, later, own=True)

    def test_what_could_not_be_had_for_the_neighbour_either_is_not_missed(self) -> None:
        asked = ["gone == 1 ; python_version > '3'", "other>1", "other>1", ""]
        assert neighbours.missing(asked, ["without:gone==1;python_version>'3'", "dated"]) == ("other>1",)


def test_an_index_that_cannot_be_asked_is_no_failure_of_the_image_and_is_asked_again(shop: Workshop) -> None:
    def verdict(plan: ImagePlan) -> tuple[str, ...]:
        if len(shop.builds.plans) == 1:
            raise IndexUnreachable(
                "the index of packages cannot be asked: Connection refused", log="--- date\nrefused\n"
            )
        return ()

    shop.builds.verdict = verdict
    stage, provider = shop.commit(setup_dot_py="1"), shop.provider()
    with pytest.raises(IndexUnreachable, match="Connection refused") as caught:
        shop.provide(provider, stage)
    assert (caught.value.name, caught.value.infrastructure) == ("index_unreachable", "index")
    (log,) = (shop.folder / "data" / "build_logs").iterdir()
    assert "refused" in log.read_text() and shop.rows() == {}
    assert shop.provide(provider, stage).image and not log.exists()


def test_a_stage_gets_its_plan_and_the_image_of_its_manifests(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()", tag="v1.4.2")
    shop.builds.verdict = lambda plan: ("a note",)
    provider = shop.provider()
    first, second = shop.provide(provider, stage), shop.provide(provider, stage)
    assert first.image == first.plan.image == second.image
    assert (first.notes, first.seconds, first.cached, second.cached, second.seconds) == (
        ("a note",),
        3.0,
        False,
        True,
        0,
    )
    assert len(shop.builds.plans) == 1


def test_of_many_threads_one_builds_and_the_others_wait_for_it(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    entered, proceed = threading.Event(), threading.Event()

    def slow(plan: ImagePlan) -> tuple[str, ...]:
        entered.set()
        assert proceed.wait(20)
        return ()

    shop.builds.verdict = slow
    provider = shop.provider()
    found: list[StageImage] = []
    threads = [threading.Thread(target=lambda: found.append(shop.provide(provider, stage))) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert entered.wait(20)
    proceed.set()
    for thread in threads:
        thread.join(20)
    assert len(found) == 6
    assert (len(shop.builds.plans), shop.builds.most_at_once) == (1, 1)
    assert sorted(stage_image.cached for stage_image in found) == [False, True, True, True, True, True]


def test_images_of_different_manifests_are_built_at_the_same_time(shop: Workshop) -> None:
    stages = [shop.commit(requirements_dot_txt="a\n"), shop.commit(requirements_dot_txt="b\n")]
    both = threading.Barrier(2, timeout=20)

    def together(plan: ImagePlan) -> tuple[str, ...]:
        both.wait()
        return ()

    shop.builds.verdict = together
    provider = shop.provider()
    threads = [threading.Thread(target=shop.provide, args=(provider, stage)) for stage in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(shop.builds.there) == 2


def test_what_failed_to_build_is_not_tried_again_in_the_same_run(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = refuses
    provider = shop.provider()
    caught = []
    for _ in range(3):
        with pytest.raises(BuildFailed, match=r"no x\.h") as error:
            shop.provide(provider, stage, rebuild=True)
        caught.append(error.value)
    assert caught[0] is caught[1] is caught[2]
    assert len(shop.builds.plans) == 1
    with pytest.raises(BuildFailed):
        shop.provide(shop.provider(), stage)
    assert len(shop.builds.plans) == 2, "another run tries again"


def test_an_engine_that_fails_says_nothing_of_the_image(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")

    def gone(plan: ImagePlan) -> tuple[str, ...]:
        raise EngineUnavailable("gone")

    shop.builds.verdict = gone
    provider = shop.provider()
    with pytest.raises(EngineUnavailable):
        shop.provide(provider, stage)
    assert shop.rows() == {}
    shop.builds.verdict = lambda plan: ()
    assert not shop.provide(provider, stage).cached


def test_a_rebuild_is_made_once_a_run(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    shop.provide(shop.provider(), stage)
    provider = shop.provider()
    again = [shop.provide(provider, stage, rebuild=True).cached for _ in range(3)]
    assert again == [False, True, True]
    assert len(shop.builds.plans) == 2


def test_every_build_that_ends_leaves_a_row(shop: Workshop) -> None:
    good, bad = shop.commit(requirements_dot_txt="a\n"), shop.commit(requirements_dot_txt="b\n")
    shop.builds.verdict = lambda plan: ("why",)
    provider = shop.provider()
    built = shop.provide(provider, good).plan.image
    shop.builds.verdict = refuses
    with pytest.raises(BuildFailed):
        shop.provide(provider, bad)
    rows = shop.rows()
    (failed,) = rows.keys() - {built}
    assert rows[built] == ("built", None, ["why"], 3.0, 0, "2024-05-01T12:00:00+00:00")
    assert rows[failed][0] == "build_failed"
    assert rows[failed][1] == {
        "message": "the step dependencies failed: no x.h",
        "step": "dependencies",
        "lines": ["no x.h"],
        "hangs_on": provider.hangs_on(REPOSITORY, "python"),
    }


def test_the_log_of_a_build_that_failed_is_kept_for_people_until_the_build_works(shop: Workshop) -> None:
    def wordy(plan: ImagePlan) -> tuple[str, ...]:
        raise BuildFailed("the step check failed", log="\x1b[31mone\x1b[0m\n\x1b]0;evil\x07two\n")

    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = wordy
    with pytest.raises(BuildFailed):
        shop.provide(shop.provider(), stage)
    (log,) = (shop.folder / "data" / "build_logs").iterdir()
    assert log.read_text() == "one\n]0;eviltwo\n"
    shop.builds.verdict = lambda plan: ()
    name = shop.provide(shop.provider(), stage).plan.image
    assert log.name == f"{name.removeprefix('prchain/').replace(':', '-')}.log" and not log.exists()


def test_a_log_that_cannot_be_kept_does_not_change_what_became_of_the_build(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    provider = shop.provider()
    (shop.folder / "data").mkdir(exist_ok=True)
    (shop.folder / "data" / "build_logs").write_text("no folder")
    shop.builds.verdict = refuses
    with pytest.raises(BuildFailed, match=r"no x\.h"):
        shop.provide(provider, stage)


def test_an_image_that_was_there_keeps_the_row_of_its_build_or_gets_one(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    name = shop.provide(shop.provider(), stage).plan.image
    shop.provide(shop.provider(), stage)
    assert shop.rows()[name][3] == 3.0
    with shop.store.transaction() as tx:
        tx.delete(BuiltImage, name=name)
    shop.provide(shop.provider(), stage)
    assert shop.rows()[name][:2] == ("built", None)


def test_a_build_that_succeeds_later_takes_the_failures_place(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = refuses
    with pytest.raises(BuildFailed):
        shop.provide(shop.provider(), stage)
    shop.builds.verdict = lambda plan: ()
    name = shop.provide(shop.provider(), stage).plan.image
    assert shop.rows()[name][:2] == ("built", None)


def test_an_image_of_another_time_is_told(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    provider = shop.provider()
    assert shop.provide(provider, stage).notes == ()
    assert shop.provide(provider, Point(stage.base, "2024-07-01T00:00:00Z")).notes == ()
    assert shop.provide(provider, Point(stage.base, "2022-05-01T12:00:00Z")).notes == (
        "dated 731 days after the stage",
    )
    assert shop.provide(provider, Point(stage.base, "2025-05-01T12:00:00")).notes == (
        "dated 365 days before the stage",
    )


def test_where_no_image_is_needed_no_engine_is_and_there_is_a_plan_all_the_same(shop: Workshop) -> None:
    stage = shop.commit(pyproject_dot_toml='[build-system]\nrequires = ["setuptools_scm"]\n', tag="2.0")
    found = shop.provide(shop.provider(images=False), stage)
    assert (found.image, found.plan.runner) == (None, "pytest")
    assert found.plan.environment == {"SETUPTOOLS_SCM_PRETEND_VERSION": "2.0"}
    assert shop.builds.plans == []


def test_a_tree_without_a_recipe_is_named_so_and_leaves_no_row(shop: Workshop) -> None:
    with pytest.raises(NoRecipe):
        shop.provide(shop.provider(), shop.commit(README="x"))
    assert shop.rows() == {}


def test_for_a_python_that_cannot_come_no_container_is_started(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup(python_requires='>=2.7,<3')")
    with pytest.raises(BuildFailed, match="asks for Python >=2"):
        shop.provide(shop.provider(), stage)
    assert shop.builds.plans == []


def test_the_version_is_that_of_the_nearest_tag_that_looks_like_one(shop: Workshop) -> None:
    first = shop.commit(a="1")
    assert version_at(shop.git, first.base) == "0.0.1"
    shop.commit(a="2", tag="v1.0")
    third = shop.commit(a="3", tag="nightly")
    shop.commit(a="4", tag="release-2.0")
    assert version_at(shop.git, third.base) == "1.0"


def test_where_releases_have_branches_of_their_own_the_last_one_of_the_time_counts(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(year: int, tag: str = "", parent: str | None = None) -> str:
        day = f"{year}-01-01T00:00:00Z"
        monkeypatch.setenv("GIT_COMMITTER_DATE", day)
        work = git.Repo(shop.folder / "r")
        if parent:
            work.git.checkout("-q", parent)
        return shop.commit(tag, a=f"{year}{tag}").base

    start = at(2018)
    at(2019, "v1.0")
    at(2022, "v2.0")
    assert tag_at(shop.git, at(2020, parent=start)) == "v1.0"
    assert tag_at(shop.git, start) == ""


def add_proof(store: Store, base: str, chain: str, image: str, validated_at: str) -> None:
    """The rows of a chain of one stage that was proved in an image."""
    about = {"chain_id": chain, "position": 1, "seconds": 1.0}
    host = {"id": 1, "host": "h", "owner": "o", "name": "n", "location": "/r"}
    landing = {"number": 1, "branch": "main", "base_sha": base, "landed_sha": base, "landed_at": DAY, "subject": "s"}
    counts = {"source_files": 1, "source_lines": 1, "test_files": 1, "test_lines": 1}
    lists: dict[str, Any] = {"files": [], "classes": {}, "removed": [], "tampered": []}
    proved = {"outcome": "proved", "backend": "docker", "seconds": 1.0}
    with store.transaction() as tx:
        tx.upsert(Repository, [host])
        tx.upsert(Chain, [{"id": chain, "repository_id": 1, "length": 1}])
        tx.upsert(ChainStage, [{**landing, **counts, "chain_id": chain, "position": 1, "repository_id": 1}])
        tx.upsert(Validation, [{**proved, "chain_id": chain, "validated_at": validated_at}])
        tx.upsert(StageTests, [{**about, **lists, "outcome": "proved", "image": image}])


def test_a_stage_keeps_the_image_that_it_was_proved_in_and_no_other_chains(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provide, "find_image", lambda engine, name: name)
    stage = shop.commit(setup_dot_py="setup()")
    for chain, day in (("a", "2026-01-01"), ("b", "2026-01-03"), ("c", "2026-01-02")):
        add_proof(shop.store, stage.base, chain, f"of-{chain}:1", day)
    provider = shop.provider()
    for chain, image in (("a", "of-a:1"), ("c", "of-c:1"), ("", "of-b:1")):
        found = shop.provide(provider, replace(stage, chain=chain))
        assert (found.image, found.cached) == (image, True)
    assert str(shop.provide(provider, replace(stage, chain="new")).image).startswith("prchain/")
    provider.renew = True
    assert str(shop.provide(provider, stage).image).startswith("prchain/")


class OneThatDoesNotRun:
    """Interpreters among which 3.8 is one until it is tried."""

    node_refused = go_refused = ""

    def __init__(self) -> None:
        self.found = {(3, 8): "host", (3, 11): "base"}

    def offers(self, engine: Any) -> dict[tuple[int, int], str]:
        return self.found

    def default(self, engine: Any) -> tuple[int, int]:
        return (3, 11)

    def settings_of(self, engine: Any, plan: ImagePlan) -> BuildSettings | None:
        return None if self.found.pop((3, 8), None) else BuildSettings(base_image="b")


def test_a_stage_whose_interpreter_does_not_run_here_is_planned_again_with_what_is_offered(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provide, "find_image", lambda engine, name: shop.builds.there.get(name))
    stage = shop.commit(setup_dot_py="setup(classifiers=['Programming Language :: Python :: 3.8'])")
    provider = shop.provider(interpreters=OneThatDoesNotRun())
    image = shop.provide(provider, stage)
    assert image.plan.python is not None and image.plan.python.text == "3.11"
    assert {name: row[0] for name, row in shop.rows().items()} == {image.image: "built"}
    assert shop.provide(provider, stage).cached


class Scripted:
    """A gateway that gives proposals in turn."""

    def __init__(self, *proposals: Proposal) -> None:
        self.proposals = list(proposals)

    def ask_for(self, question: Any, shape: type) -> Any:
        return SimpleNamespace(value=self.proposals.pop(0))


def wants(package: str) -> Callable[[ImagePlan], tuple[str, ...]]:
    return lambda plan: () if package in plan.recipe.packages else refuses(plan)


def test_a_recipe_that_was_repaired_is_stored_and_serves_every_later_run(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = wants("libx-dev")
    gateway = Scripted(Proposal(why="1", packages=("liba-dev",)), Proposal(why="2", packages=("libx-dev",)))
    provider = shop.provider(gateway=cast(Gateway, gateway))
    repaired = shop.provide(provider, stage)
    assert (repaired.repairs, repaired.image) == (2, repaired.plan.image)
    assert shop.rows()[str(repaired.image)][4] == 2
    assert (shop.folder / "data" / "recipes" / override_name(REPOSITORY)).exists()
    later = shop.provide(shop.provider(), stage)
    assert (later.image, later.cached) == (repaired.image, True)
    assert shop.provide(provider, stage).repairs == 2
    assert [row[0] for row in shop.rows().values()].count("built") == 1


def test_a_repair_keeps_what_the_users_own_file_says(shop: Workshop) -> None:
    folder = shop.folder / "data" / "recipes"
    folder.mkdir(parents=True)
    file = folder / override_name(REPOSITORY)
    mine = '# mine\ntest = "make check"\npackages = ["libmine-dev"]\n[offline]\nA = "1"\n[keep]\n"x/y" = "/opt/env/y"\n'
    file.write_text(mine)
    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = wants("libx-dev")
    shop.provide(shop.provider(gateway=cast(Gateway, Scripted(Proposal(why="1", packages=("libx-dev",))))), stage)
    recipe = choose({"setup.py"}, REPOSITORY, folder)
    assert (recipe.test, recipe.packages, recipe.offline) == ("make check", ("libmine-dev", "libx-dev"), {"A": "1"})
    assert recipe.keep == {"x/y": "/opt/env/y"}
    assert file.with_suffix(".toml.bak").read_text() == mine


def test_a_recipe_that_cannot_be_repaired_fails_as_it_last_did_and_is_not_stored(shop: Workshop) -> None:
    stage = shop.commit(setup_dot_py="setup()")
    shop.builds.verdict = refuses
    gateway = Scripted(*(Proposal(why="x", packages=(f"lib{letter}-dev",)) for letter in "abc"))
    provider = shop.provider(gateway=cast(Gateway, gateway))
    with pytest.raises(BuildFailed):
        shop.provide(provider, stage)
    assert len(shop.builds.plans) == 3, "two proposals led to the same failure"
    assert not (shop.folder / "data" / "recipes").exists()
    assert {row[0] for row in shop.rows().values()} == {"build_failed"}


def test_stages_that_fail_for_the_same_reason_are_repaired_once(shop: Workshop) -> None:
    stages = [shop.commit(requirements_dot_txt=f"{letter}\n") for letter in "ab"]
    shop.builds.verdict = wants("libx-dev")
    gateway = Scripted(Proposal(why="1", packages=("libx-dev",)))
    provider = shop.provider(gateway=cast(Gateway, gateway))
    assert [shop.provide(provider, stage).repairs for stage in stages] == [1, 0]
    assert gateway.proposals == []


def add_import(store: Store, chain: str, **fields: Any) -> None:
    """The row of an import whose publisher names an image."""
    said = {"source": "s", "form": "swe-bench", "instance_id": "i-1", "benchmark": False, "base_commit": "0" * 40}
    texts = {"patch": "", "test_patch": "", "f2p": [], "p2p": [], "test_command": [], "imported_at": DAY}
    row = {**said, **texts, "chain_id": chain, "breaks": False, "image": "lab/till:1", "workdir": "/till"}
    with store.transaction() as tx:
        tx.upsert(ImportedTask, [row | fields])


def test_an_imported_stage_works_in_its_publishers_image_where_it_is_there_and_else_in_ours(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = replace(shop.commit(setup_dot_py="setup()"), chain="a")
    add_proof(shop.store, stage.base, "a", "gone:1", "2026-01-01")
    add_import(shop.store, "a", test_command=["pytest -rA -W ignore"], log_parser="parse_log_pytest")
    monkeypatch.setattr(provide, "find_image", lambda engine, name: None)
    asked: list[str] = []

    def make(engine: Any, repository: str, said: Published, *, rebuild: bool) -> Image:
        asked.append(said.image)
        if said.image == "lab/till:1":
            raise ImageMissing("it is not there")
        return Image(own_name(repository, said), "id", repository, "published", 1, DAY, None)

    monkeypatch.setattr(offers, "make_published", make)
    provider = shop.provider()
    for _ in range(2):
        found = shop.provide(provider, stage)
        assert (found.publisher, found.plan.of) == ("in an image of ours: it is not there", "")
        assert str(found.image).startswith("prchain/") and found.plan.recipe.name == "python"
    assert asked == ["lab/till:1"]
    add_import(shop.store, "a", image="lab/till:2", test_command=["pytest -rA -W ignore"])
    found = shop.provide(provider, stage)
    assert (found.publisher, found.plan.of, found.plan.workdir) == ("in lab/till:2", "lab/till:2", "/till")
    assert (found.plan.runner, found.plan.arguments, found.plan.test) == ("pytest", ("-W", "ignore"), "")
    assert is_published(str(found.image)) and found.image in shop.rows()
    assert BACKENDS["docker"].command(found.plan).arguments[-2:] == ("-W", "ignore")
    # One that was proved stays in that image, whosever it is.
    monkeypatch.setattr(provide, "find_image", lambda engine, name: name)
    with shop.store.transaction() as tx:
        tx.connection.execute(update(StageTests).values(image=f"prchain/o--n:published-r{RULES}-0"))
    found = shop.provide(provider, stage)
    assert (found.image, found.plan.image, found.cached) == (*[f"prchain/o--n:published-r{RULES}-0"] * 2, True)
    # But in none from which earlier rules took less.
    with shop.store.transaction() as tx:
        tx.connection.execute(update(StageTests).values(image="prchain/o--n:published-0"))
    found = shop.provide(provider, stage)
    assert found.plan.of == "lab/till:2" and not is_outdated(str(found.image))
    with shop.store.transaction() as tx:
        tx.connection.execute(update(StageTests).values(image="gone:1"))
    found = shop.provide(provider, stage)
    assert (found.image, found.publisher, found.plan.of) == ("gone:1", "", "")


def test_a_publishers_image_needs_no_recipe_where_it_names_a_parser(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = replace(shop.commit(README="x"), chain="a")
    add_proof(shop.store, stage.base, "a", "gone:1", "2026-01-01")
    add_import(shop.store, "a", log_parser="parse_log_gotest")
    monkeypatch.setattr(provide, "find_image", lambda engine, name: None)
    image = Image("prchain/o--n:published-1", "id", REPOSITORY, "published", 1, DAY, None)
    monkeypatch.setattr(offers, "make_published", lambda *arguments, rebuild: image)
    found = shop.provide(shop.provider(), stage)
    assert (found.plan.runner, found.plan.recipe.language) == ("go", "go")
    assert shop.provider().runner(REPOSITORY, shop.trees, stage) == "go"
    add_import(shop.store, "a", log_parser=None)
    with pytest.raises(NoRecipe):
        shop.provide(shop.provider(), stage)
