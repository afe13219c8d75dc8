"""Whatever GitHub does wrong and whenever the miner is killed, the finished facts are those of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests
from sqlalchemy import event

from miner.github import queries, replay
from prchain.core.errors import BadAnswer, BadToken, NetworkUnreachable, RateLimitExceeded
from sql.store import Store
from sql.tables import ArchivedPage, Cursor, PullRequest
from tests.emulator import WITHHELD, Call, Emulator, Exchange, Fault, Kind, VirtualClock, generate_world
from tests.emulator.answers import Answer
from tests.emulator.world import World
from tests.miner.github_lab import REPOSITORY, Quiet, assert_same, facts, mine, opened, pages_fetched
from tests.miner.lives import FORKED

pytestmark = pytest.mark.drawn(10, "faults of GitHub")
"""All of them are one table."""


PULLS = 26
WORLD = generate_world(11, PULLS)
"""Never changed by these tests."""
for _ in range(250):
    WORLD.add_comment(WORLD.home.pulls[1], "One of very many", None)
Facts = dict[str, list[Any]]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    with Emulator(WORLD) as github, opened(tmp_path_factory.mktemp("wanted") / "mined.db") as store:
        mine(store, github)
        return facts(store)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


def assert_polite(github: Emulator) -> None:
    """Every wait was honoured, and no page asked for again that had come."""
    assert not github.early
    fetched = pages_fetched(github)
    assert len(fetched) == len(set(fetched))


WAITS = {
    Kind.RETRY_AFTER_403: 60.0,
    Kind.SECONDARY_403: 60.0,
    Kind.PRIMARY_403: 60.0,
    Kind.RETRY_AFTER_429: 60.0,
    Kind.BARE_429: 60.0,
    Kind.RATE_LIMITED_200: 60.0,
}
OWN_TESTS = {Kind.UNAUTHORIZED_401, Kind.CHANGE, Kind.SLOW, Kind.DRIP, Kind.REWRITE, *WITHHELD}
EVERYWHERE = [kind for kind in Kind if kind not in OWN_TESTS]
GRAPHQL_ONLY = {
    Kind.RATE_LIMITED_200,
    Kind.RESOURCE_LIMITS_200,
    Kind.SOMETHING_WENT_WRONG_200,
    Kind.SHORT_PAGE,
    Kind.LOST_CURSOR,
    Kind.REPEATED_CURSOR,
}
PLACES = [("Sweep", 2), ("MoreComments", 1), ("/pulls/comments", 2)]


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_fault_that_passes_changes_nothing(kind: Kind, store: Store, expected: Facts) -> None:
    places = [place for place in PLACES if kind not in GRAPHQL_ONLY or not place[0].startswith("/")]
    faults = [Fault(kind, operation=operation, nth=nth, times=2) for operation, nth in places]
    with Emulator(WORLD, faults=faults) as github:
        summary = mine(store, github)
        assert all(fault.hits for fault in faults)
        assert_same(facts(store), expected)
        assert summary.missing == () and summary.unaccounted == 0
        assert_polite(github)
        assert summary.usage.waited_seconds == pytest.approx(sum(github.clock.slept))
        if kind in WAITS:
            assert sum(github.clock.slept) >= WAITS[kind] * sum(fault.hits for fault in faults)


@pytest.mark.parametrize("operation", ["Resolve", "Listing", "MoreTimeline", "MoreCommits"])
@pytest.mark.parametrize("kind", [Kind.BAD_GATEWAY_502, Kind.RESOURCE_LIMITS_200, Kind.HTML_200, Kind.RESET])
def test_no_operation_is_left_out(kind: Kind, operation: str, store: Store, expected: Facts) -> None:
    fault = Fault(kind, operation=operation, times=2)
    with Emulator(WORLD, faults=[fault]) as github:
        mine(store, github)
        assert fault.hits == 2
        assert_same(facts(store), expected)


@pytest.mark.parametrize("kind", [Kind.BAD_GATEWAY_502, Kind.GATEWAY_TIMEOUT_504, Kind.RESOURCE_LIMITS_200])
def test_a_page_size_that_always_fails_is_halved_and_remembered(kind: Kind, store: Store, expected: Facts) -> None:
    with Emulator(WORLD, faults=[Fault(kind, operation="Sweep", page_over=7, times=None)]) as github:
        mine(store, github)
        assert_same(facts(store), expected)
        failed = [e for e in github.log if e.operation == "Sweep" and e.fault]
        assert [e.page_size for e in failed][:2] == [20, 10]
        assert len(failed) <= 5
    with store.reading() as tx:
        assert next(tx.rows(Cursor, "page_size", stream="sweep"))[0] <= 5


def test_an_answer_that_takes_too_long_halves_the_page(store: Store, expected: Facts) -> None:
    # Late enough that no busy machine is in time; nobody waits for it.
    with Emulator(WORLD, faults=[Fault(Kind.SLOW, operation="Sweep", nth=2, delay=30.0)]) as github:
        mine(store, github, timeout=1.0)
        assert_same(facts(store), expected)
        sweeps = [(exchange.fault, exchange.page_size or 0) for exchange in github.log if exchange.operation == "Sweep"]
    # On a busy machine other answers may take too long, too, so that pages are smaller before.
    late = [fault for fault, _ in sweeps].index(Kind.SLOW)
    assert sweeps[late + 1][1] == sweeps[late][1] // 2


@pytest.mark.parametrize("kind", [Kind.LOST_CURSOR, Kind.REPEATED_CURSOR, Kind.SHORT_PAGE])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_sweep_whose_cursors_fail_for_good_is_completed_by_numbers(
    kind: Kind, nth: int, store: Store, expected: Facts
) -> None:
    with Emulator(WORLD, faults=[Fault(kind, operation="Sweep", nth=nth, times=None)]) as github:
        summary = mine(store, github)
        assert_same(facts(store), expected)
        assert summary.unaccounted == 0
        assert len(github.log) < 120


def heavy(number: int) -> Callable[[Call], bool]:
    """A rule that is met by whatever asks for this pull request with all its connections."""
    place = [pull.number for pull in WORLD.home.pulls].index(number)
    node_id, starts = WORLD.home.pulls[place].id, cursors()

    def asks(call: Call) -> bool:
        if call.operation == "PullRequests":
            return node_id in call.variables["ids"]
        start = starts.get(call.variables.get("after"), PULLS)
        return call.operation == "Sweep" and start <= place < start + int(call.variables["first"])

    return asks


@cache
def cursors() -> dict[str | None, int]:
    """Where in the list of pull requests, oldest first, each of its cursors leads."""
    found: dict[str | None, int] = {None: 0}
    after = None
    order = {"field": "CREATED_AT", "direction": "ASC"}
    with Emulator(WORLD) as github, requests.Session() as session:
        session.headers["Authorization"] = "bearer test-token"
        for place in range(1, PULLS):
            variables: dict[str, Any] = {"owner": "acme", "name": "widgets", "first": 1, "after": after, "order": order}
            body: Any = {"query": queries.load("listing").text, "variables": variables}
            answer = session.post(f"{github.url}/api/graphql", json=body, timeout=5).json()
            after = answer["data"]["repository"]["pullRequests"]["pageInfo"]["endCursor"]
            found[after] = place
    return found


def test_a_pull_request_too_heavy_for_any_page_is_read_with_shorter_connections(store: Store, expected: Facts) -> None:
    number = WORLD.home.pulls[23].number
    asks = heavy(number)
    fault = Fault(Kind.BAD_GATEWAY_502, times=None, when=lambda call: asks(call) and call.variables["inner"] > 3)
    with Emulator(WORLD, faults=[fault]) as github:
        summary = mine(store, github)
        assert fault.hits
        assert summary.missing == ()
        assert_same(facts(store), expected)


def test_a_pull_request_that_always_fails_is_named_and_asked_for_again_next_time(store: Store, expected: Facts) -> None:
    number = WORLD.home.pulls[23].number
    with Emulator(WORLD, faults=[Fault(Kind.GATEWAY_TIMEOUT_504, times=None, when=heavy(number))]) as github:
        summary = mine(store, github)
        assert summary.missing == (number,)
        assert summary.pull_requests == PULLS - 1
    with store.reading() as tx:
        assert next(tx.rows(PullRequest, "reason", number=number))[0]
    actual = facts(store)
    for table in ("pull_request_texts", "labels", "timeline_events"):
        others = [
            row
            for row in expected[table]
            if dict(row)["number"] != number or dict(row).get("field") == "review_comment"
        ]
        assert actual[table] == others
    with Emulator(WORLD) as github:
        summary = mine(store, github)
        assert (summary.missing, summary.pull_requests) == ((), 1)
        assert_same(facts(store), expected)


def test_comments_that_never_come_are_owed_to_the_next_run(store: Store, expected: Facts) -> None:
    with Emulator(WORLD, faults=[Fault(Kind.BAD_GATEWAY_502, operation="MoreComments", times=None)]) as github:
        summary = mine(store, github)
        lacking = tuple(sorted(p.number for p in WORLD.home.pulls if len(p.comments) > 30))
        assert summary.missing == lacking != ()
        assert_same(facts(store), expected, but=["pull_request_texts"])
    with Emulator(WORLD) as github:
        assert mine(store, github).missing == ()
        assert_same(facts(store), expected)
        assert {e.operation for e in github.log} == {"Resolve", "Listing", "MoreComments", None}


def test_pull_requests_that_were_lost_are_found_by_the_count(store: Store, expected: Facts) -> None:
    with Emulator(WORLD) as github:
        mine(store, github)
        for pull in WORLD.home.pulls[3:6]:
            with store.transaction() as tx:
                tx.delete(PullRequest, repository_id=REPOSITORY, number=pull.number)
        assert mine(store, github).pull_requests == 3
        assert_same(facts(store), expected, but=["pull_request_texts"])


def test_a_github_that_is_down_skips_nothing(store: Store) -> None:
    with Emulator(WORLD, faults=[Fault(Kind.BAD_GATEWAY_502, operation="Sweep", nth=2, times=None)]) as github:
        with pytest.raises(BadAnswer):
            mine(store, github)
        assert len(github.log) < 100
    with Emulator(WORLD, faults=[Fault(Kind.BAD_GATEWAY_502, resource="graphql", nth=3, times=None)]) as github:
        with pytest.raises(BadAnswer):
            mine(store, github)
        assert len(github.log) < 60


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Kind.RESET, NetworkUnreachable),
        (Kind.EMPTY_200, BadAnswer),
        (Kind.HTML_200, BadAnswer),
        (Kind.UNAUTHORIZED_401, BadToken),
        (Kind.SECONDARY_403, RateLimitExceeded),
    ],
)
def test_a_fault_that_stays_ends_in_its_name_and_what_came_stays(
    kind: Kind, error: type[Exception], store: Store, expected: Facts
) -> None:
    with Emulator(WORLD, faults=[Fault(kind, operation="Sweep", nth=2, times=None)]) as github:
        with pytest.raises(error) as caught:
            mine(store, github)
        assert "\n" not in str(caught.value)
        assert len(github.log) < 40
    assert len(facts(store)["pull_requests"]) == 20
    with Emulator(WORLD) as github:
        mine(store, github)
        assert_same(facts(store), expected)
        (sweep,) = (e for e in github.log if e.operation == "Sweep")
        assert sweep.variables["after"] and sweep.page_size == 20


def test_a_refused_token_is_replaced_by_another(store: Store, expected: Facts) -> None:
    fault = Fault(Kind.UNAUTHORIZED_401, nth=3, times=None, token="one")
    with Emulator(WORLD, tokens={"one": 5000, "two": 5000}, faults=[fault]) as github:
        mine(store, github)
        assert fault.hits == 1
        assert_same(facts(store), expected)


def test_a_spent_token_is_relieved_by_the_other_without_a_wait(store: Store, expected: Facts) -> None:
    with Emulator(WORLD, tokens={"one": 4, "two": 5000}) as github:
        mine(store, github)
        assert not github.clock.slept
        assert not github.early
        assert_same(facts(store), expected)


def test_a_small_budget_is_waited_for_in_view(store: Store, expected: Facts) -> None:
    progress = Quiet()
    with Emulator(WORLD, tokens={"test-token": 5}) as github:
        summary = mine(store, github, progress=progress)
        assert_polite(github)
        assert_same(facts(store), expected)
        assert summary.usage.waited_seconds > 3000
        assert any("waiting" in note for note in progress.notes)


def test_a_wait_longer_than_allowed_ends_the_run_and_keeps_what_came(store: Store, expected: Facts) -> None:
    clock = VirtualClock(1_700_000_000)
    with Emulator(WORLD, tokens={"test-token": 3}, clock=clock) as github:
        with pytest.raises(RateLimitExceeded) as caught:
            mine(store, github, max_wait=60.0)
        assert 3000 < caught.value.seconds <= 3601
        assert not clock.slept
        assert facts(store)["pull_requests"]
        clock.advance(3600)
        github.tokens["test-token"] = 5000
    with Emulator(WORLD) as github:
        mine(store, github)
        assert_same(facts(store), expected)


def victim(path: Path, api_url: str, start: float, rescan: bool) -> None:
    """One life of the miner, in a process of its own; `start` is the time that its clock shows."""
    with opened(path) as store:
        mine(store, Remote(api_url, VirtualClock(start)), rescan=rescan)  # type: ignore[arg-type]


@dataclass
class Remote:
    """The emulator, as seen from another process."""

    api_url: str
    clock: VirtualClock
    tokens: tuple[str, ...] = ("test-token",)


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(seed: int, tmp_path: Path, expected: Facts) -> None:
    path = tmp_path / "mined.db"
    with opened(path):
        pass
    with Gated(WORLD) as github:
        assert live_to_the_end(path, github, random.Random(seed)) >= 3
    with opened(path) as store:
        assert_same(facts(store), expected)
        replay(store, REPOSITORY)
        assert_same(facts(store), expected)


@pytest.mark.parametrize("rescan", [False, True])
def test_killed_in_a_later_run_it_ends_as_if_nothing_had_happened(rescan: bool, tmp_path: Path) -> None:
    path, world = tmp_path / "mined.db", generate_world(12, PULLS)
    with Gated(world) as github:
        with opened(path) as store:
            mine(store, github)
        world.tick(86_400)
        for pull in world.home.pulls[:24]:
            world.edit_pull(pull, body="Edited")
            world.add_review_comment(pull, "Added", None)
        for pull in world.home.pulls[2:5]:
            for _ in range(70):
                world.add_comment(pull, "More", None)
        if rescan:
            world.edit_comment(world.home.pulls[2].comments[0], "Edited in silence")
        assert live_to_the_end(path, github, random.Random(5), rescan=rescan) >= 2
        with opened(path) as store, opened(tmp_path / "fresh.db") as other:
            mine(other, github)
            assert_same(facts(store), facts(other))
            before = facts(store)
            replay(store, REPOSITORY)
            assert_same(facts(store), before)


def test_killed_right_after_each_commit_it_ends_as_if_nothing_had_happened(tmp_path: Path, expected: Facts) -> None:
    path = tmp_path / "mined.db"
    with opened(path):
        pass
    with Emulator(WORLD) as github:
        kills = 0
        while kills < 40:
            with opened(path) as store:
                committed = pages_committed(store, 0)
            start = len(github.log)
            life = FORKED.Process(target=short_lived, args=(path, github.api_url, github.clock()))
            life.start()
            life.join()
            assert not committed & {name for exchange in github.log[start:] for name in pages_of(exchange)}
            if life.exitcode == 0:
                break
            kills += 1
        assert 10 < kills < 40
    with opened(path) as store:
        assert_same(facts(store), expected)


def short_lived(path: Path, api_url: str, start: float) -> None:
    """A life of the miner that ends, by kill -9, with its first commit."""
    with opened(path) as store:

        @event.listens_for(store.engine, "commit")
        def die(connection: Any) -> None:
            connection.connection.driver_connection.commit()
            os.kill(os.getpid(), signal.SIGKILL)

        mine(store, Remote(api_url, VirtualClock(start)))  # type: ignore[arg-type]


class Gated(Emulator):
    """Answers no more than `most` requests: a life that is to be killed cannot come to its end meanwhile."""

    most: int | None = None

    def __init__(self, world: World) -> None:
        self._gate = threading.Condition()
        super().__init__(world)

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[Answer, Fault | None]:
        """See `Emulator.answer`."""
        with self._gate:
            self._gate.wait_for(lambda: self.most is None or self.requests < self.most)
        return super().answer(method, target, headers, body)

    def __enter__(self) -> Gated:
        super().__enter__()
        return self

    def allow(self, most: int | None) -> None:
        """Answer so many requests in all, or all that come."""
        with self._gate:
            self.most = most
            self._gate.notify_all()


def live_to_the_end(path: Path, github: Gated, rng: random.Random, *, rescan: bool = False) -> int:
    """Mine in one process after the other, each killed at a random moment, until one ends by itself.

    Returns how many were killed. No page is asked for again once its rows are in the database. A rescan that was
    killed behind its last commit is over too: the next one would rightly begin anew.
    """
    with opened(path) as store:
        beyond = newest_page(store)
    for kills in range(60):
        with opened(path) as store:
            committed = pages_committed(store, beyond)
        start = len(github.log)
        wanted = start + rng.randint(2, 6)
        github.allow(wanted + 2)
        life = FORKED.Process(target=victim, args=(path, github.api_url, github.clock(), rescan))
        life.start()
        kill_after(life, github, wanted, rng.random() * 0.03)
        assert not committed & {name for exchange in github.log[start:] for name in pages_of(exchange)}
        if life.exitcode == 0 or (rescan and rescan_finished(path)):
            return kills
    raise AssertionError("it never came to an end")


def rescan_finished(path: Path) -> bool:
    with opened(path) as store, store.reading() as tx:
        detail = next(tx.rows(Cursor, "detail", stream="sweep"))[0]
    return detail["turn"] == 1 and "finished" in detail


def kill_after(life: Any, github: Gated, requests: int, delay: float) -> None:
    """Kill -9 the process a moment after the log has grown to so many requests, or let it end."""
    while life.is_alive() and github.requests < requests:
        time.sleep(0.0005)
    life.join(delay)
    life.kill()
    life.join()
    github.allow(None)


def pages_committed(store: Store, beyond: int) -> set[str]:
    """The pages whose rows are in the database, of those archived after page `beyond`, in the words of `pages_of`."""
    names: set[str] = set()
    with store.reading() as tx:
        for number, stream, body in tx.rows(ArchivedPage, "id", "stream", "body"):
            if number > beyond:
                request = json.loads(zlib.decompress(body))["request"]
                if stream == "sweep":
                    names.add(f"Sweep {request['variables']['after']}")
                elif stream.startswith("more:"):
                    names |= {f"{stream} {node} {after}" for node, after, *_ in request["nodes"].values()}
                elif stream == "pull_requests":
                    names |= {f"PullRequests {node}" for node in request["ids"]}
                elif stream == "thread_starts":
                    names.add(f"ThreadStarts {request['ids']}")
                elif stream == "review_comments":
                    names.add(f"comments {sorted(request['parameters'].items())}")
    return names


def pages_of(exchange: Exchange) -> set[str]:
    """The pages that an exchange brought."""
    if exchange.status != 200:
        return set()
    variables, operation = exchange.variables, exchange.operation or ""
    if operation.startswith("More"):
        stream = "more:" + re.sub(r"(?<!^)(?=[A-Z])", "_", operation.removeprefix("More")).lower()
        count = sum(name.startswith("id") for name in variables)
        return {f"{stream} {variables[f'id{i}']} {variables[f'after{i}']}" for i in range(count)}
    if operation == "Sweep":
        return {f"Sweep {variables['after']}"}
    if operation == "PullRequests":
        return {f"PullRequests {node}" for node in variables["ids"]}
    if operation == "ThreadStarts":
        return {f"ThreadStarts {variables['ids']}"}
    return set() if operation else {f"comments {sorted(exchange.query.items())}"}


def newest_page(store: Store) -> int:
    with store.reading() as tx:
        return max((number for (number,) in tx.rows(ArchivedPage, "id")), default=0)
