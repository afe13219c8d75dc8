"""What is edited on GitHub between two runs, with and without faults: as a run that saw nothing else, or named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from miner.github import ReadSummary, replay
from sql.store import Store
from sql.tables import IncompletePart
from tests.emulator import Emulator, Fault, Kind, VirtualClock, World, generate_world
from tests.emulator.model import PullRequest
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened

pytestmark = pytest.mark.drawn(12, "edits of what was mined")
"""All of them are one table."""


PULLS = 20
EVERY_DAY = 10_000


def last(world: World, chosen: Callable[[PullRequest], object]) -> PullRequest:
    return next(pull for pull in reversed(world.home.pulls) if chosen(pull))


def edit_title(world: World) -> PullRequest:
    pull = world.home.pulls[7]
    world.edit_pull(pull, title="Said otherwise")
    return pull


def edit_body(world: World) -> PullRequest:
    pull = world.home.pulls[8]
    world.edit_pull(pull, body=f"Follow-up to #{world.home.pulls[2].number}")
    return pull


def empty_body(world: World) -> PullRequest:
    pull = last(world, lambda pull: pull.body and pull.comments)
    world.edit_pull(pull, body="")
    return pull


def change_labels(world: World) -> PullRequest:
    pull = last(world, lambda pull: len(pull.labels) > 1)
    world.relabel(pull, pull.labels[0].name, "entirely new")
    return pull


def delete_comment(world: World) -> PullRequest:
    pull = last(world, lambda pull: len(pull.comments) > 1)
    world.delete_comment(pull.comments[0])
    return pull


def delete_comment_and_say_more(world: World) -> PullRequest:
    pull = delete_comment(world)
    world.add_comment(pull, "I take it back", None)
    return pull


def edit_comment(world: World) -> PullRequest:
    pull = last(world, lambda pull: len(pull.comments) > 1)
    world.edit_comment(pull.comments[-1], "On second thoughts, no")
    return pull


def delete_review_comment(world: World) -> PullRequest:
    pull = last(world, lambda pull: sum(len(thread.comments) for thread in pull.threads) > 1)
    world.delete_comment(pull.threads[0].comments[-1])
    return pull


def turn_threads(world: World) -> PullRequest:
    pull = last(world, lambda pull: pull.threads)
    for thread in pull.threads:
        world.resolve_thread(thread, resolved=not thread.is_resolved)
    return pull


def turn_threads_and_approve(world: World) -> PullRequest:
    pull = turn_threads(world)
    world.add_review(pull, "APPROVED", "", None)
    return pull


def retarget(world: World) -> PullRequest:
    pull = last(world, lambda pull: len(pull.timeline) > 1)
    world.retarget(pull, "release")
    return pull


def push(world: World) -> PullRequest:
    pull = last(world, lambda pull: pull.state == "OPEN")
    world.push(pull)
    return pull


@dataclass(frozen=True)
class Edit:
    """What is done on GitHub, which connection shows it, and whether only a recheck finds it."""

    do: Callable[[World], PullRequest]
    field: str
    connection: str
    silent: bool = False


EDITS = {
    edit.do.__name__: edit
    for edit in (
        Edit(edit_title, "timelineItems", "timeline"),
        Edit(edit_body, "timelineItems", "timeline"),
        Edit(empty_body, "comments", "comments"),
        Edit(change_labels, "labels", "labels"),
        Edit(delete_comment, "comments", "comments", silent=True),
        Edit(delete_comment_and_say_more, "comments", "comments"),
        Edit(edit_comment, "comments", "comments", silent=True),
        Edit(delete_review_comment, "reviewThreads", "threads", silent=True),
        Edit(turn_threads, "reviewThreads", "threads", silent=True),
        Edit(turn_threads_and_approve, "reviewThreads", "threads"),
        Edit(retarget, "timelineItems", "timeline"),
        Edit(push, "commits", "commits"),
    )
}
EVERY = pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)

PASSING = {
    "overloaded": [(Kind.BAD_GATEWAY_502, "PullRequests")],
    "short of resources": [(Kind.RESOURCE_LIMITS_200, "PullRequests")],
    "a broken answer": [(Kind.TRUNCATED, "PullRequests"), (Kind.BAD_JSON, "Listing")],
    "limited": [(Kind.RETRY_AFTER_403, "PullRequests"), (Kind.PRIMARY_403, "Listing")],
    "a lost cursor": [(Kind.LOST_CURSOR, "Listing")],
    "reset": [(Kind.RESET, "PullRequests"), (Kind.RESET, "/pulls/comments")],
}
"""Faults of the second run; none of them stays."""


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


def later(store: Store, github: Emulator, *, silent: bool = False) -> ReadSummary:
    """A second run; one that looks again at everything where the edit shows in no list."""
    return mine(store, github, recheck_days=EVERY_DAY if silent else 0)


def assert_as_fresh(store: Store, github: Emulator, path: Path) -> None:
    """Rows, and rows parsed again, are those that an empty store gets from GitHub as it is now."""
    with opened(path) as other:
        mine(other, github)
        expected = facts(other)
    assert_same(facts(store), expected)
    replay(store, REPOSITORY)
    assert_same(facts(store), expected)


@EVERY
def test_an_edit_between_two_runs_leaves_the_rows_of_a_fresh_run(
    edit: Edit, world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    mine(store, github)
    before = facts(store)
    edit.do(world)
    if edit.silent:
        assert not later(store, github).changed
        assert_same(facts(store), before)
    assert later(store, github, silent=edit.silent).changed
    assert facts(store) != before
    assert_as_fresh(store, github, tmp_path / "fresh.db")


@EVERY
@pytest.mark.parametrize("kind", [Kind.FORBIDDEN_FIELD_200, Kind.NULL_NODES_200])
def test_an_edit_of_what_github_then_keeps_back_is_named_until_it_gives_it(
    kind: Kind, edit: Edit, world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    mine(store, github)
    pull = edit.do(world)
    github.faults.append(Fault(kind, field=edit.field, keep=0, times=None))
    summary = later(store, github, silent=edit.silent)
    assert summary.missing == ()
    with store.reading() as tx:
        named = {(number, name) for number, name in tx.rows(IncompletePart, "number", "connection")}
    assert (pull.number, edit.connection) in named
    assert {connection for _, connection in named} == {edit.connection}
    if not edit.silent:
        assert {number for number, _ in named} == {pull.number}
    github.faults.clear()
    mine(store, github, recheck_days=EVERY_DAY)
    assert_as_fresh(store, github, tmp_path / "fresh.db")


@pytest.mark.parametrize("what", PASSING)
def test_all_edits_at_once_and_a_rename_are_found_in_spite_of_faults_that_pass(
    what: str, world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    mine(store, github)
    for edit in EDITS.values():
        edit.do(world)
    world.rename_repository(world.home, "acme/machines")
    faults = [Fault(kind, operation=operation, times=2) for kind, operation in PASSING[what]]
    github.faults.extend(faults)
    summary = later(store, github, silent=True)
    assert all(fault.hits for fault in faults)
    assert (summary.missing, summary.malformed, summary.unaccounted) == ((), (), 0)
    github.faults.clear()
    assert_as_fresh(store, github, tmp_path / "fresh.db")
