"""What no date betrays is found by a bounded second look (issue 20, point 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from miner.github import recheck, replay, vanished
from prchain.core.errors import BadAnswer
from sql.store import Store
from sql.tables import IncompletePart, PullRequestText
from tests.emulator import Emulator, Fault, Kind, VirtualClock, World, generate_world
from tests.emulator.model import PullRequest
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened

PULLS = 45
DAY = 86_400


@pytest.fixture
def world() -> World:
    return generate_world(5, PULLS)


@pytest.fixture
def github(world: World) -> Iterator[Emulator]:
    with Emulator(world, clock=VirtualClock(float(world.now))) as emulator:
        yield emulator


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


def fresh(github: Emulator, path: Path) -> dict[str, list[Any]]:
    """The facts that an empty store gets from GitHub as it is now."""
    with opened(path) as other:
        mine(other, github)
        return facts(other)


def days_pass(github: Emulator, days: float) -> None:
    """Time passes on GitHub and here."""
    github.world.tick(int(days * DAY))
    github.clock.advance(days * DAY)


def with_comments(world: World) -> list[PullRequest]:
    """Pull requests with comments on lines, the newest first."""
    return [pull for pull in reversed(world.home.pulls) if sum(len(t.comments) for t in pull.threads) > 1]


def edit_in_silence(world: World) -> None:
    """Three edits on GitHub that move no pull request's date."""
    pulls = world.home.pulls
    dates = [pull.updated_at for pull in pulls]
    issue = next(pull.closing[0] for pull in reversed(pulls) if pull.closing)
    world.edit_issue(issue, title="Said otherwise", body="Now with a way to reproduce it")
    world.cross_reference(pulls[-2], pulls[-1])
    world.delete_comment(with_comments(world)[0].threads[0].comments[-1])
    assert [pull.updated_at for pull in pulls] == dates


def requests(github: Emulator, before: int, operation: str) -> list[Any]:
    return [e for e in github.log[before:] if operation in (e.operation, e.path.rsplit("/", 1)[-1])]


def age(world: World, pull: PullRequest) -> float:
    """In days, since the pull request was last updated."""
    return (world.now - datetime.fromisoformat(pull.updated_at).timestamp()) / DAY


def test_silent_edits_are_found_by_a_recheck(world: World, github: Emulator, store: Store, tmp_path: Path) -> None:
    mine(store, github)
    edit_in_silence(world)
    before = facts(store)
    mine(store, github)
    assert facts(store) == before, "the edits show in no list, so this test shows what a recheck is for"
    assert mine(store, github, recheck_days=10_000).changed
    assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))
    stored = facts(store)
    replay(store, REPOSITORY)
    assert_same(facts(store), stored)


def test_a_recheck_costs_a_point_for_twenty_and_a_request_for_each_with_comments_on_lines(
    world: World, github: Emulator, store: Store
) -> None:
    mine(store, github)
    before, first = len(github.log), github.points()
    summary = mine(store, github, recheck_days=10_000)
    assert summary.pull_requests == PULLS
    assert [e.points for e in requests(github, before, "PullRequests")] == [1] * math.ceil(PULLS / 20)
    assert github.points() - first <= first, "long discussions are completed as by a first run"
    commented = {pull.number for pull in world.home.pulls for t in pull.threads if t.comments}
    own_lists = {e.path for e in github.log[before:] if e.path.count("/") == 6}
    assert own_lists == {f"/repos/acme/widgets/pulls/{number}/comments" for number in commented}


def test_only_pull_requests_of_these_days_are_read(world: World, github: Emulator, store: Store) -> None:
    mine(store, github)
    ages = sorted(age(world, pull) for pull in world.home.pulls)
    days = math.ceil(ages[10])
    expected = sum(a <= days for a in ages)
    assert 10 < expected < PULLS
    assert mine(store, github, recheck_days=days).pull_requests == expected
    assert mine(store, github, recheck_days=0).pull_requests == 0


def test_by_default_it_is_made_once_a_day_and_never_by_the_first_run(
    world: World, github: Emulator, store: Store
) -> None:
    def reread() -> int:
        before = len(github.log)
        mine(store, github)
        return sum(len(e.variables["ids"]) for e in requests(github, before, "PullRequests"))

    assert reread() == 0
    assert reread() == 0
    days_pass(github, 1.1)
    expected = sum(age(world, pull) <= recheck.DEFAULT_DAYS for pull in world.home.pulls)
    assert expected > 0
    assert reread() == expected
    assert reread() == 0
    assert mine(store, github, recheck_days=recheck.DEFAULT_DAYS).pull_requests == expected


