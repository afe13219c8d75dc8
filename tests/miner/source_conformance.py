"""What every source does: one suite, run against each over the same made world, mined by the real `Miner`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from miner.git_rows import PullRequestSelection
from miner.mine import MineOptions, Miner, RepositoryReport
from miner.outcomes import OUTCOMES
from miner.repositories import parse_entry
from miner.source import Source
from prchain.core.console.progress import Progress, open_progress
from prchain.core.errors import RepositoryNotFound
from prchain.core.git import GitRepository
from sql.store import Store
from sql.tables import Citation, Landing, MineRun, PullRequest, PullRequestText, Repository
from tests.databases import open_new
from tests.emulator import World, generate_world
from tests.miner.test_mine import Lab as Facts
from tests.prchain.secrets_table import DRAWN_TOKEN

PULLS = 24
NAME = "acme/widgets"


class SourceLab(Facts):
    """The world, a database, and a source over them. A source's own lab says how it is published, and opens it."""

    asks = True
    """Whether the source knows anything beside git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world: World = generate_world(5, PULLS, git_dir=folder / "r.git")
        self.store: Store = open_new(folder / "prchain.db")
        first, second = self.world.home.pulls[:2]
        self.world.edit_pull(first, body=f"A key: {DRAWN_TOKEN}")
        self.world.edit_pull(second, body=f"Follow-up to {self.url(first.number)}")
        self.cites = (second.number, first.number)
        self.repository = folder / "r.git"
        self.publish()

    def publish(self) -> None:
        """Let the source see the world as it is now."""

    def close(self) -> None:
        """Give back what the lab holds."""
        self.store.close()

    def opened(self, progress: Progress) -> Source[Any]:
        """The source."""
        raise NotImplementedError

    def url(self, number: int) -> str:
        """The address of a pull request."""
        return self.world.home.pulls[0].url.rpartition("/")[0] + f"/{number}"

    def run(self, *, entry: str = NAME, **options: Any) -> RepositoryReport:
        """Mine the world's repository, or what another entry of a list names."""
        with open_progress(stream=io.StringIO()) as progress:
            source = self.opened(progress)
            spec = parse_entry(f"{entry} = {self.repository}", source.forge.host, self.folder)
            miner = Miner(
                self.store,
                MineOptions(**options),
                mirrors=self.folder / "mirrors",
                progress=progress,
                sources=[source],
            )
            return miner.mine(spec)


def mined(lab: SourceLab) -> SourceLab:
    """A lab whose world has been mined once."""
    report = lab.run()
    assert (report.outcome, report.error) == ("mined", None)
    assert (DRAWN_TOKEN not in str(lab.facts())) and (sum(report.replaced.values()) > 0) == lab.asks
    return lab


