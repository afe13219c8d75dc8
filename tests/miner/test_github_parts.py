"""The parts of the GitHub source that need no GitHub: queries, pace, faults, rows out of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
import requests
from github import GithubException
from hypothesis import given
from hypothesis import strategies as st

from miner.github import client, faults, pages, queries
from miner.github.faults import Incomplete
from miner.github.pace import MORE, PATIENCE, SWEEP, Pace
from miner.github.page_rows import Key, PageRows, PendingConnection
from miner.github.pages import CONNECTIONS
from prchain.core.errors import BadToken, ForgeError, QueryRefused, RepositoryNotFound
from sql.tables import Commit, PullRequest, PullRequestText, TimelineEvent


def query_files() -> Iterator[tuple[str, str]]:
    for file in sorted(resources.files("miner").joinpath("graphql").iterdir(), key=lambda file: file.name):
        yield file.name.removesuffix(".graphql"), file.read_text(encoding="utf-8")


def test_fragments_of_one_name_are_the_same_in_every_file() -> None:
    fragments: dict[str, str] = {}
    for file, text in query_files():
        for name, body in re.findall(r"^fragment (\w+) on (.*?^}$)", text, re.M | re.S):
            if name != "Page":
                assert fragments.setdefault(name, body) == body, (file, name)
    assert {"PullRequestFields", "CommentFields", "EventFields"} <= set(fragments)


def test_a_sweep_page_of_20_costs_one_point_by_githubs_formula() -> None:
    text = queries.load("sweep").text
    nested = len(re.findall(r"\(first: (?:\$inner|\d+)[,)]", text))
    assert nested == 7
    assert round((1 + nested * SWEEP[0].first) / 100) == 1


@pytest.mark.parametrize("name", CONNECTIONS)
def test_a_batch_gives_every_node_its_own_cursor(name: str) -> None:
    file = CONNECTIONS[name].file
    batch = queries.batch(file, 3)
    assert batch.name == queries.load(file).name
    for i in range(3):
        assert batch.text.count(f"n{i}: node(id: $id{i}) {{ ...Page{i} }}") == 1
        assert batch.text.count(f"fragment Page{i} on PullRequest") == 1
        assert re.search(rf"after: \$after{i}\b", batch.text)
    assert not re.search(r"\$(id|after)\b", batch.text)


def test_a_size_that_always_fails_is_tried_ever_more_rarely() -> None:
    pace = Pace(SWEEP)
    failures = 0
    for _ in range(3000):
        if pace.step.first > 5:
            failures += 1
            pace.shrink()
        else:
            pace.succeeded()
    assert pace.step.first in (5, 2)
    assert failures <= 2 + 10


def test_a_passing_trouble_is_recovered_from() -> None:
    pace = Pace(SWEEP)
    while pace.shrink():
        pass
    assert pace.step == SWEEP[-1]
    for _ in range(2 * PATIENCE * len(SWEEP)):
        pace.succeeded()
    assert pace.step == SWEEP[0]


def test_one_pull_request_that_fails_at_any_size_is_looked_for_alone_and_forgiven() -> None:
    pace = Pace(SWEEP)
    pace.shrink()
    before = pace.step
    assert pace.single()
    assert pace.step == (1, 30)
    assert not pace.single()
    pace.forgive()
    assert pace.step == before
    pace.shrink()
    pace.forgive()
    assert pace.step.first < before.first, "a size that failed by itself is not forgiven"


def test_the_remembered_size_is_where_it_goes_on() -> None:
    assert Pace(SWEEP, 5).step == (5, 30)
    assert Pace(SWEEP, 7).step == (5, 30)
    assert Pace(SWEEP, 1).step == (1, 30)
    assert Pace(MORE, None).step == MORE[0]


def graphql_errors(*types: str, message: str = "m") -> GithubException:
    return GithubException(400, {"data": None, "errors": [{"type": t, "message": message} for t in types]}, {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GithubException(502, {"data": "<html>"}, {}), faults.Overloaded),
        (GithubException(504, None, {}), faults.Overloaded),
        (requests.exceptions.ReadTimeout(), faults.Overloaded),
        (graphql_errors("RESOURCE_LIMITS_EXCEEDED"), faults.Overloaded),
        (graphql_errors("", message="Something went wrong while executing your query."), faults.Overloaded),
        (GithubException(500, {}, {}), faults.Transient),
        (GithubException(503, {}, {}), faults.Transient),
        (ValueError("bad JSON"), faults.Transient),
        (TypeError("null body"), faults.Transient),
        (requests.exceptions.ChunkedEncodingError(), faults.Transient),
        (requests.exceptions.ConnectionError(), faults.Unreachable),
        (GithubException(401, {"message": "Bad credentials"}, {}), faults.Unauthorized),
        (graphql_errors("NOT_FOUND"), RepositoryNotFound),
        (graphql_errors("FORBIDDEN"), BadToken),
        (graphql_errors("undefinedField"), QueryRefused),
        (GithubException(403, {"message": "Resource not accessible"}, {}), BadToken),
        (GithubException(422, {"message": "No"}, {}), QueryRefused),
    ],
)
def test_each_fault_has_its_meaning(error: Exception, kind: type[Exception]) -> None:
    assert type(faults.classify(error)) is kind


@pytest.mark.parametrize(
    ("status", "message", "headers", "limit"),
    [
        (403, "You have exceeded a secondary rate limit", {"retry-after": "7"}, faults.Limited(False, None, 7)),
        (429, "", {"retry-after": "7"}, faults.Limited(False, None, 7)),
        (
            403,
            "",
            {"retry-after": "Wed, 01 May 2024 10:00:30 GMT", "date": "Wed, 01 May 2024 10:00:00 GMT"},
            faults.Limited(False, None, 30),
        ),
        (403, "You have exceeded a secondary rate limit", {}, faults.Limited(False)),
        (429, "Too many", {}, faults.Limited(False)),
        (
            403,
            "API rate limit exceeded",
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700"},
            faults.Limited(True, 1700),
        ),
    ],
)
def test_each_limit_has_its_wait(status: int, message: str, headers: dict[str, str], limit: faults.Limited) -> None:
    assert faults.classify(GithubException(status, {"message": message}, headers)) == limit


@given(st.integers(0, 599), st.none() | st.text() | st.dictionaries(st.text(), st.none() | st.text()))
def test_no_answer_is_beyond_classification(status: int, body: Any) -> None:
    assert isinstance(faults.classify(GithubException(status, body, None)), faults.ApiFault | ForgeError)


def test_nodes_that_this_token_may_not_see_cost_only_themselves() -> None:
    data = {"nodes": [{"id": "a"}, None, None]}
    errors = [{"type": "FORBIDDEN", "path": ["nodes", 1]}, {"type": "NOT_FOUND", "path": ["nodes", 2]}]
    _, answer = client.partial(GithubException(400, {"data": data, "errors": errors}, {}))
    assert answer.data == data
    assert answer.not_found == {("nodes", 2)}
    errors.append({"type": "RESOURCE_LIMITS_EXCEEDED", "path": ["nodes", 1]})
    with pytest.raises(faults.Overloaded):
        client.partial(GithubException(400, {"data": data, "errors": errors}, {}))
    with pytest.raises(RepositoryNotFound):
        client.partial(GithubException(400, {"data": {"repository": None}, "errors": errors[1:2]}, {}))


def empty(**changes: Any) -> dict[str, Any]:
    return {"totalCount": 0, "pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": [], **changes}


def node(**changes: Any) -> dict[str, Any]:
    """A pull request as GraphQL gives it, with nothing in it."""
    connections = {connection.field: empty() for connection in CONNECTIONS.values()}
    plain = {
        "id": "PR_1",
        "number": 7,
        "title": "T",
        "body": None,
        "author": None,
        "authorAssociation": "NONE",
        "state": "MERGED",
        "isDraft": False,
        "createdAt": "2024-05-01T12:30:00Z",
        "updatedAt": "2024-05-01T12:30:00Z",
        "closedAt": None,
        "mergedAt": "2024-05-01T14:30:00+02:00",
        "baseRefName": "main",
        "baseRefOid": "b" * 40,
        "headRefName": "x",
        "headRefOid": "a" * 40,
        "headRepository": None,
        "mergeCommit": None,
        "changedFiles": 1,
        "additions": 2,
        "deletions": 3,
    }
    return {**plain, **connections, **changes}


def parse(**changes: Any) -> PageRows:
    return pages.pull_request(1, "o/n", node(**changes))


def test_ghosts_and_nulls_are_facts() -> None:
    (row,) = parse().of(PullRequest)
    assert (row["author"], row["head_repository"], row["merge_sha"], row["state"]) == (None, None, None, "merged")
    assert row["merged_at"] == "2024-05-01T12:30:00Z"
    assert {(r["field"], r["body"]) for r in parse().of(PullRequestText)} == {("title", "T"), ("body", "")}


def test_the_columns_are_those_that_a_replay_forgets() -> None:
    (row,) = parse().of(PullRequest)
    assert set(row) - {"repository_id", "number"} == set(pages.API_COLUMNS)
    assert set(row) <= set(PullRequest.__table__.c.keys())


def test_a_bot_has_one_name() -> None:
    (row,) = parse(author={"__typename": "Bot", "login": "dependabot[bot]"}).of(PullRequest)
    assert (row["author"], row["author_kind"]) == ("dependabot", "Bot")


def comment(number: int, body: str | None) -> dict[str, Any]:
    common = {"author": None, "authorAssociation": "NONE", "createdAt": "2024-05-01T12:30:00Z"}
    return {**common, "fullDatabaseId": str(number), "body": body, "updatedAt": "2024-05-01T12:30:00Z"}


def test_reviews_without_text_are_kept_and_drafts_of_reviews_are_left_out() -> None:
    rest = {"submittedAt": "2024-05-02T09:00:00Z", "commit": {"oid": "c" * 40}}
    reviews = [
        {**comment(1, None), "state": "APPROVED", **rest},
        {**comment(2, "good"), "state": "APPROVED", **rest},
        {**comment(3, "not sent yet"), "state": "PENDING", **rest},
    ]
    rows = parse(reviews=empty(nodes=reviews)).of(PullRequestText)
    kept = [(r["key"], r["state"], r["body"], r["created_at"], r["commit_sha"]) for r in rows if r["field"] == "review"]
    at = ("2024-05-02T09:00:00Z", "c" * 40)
    assert kept == [("1", "APPROVED", "", *at), ("2", "APPROVED", "good", *at)]


def test_what_does_not_fit_is_owed() -> None:
    cut = empty(nodes=[comment(1, "x"), None], pageInfo={"hasNextPage": True, "endCursor": "c"}, totalCount=5)
    rows = parse(comments=cut)
    assert rows.owed == [PendingConnection("comments", "PR_1", 7, "c", 2, hidden=1)]


@pytest.mark.parametrize(
    "broken",
    [
        {"comments": None},
        {"commits": empty(nodes=None)},
        {"timelineItems": empty(pageInfo={"hasNextPage": True, "endCursor": None})},
    ],
)
def test_an_answer_cut_short_is_never_taken_for_a_whole_one(broken: dict[str, Any]) -> None:
    with pytest.raises(Incomplete):
        parse(**broken)
    with pytest.raises(Incomplete):
        pages.pull_request(1, "o/n", None)


def test_commits_keep_their_place_and_no_address() -> None:
    commit: dict[str, Any] = {"oid": "c" * 40, "message": "m", "authoredDate": "2024-05-01T12:30:00Z"}
    commit |= {"committedDate": "2024-05-01T12:30:00Z", "author": {"name": None}}
    page = {"id": "PR_1", "number": 7, "commits": empty(nodes=[{"commit": commit}])}
    rows = pages.page_of(Key(1, "o/n", 7), page, PendingConnection("commits", "PR_1", 7, "c", 30))
    (fact,) = rows.of(Commit)
    assert (fact["author"], fact["parents"]) == ("", pages.UNKNOWN_PARENTS)
    assert not any("mail" in name for name in fact)


def test_a_connection_points_at_the_other_end() -> None:
    ours = {"__typename": "PullRequest", "number": 7, "repository": {"nameWithOwner": "O/n"}}
    theirs = {"__typename": "Issue", "number": 8, "repository": {"nameWithOwner": "o/n"}}
    for source, subject in ((ours, theirs), (theirs, ours)):
        event = {"__typename": "ConnectedEvent", "id": "E", "createdAt": "2024-05-01T12:30:00Z", "actor": None}
        rows = parse(timelineItems=empty(nodes=[{**event, "source": source, "subject": subject}, {"__typename": "X"}]))
        (row,) = rows.of(TimelineEvent)
        assert (row["other_number"], row["other_kind"], row["other_repository"]) == (8, "Issue", "o/n")


@given(st.datetimes().map(lambda time: time.isoformat()))
def test_times_have_one_form(text: str) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(pages.utc(text)))
