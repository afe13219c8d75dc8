"""Answers that have not the form they must have: each pull request or page of them ends by name, and nothing else."""

from __future__ import annotations

import copy
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.archive import Page
from miner.github import answer_checks, pages, queries, rows
from miner.github.faults import Incomplete, Malformed
from miner.github.pages import CONNECTIONS
from prchain.core.errors import BadAnswer, NetworkUnreachable, PrchainError, RateLimitExceeded
from sql.store import Store
from sql.tables import Cursor, PullRequest, PullRequestText
from tests.emulator import Emulator, Fault, Kind, generate_world
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened, source

PULLS = 26
WORLD = generate_world(23, PULLS)
"""Never changed by these tests."""
for _ in range(40):
    WORLD.add_comment(WORLD.home.pulls[2], "One of many", None)
Facts = dict[str, list[Any]]
Change = Callable[[Any], Any]

malformed = pytest.mark.drawn(12, "malformed answers")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    with Emulator(WORLD) as github, opened(tmp_path_factory.mktemp("wanted") / "mined.db") as store:
        mine(store, github)
        return facts(store)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


GONE = object()


def at(value: Any, *path: str | int) -> Change:
    """Put a value at a path of the body, or take away what is there."""

    def change(body: Any) -> Any:
        place = body
        for step in path[:-1]:
            place = place[step]
        if value is GONE:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return body

    return change


PULL = ("data", "repository", "pullRequests", "nodes", 0)
REBASED = {"__typename": "AutomaticBaseChangeSucceededEvent", "id": "E_x", "createdAt": "2024-01-01T00:00:00Z"}
MALFORMED: dict[str, tuple[str, Change]] = {
    "a body that is a list": ("Sweep", lambda body: [body]),
    "data of text": ("Sweep", at("none", "data")),
    "no repository": ("Sweep", at(GONE, "data", "repository")),
    "no id of the repository": ("Sweep", at(None, "data", "repository", "id")),
    "createdAt null": ("Sweep", at(None, *PULL, "createdAt")),
    "createdAt no time": ("Sweep", at("yesterday", *PULL, "createdAt")),
    "createdAt out of range": ("Sweep", at("0001-01-01T00:00:00+14:00", *PULL, "createdAt")),
    "a number that is none": ("Sweep", at("seven", *PULL, "number")),
    "a number beyond the column": ("Sweep", at(2**70, *PULL, "number")),
    "a number that is true": ("Sweep", at(True, *PULL, "number")),
    "additions of text": ("Sweep", at("3", *PULL, "additions")),
    "no state": ("Sweep", at(GONE, *PULL, "state")),
    "an author that is text": ("Sweep", at("alice", *PULL, "author")),
    "an author without login": ("Sweep", at({"__typename": "User"}, *PULL, "author")),
    "no commits": ("Sweep", at(GONE, *PULL, "commits")),
    "nodes that are no list": ("Sweep", at({}, *PULL, "comments", "nodes")),
    "a total of text": ("Sweep", at("many", *PULL, "comments", "totalCount")),
    "a thread without a place": ("Sweep", at([{"id": "PRRT_x"}], *PULL, "reviewThreads", "nodes")),
    "a change of base without its branches": ("Sweep", at([REBASED], *PULL, "timelineItems", "nodes")),
    "a sha that is an option": ("Sweep", at({"oid": "--upload-pack=x"}, *PULL, "mergeCommit")),
    "errors that are null": ("Sweep", at(None, "errors")),
    "errors that are text": ("Sweep", at(["x"], "errors")),
    "errors with odd paths": ("Sweep", at([{"type": "NOT_FOUND", "path": 3}, {"type": "FORBIDDEN"}], "errors")),
    "a cost of text": ("Sweep", at({"cost": "1"}, "data", "rateLimit")),
    "no cost": ("Sweep", at({}, "data", "rateLimit")),
    "no name of the repository": ("Resolve", at(None, "data", "repository", "nameWithOwner")),
    "updates without time": ("Resolve", at([{}], "data", "repository", "pullRequests", "nodes")),
    "a list with a null number": ("Listing", at(None, *PULL, "number")),
    "a list without updates": ("Listing", at(GONE, *PULL, "updatedAt")),
    "a page of another pull request's": ("MoreComments", at("PR_x", "data", "n0", "id")),
    "a page without its connection": ("MoreComments", at(GONE, "data", "n0", "comments")),
    "a comment without a key": ("MoreComments", at(None, "data", "n0", "comments", "nodes", 0, "fullDatabaseId")),
    "an item without pull_request_url": ("/pulls/comments", at(GONE, 0, "pull_request_url")),
    "an item with another url": ("/pulls/comments", at("https://x/y", 0, "pull_request_url")),
    "an item without updated_at": ("/pulls/comments", at(None, 0, "updated_at")),
    "an item that is null": ("/pulls/comments", at(None, 0)),
    "an id of text": ("/pulls/comments", at("12", 0, "id")),
    "a line of text": ("/pulls/comments", at("7", 0, "line")),
    "a user that is text": ("/pulls/comments", at("alice", 0, "user")),
}


