"""Mining with both sources at once: an emulated GitHub and the git repository of the same world."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from miner.funnel import funnel, print_funnel
from miner.github import GitHubSource
from miner.mine import MineOptions, Miner, RepositoryReport
from miner.outcomes import GIT_NOT_READ
from miner.repositories import parse_entry
from miner.sources.github import forge_at
from prchain.core.console.progress import open_progress
from sql.tables import ArchivedPage, Base, Citation, Commit, Issue, Landing, MineRun, PullRequest, PullRequestText
from tests.databases import open_new
from tests.emulator import Emulator, Fault, Kind, World, generate_world
from tests.emulator.model import Ref
from tests.prchain.secrets_table import DRAWN_TOKEN, drawn

PULLS = 150


class Lab:
    """A world, its emulator and a database."""

    def __init__(self, folder: Path, seed: int, pulls: int = PULLS) -> None:
        self.folder = folder
        self.world: World = generate_world(seed, pulls, git_dir=folder / "r.git")
        self.emulator = Emulator(self.world)
        self.store = open_new(folder / "prchain.db")

    def mine(self, **options: Any) -> RepositoryReport:
        """Mine the world's repository."""
        spec = parse_entry(f"acme/widgets = {self.folder / 'r.git'}", "github.com", self.folder)
        with open_progress(stream=io.StringIO()) as progress:
            source = GitHubSource(
                self.store,
                forge=forge_at("github.com"),
                tokens=("test-token",),
                api_url=self.emulator.api_url,
                max_wait=10,
                timeout=30,
                progress=progress,
                clock=self.emulator.clock,
                sleep=self.emulator.clock.sleep,
            )
            return Miner(
                self.store,
                MineOptions(**options),
                mirrors=self.folder / "mirrors",
                progress=progress,
                sources=[source],
            ).mine(spec)

    def rows(self, table: type[Base], *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of every row."""
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A world that has been mined once."""
    created = Lab(tmp_path_factory.mktemp("both"), seed=3)
    with created.emulator:
        report = created.mine()
        assert report.error is None and report.outcome == "mined"
        yield created
    created.store.close()


def test_what_the_api_says_merged_has_landed_where_and_how_it_did(lab: Lab) -> None:
    found = {n: (style, sha) for n, style, sha in lab.rows(Landing, "number", "style", "landed_sha")}
    merged = [pull for pull in lab.world.home.pulls if pull.merged]
    assert {pull.number for pull in merged} <= set(found)
    for pull in merged:
        if pull.merge_commit is not None:
            assert found[pull.number] == (pull.landing, pull.merge_commit.oid)


def test_every_pull_request_has_one_settled_outcome(lab: Lab) -> None:
    outcomes = dict(lab.rows(PullRequest, "number", "outcome"))
    assert set(outcomes) == {pull.number for pull in lab.world.home.pulls}
    assert set(outcomes.values()) <= {"landed", "carried", "open", "closed", "merged_unlocated"}


def test_commits_that_git_knows_have_their_parents_though_the_api_came_first(lab: Lab) -> None:
    parents = dict(lab.rows(Commit, "sha", "parents"))
    landed = [sha for (sha,) in lab.rows(Landing, "landed_sha")]
    assert all(parents[sha] > 0 for sha in landed)


def test_citations_come_from_both_sources(lab: Lab) -> None:
    fields = {field for field, counted in lab.rows(Citation, "field", "counted") if counted}
    assert {"body", "comment", "event", "commit"} <= fields


def test_a_second_run_is_unchanged_and_asks_next_to_nothing(lab: Lab) -> None:
    lab.mine()  # It asks about the threads that the first run left.
    before = lab.emulator.requests
    report = lab.mine()
    assert (report.outcome, report.error) == ("unchanged", None)
    assert lab.emulator.requests - before <= 4
    assert lab.rows(MineRun, "outcome")[-1] == ("unchanged",)


def test_the_archive_gives_the_same_rows_without_the_network(lab: Lab) -> None:
    columns = ("number", "outcome", "reason", "state", "merge_sha", "author", "updated_at")
    before = lab.rows(PullRequest, *columns), lab.rows(Citation, "source", "target", "field", "key", "counted")
    requests_before = lab.emulator.requests
    assert lab.mine(from_archive=True).error is None
    assert lab.emulator.requests == requests_before
    after = lab.rows(PullRequest, *columns), lab.rows(Citation, "source", "target", "field", "key", "counted")
    assert after == before


def test_an_unknown_repository_has_no_archive(lab: Lab) -> None:
    spec = parse_entry(f"no/such = {lab.folder}", "github.com", lab.folder)
    with open_progress(stream=io.StringIO()) as progress:
        options = MineOptions(from_archive=True)
        report = Miner(lab.store, options, mirrors=lab.folder, progress=progress).mine(spec)
    assert report.outcome == "repository_not_found"


def test_the_run_counts_every_request_that_was_sent(lab: Lab) -> None:
    before = lab.emulator.requests
    report = lab.mine()
    assert report.graphql_requests + report.rest_requests == lab.emulator.requests - before


def test_stacks_that_github_shows_are_citations(lab: Lab) -> None:
    """Issue 20, point 8."""
    pulls = lab.world.home.pulls
    heads = {pull.head_ref_name: pull.number for pull in pulls if not pull.is_cross_repository}
    bases = {(pull.number, pull.base_ref_name) for pull in pulls}
    changes = {(p.number, e.data["previous_ref_name"]) for p in pulls for e in p.timeline if "BaseRefCh" in e.kind}
    expected = {(number, heads[base]) for number, base in bases | changes if base in heads}
    found = lab.rows(Citation, "source", "target", "relation", "field")
    assert {(source, target) for source, target, _, field in found if field == "base"} == expected
    assert len(expected) > 3
    assert {relation for _, _, relation, field in found if field == "base"} == {"stacked_on"}


def test_a_stack_that_github_retargeted_by_itself_is_one(tmp_path: Path) -> None:
    """Issue 20, point 8: the lower part was merged, and its branch deleted."""
    lab = Lab(tmp_path, seed=4, pulls=10)
    world, home = lab.world, lab.world.home
    lower = world.add_pull(home, "Parse", "", None, head_ref_name="parse")
    home.branches["parse"] = world.add("REF", Ref, "parse", lower.head)
    upper = world.add_pull(home, "Lex", "", None, base="parse", head_ref_name="lex")
    world.merge_pull(lower)
    world.delete_head_branch(lower)
    world.merge_pull(upper)
    assert upper.base_ref_name == "main"
    with lab.emulator:
        assert lab.mine().error is None
    rows = lab.rows(Citation, "source", "target", "relation", "field", "counted")
    assert (upper.number, lower.number, "stacked_on", "base", True) in rows
    lab.store.close()


def test_a_linked_issue_that_was_edited_is_found_by_the_days_that_are_asked_for(tmp_path: Path) -> None:
    """Issue 20, point 8."""
    lab = Lab(tmp_path, seed=4, pulls=30)
    issue = next(pull.closing[0] for pull in lab.world.home.pulls if pull.closing)
    with lab.emulator:
        assert lab.mine().error is None
        lab.world.edit_issue(issue, title="Told anew")
        lab.mine()
        assert ("Told anew",) not in lab.rows(Issue, "title")
        lab.mine(recheck_days=36_500)
        assert ("Told anew",) in lab.rows(Issue, "title")
    lab.store.close()


class TestWhatGitHasLocatedStays:
    """Issue 20, point 6."""

    COLUMNS = ("number", "outcome", "reason")

    @pytest.fixture
    def unborne(self, tmp_path: Path) -> Iterator[Lab]:
        """A small world in which GitHub calls pull requests merged that no branch bears out."""
        lab = Lab(tmp_path, seed=11, pulls=40)
        merged = [pull for pull in lab.world.home.pulls if pull.merged]
        for pull in merged[:5]:
            pull.merge_commit = None
            pull.head = merged[5].head
        main = lab.world.home.branches["main"]
        assert main.target is not None
        main.target = main.target.parents[0]
        lab.world.sync_git()
        with lab.emulator:
            yield lab
        lab.store.close()

    def outcomes(self, lab: Lab) -> list[tuple[Any, ...]]:
        return sorted(lab.rows(PullRequest, *self.COLUMNS))

    def test_by_a_run_from_the_archive(self, unborne: Lab) -> None:
        assert unborne.mine().error is None
        before = self.outcomes(unborne)
        assert any(outcome == "merged_unlocated" for _, outcome, _ in before)
        assert unborne.mine(from_archive=True).error is None
        assert self.outcomes(unborne) == before

    def test_by_a_run_whose_api_failed_and_whose_git_part_did_not(self, unborne: Lab) -> None:
        unborne.emulator.faults.append(Fault(Kind.BAD_GATEWAY_502, operation="/pulls/comments", times=None))
        report = unborne.mine()
        assert report.error is not None
        first = self.outcomes(unborne)
        assert any(outcome == "merged_unlocated" for _, outcome, _ in first)
        assert GIT_NOT_READ not in {reason for _, _, reason in first}
        unborne.emulator.faults.clear()
        assert unborne.mine().error is None
        assert self.outcomes(unborne) == first

    def test_and_rows_that_were_stamped_are_healed_by_the_next_run(self, unborne: Lab) -> None:
        assert unborne.mine().error is None
        before = self.outcomes(unborne)
        with unborne.store.transaction() as tx:
            located = PullRequest.outcome == "merged_unlocated"
            tx.connection.execute(update(PullRequest).where(located).values(reason=GIT_NOT_READ))
        assert self.outcomes(unborne) != before
        assert unborne.mine().error is None
        assert self.outcomes(unborne) == before
        assert unborne.mine().outcome == "unchanged"

    def test_and_a_run_without_git_is_healed_by_one_with_it(self, unborne: Lab) -> None:
        git, away = unborne.folder / "r.git", unborne.folder / "away.git"
        git.rename(away)
        assert unborne.mine().outcome == "not_a_repository"
        assert GIT_NOT_READ in {reason for _, _, reason in self.outcomes(unborne)}
        away.rename(git)
        assert unborne.mine().error is None
        assert GIT_NOT_READ not in {reason for _, _, reason in self.outcomes(unborne)}


def test_issue_20_a_run_tells_and_stores_what_it_replaced_and_keeps_what_only_looks_like_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = "`sk-toggleable__label-arrow` of git+ssh://git@github.com/o/r, amqp://guest:guest@host, ghp_xxxxxxxxxxxxxxxx"
    lab = Lab(tmp_path, seed=5, pulls=12)
    first, second = lab.world.home.pulls[:2]
    lab.world.edit_pull(first, body=f"{kept} {DRAWN_TOKEN}")
    lab.world.add_comment(second, f"https://joe:{drawn('{62:16}', 1)}@host and {DRAWN_TOKEN}", None)
    with lab.emulator:
        report = lab.mine()
        unchanged = lab.mine()
    expected = {"github": 2, "url": 1}
    assert (report.outcome, report.replaced) == ("mined", expected)
    assert unchanged.replaced == {}
    assert lab.rows(MineRun, "replaced") == [(expected,), (None,)]
    [body] = [
        body
        for number, field, body in lab.rows(PullRequestText, "number", "field", "body")
        if (number, field) == (first.number, "body")
    ]
    assert body == f"{kept} [redacted]"
    pages = "".join(zlib.decompress(body).decode() for (body,) in lab.rows(ArchivedPage, "body"))
    assert kept in pages and DRAWN_TOKEN not in pages
    with lab.store.transaction() as tx:
        tx.delete(MineRun, id=2)
    print_funnel(funnel(lab.store))
    lab.store.close()
    assert "3 secrets replaced (2 github, 1 url)" in capsys.readouterr().out