class SourceConformance:
    """The suite; a module that runs it has the fixture `lab`, which is `mined`."""

    def test_its_forge_names_heads_and_addresses_that_are_found(self, lab: SourceLab) -> None:
        with open_progress(stream=io.StringIO()) as progress:
            forge = lab.opened(progress).forge
        assert forge.pull_heads.count("*") == 1
        heads = GitRepository.open(lab.repository).refs(forge.pull_heads.partition("*")[0].rstrip("/"))
        assert {int(name.split("/")[2]) for name in heads} == {pull.number for pull in lab.world.home.pulls}
        address = lab.url(7)
        found = forge.urls.pattern.search(address)
        assert found and (found["name"], found["number"], found["sha"]) == (NAME, "7", None)
        assert any(hint in address for hint in forge.urls.hints)

    def test_every_pull_request_has_one_settled_outcome(self, lab: SourceLab) -> None:
        outcomes = dict(lab.rows(PullRequest, "number", "outcome"))
        assert outcomes.keys() == {pull.number for pull in lab.world.home.pulls}
        assert set(outcomes.values()) <= set(OUTCOMES) - {"unsettled", "not_selected"}
        states = {pull.number: pull.state.lower() for pull in lab.world.home.pulls}
        for number, outcome in outcomes.items() if lab.asks else ():
            assert outcome == states[number] or outcome in {"landed", "carried", "merged_unlocated"}

    def test_what_merged_has_landed_where_it_did(self, lab: SourceLab) -> None:
        found = {n: (sha, head) for n, sha, head in lab.rows(Landing, "number", "landed_sha", "head_sha")}
        merged = [pull for pull in lab.world.home.pulls if pull.merged and pull.merge_commit]
        assert len(merged) > 5
        assert all(found[p.number] == (p.merge_commit.oid, p.head.oid) for p in merged if p.merge_commit)

    def test_what_it_knows_of_a_pull_request_is_stored(self, lab: SourceLab) -> None:
        known = {n: (node, state) for n, node, state in lab.rows(PullRequest, "number", "node_id", "state")}
        states = {pull.number: pull.state.lower() for pull in lab.world.home.pulls}
        assert {n: state for n, (_, state) in known.items()} == (states if lab.asks else dict.fromkeys(states))
        assert all((node is not None) == lab.asks for node, _ in known.values())
        titles = {
            n: body for n, field, body in lab.rows(PullRequestText, "number", "field", "body") if field == "title"
        }
        assert titles.keys() == (set(states) if lab.asks else set())

    def test_an_address_in_a_text_is_a_citation(self, lab: SourceLab) -> None:
        found = lab.rows(Citation, "source", "target", "field", "syntax", "relation")
        assert ((*lab.cites, "body", "url", "follow_up") in found) == lab.asks
        numbers = {pull.number for pull in lab.world.home.pulls}
        assert {source for source, *_ in found} <= numbers

    def test_a_second_run_changes_nothing(self, lab: SourceLab) -> None:
        lab.run()
        before = lab.facts()
        report = lab.run()
        assert (report.outcome, report.error) == ("unchanged", None)
        assert lab.facts() == before
        assert lab.rows(MineRun, "outcome")[-1] == ("unchanged",)

    def test_the_archive_gives_the_same_rows(self, lab: SourceLab) -> None:
        before = lab.facts(), lab.rows(PullRequestText, "number", "field", "key", "body")
        assert lab.run(from_archive=True).error is None
        assert (lab.facts(), lab.rows(PullRequestText, "number", "field", "key", "body")) == before

    def test_git_alone_keeps_what_the_source_told(self, lab: SourceLab) -> None:
        before = lab.facts()
        assert lab.run(source="git").error is None
        assert lab.facts() == before

    def test_a_repository_is_known_by_its_id(self, lab: SourceLab) -> None:
        with open_progress(stream=io.StringIO()) as progress:
            source = lab.opened(progress)
            [(node_id,)] = lab.rows(Repository, "node_id")
            resolved = source.resolve("acme", "widgets")
            assert (resolved.node_id if resolved else None) == node_id
            assert (source.name_of(node_id or "") == NAME) == lab.asks
            assert source.name_of("none-such") is None
            if lab.asks:
                with pytest.raises(RepositoryNotFound):
                    source.resolve("no", "such")

    def test_only_what_is_selected_is_looked_at(self, lab: SourceLab, tmp_path: Path) -> None:
        store, lab.store = lab.store, open_new(tmp_path / "few.db")
        try:
            assert lab.run(selection=PullRequestSelection(limit=3)).error is None
            outcomes = dict(lab.rows(PullRequest, "number", "outcome"))
        finally:
            lab.store.close()
            lab.store = store
        assert sum(outcome != "not_selected" for outcome in outcomes.values()) == 3

    def test_what_is_new_is_found(self, lab: SourceLab) -> None:
        """Last: it changes the world."""
        third = lab.world.home.pulls[2]
        lab.world.edit_pull(third, body=f"Follow-up to {lab.url(lab.cites[1])}")
        new = lab.world.add_pull(lab.world.home, "One more", "A body", lab.world.account("dev-1"))
        lab.world.sync_git()
        lab.publish()
        report = lab.run()
        assert (report.outcome, report.error) == ("mined", None)
        outcomes = dict(lab.rows(PullRequest, "number", "outcome"))
        assert outcomes[new.number] == ("open" if lab.asks else "unlanded")
        cited = {(source, target) for source, target, field in lab.rows(Citation, "source", "target", "field")}
        assert ((third.number, lab.cites[1]) in cited) or not lab.asks
