"""Repositories that change their names, and names that change their repositories, before a run and in its middle."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from miner.github import GitHubSource, replay
from miner.mine import MineOptions, Miner, RepositoryReport
from miner.repositories import parse_entry
from miner.sources.github import forge_at
from prchain.core.console.progress import open_progress
from sql.store import Store
from sql.tables import Issue, MineRun, PullRequest, PullRequestText, Repository, RepositoryAlias, TimelineEvent
from tests.databases import open_new
from tests.emulator import Emulator, Fault, Kind, World, generate_world
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened

PULLS = 30


@pytest.fixture
def world() -> World:
    return generate_world(41, PULLS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


def renamed(world: World) -> None:
    world.rename_repository(world.home, "acme/machines")


def re_used(world: World) -> None:
    """The repository is renamed, and another one with equal numbers takes its name."""
    renamed(world)
    strangers(world)


def strangers(world: World) -> None:
    other = world.take_name("acme/widgets")
    for pull in world.home.pulls:
        taken = world.add_pull(other, f"Not #{pull.number}", "Of a stranger", None, number=pull.number)
        world.add_review_comment(taken, "A stranger's", None)


PLACES = [("Sweep", 1), ("Listing", 1), ("MoreTimeline", 1), ("/pulls/comments", 1)]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("change", [renamed, re_used])
@pytest.mark.parametrize(("operation", "nth"), PLACES)
def test_a_change_of_names_in_mid_run_gives_the_rows_of_a_run_after_it(
    change: Callable[[World], None], operation: str, nth: int, world: World, store: Store, tmp_path: Path
) -> None:
    # Long enough that there is a page behind each place.
    for pull in world.home.pulls[:4]:
        for _ in range(40):
            world.add_review_comment(pull, "One of many", None)
    for _ in range(35):
        world.cross_reference(world.home.pulls[0], world.add_issue(world.home, "Refers", None, None))
    fault = Fault(Kind.CHANGE, operation=operation, nth=nth, change=change)
    with Emulator(world, faults=[fault]) as github:
        summary = mine(store, github)
        assert fault.hits == 1
        assert (summary.missing, summary.unaccounted) == ((), 0)
        assert sum(github.clock.slept) < 2, "nothing is tried again and again"
        assert called(store) == {"acme/machines"}
        before = facts(store)
        with opened(tmp_path / "fresh.db") as fresh:
            mine(fresh, github, name="machines")
            assert_same(before, facts(fresh), but=["repository_aliases"])
        assert_same(before, {"repository_aliases": [alias("acme/widgets")]})
        assert not mine(store, github, name="machines").changed
    replay(store, REPOSITORY)
    assert_same(facts(store), before)


def alias(name: str) -> tuple[Any, ...]:
    return (("repository_id", REPOSITORY), ("alias", name), ("evidence", "api"))


def called(store: Store) -> set[str]:
    """Every name of acme's under which rows stand."""
    with store.reading() as tx:
        names = {f"{owner}/{name}" for owner, name in tx.rows(Repository, "owner", "name")}
        columns = [(Issue, "issue_repository"), (TimelineEvent, "other_repository"), (PullRequest, "head_repository")]
        found = {name for table, column in columns for (name,) in tx.rows(table, column)}
    return names | {name for name in found if name in {"acme/widgets", "acme/machines"}}


def test_a_rename_between_two_runs_leaves_no_rows_under_the_old_name(
    world: World, store: Store, tmp_path: Path
) -> None:
    with Emulator(world) as github:
        mine(store, github)
        renamed(world)
        mine(store, github)
        assert called(store) == {"acme/machines"}
        before = facts(store)
        replay(store, REPOSITORY)
        assert_same(facts(store), before)


