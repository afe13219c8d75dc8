"""What GitHub counts and does not give is asked for once more, and then named; a null is never taken for "none"."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from miner.github import replay
from prchain import cli
from sql.store import Store
from sql.tables import IncompletePart
from tests.emulator import Emulator, Fault, Kind, World, generate_world
from tests.emulator.answers import pulls_in
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened

PULLS = 24
WORLD = generate_world(11, PULLS)
"""Never changed by these tests."""
Facts = dict[str, list[Any]]

FIELDS = {
    "labels": "labels",
    "commits": "commits",
    "comments": "comments",
    "reviews": "reviews",
    "reviewThreads": "threads",
    "closingIssuesReferences": "closing_issues",
    "timelineItems": "timeline",
}
CASES = [
    *((Kind.NULL_NODES_200, field) for field in FIELDS),
    (Kind.LOST_NODES_200, "comments"),
    (Kind.LOST_NODES_200, "labels"),
    *((Kind.FORBIDDEN_FIELD_200, field) for field in FIELDS),
    (Kind.NULL_FIELD_200, "labels"),
    (Kind.NULL_FIELD_200, "reviews"),
]

lacking = pytest.mark.drawn(6, "what answers lack")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    with Emulator(WORLD) as github, opened(tmp_path_factory.mktemp("wanted") / "mined.db") as store:
        mine(store, github)
        return facts(store)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


def parts(store: Store) -> dict[tuple[int, str], tuple[int, int | None, str]]:
    with store.reading() as tx:
        columns = ("number", "connection", "came", "total", "reason")
        return {(n, name): (came, total, reason) for n, name, came, total, reason in tx.rows(IncompletePart, *columns)}


@lacking
@pytest.mark.parametrize(("kind", "field"), CASES)
def test_what_lacks_once_is_fetched_once_more(kind: Kind, field: str, store: Store, expected: Facts) -> None:
    fault = Fault(kind, operation="Sweep", field=field, keep=0)
    with Emulator(WORLD, faults=[fault]) as github:
        summary = mine(store, github)
        assert fault.hits == 1
        assert_same(facts(store), expected)
        assert (summary.missing, parts(store)) == ((), {})


@lacking
@pytest.mark.parametrize(("kind", "field"), CASES)
def test_what_lacks_twice_is_named_and_the_rest_is_kept(kind: Kind, field: str, store: Store, expected: Facts) -> None:
    with Emulator(WORLD, faults=[Fault(kind, field=field, keep=1, times=None)]) as github:
        summary = mine(store, github)
        first = github.requests
        found, actual = parts(store), facts(store)
        assert not mine(store, github).changed
        assert github.requests - first == 3  # it is not asked for again
    assert (summary.missing, len(actual["pull_requests"])) == ((), len(expected["pull_requests"]))
    assert {name for _, name in found} == {FIELDS[field]}
    counts = {pull.number: items(pull, field) for pull in WORLD.home.pulls}
    lacking = 1 if kind in (Kind.NULL_NODES_200, Kind.LOST_NODES_200) else 0
    assert {number for number, _ in found} == {number for number, count in counts.items() if count > lacking}
    for (number, _), (came, total, reason) in found.items():
        if lacking:
            # Each page of the second reading has one.
            assert came == -(-counts[number] // 100) and total == counts[number]
            assert reason == f"GitHub counts {total} and gave {came}"
        else:
            forbidden = " (FORBIDDEN)" if kind is Kind.FORBIDDEN_FIELD_200 else ""
            assert (came, total, reason) == (0, None, f"GitHub gave null for the list{forbidden}")
    before = facts(store)
    replay(store, REPOSITORY)
    assert_same(facts(store), before)


def refuse(number: int, *below: str, whole: bool = False) -> Fault:
    """What stands `below` a pull request is always null, or, with `whole`, all of it is; an error leads there."""

    def change(body: Any) -> Any:
        for path, pull in list(pulls_in(body["data"], ())):
            if pull["number"] != number or below[0] not in pull:
                continue
            reduce(getitem, below[:-1], pull)[below[-1]] = None
            if whole:
                reduce(getitem, path[:-1], body["data"])[path[-1]] = None
            text = "Resource not accessible by personal access token"
            body.setdefault("errors", []).append({"type": "FORBIDDEN", "path": [*path, *below], "message": text})
        return body

    return Fault(Kind.REWRITE, resource="graphql", times=None, rewrite=change)


@pytest.mark.parametrize("field", FIELDS)
def test_a_refused_list_under_a_total_is_named_with_the_total(field: str, store: Store) -> None:
    pull = next(pull for pull in WORLD.home.pulls if items(pull, field))
    with Emulator(WORLD, faults=[refuse(pull.number, field, "nodes")]) as github:
        summary = mine(store, github)
    assert (summary.missing, summary.pull_requests) == ((), PULLS)
    [((number, connection), (came, total, reason))] = parts(store).items()
    assert (number, connection, came) == (pull.number, FIELDS[field], 0)
    assert total is not None and total >= items(pull, field)
    assert reason == f"GitHub counts {total} and gave 0 (FORBIDDEN)"


def test_a_pull_request_that_is_null_for_a_refused_part_is_named_with_the_part_and_read_when_it_comes(
    store: Store, expected: Facts
) -> None:
    """By GitHub's schema ``commits`` is never null: an error about it makes the whole pull request null."""
    number = WORLD.home.pulls[7].number
    with Emulator(WORLD, faults=[refuse(number, "commits", whole=True)]) as github:
        for read in (PULLS - 1, 0):
            summary = mine(store, github)
            assert (summary.missing, summary.pull_requests) == ((number,), read)
            assert summary.missing_reasons == ("GitHub keeps it back: commits (FORBIDDEN)",)
        assert len(github.log) < 40
    with Emulator(WORLD) as github:
        assert mine(store, github).missing == ()
    assert_same(facts(store), expected)


