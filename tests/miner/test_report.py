"""What people read: sums that add up, whole pages, and nothing in mined text that can steer a terminal."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from miner.funnel import funnel, print_funnel
from miner.outcomes import OUTCOMES
from miner.pull_request_page import find_pull_request, print_pull_request
from prchain.core.errors import UsageError
from sql.store import Store
from sql.tables import (
    Citation,
    ClosingReference,
    Commit,
    GraphRow,
    Issue,
    Landing,
    LandingFile,
    MineRun,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    RefusedClaim,
    Repository,
    Trajectory,
)
from tests.databases import open_new
from tests.miner.test_citation_rows import TIME, commit_row, landing_row, text_row
from tests.trajectories.demoworld import Ran

HOSTILE = "a\x1b[31mb\x07c\u202ed\u2066e\u200ff\x9bg\rh\ni\u2028j\tk\x00 [red]l[/red]"
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
REASONS = ("number_list", "quote", "not_a_pull_request")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_new(tmp_path / "p.db")
    yield opened
    opened.close()


def repository(store: Store, repository_id: int, name: str) -> None:
    owner, _, short = name.partition("/")
    row = {"id": repository_id, "host": "github.com", "owner": owner, "name": short, "location": "/x"}
    with store.transaction() as tx:
        tx.upsert(Repository, [row])


def citation_row(source: int, target: int, **values: Any) -> dict[str, Any]:
    row = {"relation": "mentions", "field": "body", "key": "", "syntax": "hash", "snippet": f"see #{target}"}
    verdict = {"counted": True, "reason": None, "confidence": 0.6}
    return {"repository_id": 1, "source": source, "target": target, **row, **verdict, **values}


def fill_at_random(store: Store, repository_id: int, count: int) -> None:
    """Pull requests, landings, refused claims and citations of every sort."""
    chance = random.Random(repository_id)
    outcomes = [chance.choice(OUTCOMES) for _ in range(count)]
    landed = [number for number, outcome in enumerate(outcomes, 1) if outcome == "landed"]
    own = {"repository_id": repository_id}
    with store.transaction() as tx:
        tx.upsert(PullRequest, [{**own, "number": n, "outcome": outcome} for n, outcome in enumerate(outcomes, 1)])
        tx.upsert(
            Landing,
            [
                landing_row(n, f"{n:040d}", style=chance.choice(["merge", "squash"]), is_default=chance.random() < 0.7)
                | own
                for n in landed
            ],
        )
        tx.upsert(
            RefusedClaim,
            [
                {
                    **own,
                    "number": n,
                    "sha": f"{n:040d}",
                    "branch": "main",
                    "claim": "subject_tail",
                    "subject": "",
                    "reason": chance.choice(["no_pull_head", "other_patch"]),
                }
                for n in range(1, count, 3)
            ],
        )
        rows = []
        for number in range(1, count + 1):
            reason = chance.choice([None, *REASONS])
            rows.append(citation_row(number, count + 1 - number, counted=reason is None, reason=reason) | own)
        tx.upsert(Citation, rows)


def test_the_sums_of_the_funnel_add_up(store: Store) -> None:
    for repository_id, name in enumerate(["o/n", "P/q"], 1):
        repository(store, repository_id, name)
        fill_at_random(store, repository_id, 60 * repository_id)
    rows = funnel(store)
    assert [(row.repository, row.pull_requests) for row in rows] == [("o/n", 60), ("P/q", 120)]
    for row in rows:
        assert sum(row.outcomes.values()) == row.pull_requests
        assert set(row.outcomes) <= set(OUTCOMES)
        assert sum(row.landed.values()) == row.outcomes["landed"]
        assert sum(row.counted.values()) + sum(row.refused.values()) == row.citations == row.pull_requests
        assert set(row.refused) == set(REASONS)
        assert sum(row.refused_claims.values()) == row.pull_requests // 3


def test_the_printed_funnel_says_what_the_counts_say(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    repository(store, 1, "o/n")
    fill_at_random(store, 1, 60)
    [row] = funnel(store)
    print_funnel([row])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for group in ("outcomes", "landed", "counted", "refused", "refused_claims"):
        for name, count in getattr(row, group).items():
            assert f"{name} {count:,}" in lines
    assert f"counted {sum(row.counted.values())}" in lines
    assert f"not counted {sum(row.refused.values())}" in lines


def test_one_repository_is_found_in_any_case_and_an_unknown_one_is_named(store: Store) -> None:
    repository(store, 1, "o/n")
    repository(store, 2, "p/q")
    assert [row.repository for row in funnel(store, "P/Q")] == ["p/q"]
    with pytest.raises(UsageError, match=r"^o/x has not been mined"):
        funnel(store, "o/x")
    assert len(funnel(store)) == 2


def test_the_last_run_is_shown_with_its_cost_and_its_failure(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    repository(store, 1, "o/n")
    run = {"repository_id": 1, "spec": "o/n", "source": "github", "started_at": TIME, "waited_seconds": 0.0}
    cost = {"graphql_requests": 1200, "rest_requests": 34, "points": 1500}
    with store.transaction() as tx:
        tx.upsert(MineRun, [{"id": 1, "outcome": "mined", "reason": None, **run, **cost}])
        tx.upsert(MineRun, [{"id": 2, "outcome": "bad_answer", "reason": f"GitHub said {HOSTILE}", **run, **cost}])
    print_funnel(funnel(store))
    out = capsys.readouterr().out
    assert f"bad_answer, {TIME}, source github, 1,234 requests: GitHub said a\\x1b[31mb" in out
    assert STEERING.findall(out) == []


def page_of_everything(store: Store) -> dict[str, Any]:
    repository(store, 1, "o/n")
    key = {"repository_id": 1, "number": 7}
    with store.transaction() as tx:
        tx.upsert(
            PullRequest,
            [
                {
                    **key,
                    "outcome": "landed",
                    "reason": HOSTILE,
                    "head_sha": "h" * 40,
                    "author": HOSTILE,
                    "state": "merged",
                    "created_at": TIME,
                }
            ],
        )
        tx.upsert(PullRequest, [{"repository_id": 1, "number": 8, "outcome": "open"}])
        tx.upsert(PullRequestText, [text_row(7, "title", f"Title {HOSTILE}"), text_row(7, "body", HOSTILE)])
        tx.upsert(Landing, [landing_row(7, "a" * 40, branch=f"main{HOSTILE}", subject="Subject")])
        tx.upsert(
            LandingFile,
            [
                {
                    **key,
                    "branch": f"main{HOSTILE}",
                    "path": f"{i:02} {HOSTILE}",
                    "status": "R",
                    "old_path": HOSTILE,
                    "old_mode": "100644",
                    "new_mode": "100644",
                    "old_blob": "0",
                    "new_blob": "1",
                    "additions": i or None,
                    "deletions": i or None,
                }
                for i in range(23)
            ],
        )
        tx.upsert(Commit, [commit_row(f"{i:040d}", f"{i} {HOSTILE}\n\nbody") for i in range(22)])
        tx.upsert(Commit, [commit_row("e" * 40, "")])
        own = [
            {**key, "origin": origin, "sha": f"{i:040d}", "position": i} for i in range(22) for origin in ("git", "api")
        ]
        tx.upsert(PullRequestCommit, [*own, {**key, "origin": "git", "sha": "e" * 40, "position": -1}])
        issue = {"repository_id": 1, "issue_repository": "o/n", "issue_number": 3}
        tx.upsert(Issue, [{**issue, "title": HOSTILE}])
        tx.upsert(ClosingReference, [{**issue, "number": 7}])
        tx.upsert(
            Citation,
            [
                citation_row(7, 5, snippet=HOSTILE),
                citation_row(7, 4, counted=False, reason="quote"),
                citation_row(8, 7),
            ],
        )
    return find_pull_request(store, "O/N", 7)


def test_a_page_holds_everything_that_is_stored(store: Store) -> None:
    page = page_of_everything(store)
    assert (page["repository"], page["number"], page["outcome"]) == ("o/n", 7, "landed")
    assert [text["field"] for text in page["texts"]] == ["body", "title"]
    assert len(page["landings"][0]["files"]) == 23
    assert len(page["commits"]) == 23
    assert len({commit["sha"] for commit in page["commits"]}) == 23
    assert page["closes"] == [{"issue_repository": "o/n", "issue_number": 3}]
    assert [edge["target"] for edge in page["cites"]] == [4, 5]
    assert [edge["source"] for edge in page["cited_by"]] == [8]


def test_a_printed_page_is_cut_where_it_is_long_and_says_so(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    print_pull_request(page_of_everything(store))
    out = capsys.readouterr().out
    assert STEERING.findall(out) == []
    lines = out.splitlines()
    assert lines[0].startswith("o/n#7  Title a\\x1b[31mb\\x07c\\u202ed")
    assert "    ... 3 more" in lines
    assert sum(line.startswith("    R ") for line in lines) == 20
    assert "  files     23" in lines
    assert "  commits   23" in lines
    assert "  closes    o/n#3" in lines
    assert "  cites     1 counted of 2" in lines
    assert "    #5 mentions [body, hash] 0.60" in lines
    assert "    #4 mentions [body, hash] no: quote" in lines
    assert "  cited by  1 counted of 1" in lines
    assert lines.index("    #5 mentions [body, hash] 0.60") < lines.index("    #4 mentions [body, hash] no: quote")
    assert not any(line.startswith(("i", "h", "j")) for line in lines)


def test_an_unknown_number_or_repository_is_named(store: Store) -> None:
    repository(store, 1, "o/n")
    with pytest.raises(UsageError, match=r"^o/n has no pull request #3; it may be an issue$"):
        find_pull_request(store, "o/n", 3)
    with pytest.raises(UsageError, match=r"^o/x has not been mined"):
        find_pull_request(store, "o/x", 3)


def test_status_goes_on_to_chains_and_their_tasks_and_its_sums_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.chains.chainworld import build, grown, mined

    with mined(tmp_path, grown(tmp_path)) as store:
        build(store, tmp_path)
        (row,) = funnel(store)
        print_funnel([row])
    chaining = row.chaining["reference"]
    assert sum(chaining.candidates.values()) == row.outcomes["landed"]
    assert (chaining.chains, chaining.tasks) == ({"selected": 1}, {"none yet": 1})
    output = capsys.readouterr().out
    assert "chains, strategy reference" in output and "their tasks" in output and "their proofs" not in output


def test_status_goes_on_to_proofs_and_rollouts(finished_demo: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Store.open(str(finished_demo.folder / "prchain.db"), create=False)) as store:
        (row,) = funnel(store)
        print_funnel([row])
        with store.reading() as tx:
            rollouts, graphs = (list(tx.rows(table, "id")) for table in (Trajectory, GraphRow))
    chaining = row.chaining["reference"]
    assert chaining.proofs == {"proved": 3} == {"proved": sum(chaining.chains.values())}
    assert len(row.chaining) > 1, "several strategies chose the same chains, whose rollouts still count once"
    assert sum(row.rollouts.values()) == len(rollouts) > 0
    assert sum(row.graphs.values()) == len(graphs) > 0
    output = capsys.readouterr().out
    assert "their proofs" in output and output.count("rollouts of all chains") == 1
