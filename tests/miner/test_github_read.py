"""The GitHub source against an emulated GitHub: what it reads is what is there, and a second run asks for little."""

from __future__ import annotations

import json
import logging
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from miner.github import replay
from miner.github.pages import UNKNOWN_PARENTS
from prchain.core.errors import BadToken, ForgeError, NetworkUnreachable, RepositoryNotFound
from prchain.core.secrets.scrub import redact_mined
from prchain.core.storable import clean_text
from sql.store import Store
from sql.tables import ArchivedPage, Commit, Cursor, PullRequest, PullRequestText, Repository, RepositoryAlias
from tests.emulator import Emulator, Fault, Kind, World, generate_world
from tests.miner.github_lab import REPOSITORY, Quiet, assert_same, facts, mine, opened, pages_fetched, source
from tests.prchain.secrets_table import DRAWN_TOKEN

PULLS = 30


@pytest.fixture
def world() -> World:
    return generate_world(5, PULLS)


@pytest.fixture
def github(world: World) -> Iterator[Emulator]:
    with Emulator(world) as emulator:
        yield emulator


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


def fresh(github: Emulator, path: Path, **options: Any) -> dict[str, list[Any]]:
    """The facts that an empty store gets from GitHub as it is now."""
    with opened(path) as other:
        mine(other, github, **options)
        return facts(other)


def texts(store: Store, field: str) -> list[tuple[int, str, str]]:
    with store.reading() as tx:
        found = tx.rows(PullRequestText, "number", "key", "body", repository_id=REPOSITORY, field=field)
        return sorted((n, key, body) for n, key, body in found)


def stored(text: str | None) -> str:
    return redact_mined(clean_text(text or ""))


def test_everything_that_is_there_is_read(store: Store) -> None:
    world = generate_world(8, 50)
    with Emulator(world) as github:
        summary = mine(store, github)
    pulls = world.home.pulls
    assert (summary.pull_requests, summary.total_count, summary.missing, summary.unaccounted) == (50, 50, (), 0)
    assert summary.changed
    assert texts(store, "title") == sorted((p.number, "", stored(p.title)) for p in pulls)
    assert texts(store, "body") == sorted((p.number, "", stored(p.body)) for p in pulls)
    assert texts(store, "comment") == sorted(
        (p.number, str(c.database_key), stored(c.body)) for p in pulls for c in p.comments
    )
    assert texts(store, "review") == sorted(
        (p.number, str(r.database_key), stored(r.body)) for p in pulls for r in p.reviews
    )
    assert texts(store, "review_comment") == sorted(
        (p.number, str(c.database_key), stored(c.body)) for p in pulls for t in p.threads for c in t.comments
    )
    rows = facts(store)
    assert len(rows["labels"]) == sum(len({label.name for label in p.labels}) for p in pulls)
    assert len(rows["closing_references"]) == sum(len(p.closing) for p in pulls)
    own = [[r["sha"] for r in map(dict, rows["pull_request_commits"]) if r["number"] == p.number] for p in pulls]
    assert [len(shas) for shas in own] == [len(p.commits) for p in pulls]
    for pull in pulls:
        mined = {r["position"]: r["sha"] for r in map(dict, rows["pull_request_commits"]) if r["number"] == pull.number}
        assert [mined[i] for i in range(len(mined))] == [item.commit.oid for item in pull.commits]


def test_columns_hold_what_github_says(world: World, github: Emulator, store: Store) -> None:
    mine(store, github)
    rows = {row["number"]: row for row in map(dict, facts(store)["pull_requests"])}
    for pull in world.home.pulls:
        row = rows[pull.number]
        assert row["state"] == pull.state.lower()
        assert row["api_head_sha"] == pull.head.oid
        assert row["merge_sha"] == (pull.merge_commit.oid if pull.merge_commit else None)
        assert row["author"] == (pull.author.login.removesuffix("[bot]") if pull.author else None)
        assert (row["created_at"], row["updated_at"]) == (pull.created_at, pull.updated_at)
        assert (row["commit_count"], row["outcome"]) == (len(pull.commits), "unsettled")
    assert any(row["author"] is None for row in rows.values()) or all(p.author for p in world.home.pulls)


