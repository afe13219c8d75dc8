"""The pages of money: what was spent by purpose, model, day and outcome, and what each sample cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from prchain.view.places import FUNNEL, MONEY, chain_page, slug, trajectory_page
from prchain.view.shown import ORDER
from sql.chosen import repository_ids
from sql.store import Store, Transaction
from sql.tables import Chain, GraphRow, Repository, Trajectory
from trajectories.extensions import not_extended
from trajectories.outcomes import KEPT
from trajectories.studies.statistics.spent import Spent, all_spent, groups_of_subject
from trajectories.studies.statistics.stats import UNTOLD
from trajectories.sums import price_sources

_ROWS = 100
"""Samples on one page."""

FOR_CHAINS = "for chains: tasks, process graphs and the like"
FOR_REPOSITORIES = "for repositories"
FOR_NOTHING = "for nothing that is still here"
"""Among the outcomes of trajectories: what was asked for something else."""


@dataclass(frozen=True, slots=True)
class MoneyLine:
    """A sum over calls."""

    name: str
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None
    """None where the price of one of them is not known."""
    known: float
    unpriced: int
    share: float
    """Of all known cost, in percent."""


@dataclass(frozen=True, slots=True)
class SampleCost:
    """What one sample cost. The sums of all samples are all that was spent."""

    id: str
    page: str | None
    chain: str
    chain_page: str
    model: str
    outcome: str
    own: float | None
    """Of its own calls; None, as the others, where a price is not known."""
    of_chain: float | None
    """Its share of what else was spent on its chain: the task, and rollouts that came to no sample."""
    of_others: float | None
    """Its share of what was spent where no sample came of it."""
    whole: float | None
    """All three."""


@dataclass(frozen=True, slots=True)
class MoneyView:
    """What was spent."""

    whole: MoneyLine
    tables: tuple[tuple[str, str, tuple[MoneyLine, ...]], ...]
    """What sums are by, the heading of names, and the sums."""
    sources: tuple[Mapping[str, Any], ...]
    """Where prices are from; of all repositories."""
    samples: int
    usd_per_sample: float | None


@dataclass(frozen=True, slots=True)
class CostsView:
    """The samples of one page with what they cost."""

    rows: tuple[SampleCost, ...]
    total: int
    start: int
    next: str | None


@dataclass(frozen=True, slots=True)
class LedgerSpending:
    """What is in the ledger, and what it was for."""

    spent: tuple[Spent, ...]
    samples: tuple[tuple[str, str, str, str], ...]
    """Id, chain, model and outcome of each sample, in the order of lists."""
    outcomes: Mapping[str, str]
    """Of all trajectories by id."""
    chain_of: Mapping[str, str]
    """Trajectory or process graph to its chain."""
    chains: frozenset[str]
    repositories: frozenset[str]
    sources: tuple[Mapping[str, Any], ...]


class MoneyPages:
    """The pages below ``money``; `known` keeps what was read, where a view is written at once."""

    def __init__(
        self,
        store: Store,
        repository: str | None,
        shown: Callable[[], frozenset[str] | None],
        known: Callable[[str, Callable[[], Any]], Any],
    ) -> None:
        self._store = store
        self._repository = repository
        self._shown = shown
        self._known = known

    def pages(self) -> Iterator[str]:
        """Their paths."""
        yield f"{MONEY}/{FUNNEL}"
        yield from (f"{MONEY}/{name}" for name in _starts(self._spending()))

    def view(self, name: str) -> tuple[str, Any] | None:
        """Template and value of the page of that name; None where there is none."""
        if name == FUNNEL:
            return "money", money_view(self._spending())
        if not re.fullmatch(r"samples(?:-after-[A-Za-z0-9_-]+)?\.html", name):
            return None
        spending = self._spending()
        start = _starts(spending).get(name)
        if start is None:
            return None
        costs: list[SampleCost] = self._known("costs", lambda: sample_costs(spending, self._shown()))
        following = start + _ROWS
        more = _page(costs[following - 1].id) if following < len(costs) else None
        return "costs", CostsView(tuple(costs[start:following]), len(costs), start, more)

    def _spending(self) -> LedgerSpending:
        def read() -> LedgerSpending:
            with self._store.reading() as tx:
                return read_spending(tx, self._repository)

        found: LedgerSpending = self._known("spending", read)
        return found


def read_spending(tx: Transaction, repository: str | None = None) -> LedgerSpending:
    """The ledger; of one repository (``owner/name``) what was asked for it, its chains and their trajectories. Raises
    `UsageError` for one that was not mined."""
    wanted = None if repository is None else set(repository_ids(tx, repository))
    names = {
        f"{owner}/{name}"
        for number, owner, name in tx.rows(Repository, "id", "owner", "name")
        if wanted is None or number in wanted
    }
    chains = {
        str(chain) for chain, number in tx.rows(Chain, "id", "repository_id") if wanted is None or number in wanted
    }
    rows = [
        (str(id_), chain, str(model), str(outcome))
        for id_, chain, model, outcome in tx.rows(Trajectory, "id", "chain_id", "model", "outcome")
        if wanted is None or chain in chains
    ]
    outcomes = {id_: outcome for id_, _, _, outcome in rows}
    chain_of = {id_: str(chain) for id_, chain, _, _ in rows if chain is not None}
    graphs = {str(graph): str(chain) for graph, chain in tx.rows(GraphRow, "id", "chain_id") if chain in chains}
    kept = (
        select(Trajectory.id, Trajectory.chain_id, Trajectory.model, Trajectory.outcome)
        .where(UNTOLD, not_extended(), Trajectory.outcome.in_(sorted(KEPT)))
        .order_by(*ORDER)
    )
    samples = tuple(
        (str(id_), str(chain), str(model), str(outcome))
        for id_, chain, model, outcome in tx.connection.execute(kept)
        if chain in chains
    )
    found = LedgerSpending((), samples, outcomes, {**chain_of, **graphs}, frozenset(chains), frozenset(names), ())
    spent = (it for it in all_spent(tx) if wanted is None or _for(it.subject, found) != FOR_NOTHING)
    return LedgerSpending(
        tuple(spent), samples, outcomes, found.chain_of, found.chains, found.repositories, tuple(price_sources(tx))
    )


def _for(subject: str, of: LedgerSpending) -> str:
    """The outcome of the trajectory that a call is of, or what else it is for."""
    chains = {part: (FOR_CHAINS,) for part in subject.split("/")[:2] if part in of.chains or part in of.chain_of}
    repositories = {subject: (FOR_REPOSITORIES,)} if subject in of.repositories else {}
    groups = groups_of_subject(subject, of.outcomes, chains, repositories)
    return groups[0] if groups else FOR_NOTHING


def money_view(of: LedgerSpending) -> MoneyView:
    """What was spent, summed. Pure."""
    whole = sum(it.known for it in of.spent)
    keys: Sequence[tuple[str, str, Callable[[Spent], str]]] = (
        ("By purpose", "Purpose", lambda it: it.purpose),
        ("By model", "Model", lambda it: it.model),
        ("By outcome", "What it was for, or how the trajectory ended", lambda it: _for(it.subject, of)),
        ("By day", "Day, UTC", lambda it: it.day),
    )
    tables = tuple((title, head, _lines(of.spent, key, whole, by_name=title == "By day")) for title, head, key in keys)
    line = _line("all", of.spent, whole)
    per_sample = None if line.usd is None or not of.samples else line.usd / len(of.samples)
    return MoneyView(line, tables, of.sources, len(of.samples), per_sample)


def _lines(
    spent: Iterable[Spent], key: Callable[[Spent], str], whole: float, *, by_name: bool
) -> tuple[MoneyLine, ...]:
    groups: dict[str, list[Spent]] = {}
    for it in spent:
        groups.setdefault(key(it), []).append(it)
    lines = [_line(name, found, whole) for name, found in groups.items()]
    return tuple(sorted(lines, key=lambda it: it.name if by_name else (-it.known, it.name)))


def _line(name: str, spent: Sequence[Spent], whole: float) -> MoneyLine:
    known, unpriced = sum(it.known for it in spent), sum(it.unpriced for it in spent)
    return MoneyLine(
        name,
        sum(it.calls for it in spent),
        sum(it.tokens_in for it in spent),
        sum(it.tokens_out for it in spent),
        None if unpriced else known,
        known,
        unpriced,
        round(100 * known / whole, 3) if whole else 0.0,
    )


def sample_costs(of: LedgerSpending, shown: frozenset[str] | None) -> list[SampleCost]:
    """What each sample cost, in the order of lists; `shown` are the trajectories that have pages. Pure."""
    samples = {id_ for id_, _, _, _ in of.samples}
    in_chain = Counter(chain for _, chain, _, _ in of.samples)
    own: dict[str, float | None] = {}
    chains: dict[str, float | None] = {}
    rest: float | None = 0.0
    for it in of.spent:
        parts = it.subject.split("/")[:2]
        sample = next((part for part in parts if part in samples), None)
        chain = next((of.chain_of.get(part, part) for part in parts if part in of.chain_of or part in of.chains), None)
        if sample is not None:
            own[sample] = _plus(own.get(sample, 0.0), it.usd)
        elif chain is not None and in_chain[chain]:
            chains[chain] = _plus(chains.get(chain, 0.0), it.usd)
        else:
            rest = _plus(rest, it.usd)
    found = []
    for id_, chain, model, outcome in of.samples:
        page = trajectory_page(id_) if shown is None or id_ in shown else None
        paid = own.get(id_, 0.0)
        of_chain, of_others = _part(chains.get(chain, 0.0), in_chain[chain]), _part(rest, len(of.samples))
        whole = _plus(_plus(paid, of_chain), of_others)
        found.append(SampleCost(id_, page, chain, chain_page(chain), model, outcome, paid, of_chain, of_others, whole))
    return found


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _part(whole: float | None, parts: int) -> float | None:
    return None if whole is None else whole / parts


def _starts(of: LedgerSpending) -> dict[str, int]:
    """The pages of samples, and how many samples stand before each."""
    later = {_page(of.samples[place - 1][0]): place for place in range(_ROWS, len(of.samples), _ROWS)}
    return {"samples.html": 0} | later


def _page(last: str) -> str:
    return f"samples-after-{slug(last)}.html"
