"""Draws chains to read, and prints what a reader needs to judge them: texts and patches."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from chains.chain_report import ChainStageReport, ListedChain, chain_report, find_chains
from prchain.core.code.reference import split
from prchain.core.git import GitRepository, open_mined, parse_patch
from sql.store import Store
from sql.tables import Commit, PullRequestCommit, Repository

_PATCH_LIMIT = 6000
"""Characters of a stage's source patch that are shown; git has the rest."""


def draw(store: Store, seed: int, per_repository: int) -> list[ListedChain]:
    """`per_repository` chains of each repository, the same for the same chains and seed."""
    by_repository: dict[str, list[ListedChain]] = defaultdict(list)
    for row in sorted(find_chains(store, "reference"), key=lambda row: row.id):
        by_repository[row.repository].append(row)
    generator = random.Random(seed)
    return [
        row
        for repository in sorted(by_repository, key=str.lower)
        for row in generator.sample(by_repository[repository], min(per_repository, len(by_repository[repository])))
    ]


def sheet(store: Store, chain: str, mirrors: Path) -> str:
    """One chain as a page of text, without the signs of its edges."""
    page = chain_report(store, chain)
    with store.reading() as tx:
        rows = tx.rows(Repository, "id", "host", "owner", "name", "location")
        row_found = next(row for row in rows if f"{row[2]}/{row[3]}" == page.repository)
        repository = open_mined(row_found[4], mirrors, row_found[1], page.repository)
        lines = [f"# chain {chain}  {page.repository}"]
        for stage in page.stages:
            lines += ["", f"## stage {stage.position}: #{stage.number}, {stage.landed_at}", ""]
            lines += _texts(tx, row_found[0], stage)
            lines += ["", "```diff", _patch(repository, stage), "```"]
    return "\n".join(lines) + "\n"


def _texts(tx: Any, repository_id: int, stage: ChainStageReport) -> list[str]:
    shas = [stage.landed_sha]
    shas += [row[0] for row in tx.rows(PullRequestCommit, "sha", repository_id=repository_id, number=stage.number)]
    messages = dict.fromkeys(
        row[0].strip()
        for sha in dict.fromkeys(shas[:12])
        for row in tx.rows(Commit, "message", repository_id=repository_id, sha=sha)
    )
    return ["\n".join(f"> {line}" for line in message[:1500].splitlines()) + "\n" for message in messages]


def _patch(repository: GitRepository, stage: ChainStageReport) -> str:
    text = repository.patch_text(stage.base_sha, stage.landed_sha).decode("utf-8", "replace")
    reference = split(parse_patch(text))
    paths = [file.path for file in reference.code]
    source = repository.patch_text(stage.base_sha, stage.landed_sha, paths).decode("utf-8", "replace")
    others = ", ".join(path for path in reference.paths if path not in paths)
    cut = f"\n... {len(source) - _PATCH_LIMIT:,} more characters" if len(source) > _PATCH_LIMIT else ""
    return source[:_PATCH_LIMIT] + cut + (f"\n(also changed: {others[:600]})" if others else "")
