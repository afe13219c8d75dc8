"""What a mined repository is called: names change, go to other repositories, and come back.

The id that its forge gave it says which repository it is. Its row follows a rename, and everything of it is kept under
one name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import delete, func, select, update

from prchain.core.git import mirror_path
from sql.store import Transaction
from sql.tables import ClosingReference, Issue, PullRequest, Repository, RepositoryAlias, TimelineEvent


def full_name(tx: Transaction, repository_id: int) -> str:
    """``owner/name`` of a repository that has a row."""
    [(owner, name)] = tx.rows(Repository, "owner", "name", id=repository_id)
    return f"{owner}/{name}"


def holder(tx: Transaction, host: str, name: str) -> tuple[int, str | None] | None:
    """Row id and node id of the repository that has the name, in any case."""
    rows = tx.rows(Repository, "id", "node_id", "owner", "name", host=host)
    return next(((i, node_id) for i, node_id, o, n in rows if f"{o}/{n}".lower() == name.lower()), None)


def find(tx: Transaction, host: str, name: str, node_id: str | None = None) -> tuple[int, str, str] | None:
    """Row id, owner and name of the repository that is meant: by the forge's id, by name in any case, or by an alias.

    One that has the name, but another id, is another one. An id is not looked for among aliases, which the
    forge followed.
    """
    rows = list(tx.rows(Repository, "id", "owner", "name", "node_id", host=host))
    by_id = [row for row in rows if node_id and row[3] == node_id]
    named = [row for row in rows if f"{row[1]}/{row[2]}".lower() == name.lower()]
    by_name = [row for row in named if not node_id or row[3] in (None, node_id)]
    aliases = () if node_id else tx.rows(RepositoryAlias, "repository_id", alias=name.lower())
    aliased = {repository_id for (repository_id,) in aliases}
    by_alias = [row for row in rows if row[0] in aliased]
    return next(((i, owner, own_name) for i, owner, own_name, _ in [*by_id, *by_name, *by_alias]), None)


def rename(tx: Transaction, repository_id: int, new: str) -> None:
    """Give a repository another name. Its old one becomes an alias; a row that has the new name gives way."""
    old = full_name(tx, repository_id)
    if old == new:
        return
    [(host,)] = tx.rows(Repository, "host", id=repository_id)
    other = holder(tx, host, new)
    if other is not None and other[0] != repository_id:
        rename(tx, other[0], former(new, other[0]))
    owner, _, name = new.partition("/")
    tx.connection.execute(update(Repository).where(Repository.id == repository_id).values(owner=owner, name=name))
    add_alias(tx, repository_id, old)
    rewrite(tx, repository_id, old, new)


def former(name: str, repository_id: int) -> str:
    """What a repository is called here that has lost its name and, as far as is known, has no other: ``o/r~3``.

    No forge allows a tilde in a name.
    """
    return f"{name}~{repository_id}"


def add_alias(tx: Transaction, repository_id: int, alias: str) -> None:
    """Note another name that the forge resolved to the repository."""
    if alias.lower() != full_name(tx, repository_id).lower():
        row = {"repository_id": repository_id, "alias": alias.lower(), "evidence": "api"}
        tx.insert_new(RepositoryAlias, [row])


def rewrite(tx: Transaction, repository_id: int, old: str, new: str) -> None:
    """Write what a repository's rows say of itself under its new name: no issue is there twice, under two names."""

    def is_old(column: Any) -> Any:
        return (func.lower(column) == old.lower()) & (column != new)

    issues, closings = Issue.__table__.c, ClosingReference.__table__.c
    old_issues = (issues.repository_id == repository_id) & is_old(issues.issue_repository)
    old_closings = (closings.repository_id == repository_id) & is_old(closings.issue_repository)
    for table, condition in ((Issue, old_issues), (ClosingReference, old_closings)):
        rows = tx.connection.execute(select(table.__table__).where(condition)).mappings().all()
        tx.insert_new(table, [{**row, "issue_repository": new} for row in rows])
    tx.connection.execute(delete(ClosingReference).where(old_closings))
    tx.connection.execute(delete(Issue).where(old_issues))
    for column in (TimelineEvent.other_repository, PullRequest.head_repository):
        own = column.class_.repository_id == repository_id
        tx.connection.execute(update(column.class_).where(own, is_old(column)).values({column.key: new}))


def move_mirror(mirrors: Path, host: str, old: str, new: str) -> None:
    """Let a repository's mirror, and what was made from it, follow its name; a place that is taken is left alone."""
    was, becomes = mirror_path(mirrors, host, old), mirror_path(mirrors, host, new)
    for suffix in (".git", ".lineage"):
        source, target = was.with_suffix(suffix), becomes.with_suffix(suffix)
        if source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
