"""A small world of rows for tests of the store."""

from __future__ import annotations

from typing import Any

from sql.store import Transaction
from sql.tables import Citation, Landing, PullRequest, Repository

REPOSITORY: dict[str, Any] = {"id": 1, "host": "github.com", "owner": "o", "name": "n", "location": "https://host/o/n"}


def pull_request(number: int, **values: Any) -> dict[str, Any]:
    return {"repository_id": 1, "number": number, "outcome": "landed", **values}


def landing(number: int, branch: str, **values: Any) -> dict[str, Any]:
    return {
        "repository_id": 1,
        "number": number,
        "branch": branch,
        "is_default": branch == "main",
        "style": "squash",
        "base_sha": "b" * 40,
        "landed_sha": f"{number:040d}",
        "head_sha": None,
        "landed_at": "2024-01-01T00:00:00Z",
        "subject": f"subject of {number} on {branch}",
        "position": number,
        "claim": "subject_number",
        "evidence": "same_patch",
        **values,
    }


def citation(source: int, target: int, **values: Any) -> dict[str, Any]:
    return {
        "repository_id": 1,
        "source": source,
        "target": target,
        "relation": "mentions",
        "field": "body",
        "key": "",
        "syntax": "hash",
        "snippet": f"see #{target}",
        "counted": True,
        "reason": None,
        "confidence": 1.0,
        **values,
    }


def fill(tx: Transaction, *, pulls: int = 5, landings: Any = (), citations: Any = ()) -> None:
    tx.upsert(Repository, [REPOSITORY])
    tx.upsert(PullRequest, [pull_request(number) for number in range(1, pulls + 1)])
    tx.upsert(Landing, list(landings))
    tx.upsert(Citation, list(citations))
