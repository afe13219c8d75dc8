"""What the git source stores: hostile texts become rows that every database takes, without secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from miner import git_rows
from miner.git_facts import ApiKnowledge, read, read_refs
from miner.git_rows import ApiState, PullRequestSelection, settle_without_history, write
from prchain.core.git import GitRepository
from sql.store import Store
from sql.tables import Base, Commit, Landing, LandingFile, PullRequest, PullRequestCommit, RefusedClaim, Repository
from tests.miner.gitworld import GITHUB, World, lines
from tests.prchain.secrets_table import DRAWN_TOKEN

TOKEN = DRAWN_TOKEN


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(Store.open(database_url)) as opened:
        with opened.transaction() as tx:
            tx.upsert(
                Repository, [{"id": 1, "host": "github.com", "owner": "o", "name": "r", "location": "/somewhere"}]
            )
        yield opened


@pytest.fixture
def world(tmp_path: Path) -> World:
    created = World(tmp_path / "r.git")
    created.commit("main", {f"src/{name}.py": lines(name) for name in "abc"}, "start")
    return created


def store_world(
    store: Store,
    world: World,
    *,
    selection: PullRequestSelection = git_rows.WHOLE,
    api: dict[int, ApiState] | None = None,
    **options: Any,
) -> None:
    repository = GitRepository.open(world.save())
    merges = {number: state.merge_sha for number, state in (api or {}).items() if state.merge_sha}
    facts = read(repository, read_refs(repository, GITHUB.pull_heads), ApiKnowledge(merges))
    with store.transaction() as tx:
        write(tx, 1, repository, facts, selection, api or {}, forge="GitHub", **options)


def rows(store: Store, table: type[Base], *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
    with store.reading() as tx:
        return [tuple(row) for row in tx.rows(table, *columns, **equals)]


def test_one_landing_is_stored_whole(store: Store, world: World) -> None:
    head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": None})
    base = world.commit("main", {"pushed": "x"}, "push")
    landed = world.squash("main", head, "Fix a\nand b (#1)\n\nBody")
    store_world(store, world)
    assert rows(
        store,
        Landing,
        "number",
        "branch",
        "is_default",
        "style",
        "base_sha",
        "landed_sha",
        "head_sha",
        "landed_at",
        "subject",
        "position",
        "claim",
        "evidence",
        "counts",
    ) == [
        (
            1,
            "main",
            True,
            "squash",
            world.sha(base),
            world.sha(landed),
            world.sha(head),
            "2020-09-13T12:31:40Z",
            "Fix a and b (#1)",
            2,
            "subject_tail",
            "same_patch",
            "none",
        )
    ]
    assert rows(store, LandingFile, "path", "status", "old_mode", "new_mode") == [
        ("src/a.py", "M", "100644", "100644"),
        ("src/b.py", "D", "100644", "000000"),
    ]
    assert rows(store, PullRequestCommit, "sha", "position", "origin") == sorted(
        [(world.sha(head - 1), 0, "git"), (world.sha(head), 1, "git")]
    )
    assert {sha for (sha,) in rows(store, Commit, "sha")} == set(world.shas([head - 1, head, landed]))
    assert rows(store, PullRequest, "outcome", "reason", "head_sha") == [
        ("landed", "squash on main: subject_tail, same_patch", world.sha(head))
    ]


def test_hostile_texts_are_stored_without_secrets(store: Store, world: World) -> None:
    name = f"Eve {TOKEN} \u202e\U0001f4a9"
    head = world.propose(
        1,
        {b"bad\xff": "1", b"bad\\xff": "2", "new\nline\t\"'": "3", TOKEN: "4"},
        author="Eve",
        message=f"own https://user:{TOKEN}@example.org/x \x01\x7f",
    )
    base = world.commit("main", {"pushed": "x"}, "push")
    world.commit("main", world.own_changes(head, base), f"Fix {TOKEN} (#1)\n\n{'x' * 100_000}", author=name)
    world.commit("main", {"src/c.py": "!"}, f"{TOKEN} (#99)")
    store_world(store, world)
    assert [path for (path,) in rows(store, LandingFile, "path") if "bad" in path] == ["bad\\x5cxff", "bad\\xff"]
    stored = [
        rows(store, table, *columns)
        for table, columns in (
            (Commit, ("message",)),
            (Landing, ("subject",)),
            (RefusedClaim, ("subject",)),
            (Commit, ("author",)),
        )
    ]
    assert all(stored)
    assert TOKEN not in repr(stored)


def test_issue_20_secrets_in_commits_are_counted_once_and_look_alikes_stay(store: Store, world: World) -> None:
    message = f"Style .sk-toggleable__label-arrow, install git+ssh://git@github.com/o/r, leak {TOKEN}"
    head = world.propose(1, {"src/a.py": lines("a", 2)}, message=message)
    world.commit("main", {"pushed": "x"}, "push")
    world.squash("main", head, f"{message} (#1)")
    replaced: Counter[str] = Counter()
    store_world(store, world, replaced=replaced)
    assert replaced == {"github": 2}  # in the head's message and in the landing's; its subject is a part of that
    kept = message.replace(TOKEN, "[redacted]")
    assert sorted(rows(store, Commit, "message")) == [(kept,), (f"{kept} (#1)",)]
    again: Counter[str] = Counter()
    store_world(store, world, replaced=again)
    assert again == {}


def test_issue_20_what_earlier_rules_took_from_commits_comes_back_from_git(store: Store, world: World) -> None:
    head = world.propose(1, {"src/a.py": lines("a", 2)}, message="Style .sk-toggleable__label-arrow")
    world.commit("main", {"pushed": "x"}, "push")
    world.squash("main", head, "Fix a (#1)")
    store_world(store, world)
    before = sorted(rows(store, Commit, "message"))
    with store.transaction() as tx:
        tx.connection.execute(update(Commit).values(message="Style .[redacted]"))
    store_world(store, world)
    assert set(rows(store, Commit, "message")) == {("Style .[redacted]",)}
    store_world(store, world, same_rules=False)
    assert sorted(rows(store, Commit, "message")) == before


def test_a_branch_name_out_of_a_message_fits_its_column(store: Store, world: World) -> None:
    world.branch("dev", "main")
    head = world.propose(1, {"src/a.py": lines("a", 2)}, base="dev")
    world.commit("dev", {"pushed": "x"}, "push")
    world.squash("dev", head, "Fix a (#1)")
    world.merge("main", world.made("dev").number, f"Merge branch '{TOKEN} {'long' * 200}'")
    world.drop("dev")
    store_world(store, world)
    [(branch,)] = rows(store, Landing, "branch")
    assert len(branch) == 255
    assert TOKEN not in repr([branch, *rows(store, PullRequest, "reason")])
    assert rows(store, LandingFile, "branch", "path") == [(branch, "src/a.py")]


def test_numbers_that_only_the_api_knows_have_outcomes_too(store: Store, world: World) -> None:
    world.propose(1, {"src/a.py": "open"})
    landed = world.commit("main", {"src/b.py": "x"}, "By hand")
    world.save()
    api = {
        1: ApiState("closed", None, None),
        2: ApiState("merged", world.sha(landed), None),
        3: ApiState("merged", "f" * 40, None),
        4: ApiState("open", None, None),
        5: ApiState("closed", None, "2024-01-01T00:00:00Z"),
    }
    store_world(store, world, api=api)
    assert dict(rows(store, PullRequest, "number", "outcome")) == {
        1: "closed",
        2: "landed",
        3: "merged_unlocated",
        4: "open",
        5: "gone",
    }
    assert rows(store, Landing, "number", "landed_sha", "head_sha", "evidence") == [(2, world.sha(landed), None, "api")]


def test_without_history_the_apis_word_settles_and_landings_stay(store: Store, world: World) -> None:
    head = world.propose(1, {"src/a.py": lines("a", 2)})
    world.commit("main", {"pushed": "x"}, "push")
    world.squash("main", head, "Fix a (#1)")
    store_world(store, world)
    with store.transaction() as tx:
        states = {1: "merged", 2: "open", 3: "merged", 4: "closed"}
        tx.upsert(
            PullRequest,
            [
                {
                    "repository_id": 1,
                    "number": n,
                    "node_id": str(n),
                    "state": state,
                    "outcome": "landed" if n == 1 else "unsettled",
                }
                for n, state in states.items()
            ],
        )
        settle_without_history(tx, 1, "GitHub")
    assert dict(rows(store, PullRequest, "number", "outcome")) == {
        1: "landed",
        2: "open",
        3: "merged_unlocated",
        4: "closed",
    }
    assert len(rows(store, Landing, "number")) == 1


def test_refusals_name_their_reasons(store: Store, world: World) -> None:
    world.propose(1, {"src/a.py": lines("a", 2)})
    first = world.commit("main", {"src/b.py": "b"}, "Theirs (#1)", author="eve")
    second = world.commit("main", {"src/c.py": "c"}, "Ticket (#1535)")
    store_world(store, world)
    assert rows(store, RefusedClaim, "number", "sha", "branch", "claim", "reason", "subject") == [
        (1, world.sha(first), "main", "subject_tail", "head_differs", "Theirs (#1)"),
        (1535, world.sha(second), "main", "subject_tail", "no_pull_head", "Ticket (#1535)"),
    ]


def test_commits_of_a_head_that_was_replaced_go_and_shared_ones_stay(store: Store, world: World) -> None:
    lower = world.propose(1, {"src/a.py": "1"})
    upper = world.commit(None, {"src/a.py": "2"}, "upper", parents=[lower])
    world.pull(2, upper)
    store_world(store, world)
    world.pull(2, world.commit(None, {"src/a.py": "3"}, "anew", parents=[lower]))
    store_world(store, world)
    assert {sha for (sha,) in rows(store, Commit, "sha")} == set(world.shas([lower, world.refs["refs/pull/2/head"]]))


def test_a_selection_says_what_the_user_wrote() -> None:
    assert PullRequestSelection().whole and not PullRequestSelection().text()
    assert not PullRequestSelection(limit=3).whole
    assert PullRequestSelection("2024-01-01T00:00:00Z", 3).text() == "--since 2024-01-01T00:00:00Z --limit 3"
