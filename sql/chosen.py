"""Chains as every stage looks for them: by the strategy that chose them, their repository, or the start of an id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import select

from prchain.core.cli_options import SURVEYED
from prchain.core.errors import UsageError
from sql.outcomes import SELECTED
from sql.store import Transaction
from sql.tables import Chain, ChainBuild, Repository, Selection

LAST = "last"
"""In place of a strategy: the one that `prchain chains build` was last run with."""

_FIRST = "evidence"
"""What `LAST` means in a database without chains."""


@dataclass(frozen=True)
class ChainChoice:
    """Which chains a run is about."""

    strategy: str = LAST
    repository: str | None = None
    """``owner/name``."""
    limit: int | None = None
    """The best so many."""
    chain: str | None = None
    """The one chain whose id begins so."""


@dataclass(frozen=True, slots=True)
class ChainUnit:
    """One chain as what a run works on (`prchain.core.runs.Unit`)."""

    chain_id: str

    @property
    def key(self) -> str:
        """The chain's id."""
        return self.chain_id

    @property
    def group(self) -> str:
        """The chain's id: chains share no fault of their own."""
        return self.chain_id


def resolved(tx: Transaction, strategy: str) -> str:
    """The strategy itself, or what `LAST` stands for."""
    if strategy != LAST:
        return strategy
    builds = [(serial, str(name)) for serial, name in tx.rows(ChainBuild, "serial", "strategy")]
    if builds:
        return max(builds)[1]
    # Chains that nobody built here: a database that was put together by hand.
    chosen = Counter(str(name) for (name,) in tx.rows(Selection, "strategy") if name != SURVEYED)
    return chosen.most_common(1)[0][0] if chosen else _FIRST


def selected_ids(tx: Transaction, strategy: str, repository: str | None = None, limit: int | None = None) -> list[str]:
    """The ids of the chains that a strategy chose, best first; of one repository (``owner/name``), the first `limit`.

    Raises `UsageError` for a repository that was not mined.
    """
    query = (
        select(Chain.id)
        .join(Selection, Selection.chain_id == Chain.id)
        .where(Selection.strategy == resolved(tx, strategy), Selection.outcome == SELECTED)
        .order_by(Selection.score.desc(), Chain.id)
        .limit(limit)
    )
    if repository is not None:
        query = query.where(Chain.repository_id.in_(repository_ids(tx, repository)))
    return [str(chain_id) for (chain_id,) in tx.connection.execute(query)]


def repository_ids(tx: Transaction, full_name: str) -> list[int]:
    """The ids of the mined repositories of that name, one for each host. Raises `UsageError` where there is none."""
    rows = tx.rows(Repository, "id", "owner", "name")
    found = [
        int(repository_id) for repository_id, owner, name in rows if f"{owner}/{name}".lower() == full_name.lower()
    ]
    if not found:
        raise UsageError(f"{full_name} has not been mined into this database; `prchain status` lists what has")
    return found


def find_chain(tx: Transaction, prefix: str) -> str:
    """The id of the one chain whose id begins with `prefix`. Raises `UsageError`."""
    id_prefix = prefix.strip().lower()
    query = select(Chain.id).where(Chain.id.startswith(id_prefix, autoescape=True)).order_by(Chain.id).limit(2)
    found = [str(chain_id) for (chain_id,) in tx.connection.execute(query)] if id_prefix else []
    if not found:
        raise UsageError(f"no chain's id begins with {prefix!r}; `prchain chains list` lists them")
    if len(found) > 1:
        raise UsageError(f"several chains' ids begin with {prefix}; write more of it")
    return found[0]