HARMLESS = {"a cost of text", "no cost", "errors with odd paths"}
"""The data beside is whole; a cost that is not told counts as one point."""


@malformed
@pytest.mark.parametrize("what", MALFORMED)
def test_an_answer_that_is_malformed_once_changes_nothing(what: str, store: Store, expected: Facts) -> None:
    operation, change = MALFORMED[what]
    fault = Fault(Kind.REWRITE, operation=operation, rewrite=change)
    with Emulator(WORLD, faults=[fault]) as github:
        summary = mine(store, github)
    assert fault.hits == 1
    assert (summary.missing, summary.malformed, summary.unaccounted) == ((), (), 0)
    assert_same(facts(store), expected)


@malformed
@pytest.mark.parametrize("what", MALFORMED)
def test_an_answer_that_stays_malformed_ends_by_name(what: str, store: Store, expected: Facts) -> None:
    operation, change = MALFORMED[what]
    fault = Fault(Kind.REWRITE, operation=operation, times=None, rewrite=change)
    with Emulator(WORLD, faults=[fault]) as github:
        try:
            summary = mine(store, github)
        except PrchainError as error:
            assert "\n" not in str(error)
        else:
            assert bool(summary.missing or summary.malformed) is (what not in HARMLESS)
        assert len(github.log) < 400
    with Emulator(WORLD) as github:
        assert mine(store, github).missing == ()
        assert_same(facts(store), expected)


def spoiled(number: int) -> Change:
    """Take the time from one pull request, wherever it is told whole."""

    def change(body: Any) -> Any:
        data = body["data"]
        nodes = data["nodes"] if "nodes" in data else data["repository"]["pullRequests"]["nodes"]
        for node in nodes:
            if node["number"] == number:
                node["createdAt"] = None
        return body

    return change


def test_a_pull_request_whose_answer_stays_malformed_is_named_and_all_others_are_read(
    store: Store, expected: Facts
) -> None:
    number = WORLD.home.pulls[7].number
    change = spoiled(number)
    faults = [Fault(Kind.REWRITE, operation=name, times=None, rewrite=change) for name in ("Sweep", "PullRequests")]
    with Emulator(WORLD, faults=faults) as github:
        summary = mine(store, github)
        assert (summary.missing, summary.pull_requests) == ((number,), PULLS - 1)
        assert "createdAt" in summary.missing_reasons[0]
        assert len(github.log) < 30
    with store.reading() as tx:
        assert "createdAt" in next(tx.rows(PullRequest, "reason", number=number))[0]
    with Emulator(WORLD) as github:
        assert mine(store, github).missing == ()
        assert_same(facts(store), expected)


def test_review_comments_without_form_are_named_and_asked_for_again_until_they_have_it(
    store: Store, expected: Facts
) -> None:
    fault = Fault(Kind.REWRITE, operation="/pulls/comments", times=None, rewrite=at(GONE, 0, "pull_request_url"))
    with Emulator(WORLD, faults=[fault]) as github:
        for _ in range(2):
            summary = mine(store, github)
            assert "pull_request_url" in summary.malformed[0]
            with store.reading() as tx:
                here = {key for (key,) in tx.rows(PullRequestText, "key", field="review_comment")}
            wanted = {
                dict(row)["key"] for row in expected["pull_request_texts"] if dict(row)["field"] == "review_comment"
            }
            assert 0 < len(wanted - here) <= 2
    with Emulator(WORLD) as github:
        assert mine(store, github).malformed == ()
        assert_same(facts(store), expected)


@malformed
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "soon", "-3", "", "1e999", "Wed, 99 May 2024 10:00:00 GMT"])
@pytest.mark.parametrize("operation", ["Sweep", "/pulls/comments"])
def test_a_wait_that_is_no_number_is_a_minute(value: str, operation: str, store: Store, expected: Facts) -> None:
    headers = {"Retry-After": value, "x-ratelimit-remaining": value, "x-ratelimit-reset": value}
    fault = Fault(Kind.SECONDARY_403, operation=operation, times=2, headers=headers)
    with Emulator(WORLD, faults=[fault]) as github:
        mine(store, github)
        assert_same(facts(store), expected)
        assert fault.hits == 2
        assert 1 <= sum(github.clock.slept) < 200