def test_a_second_unchanged_run_asks_three_times_and_writes_nothing(github: Emulator, store: Store) -> None:
    mine(store, github)
    before, requests_before = facts(store), github.requests
    with store.reading() as tx:
        pages = list(tx.rows(ArchivedPage, "id"))
    summary = mine(store, github)
    assert (summary.changed, summary.pull_requests, github.requests - requests_before) == (False, 0, 3)
    assert facts(store) == before
    with store.reading() as tx:
        assert list(tx.rows(ArchivedPage, "id")) == pages


def test_the_sweep_costs_a_point_for_twenty(github: Emulator, store: Store) -> None:
    summary = mine(store, github)
    sweeps = [exchange for exchange in github.log if exchange.operation == "Sweep"]
    assert [exchange.points for exchange in sweeps] == [1] * -(-PULLS // 20)
    resolve = 1
    assert github.points() == summary.usage.points + resolve
    assert summary.usage.rest_requests == sum(exchange.operation is None for exchange in github.log)


def test_what_changed_is_read_again_and_nothing_else(
    world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    mine(store, github)
    world.tick(86_400)
    pulls = world.home.pulls
    world.edit_pull(pulls[0], title="Another title", body="Closes nothing")
    world.push(pulls[1])
    world.force_push(pulls[2])
    world.add_comment(pulls[3], "Depends on #1", None)
    world.add_review(pulls[4], "APPROVED", "Fine by me", pulls[3].author)
    world.add_review_comment(pulls[5], "Nit", None)
    world.add_pull(world.home, "A new one", "Follow-up of #1", None)
    requests_before = github.requests
    summary = mine(store, github)
    assert summary.changed
    assert summary.pull_requests == 7
    assert not [e for e in github.log[requests_before:] if e.operation == "Sweep"]
    # Commits that a force push took away stay known; their pull requests no longer hold them.
    assert_same(facts(store), fresh(github, tmp_path / "fresh.db"), but=["commits"])


def test_a_pull_request_opened_or_changed_during_the_sweep_is_caught(
    world: World, store: Store, tmp_path: Path
) -> None:
    def change(world: World) -> None:
        world.tick(86_400)
        world.add_pull(world.home, "Opened meanwhile", "x", None)
        world.edit_pull(world.home.pulls[0], body="Edited meanwhile")
        world.add_review_comment(world.home.pulls[1], "Said meanwhile", None)

    faults = [Fault(Kind.CHANGE, operation="Sweep", nth=2, change=change)]
    with Emulator(world, faults=faults) as github:
        mine(store, github)
        assert facts(store)["pull_requests"]
        assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))


def test_a_comment_on_a_pull_request_opened_after_the_last_look_is_not_lost(
    world: World, store: Store, tmp_path: Path
) -> None:
    def change(world: World) -> None:
        world.tick(86_400)
        world.add_review_comment(world.add_pull(world.home, "Opened late", "x", None), "At once", None)

    with Emulator(world, faults=[Fault(Kind.CHANGE, operation="/pulls/comments", change=change)]) as github:
        mine(store, github)
        assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))


