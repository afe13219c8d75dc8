"""What samples cost over all purposes: every paid call of the ledger, told to what it was for.

A call is of a trajectory (agent, judge, process reward model ...), of a chain (plan, query, overview, process graphs,
calibrations), or of a repository (repair of an image), as its subject says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import case, func, select

from sql.store import Transaction
from sql.tables import LlmCall


class Spent(NamedTuple):
    """What calls of one purpose for one subject cost. `usd` is None where the price of one of them is not known."""

    subject: str
    purpose: str
    usd: float | None


@dataclass(slots=True)
class SpentSum:
    """USD by purpose; a purpose with an unknown price makes the sum unknown."""

    purposes: dict[str, float] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)

    def add(self, spent: Spent, share: float = 1.0) -> None:
        """Add a share of a cost."""
        if spent.usd is None:
            self.unpriced.add(spent.purpose)
        else:
            self.purposes[spent.purpose] = self.purposes.get(spent.purpose, 0.0) + spent.usd * share

    @property
    def usd(self) -> float | None:
        """The sum; None where a price is not known."""
        return None if self.unpriced else sum(self.purposes.values(), 0.0)

    def row(self, samples: int) -> dict[str, object]:
        """As JSON values; `samples` is how many samples came of it."""
        total = self.usd
        names = sorted({*self.purposes, *self.unpriced})
        return {
            "usd": None if total is None else round(total, 6),
            "usd_per_sample": None if total is None or not samples else round(total / samples, 6),
            "by_purpose": {name: None if name in self.unpriced else round(self.purposes[name], 6) for name in names},
        }


def all_spent(tx: Transaction) -> Iterator[Spent]:
    """All paid calls, summed by subject and purpose. Calls in flight and lost ones count with their reservations."""
    amount = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)
    query = (
        select(LlmCall.subject, LlmCall.purpose, func.sum(amount), func.sum(case((amount.is_(None), 1), else_=0)))
        .where(LlmCall.state != "released")
        .group_by(LlmCall.subject, LlmCall.purpose)
        .order_by(LlmCall.subject, LlmCall.purpose)
    )
    for subject, purpose, usd, unpriced in tx.connection.execute(query):
        yield Spent(subject, purpose, None if unpriced else float(usd))


def shared_out(
    costs: Iterator[Spent],
    trajectories: Mapping[str, str],
    chains: Mapping[str, Sequence[str]],
    repositories: Mapping[str, Sequence[str]],
) -> tuple[dict[str, SpentSum], SpentSum]:
    """The costs of each group, and of what no group had a part in; together they are all costs.

    `trajectories` has the group of each trajectory by id; `chains` and `repositories` (``owner/name``) have the groups
    that a cost of theirs is for, each as often as it has a part in it: groups share it by these parts.
    """
    groups: dict[str, SpentSum] = {}
    rest = SpentSum()
    for spent in costs:
        found = _groups_of(spent.subject, trajectories, chains, repositories)
        for name, parts in Counter(found).items():
            groups.setdefault(name, SpentSum()).add(spent, parts / len(found))
        if not found:
            rest.add(spent)
    return groups, rest


def _groups_of(
    subject: str,
    trajectories: Mapping[str, str],
    chains: Mapping[str, Sequence[str]],
    repositories: Mapping[str, Sequence[str]],
) -> Sequence[str]:
    if subject in repositories:
        return repositories[subject]
    # An id is the beginning of a subject, or stands behind the name of what asked (``replay/``, ``coverage/``).
    for part in subject.split("/")[:2]:
        if part in trajectories:
            return [trajectories[part]]
        if part in chains:
            return chains[part]
    return ()
