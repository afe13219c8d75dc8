"""What samples cost over all purposes: every paid call of the ledger, told to what it was for.

A call is of a trajectory (agent, judge, process reward model ...), of a chain (plan, query, overview, process graphs,
calibrations), or of a repository (repair of an image), as its subject says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import case, func, literal_column, select

from sql.store import Transaction
from sql.tables import LlmCall

_DAY = func.substr(LlmCall.started_at, literal_column("1"), literal_column("10"))
"""Without parameters: PostgreSQL must see that what is told is what is grouped by."""


class Spent(NamedTuple):
    """What calls of one purpose for one subject cost. `usd` is None where the price of one of them is not known."""

    subject: str
    purpose: str
    usd: float | None
    model: str = ""
    day: str = ""
    """On which they began, in UTC."""
    calls: int = 0
    unpriced: int = 0
    """Those of them whose price is not known."""
    known: float = 0.0
    """What the others cost."""
    tokens_in: int = 0
    tokens_out: int = 0


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
    """All paid calls, summed by subject, purpose, model and day. Calls in flight and lost ones count with their
    reservations."""
    amount = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)
    keys = (LlmCall.subject, LlmCall.purpose, LlmCall.model, _DAY)
    query = (
        select(
            *keys,
            func.count(),
            func.sum(case((amount.is_(None), 1), else_=0)),
            func.coalesce(func.sum(amount), 0.0),
            func.coalesce(func.sum(LlmCall.tokens_in), 0),
            func.coalesce(func.sum(LlmCall.tokens_out), 0),
        )
        .where(LlmCall.state != "released")
        .group_by(*keys)
        .order_by(*keys)
    )
    for subject, purpose, model, day, calls, unpriced, usd, tokens_in, tokens_out in tx.connection.execute(query):
        known = float(usd)
        counts = (int(calls), int(unpriced), known, int(tokens_in), int(tokens_out))
        yield Spent(subject, purpose, None if unpriced else known, model, day, *counts)


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
        found = groups_of_subject(spent.subject, trajectories, chains, repositories)
        for name, parts in Counter(found).items():
            groups.setdefault(name, SpentSum()).add(spent, parts / len(found))
        if not found:
            rest.add(spent)
    return groups, rest


def groups_of_subject(
    subject: str,
    trajectories: Mapping[str, str],
    chains: Mapping[str, Sequence[str]],
    repositories: Mapping[str, Sequence[str]],
) -> Sequence[str]:
    """The groups that a call is for, as `shared_out` takes them; none where it is for nothing that they hold. Pure."""
    if subject in repositories:
        return repositories[subject]
    # An id is the beginning of a subject, or stands behind the name of what asked (``replay/``, ``coverage/``).
    for part in subject.split("/")[:2]:
        if part in trajectories:
            return [trajectories[part]]
        if part in chains:
            return chains[part]
    return ()
