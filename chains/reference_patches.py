"""The reference patches of a chain's stages as git prints them, for the pages of chains and tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import select

from prchain.core.console.terminal import say, say_content
from prchain.core.errors import UsageError
from prchain.core.git import open_mined
from prchain.core.git.patches import patch_fields
from sql.store import Store
from sql.tables import Chain, ImportedTask, Repository

_T = TypeVar("_T")


class Landed(Protocol):
    """A stage in a report."""

    @property
    def base_sha(self) -> str: ...

    @property
    def landed_sha(self) -> str: ...


def reference_patches(store: Store, chain_id: str, stages: Iterable[Landed], mirrors: Path) -> list[bytes]:
    """The patch of each stage of a chain, from its base to its landed commit.

    Raises `GitError` where the repository cannot be read, and `UsageError` for an import without one.
    """
    query = (
        select(Repository.host, Repository.owner, Repository.name, Repository.location, ImportedTask.location)
        .join(Chain, Chain.repository_id == Repository.id)
        .outerjoin(ImportedTask, ImportedTask.chain_id == Chain.id)
        .where(Chain.id == chain_id)
    )
    with store.reading() as tx:
        host, owner, name, mined, own = tx.connection.execute(query).one()
    found = list(stages)
    if not own and not all(stage.landed_sha for stage in found):
        raise UsageError(f"chain {chain_id} was imported without a repository; `prchain tasks import` takes it again")
    git = open_mined(own or mined, mirrors, host, f"{owner}/{name}")
    return [git.patch_text(stage.base_sha, stage.landed_sha) for stage in found]


def with_reference(kind: type[_T], stage: Any, patch: bytes) -> _T:
    """The stage of a report as `kind`, a report that has its reference patch too."""
    known = {it.name: getattr(stage, it.name) for it in fields(stage)}
    return kind(**known, **patch_fields("reference", patch))


def print_reference(position: int, number: int, patch: bytes) -> None:
    """Print a stage's reference patch below a heading, which git and patch(1) pass over."""
    say()
    say(f"reference of stage {position}, #{number}:")
    say_content(patch)
