"""A forge that does not exist, as a source of its own: a folder with a JSON file of merge requests beside a repository.

Its heads stand at ``refs/merge-requests/N/head``, and its addresses are none of GitHub's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miner import archive
from miner.archive import Page
from miner.citations.urls import COMMIT, NUMBER, UrlForm
from miner.source import EVERYTHING, ApiUsage, Forge, ReadResult, Resolved, Wanted
from prchain.core.errors import RepositoryNotFound
from prchain.core.secrets.scrub import Counts
from prchain.core.timestamps import now
from sql.store import Store, Transaction
from sql.tables import PullRequest, PullRequestText

HOST = "folder.example"
FORGE = Forge(
    title="Folder",
    host=HOST,
    pull_heads="refs/merge-requests/*/head",
    urls=UrlForm(
        ("/-/",),
        re.compile(
            rf"(?P<redirector>(?!))?{re.escape(HOST)}/(?P<name>[\w.-]+/[\w.-]+)"
            rf"/-/(?:(?:merge_requests|issues)/{NUMBER}|commit/{COMMIT})(?![\w-])",
            re.I | re.A,
        ),
    ),
)
_COLUMNS = ("state", "base_branch", "head_branch", "merge_sha", "created_at", "updated_at", "closed_at", "merged_at")


@dataclass(frozen=True)
class FolderSource:
    """A `miner.source.Source` over ``projects.json``: full name to id and merge requests."""

    store: Store
    file: Path
    forge: Forge = FORGE

    def resolve(self, owner: str, name: str, *, spent: ApiUsage | None = None) -> Resolved | None:
        found = self._projects().get(f"{owner}/{name}")
        if found is None:
            raise RepositoryNotFound(f"{owner}/{name} is no project of {self.file}")
        return Resolved(found["id"], owner, name)

    def name_of(self, node_id: str, *, spent: ApiUsage | None = None) -> str | None:
        return next((name for name, project in self._projects().items() if project["id"] == node_id), None)

    def read(
        self,
        repository_id: int,
        resolved: Resolved,
        wanted: Wanted = EVERYTHING,
        *,
        replaced: Counts | None = None,
        spent: ApiUsage | None = None,
    ) -> ReadResult:
        counts: Counts = Counter() if replaced is None else replaced
        requests = self._projects()[f"{resolved.owner}/{resolved.name}"]["merge_requests"]
        requests = [request for request in requests if not wanted.since or request["updated_at"] >= wanted.since]
        requests = sorted(requests, key=lambda request: int(request["number"]))[-wanted.limit if wanted.limit else 0 :]
        with self.store.transaction() as tx:
            columns = ("number", "updated_at")
            known = {row[0]: row[1] for row in tx.rows(PullRequest, *columns, repository_id=repository_id)}
            changed = [r for r in requests if wanted.rescan or known.get(r["number"]) != r["updated_at"]]
            for request in changed:
                page = Page("merge_requests", {"number": request["number"]}, archive.scrub(request, (), counts))
                _write(tx, repository_id, page.answer)
                archive.keep(tx, repository_id, page, now())
        return ReadResult(bool(changed))

    def replay(self, repository_id: int) -> ReadResult:
        with self.store.transaction() as tx:
            pages = list(archive.stored_pages(tx, repository_id))
            for page in pages:
                _write(tx, repository_id, page.answer)
        return ReadResult(bool(pages))

    def _projects(self) -> dict[str, Any]:
        projects: dict[str, Any] = json.loads(self.file.read_text())
        return projects


def _write(tx: Transaction, repository_id: int, request: dict[str, Any]) -> None:
    key = {"repository_id": repository_id, "number": request["number"]}
    tx.upsert(PullRequest, [{**key, "node_id": request["id"], **{name: request[name] for name in _COLUMNS}}])
    tx.delete(PullRequestText, **key)
    texts = [("title", "", request["title"]), ("body", "", request["description"])]
    texts += [("comment", note["id"], note["body"]) for note in request["notes"]]
    tx.bulk(
        PullRequestText,
        ("repository_id", "number", "field", "key", "body"),
        [(repository_id, request["number"], field, name, body) for field, name, body in texts if body],
    )