def test_a_rescan_finds_silent_edits_and_deletions(
    world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    mine(store, github)
    world.tick(86_400)
    commented = next(p for p in world.home.pulls if len(p.comments) > 1)
    world.edit_comment(commented.comments[0], "Edited in silence")
    world.delete_comment(commented.comments[1])
    threads = [t for p in world.home.pulls for t in p.threads]
    world.delete_comment(threads[3].comments[0])
    world.edit_comment(threads[5].comments[0], "This, too")
    world.delete_pull(world.home.pulls[7])
    gone = {row["number"] for row in map(dict, facts(store)["pull_requests"])} - {p.number for p in world.home.pulls}
    mine(store, github, rescan=True)
    expected, actual = fresh(github, tmp_path / "fresh.db"), facts(store)
    marked = {row["number"] for row in map(dict, actual["pull_requests"]) if row["gone_at"]}
    assert marked == gone and len(gone) == 1

    def here(rows: list[Any]) -> list[Any]:
        return [row for row in rows if dict(row).get("number") not in gone]

    for table in ("pull_requests", "pull_request_texts", "labels", "timeline_events"):
        assert here(actual[table]) == here(expected[table]), table
    requests_before = github.requests
    assert not mine(store, github).changed
    assert github.requests - requests_before == 3


def test_a_pull_request_deleted_before_it_could_be_read_again_is_gone(world: World, store: Store) -> None:
    doomed = world.home.pulls[3]
    with Emulator(world) as github:
        mine(store, github)
        world.tick(86_400)
        world.edit_pull(doomed, title="Soon gone")
        world.edit_pull(world.home.pulls[4], title="Here to stay")
        github.faults.append(Fault(Kind.CHANGE, operation="Listing", change=lambda world: world.delete_pull(doomed)))
        summary = mine(store, github)
        assert (summary.pull_requests, summary.missing, summary.unaccounted) == (1, (), 0)
        with store.reading() as tx:
            gone = [n for n, at in tx.rows(PullRequest, "number", "gone_at") if at]
        assert gone == [doomed.number]
        before = facts(store)
        replay(store, REPOSITORY)
        assert_same(facts(store), before)


def test_hundreds_of_review_comments_of_one_second_are_all_read(world: World, store: Store, tmp_path: Path) -> None:
    comments = [c for p in world.home.pulls for t in p.threads for c in t.comments]
    middle = sorted(comments, key=lambda c: c.updated_at)[50:300]
    for comment in middle:
        comment.updated_at = middle[0].updated_at
    with Emulator(world) as github:
        mine(store, github)
        assert texts(store, "review_comment") == texts_of(world)
        mine(store, github, rescan=True)
        assert texts(store, "review_comment") == texts_of(world)


def test_a_rename_in_the_middle_of_a_run_loses_nothing(world: World, store: Store, tmp_path: Path) -> None:
    def rename(world: World) -> None:
        world.rename_repository(world.home, "acme/machines")

    with Emulator(world, faults=[Fault(Kind.CHANGE, operation="/pulls/comments", nth=2, change=rename)]) as github:
        summary = mine(store, github)
        assert summary.usage.rest_requests == sum(exchange.operation is None for exchange in github.log)
        assert sum(exchange.status == 301 for exchange in github.log) == 1
        assert sum(github.clock.slept) == 0
        assert texts(store, "review_comment") == texts_of(world)


def test_the_newest_can_be_read_alone(world: World, github: Emulator, store: Store, tmp_path: Path) -> None:
    summary = mine(store, github, limit=5)
    newest = sorted((p.number for p in world.home.pulls), reverse=True)[:5]
    assert sorted((row["number"] for row in map(dict, facts(store)["pull_requests"])), reverse=True) == newest
    assert summary.total_count == summary.pull_requests == 5
    expected = [(n, key, body) for n, key, body in texts_of(world) if n in newest]
    assert texts(store, "review_comment") == expected
    requests_before = github.requests
    assert not mine(store, github, limit=5).changed
    assert github.requests - requests_before == 3
    mine(store, github, limit=9)
    assert len(facts(store)["pull_requests"]) == 9
    mine(store, github)
    assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))


def texts_of(world: World) -> list[tuple[int, str, str]]:
    return sorted(
        (p.number, str(c.database_key), stored(c.body)) for p in world.home.pulls for t in p.threads for c in t.comments
    )


def test_those_updated_since_can_be_read_alone(world: World, github: Emulator, store: Store, tmp_path: Path) -> None:
    updates = sorted(p.updated_at for p in world.home.pulls)
    since = updates[-10]
    expected = sorted(p.number for p in world.home.pulls if p.updated_at >= since)
    mine(store, github, since=since)
    assert [row["number"] for row in map(dict, facts(store)["pull_requests"])] == expected
    assert texts(store, "review_comment") == [row for row in texts_of(world) if row[0] in expected]
    world.tick(86_400)
    oldest = world.home.pulls[0]
    world.add_comment(oldest, "Back to life", None)
    mine(store, github, since=since)
    assert [t for t in texts(store, "review_comment") if t[0] == oldest.number] == [
        t for t in texts_of(world) if t[0] == oldest.number
    ]
    mine(store, github)
    assert_same(facts(store), fresh(github, tmp_path / "fresh.db"))


