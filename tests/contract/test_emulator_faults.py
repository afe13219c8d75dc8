"""Each fault does what it says, when its rule says so, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from tests.contract.client import LISTING, TOKEN, Client
from tests.emulator import WITHHELD, Emulator, Fault, Kind, World, generate_world

SECONDARY = "You have exceeded a secondary rate limit"


@pytest.fixture(scope="module")
def quiet_world() -> World:
    """A world that no test here changes."""
    return generate_world(5, 60)


@contextmanager
def served(world: World, *faults: Fault, **options: Any) -> Iterator[Client]:
    with Emulator(world, faults=faults, **options) as emulator, Client(emulator) as client:
        yield client


def _secondary(answer: requests.Response) -> bool:
    return (
        answer.json()["message"].startswith(SECONDARY) and "secondary-rate-limits" in answer.json()["documentation_url"]
    )


def _typed(answer: requests.Response, kind: str) -> bool:
    return bool(answer.json()["errors"][0]["type"] == kind)


STATUSES: dict[Kind, tuple[int, Callable[[requests.Response], bool]]] = {
    Kind.RETRY_AFTER_403: (403, lambda a: _secondary(a) and a.headers["Retry-After"] == "60"),
    Kind.SECONDARY_403: (403, lambda a: _secondary(a) and "Retry-After" not in a.headers),
    Kind.PRIMARY_403: (403, lambda a: a.headers["x-ratelimit-remaining"] == "0" and "Retry-After" not in a.headers),
    Kind.RETRY_AFTER_429: (429, lambda a: _secondary(a) and a.headers["Retry-After"] == "60"),
    Kind.BARE_429: (429, lambda a: _secondary(a) and "Retry-After" not in a.headers),
    Kind.RATE_LIMITED_200: (200, lambda a: _typed(a, "RATE_LIMITED") and a.headers["x-ratelimit-remaining"] == "0"),
    Kind.RESOURCE_LIMITS_200: (200, lambda a: _typed(a, "RESOURCE_LIMITS_EXCEEDED")),
    Kind.BAD_GATEWAY_502: (502, lambda a: "<html>" in a.text),
    Kind.UNAVAILABLE_503: (503, lambda a: "<html>" in a.text),
    Kind.GATEWAY_TIMEOUT_504: (504, lambda a: "<html>" in a.text),
    Kind.SERVER_ERROR_500: (500, lambda a: a.json()["message"] == "Server Error"),
    Kind.UNAUTHORIZED_401: (401, lambda a: a.json()["message"] == "Bad credentials"),
    Kind.SOMETHING_WENT_WRONG_200: (200, lambda a: a.json()["data"] is None and "type" not in a.json()["errors"][0]),
    Kind.HTML_200: (200, lambda a: a.text.startswith("<!DOCTYPE html>")),
    Kind.EMPTY_200: (200, lambda a: a.content == b""),
    Kind.NULL_200: (200, lambda a: a.content == b"null"),
    Kind.EXHAUSTED: (200, lambda a: _typed(a, "RATE_LIMITED")),
}
BENT = {Kind.SHORT_PAGE, Kind.LOST_CURSOR, Kind.REPEATED_CURSOR, Kind.REPEATED_PAGE}
BROKEN = {Kind.TRUNCATED, Kind.BAD_JSON, Kind.SLOW, Kind.DRIP, Kind.RESET}


def test_every_kind_is_tested_here() -> None:
    assert set(STATUSES) | BENT | BROKEN | WITHHELD | {Kind.CHANGE, Kind.REWRITE} == set(Kind)


@pytest.mark.parametrize("kind", STATUSES)
def test_an_answer_is_replaced_once_at_the_nth_call(quiet_world: World, kind: Kind) -> None:
    status, looks_right = STATUSES[kind]
    with served(quiet_world, Fault(kind, nth=2)) as client:
        answers = [client.post(LISTING, first=5) for _ in range(3)]
        assert answers[1].status_code == status
        assert looks_right(answers[1]), (answers[1].headers, answers[1].text)
        log = client.emulator.log
        assert [exchange.fault for exchange in log] == [None, kind.value, None]
        good = [0, 1, 2] if kind is Kind.RESOURCE_LIMITS_200 else [0] if kind is Kind.EXHAUSTED else [0, 2]
        for index in good:
            assert answers[index].json()["data"]["repository"]
        gateway = kind in {Kind.BAD_GATEWAY_502, Kind.GATEWAY_TIMEOUT_504, Kind.RESOURCE_LIMITS_200}
        assert log[1].points == (1 if gateway else 0)


@pytest.mark.parametrize("kind", [Kind.RETRY_AFTER_403, Kind.PRIMARY_403, Kind.RETRY_AFTER_429, Kind.RATE_LIMITED_200])
def test_a_client_that_does_not_wait_is_noticed(quiet_world: World, kind: Kind) -> None:
    with served(quiet_world, Fault(kind, seconds=30)) as client:
        response = client.post(LISTING, first=5)
        now = client.emulator.clock()
        assert response.headers.get("Retry-After") == "30" or response.headers["x-ratelimit-reset"] == str(
            int(now) + 30
        )
        client.emulator.clock.sleep(29)
        client.listing(5)
        client.emulator.clock.sleep(1)
        client.listing(5)
        assert client.emulator.early == [client.emulator.log[1]]
        assert client.emulator.clock.slept == [29, 1]


@pytest.mark.parametrize("kind", [Kind.SECONDARY_403, Kind.BAD_GATEWAY_502, Kind.UNAUTHORIZED_401, Kind.EMPTY_200])
def test_rest_answers_are_replaced_too(quiet_world: World, kind: Kind) -> None:
    with served(quiet_world, Fault(kind, operation="/pulls/comments", nth=2, times=None)) as client:
        path = "/repos/acme/widgets/pulls/comments"
        assert client.get(path).json()
        assert client.get("/repos/acme/widgets").status_code == 200
        for _ in range(3):
            answer = client.get(path)
            assert (answer.status_code, answer.text == "") == (STATUSES[kind][0], kind is Kind.EMPTY_200)
        assert client.emulator.rest_points() == 2


def test_only_pages_that_are_too_large_fail(quiet_world: World) -> None:
    faults = [Fault(Kind.BAD_GATEWAY_502, page_over=10, times=None)]
    with served(quiet_world, *faults) as client:
        statuses = {first: client.post(LISTING, first=first).status_code for first in (100, 20, 11, 10, 5)}
        assert statuses == {100: 502, 20: 502, 11: 502, 10: 200, 5: 200}
        ids = [pull.id for pull in quiet_world.home.pulls]
        query = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
        assert [client.post(query, ids=ids[:n]).status_code for n in (10, 11)] == [200, 502]
        assert client.get("/repos/acme/widgets/pulls/comments?per_page=100").status_code == 502


def test_rules_choose_by_operation_token_and_predicate(quiet_world: World) -> None:
    faults = [
        Fault(Kind.SERVER_ERROR_500, operation="Other"),
        Fault(Kind.BARE_429, token="two", times=2),
        Fault(Kind.EMPTY_200, when=lambda call: call.variables.get("after") == "x", times=None),
        Fault(Kind.UNAUTHORIZED_401, resource="core"),
    ]
    with (
        Emulator(quiet_world, tokens={"one": 100, "two": 100}, faults=faults) as server,
        Client(server, "one") as first,
        Client(server, "two") as second,
    ):
        assert first.post(LISTING, first=1).status_code == 200
        assert first.post("query Other { viewer { login } }").status_code == 500
        assert [second.post(LISTING, first=1).status_code for _ in range(3)] == [429, 429, 200]
        assert first.post(LISTING, first=1, after="x").content == b""
        assert [first.get("/user").status_code for _ in range(2)] == [401, 200]
        assert [fault.hits for fault in faults] == [1, 2, 1, 1]


def test_the_compute_budget_leaves_null_nodes(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.RESOURCE_LIMITS_200, keep=3, page_over=10, times=None)) as client:
        body = client.ask(LISTING, first=12)
        page = body["data"]["repository"]["pullRequests"]
        assert [node is None for node in page["nodes"]] == [False] * 3 + [True] * 9
        assert body["errors"][0]["path"] == ["repository", "pullRequests", "nodes", 3]
        assert page["pageInfo"]["hasNextPage"]
        assert None not in client.listing(10)["nodes"]
        ids = [pull.id for pull in quiet_world.home.pulls[:12]]
        body = client.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=ids)
        assert [node is None for node in body["data"]["nodes"]] == [False] * 3 + [True] * 9


@pytest.mark.parametrize("kind", sorted(WITHHELD))
def test_a_part_is_withheld_and_its_total_told(quiet_world: World, kind: Kind) -> None:
    pull = next(pull for pull in quiet_world.home.pulls if len(pull.labels) > 2)
    query = """query ($id: ID!) { node(id: $id) { ... on PullRequest {
        id number labels(first: 100) { totalCount nodes { name } } } } }"""
    with served(quiet_world, Fault(kind, field="labels", keep=1)) as client:
        body = client.ask(query, id=pull.id)
        labels = body["data"]["node"]["labels"]
        if kind in (Kind.FORBIDDEN_FIELD_200, Kind.NULL_FIELD_200):
            assert labels is None
        else:
            given = [node and node["name"] for node in labels["nodes"]]
            nulls = len(pull.labels) - 1 if kind is Kind.NULL_NODES_200 else 0
            assert (len(given) - given.count(None), given.count(None)) == (1, nulls)
            assert labels["totalCount"] == len(pull.labels)
        errors = [(error["type"], error["path"]) for error in body.get("errors", ())]
        assert errors == ([("FORBIDDEN", ["node", "labels"])] if kind is Kind.FORBIDDEN_FIELD_200 else [])
        assert len(client.ask(query, id=pull.id)["data"]["node"]["labels"]["nodes"]) == len(pull.labels)


def test_a_short_page_goes_on_behind_itself(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.SHORT_PAGE, nth=2)) as client:
        first = client.listing(20)
        short = client.listing(20, after=first["pageInfo"]["endCursor"])
        assert (len(short["nodes"]), short["pageInfo"]["hasNextPage"]) == (10, True)
        rest = client.listing(100, after=short["pageInfo"]["endCursor"])
        numbers = [node["number"] for page in (first, short, rest) for node in page["nodes"]]
        assert numbers == [pull.number for pull in quiet_world.home.pulls]


def test_a_cursor_is_lost_or_repeated(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.LOST_CURSOR, nth=2), Fault(Kind.REPEATED_CURSOR, nth=3)) as client:
        after = client.listing(20)["pageInfo"]["endCursor"]
        lost = client.listing(20, after=after)["pageInfo"]
        assert (lost["endCursor"], lost["hasNextPage"]) == (None, True)
        again = client.listing(20, after=after)
        assert (again["pageInfo"]["endCursor"], again["pageInfo"]["hasNextPage"]) == (after, True)
        good = client.listing(20, after=after)
        assert good["nodes"] == again["nodes"]
        assert good["pageInfo"]["endCursor"] not in {None, after}


def test_a_page_is_repeated(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.REPEATED_PAGE, nth=2)) as client:
        first = client.listing(20)
        assert client.listing(20, after=first["pageInfo"]["endCursor"]) == first
        assert client.listing(20, after=first["pageInfo"]["endCursor"])["nodes"] != first["nodes"]


@pytest.mark.parametrize(
    "kind, error",
    [
        (Kind.TRUNCATED, (requests.exceptions.ChunkedEncodingError, requests.ConnectionError)),
        (Kind.RESET, requests.ConnectionError),
        (Kind.BAD_JSON, requests.exceptions.JSONDecodeError),
    ],
)
def test_transport_breaks(quiet_world: World, kind: Kind, error: Any) -> None:
    with served(quiet_world, Fault(kind, nth=2)) as client:
        client.listing(5)
        with pytest.raises(error):
            client.listing(5)
        assert len(client.listing(5)["nodes"]) == 5
        assert [exchange.fault for exchange in client.emulator.log] == [None, kind.value, None]


def test_a_slow_answer_is_right_but_late(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.SLOW, delay=0.2)) as client:
        started = time.monotonic()
        assert len(client.listing(5)["nodes"]) == 5
        assert time.monotonic() - started >= 0.2


def test_a_dripping_answer_is_right_but_comes_in_pieces(quiet_world: World) -> None:
    with served(quiet_world, Fault(Kind.DRIP, delay=0.05)) as client:
        started = time.monotonic()
        assert len(client.listing(5)["nodes"]) == 5
        assert time.monotonic() - started >= 8 * 0.05


def test_an_answer_is_rewritten_and_has_other_headers(quiet_world: World) -> None:
    def spoil(body: Any) -> Any:
        body["data"]["repository"]["pullRequests"]["totalCount"] = None
        return body

    faults = [
        Fault(Kind.REWRITE, nth=2, rewrite=spoil),
        Fault(Kind.SECONDARY_403, nth=3, headers={"Retry-After": "nan"}),
    ]
    with served(quiet_world, *faults) as client:
        assert client.listing(5)["totalCount"] == 60
        assert client.listing(5)["totalCount"] is None
        assert client.post(LISTING, first=5).headers["Retry-After"] == "nan"
        assert client.listing(5)["totalCount"] == 60
        assert not client.emulator.early


def test_a_name_leads_to_the_repository_that_took_it_last() -> None:
    world = generate_world(6, 5)
    with served(world) as client:
        first = client.get("/repos/acme/widgets").json()["node_id"]
        world.rename_repository(world.home, "acme/machines")
        other = world.take_name("acme/widgets")
        world.add_pull(other, "Another", None, None, number=1)
        assert client.get("/repos/acme/widgets").json()["node_id"] == other.id != first
        assert client.get("/repos/acme/machines").json()["node_id"] == first
        assert client.numbers(20) == [1]
        world.delete_repository(other)
        assert client.get("/repos/acme/widgets").status_code == 404


def test_the_world_moves_on_after_a_call() -> None:
    """A pull request opened or edited in mid-sweep shows up where GitHub would show it."""
    world = generate_world(6, 40)

    def move_on(moved: World) -> None:
        moved.add_pull(moved.home, "Opened meanwhile", None, moved.account("dev-3"))
        moved.edit_pull(moved.home.pulls[0], title="Edited meanwhile")

    with served(world, Fault(Kind.CHANGE, nth=1, change=move_on)) as client:
        numbers = client.numbers(20)
        assert len(numbers) == len(set(numbers)) == 41
        (newest, *_) = client.listing(1, field="UPDATED_AT", direction="DESC")["nodes"]
        assert newest["number"] == world.home.pulls[0].number
        assert newest["updatedAt"] == world.home.pulls[0].updated_at


def test_one_token_is_exhausted_and_the_other_is_not(quiet_world: World) -> None:
    fault = Fault(Kind.EXHAUSTED, token="one", nth=2)
    with (
        Emulator(quiet_world, tokens={"one": 50, "two": 50}, faults=[fault]) as server,
        Client(server, "one") as first,
        Client(server, "two") as second,
    ):
        assert first.listing(5)["nodes"]
        for _ in range(2):
            assert _typed(first.post(LISTING, first=5), "RATE_LIMITED")
        assert second.listing(5)["nodes"]
        server.clock.advance(3600)
        assert first.listing(5)["nodes"]


def test_a_rule_without_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="a CHANGE takes what to change"):
        Fault(Kind.CHANGE)


def test_a_defect_of_the_emulator_is_not_taken_for_github(quiet_world: World) -> None:
    def defect(_: object) -> bool:
        raise ZeroDivisionError

    with served(quiet_world, Fault(Kind.EMPTY_200, when=defect)) as client:
        answer = client.post(LISTING, first=5)
        assert (answer.status_code, "ZeroDivisionError" in answer.text) == (599, True)


def test_it_stops_with_clients_still_connected(quiet_world: World) -> None:
    with Emulator(quiet_world) as emulator:
        client = Client(emulator, TOKEN)
        client.listing(1)
        started = time.monotonic()
    assert time.monotonic() - started < 2
    with pytest.raises(requests.ConnectionError):
        client.listing(1)
    client.session.close()