def items(pull: Any, field: str) -> int:
    """How many items of the connection the miner asks for."""
    kinds = {
        "CrossReferencedEvent",
        "ConnectedEvent",
        "DisconnectedEvent",
        "ReferencedEvent",
        "MarkedAsDuplicateEvent",
        "HeadRefForcePushedEvent",
        "BaseRefChangedEvent",
        "RenamedTitleEvent",
    }
    if field == "timelineItems":
        return sum(event.kind in kinds for event in pull.timeline)
    return len(getattr(pull, {"reviewThreads": "threads", "closingIssuesReferences": "closing"}.get(field, field)))


def test_an_incomplete_pull_request_is_asked_again_when_it_changes(store: Store) -> None:
    world: World = generate_world(12, PULLS)
    pull = next(pull for pull in world.home.pulls if pull.closing)
    hidden = Fault(Kind.FORBIDDEN_FIELD_200, field="closingIssuesReferences", times=None)
    with Emulator(world, faults=[hidden]) as github:
        mine(store, github)
        assert (pull.number, "closing_issues") in parts(store)
    with Emulator(world) as github:
        mine(store, github)
        assert (pull.number, "closing_issues") in parts(store)
        world.tick(86_400)
        world.add_comment(pull, "Ping", None)
        mine(store, github)
        assert (pull.number, "closing_issues") not in parts(store)
        closed = [row for row in map(dict, facts(store)["closing_references"]) if row["number"] == pull.number]
        assert len(closed) == len(pull.closing)


def test_a_total_that_counts_other_events_too_is_not_held_against_the_timeline(store: Store) -> None:
    """Seen at GitHub: ``timelineItems.totalCount`` counts all kinds of events, whichever are asked for."""
    with Emulator(WORLD) as github:
        mine(store, github)
        assert any(len(pull.timeline) > items(pull, "timelineItems") for pull in WORLD.home.pulls)
        assert parts(store) == {}


def test_what_lacks_costs_a_point_for_twenty(tmp_path: Path) -> None:
    spent = []
    fault = Fault(Kind.NULL_NODES_200, operation="Sweep", field="labels", keep=0, times=None)
    for name, faults in (("usual", []), ("lacking", [fault])):
        with opened(tmp_path / f"{name}.db") as store, Emulator(WORLD, faults=faults) as github:
            mine(store, github)
            spent.append(github.points())
    assert spent[0] < spent[1] <= spent[0] + 2


def test_the_run_status_and_show_say_what_is_incomplete_and_the_rest_is_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world: World = generate_world(11, PULLS, git_dir=tmp_path / "r.git")
    closing = sorted(pull.number for pull in world.home.pulls if pull.closing)
    (tmp_path / "list.txt").write_text(f"acme/widgets = {tmp_path / 'r.git'}\n")
    hidden = Fault(Kind.FORBIDDEN_FIELD_200, field="closingIssuesReferences", times=None)
    with Emulator(world, faults=[hidden]) as github:
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        monkeypatch.setenv("GITHUB_TOKEN", "test-token")
        for outcome in ("mined", "unchanged"):
            assert cli.run(["mine", "list.txt", "--db", "p.db"]) == 0
            out = capsys.readouterr().out.splitlines()
            assert out[0].startswith(f"acme/widgets: {outcome}: {PULLS} pull requests")
            assert out[1] == (
                f"acme/widgets: {len(closing)} pull requests incomplete: their forge counts more than it gives;"
                " see `prchain sql incomplete`"
            )
    assert cli.run(["sql", "incomplete", "--csv", "--db", "p.db"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [int(row["number"]) for row in rows] == closing
    assert {(row["connection"], row["reason"]) for row in rows} == {
        ("closing_issues", "GitHub gave null for the list (FORBIDDEN)")
    }
    assert cli.run(["status", "--db", "p.db"]) == 0
    assert re.search(rf"^  incomplete, .* +{len(closing)}$", capsys.readouterr().out, re.MULTILINE)
    assert cli.run(["show", f"acme/widgets#{closing[0]}", "--db", "p.db"]) == 0
    assert "closing issues: GitHub gave null for the list (FORBIDDEN)" in capsys.readouterr().out