def test_a_renamed_repository_is_followed_and_its_old_name_kept(
    world: World, github: Emulator, store: Store, tmp_path: Path
) -> None:
    expected = fresh(github, tmp_path / "fresh.db")
    resolved = source(store, github).resolve("Acme", "Gadgets")
    assert (resolved.full_name, resolved.requested_name) == ("acme/widgets", "Acme/Gadgets")
    assert resolved.clone_url == f"{github.url}/acme/widgets.git"
    assert (resolved.default_branch, resolved.is_fork) == ("main", False)
    mine(store, github, name="gadgets")
    with store.reading() as tx:
        assert list(tx.rows(RepositoryAlias, "alias", "evidence")) == [("acme/gadgets", "api")]
    assert_same(facts(store), expected, but=["repository_aliases"])


def test_a_rename_after_the_first_run_leaves_the_stored_name_as_alias(
    world: World, github: Emulator, store: Store
) -> None:
    mine(store, github)
    world.rename_repository(world.home, "acme/machines")
    assert not mine(store, github).changed
    with store.reading() as tx:
        assert [alias for (alias,) in tx.rows(RepositoryAlias, "alias")] == ["acme/widgets"]


def test_a_replay_of_the_archive_gives_the_same_rows(world: World, github: Emulator, store: Store) -> None:
    mine(store, github)
    world.tick(86_400)
    world.edit_pull(world.home.pulls[0], title="Another title")
    world.delete_pull(world.home.pulls[1])
    world.delete_comment(next(p for p in world.home.pulls if p.comments).comments[0])
    mine(store, github, rescan=True)
    before, requests_before = facts(store), github.requests
    with store.transaction() as tx:
        number = world.home.pulls[0].number
        tx.delete(PullRequestText, repository_id=REPOSITORY, number=number)
        tx.upsert(PullRequest, [{"repository_id": REPOSITORY, "number": number, "state": "nonsense"}])
    summary = replay(store, REPOSITORY)
    assert summary.pull_requests == PULLS
    assert_same(facts(store), before)
    assert github.requests == requests_before


def test_rows_that_git_wrote_are_left_alone(world: World, github: Emulator, store: Store) -> None:
    first = world.home.pulls[0]
    sha = first.commits[0].commit.oid
    with store.transaction() as tx:
        row = {"repository_id": REPOSITORY, "number": first.number, "outcome": "landed", "head_sha": "f" * 40}
        tx.upsert(PullRequest, [row])
        commit = {"repository_id": REPOSITORY, "sha": sha, "author": "git", "authored_at": "", "committed_at": ""}
        tx.upsert(Commit, [{**commit, "parents": 2, "message": "as git has it"}])
    mine(store, github)
    replay(store, REPOSITORY)
    rows = facts(store)
    (pull,) = [row for row in map(dict, rows["pull_requests"]) if row["number"] == first.number]
    assert (pull["outcome"], pull["head_sha"], pull["state"]) == ("landed", "f" * 40, first.state.lower())
    commits = {row["sha"]: row for row in map(dict, rows["commits"])}
    assert (commits[sha]["parents"], commits[sha]["message"]) == (2, "as git has it")
    assert {row["parents"] for sha_, row in commits.items() if sha_ != sha} == {UNKNOWN_PARENTS}


def test_github_enterprise_without_limits_is_read(world: World, store: Store, tmp_path: Path) -> None:
    with Emulator(world) as usual, Emulator(world, rate_limit=False) as enterprise:
        expected = fresh(usual, tmp_path / "fresh.db")
        mine(store, enterprise)
        assert_same(facts(store), expected)