class Lab:
    """Whole runs of the miner, git and API."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = generate_world(3, PULLS, git_dir=folder / "r.git")
        self.emulator = Emulator(self.world)
        self.store = open_new(folder / "prchain.db")

    def mine(self, *names: str, **options: Any) -> list[RepositoryReport]:
        specs = [parse_entry(f"{name} = {self.folder / 'r.git'}", "github.com", self.folder) for name in names]
        with open_progress(stream=io.StringIO()) as progress:
            source = GitHubSource(
                self.store,
                forge=forge_at("github.com"),
                tokens=("test-token",),
                api_url=self.emulator.api_url,
                max_wait=4000,
                timeout=30,
                progress=progress,
                clock=self.emulator.clock,
                sleep=self.emulator.clock.sleep,
            )
            mirrors = self.folder / "mirrors"
            miner = Miner(self.store, MineOptions(**options), mirrors=mirrors, progress=progress, sources=[source])
            return [miner.mine(spec) for spec in specs]

    def rows(self, table: Any, *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns, **equals)]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    created = Lab(tmp_path)
    with created.emulator:
        yield created
    created.store.close()


@pytest.mark.parametrize("fate", ["renamed", "deleted"])
def test_a_name_that_now_belongs_to_another_repository_is_another_repository(fate: str, lab: Lab) -> None:
    lab.mine("acme/widgets")
    titles = lab.rows(PullRequestText, "number", "body", repository_id=1, field="title")
    mirror = lab.folder / "mirrors" / "github.com" / "acme"
    (mirror / "widgets.git").mkdir(parents=True)
    if fate == "renamed":
        renamed(lab.world)
    else:
        lab.world.delete_repository(lab.world.home)
    strangers(lab.world)
    [report] = lab.mine("acme/widgets")
    kept = "machines" if fate == "renamed" else "widgets~1"
    assert lab.rows(Repository, "id", "owner", "name") == [(1, "acme", kept), (2, "acme", "widgets")]
    assert lab.rows(PullRequestText, "number", "body", repository_id=1, field="title") == titles
    new = lab.rows(PullRequestText, "body", repository_id=2, field="title")
    assert len(new) == PULLS
    assert all(title.startswith("Not #") for (title,) in new)
    assert f"acme/{kept}" in (report.note or "")
    assert [path.name for path in mirror.iterdir()] == [f"{kept}.git"]
    assert ("acme/widgets",) in lab.rows(RepositoryAlias, "alias", repository_id=1)
    [again] = lab.mine("acme/widgets")
    assert (again.outcome, again.note) == ("unchanged", None)


def test_a_run_that_failed_tells_what_it_cost(lab: Lab) -> None:
    for operation in ("Resolve", "Sweep", "/pulls/comments"):
        lab.emulator.faults[:] = [Fault(Kind.HTML_200, operation=operation, times=None)]
        requests, points = lab.emulator.requests, lab.emulator.points()
        [report] = lab.mine("acme/widgets")
        assert report.outcome == "bad_answer"
        spent = lab.emulator.requests - requests
        assert report.graphql_requests + report.rest_requests == spent >= 6
        assert report.points == lab.emulator.points() - points
        assert sum(lab.rows(MineRun, "graphql_requests", "rest_requests")[-1]) == spent


def test_the_points_of_overloaded_requests_are_counted(lab: Lab) -> None:
    lab.emulator.faults[:] = [Fault(Kind.BAD_GATEWAY_502, operation="Sweep", times=None)]
    [report] = lab.mine("acme/widgets")
    assert (report.outcome, report.points) == ("bad_answer", lab.emulator.points())


def test_a_repository_whose_answers_are_malformed_stops_no_other(lab: Lab) -> None:
    def spoil(body: Any) -> Any:
        body["data"]["repository"]["nameWithOwner"] = None
        return body

    lab.world.take_name("acme/broken")
    broken = lambda call: call.variables.get("name") == "broken"  # noqa: E731
    lab.emulator.faults[:] = [Fault(Kind.REWRITE, when=broken, times=None, rewrite=spoil)]
    bad, good = lab.mine("acme/broken", "acme/widgets")
    assert (bad.outcome, good.outcome) == ("bad_answer", "mined")
    assert good.pull_requests == PULLS


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_run_that_broke_off_tells_what_it_cost(
    error: type[BaseException], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Miner, "_read_git", broken)
    with pytest.raises(error):
        lab.mine("acme/widgets")
    [(graphql, rest, points, outcome)] = lab.rows(MineRun, "graphql_requests", "rest_requests", "points", "outcome")
    assert (graphql + rest, points) == (lab.emulator.requests, lab.emulator.points())
    assert (outcome == "interrupted") == (error is KeyboardInterrupt), "`status` does not say that it is running"
