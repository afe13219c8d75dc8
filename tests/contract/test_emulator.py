"""The emulator behaves like GitHub where nothing goes wrong: pages, cursors, ids, renames, REST, limits."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import github
import pytest

from tests.contract.client import LISTING, TOKEN, Client
from tests.emulator import Emulator, VirtualClock, World, generate_world
from tests.emulator.model import ReviewComment


@pytest.fixture
def world() -> World:
    return generate_world(3, 70)


@pytest.fixture
def emulator(world: World) -> Iterator[Emulator]:
    with Emulator(world) as running:
        yield running


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Client]:
    with Client(emulator) as new_client:
        yield new_client


def deep(connection: str) -> str:
    after = ", $after: String" if "$after" in connection else ""
    return f"query ($id: ID!{after}) {{ node(id: $id) {{ ... on PullRequest {{ c: {connection} }} }} }}"


# -- GraphQL ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("field, attribute", [("CREATED_AT", "created_at"), ("UPDATED_AT", "updated_at")])
def test_pages_hold_every_pull_request_once_in_order(
    world: World, client: Client, direction: str, field: str, attribute: str
) -> None:
    expected = sorted(world.home.pulls, key=lambda pull: (getattr(pull, attribute), pull.database_key))
    if direction == "DESC":
        expected.reverse()
    assert client.numbers(9, field=field, direction=direction) == [pull.number for pull in expected]


def test_a_query_asked_again_costs_again_and_sees_what_changed(world: World, client: Client) -> None:
    first, again = (client.ask(LISTING, first=3)["data"] for _ in range(2))
    limits = [answer.pop("rateLimit") for answer in (first, again)]
    assert (first, limits[1]["remaining"]) == (again, limits[0]["remaining"] - 1)
    world.touch(world.home.numbered[first["repository"]["pullRequests"]["nodes"][0]["number"]])
    assert client.ask(LISTING, first=3)["data"]["repository"] != first["repository"]


def test_pages_know_their_ends_and_can_be_walked_backwards(client: Client) -> None:
    first = client.listing(70)
    assert (first["pageInfo"]["hasNextPage"], first["pageInfo"]["hasPreviousPage"]) == (False, False)
    query = """query ($before: String) { repository(owner: "acme", name: "widgets") {
        pullRequests(last: 30, before: $before) {
          pageInfo { startCursor hasPreviousPage } nodes { number } edges { cursor node { number } } } } }"""
    found: list[int] = []
    before = None
    while True:
        page = client.ask(query, before=before)["data"]["repository"]["pullRequests"]
        found = [node["number"] for node in page["nodes"]] + found
        assert [edge["node"] for edge in page["edges"]] == page["nodes"]
        before = page["pageInfo"]["startCursor"]
        assert before == page["edges"][0]["cursor"]
        if not page["pageInfo"]["hasPreviousPage"]:
            break
    assert found == [node["number"] for node in first["nodes"]]


def test_what_is_inserted_or_deleted_moves_no_cursor(world: World, client: Client) -> None:
    """Cursors name keys: a sweep by creation sees what was there, and what comes later, exactly once."""
    page = client.listing(20)
    there = [pull.number for pull in world.home.pulls]
    world.delete_pull(world.home.pulls[5])
    new = world.add_pull(world.home, "New", "", world.account("dev-1"))
    world.edit_pull(world.home.pulls[0], body="edited")
    numbers = [node["number"] for node in page["nodes"]]
    while page["pageInfo"]["hasNextPage"]:
        page = client.listing(20, after=page["pageInfo"]["endCursor"])
        numbers += [node["number"] for node in page["nodes"]]
    assert numbers == [*there, new.number]


def test_cursors_are_opaque_and_those_of_others_are_refused(world: World, client: Client) -> None:
    cursor = client.listing(20)["pageInfo"]["endCursor"]
    assert not base64.b64decode(cursor).isdigit()
    forged = base64.b64encode(b"cursor:v2:20").decode()
    for wrong, field in (("20", "CREATED_AT"), (forged, "CREATED_AT"), (cursor, "UPDATED_AT")):
        body = client.ask(LISTING, first=20, after=wrong, field=field)
        assert body["errors"][0]["type"] == "INVALID_CURSOR_ARGUMENTS"
        assert body["errors"][0]["message"] == f"`{wrong}` does not appear to be a valid cursor."
        assert body["data"]["repository"] is None


@pytest.mark.parametrize(
    "name, attribute",
    [
        ("comments", "comments"),
        ("reviews", "reviews"),
        ("commits", "commits"),
        ("labels", "labels"),
        ("closingIssuesReferences", "closing"),
        ("reviewThreads", "threads"),
        ("timelineItems", "timeline"),
    ],
)
def test_every_connection_can_be_completed(world: World, client: Client, name: str, attribute: str) -> None:
    pull = max(world.home.pulls, key=lambda each: len(getattr(each, attribute)))
    things = getattr(pull, attribute)
    assert len(things) > 100
    on = {"timelineItems": "... on Node { id }"}.get(name, "id")
    query = deep(
        f"{name}(first: 40, after: $after) {{ totalCount pageInfo {{ hasNextPage endCursor }} nodes {{ {on} }} }}"
    )
    found: list[str] = []
    after = None
    while True:
        page = client.ask(query, id=pull.id, after=after)["data"]["node"]["c"]
        assert page["totalCount"] == len(things)
        found += [node["id"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert sorted(found) == sorted(thing.id for thing in things)
    assert len(set(found)) == len(found)


def test_timeline_items_are_filtered_by_type(world: World, client: Client) -> None:
    pull = next(p for p in world.home.pulls if any(e.kind == "HeadRefForcePushedEvent" for e in p.timeline))
    query = deep("""timelineItems(first: 100, itemTypes: [HEAD_REF_FORCE_PUSHED_EVENT]) { totalCount nodes {
        __typename ... on HeadRefForcePushedEvent { beforeCommit { oid } afterCommit { oid } actor { login } } } }""")
    page = client.ask(query, id=pull.id)["data"]["node"]["c"]
    assert {node["__typename"] for node in page["nodes"]} == {"HeadRefForcePushedEvent"}
    assert page["totalCount"] == len(pull.timeline) > len(page["nodes"])
    assert page["nodes"][-1]["beforeCommit"]["oid"] != page["nodes"][-1]["afterCommit"]["oid"]


def test_unknown_and_deleted_nodes_are_null_beside_the_others(world: World, client: Client) -> None:
    first, gone, last = world.home.pulls[:3]
    world.delete_pull(gone)
    body = client.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[first.id, gone.id, last.id])
    assert body["data"]["nodes"] == [{"id": first.id}, None, {"id": last.id}]
    (error,) = body["errors"]
    assert (error["type"], error["path"]) == ("NOT_FOUND", ["nodes", 1])
    assert error["message"] == f"Could not resolve to a node with the global id of '{gone.id}'."


@pytest.mark.parametrize("name", ["acme/nothing", "acme/secret", "nobody/widgets"])
def test_an_unknown_or_private_repository_is_not_found(client: Client, name: str) -> None:
    owner, _, repository = name.partition("/")
    query = "query ($o: String!, $n: String!) { repository(owner: $o, name: $n) { id } }"
    answer = client.post(query, o=owner, n=repository)
    assert answer.status_code == 200
    body = answer.json()
    assert body["data"] == {"repository": None}
    assert body["errors"][0]["type"] == "NOT_FOUND"
    assert body["errors"][0]["message"] == f"Could not resolve to a Repository with the name '{name}'."
    assert client.get(f"/repos/{name}").status_code == 404


def test_graphql_follows_renames_unless_told_not_to(world: World, client: Client) -> None:
    query = 'query ($f: Boolean) { repository(owner: "Acme", name: "gadgets", followRenames: $f) { nameWithOwner } }'
    assert client.ask(query)["data"]["repository"] == {"nameWithOwner": "acme/widgets"}
    assert client.ask(query, f=False)["errors"][0]["type"] == "NOT_FOUND"
    world.rename_repository(world.home, "acme/gizmos")
    assert client.ask(query)["data"]["repository"] == {"nameWithOwner": "acme/gizmos"}


@pytest.mark.parametrize(
    "query, words",
    [
        ("{ nonsense }", "Cannot query field 'nonsense' on type 'Query'."),
        ("{ viewer { login ", "Syntax Error"),
        ('{ repository(owner: "acme") { id } }', "of type 'String!' is required"),
        ("query ($id: ID!) { node(id: $id) { id } }", "Variable '$id'"),
    ],
)
def test_an_invalid_query_is_refused(emulator: Emulator, client: Client, query: str, words: str) -> None:
    body = client.ask(query)
    assert words in body["errors"][0]["message"]
    assert not body.get("data")


def test_texts_arrive_as_they_are(world: World, client: Client) -> None:
    query = "query ($id: ID!) { node(id: $id) { ... on PullRequest { body } } }"
    bodies = [client.ask(query, id=pull.id)["data"]["node"]["body"] for pull in world.home.pulls]
    assert bodies == [pull.body or "" for pull in world.home.pulls]
    assert any("\x00" in body for body in bodies)
    assert any("\ud83d here" in body for body in bodies)
    assert "" in bodies


def test_the_rate_limit_object_agrees_with_headers_and_log(emulator: Emulator, client: Client) -> None:
    client.listing(20)
    answer = client.post(LISTING, first=100)
    limit = answer.json()["data"]["rateLimit"]
    assert (limit["cost"], limit["limit"], limit["used"], limit["remaining"], limit["nodeCount"]) == (
        1,
        5000,
        2,
        4998,
        100,
    )
    assert answer.headers["x-ratelimit-resource"] == "graphql"
    assert answer.headers["x-ratelimit-remaining"] == "4998"
    assert answer.headers["x-ratelimit-used"] == "2"
    assert int(answer.headers["x-ratelimit-reset"]) == int(emulator.clock()) + 3600
    assert emulator.points(TOKEN) == emulator.points() == sum(exchange.points for exchange in emulator.log) == 2
    last = emulator.log[-1]
    assert (last.operation, last.variables, last.token, last.nodes, last.page_size) == (
        "Listing",
        {"first": 100},
        TOKEN,
        100,
        100,
    )


def test_a_server_without_limits_says_null(world: World) -> None:
    with Emulator(world, rate_limit=False) as server, Client(server) as client:
        answer = client.post(LISTING, first=20)
        assert answer.json()["data"]["rateLimit"] is None
        assert not [name for name in answer.headers if name.lower().startswith("x-ratelimit")]
        assert client.get("/rate_limit").status_code == 404


# -- tokens and limits -----------------------------------------------------------------------------------------------


def test_tokens_have_budgets_of_their_own_that_come_back_after_an_hour(world: World) -> None:
    clock = VirtualClock(1_700_000_000)
    with (
        Emulator(world, tokens={"one": 2, "two": 10}, clock=clock) as server,
        Client(server, "one") as first,
        Client(server, "two") as second,
    ):
        assert [len(first.listing(5)["nodes"]) for _ in range(2)] == [5, 5]
        spent = first.post(LISTING, first=5)
        assert spent.status_code == 200
        assert spent.json()["errors"][0]["type"] == "RATE_LIMITED"
        assert spent.headers["x-ratelimit-remaining"] == "0"
        assert first.get("/repos/acme/widgets").status_code == 200  # REST is another budget
        assert second.listing(5)["nodes"]
        assert not server.log[2].early
        assert first.post(LISTING, first=5).json()["errors"]
        assert [exchange.early for exchange in server.log] == [False] * 5 + [True]
        clock.advance(3600)
        assert first.listing(5)["nodes"]
        assert (server.points("one"), server.points("two"), server.rest_points("one")) == (3, 1, 1)


def test_a_spent_rest_budget_answers_403(world: World) -> None:
    with Emulator(world, tokens={TOKEN: 1}) as server, Client(server) as client:
        assert client.get("/user").status_code == 200
        spent = client.get("/user")
        assert (spent.status_code, spent.headers["x-ratelimit-remaining"]) == (403, "0")
        assert spent.json()["message"].startswith("API rate limit exceeded")
        limits = client.get("/rate_limit").json()["resources"]  # free, and answers though all is spent
        assert (limits["core"]["remaining"], limits["graphql"]["remaining"]) == (0, 1)


def test_an_unknown_token_is_refused(emulator: Emulator) -> None:
    with Client(emulator, "wrong") as client:
        for answer in (client.post(LISTING, first=1), client.get("/user")):
            assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")
    with Client(emulator, None) as nobody:
        assert nobody.post(LISTING, first=1).status_code == 401
        assert nobody.get("/repos/acme/widgets").headers["x-ratelimit-limit"] == "60"


# -- REST ------------------------------------------------------------------------------------------------------------


def test_lists_are_linked_page_by_page_on_the_same_host(world: World, emulator: Emulator, client: Client) -> None:
    path = "/repos/acme/widgets/pulls/comments?sort=updated&direction=asc&per_page=100"
    found: list[dict[str, Any]] = []
    while path:
        answer = client.get(path)
        found += answer.json()
        following = answer.links.get("next", {}).get("url", "")
        assert following == "" or following.startswith(
            f"{emulator.api_url}/repos/acme/widgets/pulls/comments?sort=updated"
        )
        path = following.removeprefix(emulator.api_url)
    assert [row["id"] for row in found] == [
        c.database_key for c in sorted(world.home.review_comments, key=lambda c: (c.updated_at, c.database_key))
    ]
    assert len(found) > 200
    assert any(row["user"] is None for row in found)
    assert any("in_reply_to_id" in row for row in found)


def test_comments_since_a_time(world: World, client: Client) -> None:
    def since(time: str) -> list[int]:
        rows = client.get(
            f"/repos/acme/widgets/pulls/comments?sort=updated&direction=asc&per_page=100&since={time}"
        ).json()
        return [row["id"] for row in rows]

    latest = max(comment.updated_at for comment in world.home.review_comments)
    expected = [c.database_key for c in world.home.review_comments if c.updated_at == latest]
    assert since(latest) == sorted(expected)
    edited = world.home.review_comments[0]
    world.edit_comment(edited, "edited")
    assert since(edited.updated_at) == [edited.database_key]
    gone: ReviewComment = world.home.review_comments[1]
    world.delete_comment(gone)
    assert gone.database_key not in since("2000-01-01T00:00:00Z")


def test_comment_lists_end_at_the_cap(world: World) -> None:
    with Emulator(world, page_cap=100) as server, Client(server) as client:
        for path in ("pulls/comments", "issues/comments"):
            assert client.get(f"/repos/acme/widgets/{path}?per_page=50&page=2").status_code == 200
            assert client.get(f"/repos/acme/widgets/{path}?per_page=50&page=3").status_code == 422


def test_what_has_not_changed_is_304_and_free(world: World, emulator: Emulator, client: Client) -> None:
    path = "/repos/acme/widgets/pulls/comments?sort=updated&direction=asc"
    tag = client.get(path).headers["ETag"]
    again = client.get(path, **{"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert emulator.rest_points() == 1
    world.edit_comment(sorted(world.home.review_comments, key=lambda c: c.updated_at)[0], "edited")
    assert client.get(path, **{"If-None-Match": tag}).status_code == 200


def test_a_renamed_repository_is_redirected_with_its_query(world: World, emulator: Emulator, client: Client) -> None:
    moved = client.get("/repos/acme/gadgets/pulls?state=all&per_page=100")
    assert moved.status_code == 301
    where = moved.headers["Location"]
    assert where == f"{emulator.api_url}/repositories/{world.home.database_key}/pulls?state=all&per_page=100"
    assert len(client.get(where.removeprefix(emulator.api_url)).json()) == 70
    assert client.get("/repos/acme/widgets").json()["full_name"] == "acme/widgets"


def test_pygithub_reads_it(world: World, emulator: Emulator) -> None:
    auth = github.Auth.Token(TOKEN)
    with github.Github(
        auth=auth, base_url=emulator.api_url, retry=None, per_page=100, seconds_between_requests=0
    ) as api:
        api.requester._Requester__seconds_between_writes = 0  # type: ignore[attr-defined]
        repository = api.get_repo("acme/gadgets")
        assert repository.full_name == "acme/widgets"
        assert repository.get_pulls(state="all").totalCount == 70
        assert len(list(repository.get_pulls_comments(sort="updated", direction="asc"))) == len(
            world.home.review_comments
        )
        headers, body = api.requester.graphql_query(LISTING, {"first": 3})
        assert len(body["data"]["repository"]["pullRequests"]["nodes"]) == 3
        assert headers["x-ratelimit-resource"] == "graphql"
        assert api.get_rate_limit().resources.graphql.used == 1
        with pytest.raises(github.UnknownObjectException):
            api.get_repo("acme/secret")


def test_many_clients_at_once(emulator: Emulator) -> None:
    def read(_: int) -> list[int]:
        with Client(emulator) as client:
            return client.numbers(20)

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(read, range(8))
    assert all(other == first for other in others)
    assert emulator.requests == 8 * 4


def test_the_log_can_be_written_down(emulator: Emulator, client: Client, tmp_path: Path) -> None:
    client.listing(5)
    client.get("/user?x=1")
    lines = [(e.method, e.path, e.query, e.status, e.fault, e.resource) for e in emulator.log]
    assert lines == [
        ("POST", "/api/graphql", {}, 200, None, "graphql"),
        ("GET", "/user", {"x": "1"}, 200, None, "core"),
    ]
    assert json.dumps(lines)