@pytest.mark.parametrize("name", ["nothing-here", "secret"])
def test_an_unknown_or_private_repository_is_one_clear_line(github: Emulator, store: Store, name: str) -> None:
    with pytest.raises(RepositoryNotFound) as caught:
        source(store, github).resolve("acme", name)
    assert f"acme/{name}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_network_is_one_clear_line(store: Store, github: Emulator) -> None:
    with pytest.raises(NetworkUnreachable) as caught:
        source(store, github, api_url="http://127.0.0.1:9/api/v3").resolve("acme", "widgets")
    assert "\n" not in str(caught.value)


def test_no_token_is_a_bad_token(store: Store, github: Emulator) -> None:
    with pytest.raises(BadToken):
        source(store, github, tokens=[])
    with pytest.raises(BadToken):
        source(store, github, tokens=["wrong-token"]).resolve("acme", "widgets")


def test_a_token_planted_everywhere_appears_nowhere(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    token, shaped = "planted-secret-token", DRAWN_TOKEN
    pull = world.home.pulls[0]
    world.edit_pull(pull, title=f"leak {token}", body=f"see https://x:{token}@example.org/r.git and {shaped}")
    world.add_comment(pull, f"Authorization: bearer {token}", None)
    world.add_review(pull, "COMMENTED", f"token={token}", None)
    world.add_review_comment(pull, f"`{token}`", None, path=f"{token}.txt")
    world.push(pull, message=f"Use {token}")
    pull.labels.append(world.label(f"label-{token}"))
    progress = Quiet()
    faults = [
        Fault(Kind.UNAUTHORIZED_401, operation="Listing", token="other-token"),
        Fault(Kind.SERVER_ERROR_500, nth=2),
    ]
    with (
        caplog.at_level(logging.DEBUG),
        Emulator(world, tokens={token: 5000, "other-token": 5000}, faults=faults) as github,
        opened(tmp_path / "mined.db") as store,
    ):
        mine(store, github, progress=progress)
        with pytest.raises(ForgeError) as caught:
            source(store, github, progress=progress).resolve(token, "x")
        with store.reading() as tx:
            bodies = [zlib.decompress(body).decode() for (body,) in tx.rows(ArchivedPage, "body")]
            details = [str(row) for row in tx.rows(Cursor, "position", "detail")]
        texts_seen = [*bodies, *details, repr(facts(store)), str(caught.value), *progress.notes, *progress.titles]
    texts_seen += [*capsys.readouterr(), caplog.text]
    assert len(bodies) > 5 and "[redacted]" in repr(texts_seen)
    for secret in (token, shaped):
        assert not [text[:80] for text in texts_seen if secret in text]
        assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_threads_read_their_repositories_side_by_side(world: World, tmp_path: Path) -> None:
    tokens = {"one": 5000, "two": 5000}
    with Emulator(world, tokens=tokens) as github, opened(tmp_path / "mined.db") as store:
        with store.transaction() as tx:
            tx.upsert(Repository, [{"id": 2, "host": "h", "owner": "o", "name": "n", "location": ""}])
        shared = source(store, github)
        resolved = shared.resolve("acme", "widgets")
        failures: list[BaseException] = []

        def read(number: int) -> None:
            try:
                shared.read(number, resolved)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures
        rows = facts(store)
        for table in ("pull_requests", "pull_request_texts", "timeline_events"):
            by_repository: dict[int, list[Any]] = {1: [], 2: []}
            for row in rows[table]:
                plain = dict(row)
                by_repository[plain.pop("repository_id")].append(plain)
            assert by_repository[1] == by_repository[2]
        assert shared.usage().graphql_requests == sum(e.operation is not None for e in github.log)
        assert {e.token for e in github.log} == set(tokens)


def test_no_page_is_asked_for_twice(github: Emulator, store: Store) -> None:
    mine(store, github)
    fetched = pages_fetched(github)
    assert len(fetched) == len(set(fetched))


def test_archived_pages_hold_question_and_answer(github: Emulator, store: Store) -> None:
    mine(store, github)
    with store.reading() as tx:
        stream, body = next(iter(tx.rows(ArchivedPage, "stream", "body")))
    page = json.loads(zlib.decompress(body))
    assert stream == "sweep"
    assert page["request"]["variables"]["first"] == 20
    assert len(page["answer"]["repository"]["pullRequests"]["nodes"]) == 20