def test_what_is_incomplete_is_asked_for_again_only_where_days_are_told(
    world: World, github: Emulator, store: Store
) -> None:
    github.faults.append(Fault(Kind.NULL_FIELD_200, field="labels", times=None))
    mine(store, github)
    days_pass(github, 1.1)
    with store.reading() as tx:
        incomplete = {number for (number,) in tx.rows(IncompletePart, "number")}
    recent = {pull.number for pull in world.home.pulls if age(world, pull) <= recheck.DEFAULT_DAYS}
    assert recent & incomplete and recent - incomplete
    before = len(github.log)
    assert mine(store, github).pull_requests == len(recent - incomplete)
    assert requests(github, before, "MoreLabels") == []
    github.faults.clear()
    mine(store, github, recheck_days=10_000)
    assert facts(store)["incomplete_parts"] == []


def test_a_bounded_run_rechecks_its_own(world: World, github: Emulator, store: Store) -> None:
    mine(store, github)
    assert mine(store, github, limit=7, recheck_days=10_000).pull_requests == 7


def test_a_recheck_that_broke_off_is_gone_on_with(world: World, github: Emulator, store: Store, tmp_path: Path) -> None:
    mine(store, github)
    edit_in_silence(world)
    github.faults.append(Fault(Kind.BAD_GATEWAY_502, operation="PullRequests", nth=2, times=None))
    with pytest.raises(BadAnswer):
        mine(store, github, recheck_days=10_000)
    github.faults.clear()
    mine(store, github)
    assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))


def comments_of(store: Store, pull: PullRequest) -> set[str]:
    with store.reading() as tx:
        own = {"repository_id": REPOSITORY, "number": pull.number, "field": "review_comment"}
        return {key for (key,) in tx.rows(PullRequestText, "key", **own)}


def present(pull: PullRequest) -> set[str]:
    return {str(comment.database_key) for thread in pull.threads for comment in thread.comments}


def test_comments_on_lines_deleted_from_a_pull_request_that_changed_are_gone(
    world: World, github: Emulator, store: Store
) -> None:
    mine(store, github)
    days_pass(github, 0.5)
    pull, other = with_comments(world)[:2]
    world.delete_comment(pull.threads[0].comments[-1])
    world.add_comment(pull, "I took my remark back", None)
    before = len(github.log)
    mine(store, github)
    assert comments_of(store, pull) == present(pull)
    assert comments_of(store, other) == present(other)
    assert [e.path.split("/")[-2] for e in github.log[before:] if e.path.count("/") == 6] == [str(pull.number)]


def test_a_deletion_while_a_long_list_is_read_takes_no_other_comment_along(
    world: World, github: Emulator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vanished, "PER_PAGE", 2)
    pull = max(world.home.pulls, key=lambda pull: len(present(pull)))
    assert len(present(pull)) > 4
    mine(store, github)
    days_pass(github, 0.5)
    world.add_comment(pull, "Bump", None)
    first = min((c for t in pull.threads for c in t.comments), key=lambda c: c.order)
    path = f"/pulls/{pull.number}/comments"
    github.faults.append(Fault(Kind.CHANGE, operation=path, change=lambda world: world.delete_comment(first)))
    mine(store, github)
    assert comments_of(store, pull) >= present(pull)
    world.add_comment(pull, "Bump again", None)
    mine(store, github)
    assert comments_of(store, pull) == present(pull)


def own_list(pull: PullRequest) -> str:
    return f"/pulls/{pull.number}/comments"


def test_a_malformed_list_of_comments_deletes_nothing_and_is_asked_for_again(
    world: World, github: Emulator, store: Store
) -> None:
    mine(store, github)
    days_pass(github, 0.5)
    pull = with_comments(world)[0]
    before = comments_of(store, pull)
    world.delete_comment(pull.threads[0].comments[-1])
    world.add_comment(pull, "I took my remark back", None)

    def spoil(body: Any) -> Any:
        del body[0]["created_at"]
        return body

    fault = Fault(Kind.REWRITE, operation=own_list(pull), rewrite=spoil, times=None)
    github.faults.append(fault)
    [reason] = mine(store, github).malformed
    assert "created_at" in reason
    assert (comments_of(store, pull), fault.hits) == (before, 3)
    github.faults.clear()
    assert mine(store, github).malformed == ()
    assert comments_of(store, pull) == present(pull)


def test_a_list_of_another_repository_that_took_the_name_deletes_nothing(
    world: World, github: Emulator, store: Store
) -> None:
    mine(store, github)
    days_pass(github, 0.5)
    pull = with_comments(world)[0]
    world.add_comment(pull, "Bump", None)

    def re_used(world: World) -> None:
        world.rename_repository(world.home, "acme/machines")
        other = world.take_name("acme/widgets")
        world.add_pull(other, "Another", "Of a stranger", None, number=pull.number)

    fault = Fault(Kind.CHANGE, operation="PullRequests", change=re_used)
    github.faults.append(fault)
    mine(store, github)
    assert fault.hits == 1
    assert comments_of(store, pull) == present(pull)
