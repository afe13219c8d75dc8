"""Each source passes the suite of sources; so does one that is made up, whose code is one module."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from miner.git_alone import GitAlone
from miner.github import GitHubSource
from miner.source import Source
from miner.sources import SOURCES
from miner.sources.github import forge_at
from prchain.core.console.progress import Progress
from tests.emulator import Emulator
from tests.emulator.model import PullRequest
from tests.miner.folder_forge import HOST, FolderSource
from tests.miner.gitworld import git
from tests.miner.source_conformance import NAME, SourceConformance, SourceLab, mined

FORGE = forge_at("github.example")


class GitAloneLab(SourceLab):
    asks = False

    def opened(self, progress: Progress) -> Source[Any]:
        return GitAlone(FORGE, SOURCES["github"], self.store)


class GitHubLab(SourceLab):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.emulator = Emulator(self.world).__enter__()

    def close(self) -> None:
        super().close()
        self.emulator.__exit__(None, None, None)

    def opened(self, progress: Progress) -> Source[Any]:
        return GitHubSource(
            self.store,
            forge=FORGE,
            tokens=("test-token",),
            api_url=self.emulator.api_url,
            max_wait=10,
            timeout=30,
            progress=progress,
            clock=self.emulator.clock,
            sleep=self.emulator.clock.sleep,
        )


class FolderLab(SourceLab):
    def publish(self) -> None:
        self.repository = self.folder / "folder.git"
        if not self.repository.exists():
            git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.repository))
        refs = ("+refs/heads/*:refs/heads/*", "+refs/pull/*/head:refs/merge-requests/*/head")
        git(self.repository, "fetch", "--quiet", str(self.folder / "r.git"), *refs)
        requests = [merge_request(pull) for pull in self.world.home.pulls]
        (self.folder / "projects.json").write_text(json.dumps({NAME: {"id": "77", "merge_requests": requests}}))

    def opened(self, progress: Progress) -> Source[Any]:
        return FolderSource(self.store, self.folder / "projects.json")

    def url(self, number: int) -> str:
        return f"https://{HOST}/{NAME}/-/merge_requests/{number}"


def merge_request(pull: PullRequest) -> dict[str, Any]:
    """A pull request of the world, as the folder's forge has it."""
    return {
        "id": f"mr-{pull.number}",
        "number": pull.number,
        "state": pull.state.lower(),
        "title": pull.title,
        "description": pull.body or "",
        "notes": [{"id": note.full_database_id, "body": note.body or ""} for note in pull.comments],
        "base_branch": pull.base_ref_name,
        "head_branch": pull.head_ref_name,
        "merge_sha": pull.merge_commit.oid if pull.merge_commit else None,
        "created_at": pull.created_at,
        "updated_at": pull.updated_at,
        "closed_at": pull.closed_at,
        "merged_at": pull.merged_at,
    }


@pytest.fixture(scope="module", params=[GitAloneLab, GitHubLab, FolderLab])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceLab]:
    created: SourceLab = request.param(tmp_path_factory.mktemp("source"))
    yield mined(created)
    created.close()


class TestSources(SourceConformance):
    """Of git alone, of an emulated GitHub, and of the forge that does not exist."""