def test_a_wait_of_days_ends_by_name(store: Store) -> None:
    with (
        Emulator(WORLD, faults=[Fault(Kind.RETRY_AFTER_403, operation="Sweep", seconds=10**9)]) as github,
        pytest.raises(RateLimitExceeded),
    ):
        mine(store, github)


@pytest.mark.parametrize("operation", ["Sweep", "/pulls/comments"])
def test_a_body_that_drips_is_late_as_a_whole(operation: str, store: Store, expected: Facts) -> None:
    with Emulator(WORLD, faults=[Fault(Kind.DRIP, operation=operation, delay=1.8, times=1)]) as github:
        began = time.monotonic()
        mine(store, github, timeout=2.0)
        assert time.monotonic() - began < 12, "eight pieces take 14 s"
        assert_same(facts(store), expected)
        sizes = [exchange.page_size or 0 for exchange in github.log if exchange.path.endswith(("graphql", "comments"))]
    assert min(sizes) < max(sizes)


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    """A server whose certificate nobody has reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begins).not_valid_after(datetime(2040, 1, 1, tzinfo=UTC))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    file = folder / "self-signed.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
        + builder.sign(key, hashes.SHA256()).public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = HTTPServer(("127.0.0.1", 0), None)  # type: ignore[arg-type]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/api/v3"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_that_is_not_trusted_is_told_at_once(tmp_path: Path, store: Store) -> None:
    waits: list[float] = []
    with (
        tls_server(tmp_path) as address,
        Emulator(WORLD) as github,
        pytest.raises(NetworkUnreachable, match="certificate") as caught,
    ):
        source(store, github, api_url=address, sleep=waits.append).resolve("acme", "widgets")
    assert "is there a network" not in str(caught.value)
    assert not waits


def test_no_tls_at_the_other_end_is_told_at_once(store: Store) -> None:
    waits: list[float] = []
    with Emulator(WORLD) as github:
        address = github.api_url.replace("http:", "https:")
        with pytest.raises(NetworkUnreachable, match="no TLS connection"):
            source(store, github, api_url=address, sleep=waits.append).resolve("acme", "widgets")
    assert not waits


def spoil_cursor(store: Store, stream: str) -> None:
    """Make every stored cursor of a stream one that GitHub refuses."""
    with store.transaction() as tx:
        table = Cursor.__table__
        chosen = (table.c.repository_id == REPOSITORY) & (table.c.stream == stream)
        [row] = tx.connection.execute(table.select().where(chosen)).mappings()
        values = dict(row)
        if stream == "sweep":
            values["position"] = "bm8gY3Vyc29y"
        else:
            values["detail"] = json.loads(json.dumps(values["detail"]).replace("Y3Vyc29y", "Y3Vyc29z"))
            assert values["detail"] != row["detail"]
        tx.upsert(Cursor, [values])


def test_a_stored_cursor_that_is_refused_begins_the_list_anew_and_keeps_what_is_stored(
    store: Store, expected: Facts
) -> None:
    with (
        Emulator(WORLD, faults=[Fault(Kind.HTML_200, operation="Sweep", nth=2, times=None)]) as github,
        pytest.raises(BadAnswer),
    ):
        mine(store, github)
    assert len(facts(store)["pull_requests"]) == 20
    spoil_cursor(store, "sweep")
    with Emulator(WORLD) as github:
        summary = mine(store, github)
        assert summary.missing == ()
        assert_same(facts(store), expected)
        sweeps = [exchange.variables for exchange in github.log if exchange.operation == "Sweep"]
        assert len(sweeps) == 3, "the refused one, and the two pages of a whole pass"
        assert not mine(store, github).changed


def test_cursors_that_are_refused_for_good_leave_the_rest_to_the_count(store: Store, expected: Facts) -> None:
    def refuse(body: Any) -> Any:
        error = {"type": "INVALID_CURSOR_ARGUMENTS", "message": "`x` does not appear to be a valid cursor."}
        return {"data": {"repository": None}, "errors": [error]}

    fault = Fault(Kind.REWRITE, operation="Sweep", nth=2, times=None, rewrite=refuse)
    with Emulator(WORLD, faults=[fault]) as github:
        summary = mine(store, github)
        assert (summary.missing, summary.unaccounted) == ((), 0)
        assert_same(facts(store), expected)


def test_a_stored_cursor_of_comments_that_is_refused_begins_the_comments_anew(store: Store, expected: Facts) -> None:
    with (
        Emulator(WORLD, faults=[Fault(Kind.HTML_200, operation="MoreComments", times=None)]) as github,
        pytest.raises(BadAnswer),
    ):
        mine(store, github)
    spoil_cursor(store, "owed")
    with Emulator(WORLD) as github:
        assert mine(store, github).missing == ()
        assert_same(facts(store), expected)


# -- any mutation ----------------------------------------------------------------------------------------------------

SPOILT = [None, GONE, True, -1, 1.5, 2**70, "", "x", "nan", "2024-13-45", [], {}, [None], {"a": None}]


def mutate(body: Any, rng: random.Random) -> Any:
    """Return a copy in which one value, at any depth, is null, missing or of another type."""
    changed = copy.deepcopy(body)
    places = list(_places(changed))
    holder, step = places[rng.randrange(len(places))]
    value = rng.choice(SPOILT)
    if value is GONE:
        del holder[step]
    else:
        holder[step] = value
    return changed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    steps = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield value, step
        yield from _places(value[step])


class Answers(list[tuple[str, dict[str, Any], Any]]):
    """Operation, variables and data."""

    def __repr__(self) -> str:
        return f"{len(self)} answers"  # hypothesis shows arguments


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """The answers of one whole run and one of changes."""
    seen = Answers()
    check = answer_checks.check
    patch = pytest.MonkeyPatch()
    with Emulator(WORLD) as github, opened(tmp_path_factory.mktemp("seen") / "mined.db") as store, patch.context() as p:

        def keep(operation: str, data: Any) -> None:
            seen.append((operation, github.log[-1].variables, data))
            check(operation, data)

        p.setattr(answer_checks, "check", keep)
        mine(store, github)
        with store.transaction() as tx:
            for pull in WORLD.home.pulls[:3]:
                tx.delete(PullRequest, repository_id=REPOSITORY, number=pull.number)
        mine(store, github)
    assert {operation for operation, _, _ in seen} >= {"Resolve", "Sweep", "Listing", "MoreComments", "PullRequests"}
    return seen


@settings(max_examples=600, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_passes_the_boundary_can_be_made_into_rows(seed: int, answers: Answers) -> None:
    rng = random.Random(seed)
    operation, variables, data = rng.choice(answers)
    mutated = mutate(data, rng)
    try:
        answer_checks.check(operation, mutated)
        if operation == "Listing":
            pages.listing(mutated)
        elif operation != "Resolve":
            rows.parse(REPOSITORY, page_of(operation, variables, mutated))
    except Malformed as fault:
        assert "malformed" in str(fault)
        assert len(str(fault)) < 400
    except Incomplete:
        pass


def page_of(operation: str, variables: dict[str, Any], data: Any) -> Page:
    request: dict[str, Any] = {"repository": "acme/widgets", "variables": variables}
    if operation == "PullRequests":
        return Page("pull_requests", {**request, "ids": variables["ids"]}, data)
    if operation.startswith("More"):
        name = next(name for name, c in CONNECTIONS.items() if queries.load(c.file).name == operation)
        count = sum(key.startswith("id") for key in variables)
        nodes = {f"n{i}": [variables[f"id{i}"], variables[f"after{i}"], 30] for i in range(count)}
        return Page(f"more:{name}", {**request, "nodes": nodes}, data)
    return Page("sweep", request, data)


SMALL = generate_world(31, 7)


@malformed
@pytest.mark.parametrize("seed", range(16))
def test_no_mutation_of_an_answer_ends_in_a_traceback(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    operation = rng.choice(["Resolve", "Sweep", "Sweep", "Sweep", "Listing", "/pulls/comments"])
    fault = Fault(Kind.REWRITE, operation=operation, times=None, rewrite=lambda body: mutate(body, random.Random(seed)))
    with opened(tmp_path / "mined.db") as store, Emulator(SMALL, faults=[fault]) as github:
        try:
            mine(store, github)
        except PrchainError as error:
            assert "\n" not in str(error)
        assert len(github.log) < 300
        github.faults.clear()
        mine(store, github, rescan=True)
        mine(store, github, rescan=True)
        with opened(tmp_path / "fresh.db") as fresh:
            mine(fresh, github)
            # A commit's facts never change, so that they are written once; a wrong text of the right form stays.
            assert_same(facts(store), facts(fresh), but=["commits"])
