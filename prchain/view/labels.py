"""What people say of chains: on a chain's page, and all of it with how far two of them agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sqlalchemy import func, select

from prchain.view.places import FUNNEL, LABELS, chain_page, slug
from sql.chosen import repository_ids
from sql.label_filter import KEEP
from sql.labels import GivenLabel, read_labels
from sql.store import Store, Transaction
from sql.tables import Chain, ChainStage, Landing
from trajectories.studies.guidance.agreement import agreement_of

_ROWS = 100
"""Chains on one page."""
_STAGES = 6
"""Pull requests of a chain that are named on it."""


@dataclass(frozen=True, slots=True)
class LabelledChain:
    """A chain with what people say of it."""

    id: str
    page: str | None
    """None for a chain that is not there any more."""
    stages: tuple[tuple[int, str], ...]
    """Number and subject of its pull requests, of the first ones of a long chain."""
    labels: tuple[GivenLabel, ...]


@dataclass(frozen=True, slots=True)
class LabellerPair:
    """How far two people agree, over the chains that both have labelled."""

    one: str
    other: str
    chains: int
    same: int
    kappa: float | None
    """Cohen's; None where both always say the same one thing."""


@dataclass(frozen=True, slots=True)
class LabelsView:
    """A page of the chains that somebody has labelled."""

    rows: tuple[LabelledChain, ...]
    total: int
    start: int
    pairs: tuple[LabellerPair, ...]
    next: str | None


class LabelPages:
    """The pages below ``labels``. Without `notes` nobody's own words are shown: they may tell of a reference."""

    def __init__(
        self, store: Store, repository: str | None, known: Callable[[str, Callable[[], Any]], Any], *, notes: bool
    ) -> None:
        self._store = store
        self._repository = repository
        self._known = known
        self._notes = notes

    def pages(self) -> Iterator[str]:
        """Their paths."""
        yield from (f"{LABELS}/{name}" for name in self._starts(self._chains()))

    def view(self, name: str) -> tuple[str, Any] | None:
        """Template and value of the page of that name; None where there is none."""
        chains = self._chains()
        start = self._starts(chains).get(name)
        if start is None:
            return None
        following = start + _ROWS
        more = _page(chains[following - 1].id) if following < len(chains) else None
        pairs = pairs_of([label for chain in chains for label in chain.labels])
        with self._store.reading() as tx:
            shown = tuple(replace(it, stages=_stages(tx, it.id)) for it in chains[start:following])
        return "labels", LabelsView(shown, len(chains), start, tuple(pairs), more)

    def of_chain(self, chain_id: str) -> list[GivenLabel]:
        """What people say of one chain."""
        with self._store.reading() as tx:
            return self._shown(read_labels(tx, chain_id))

    def labelled_by(self, labeller: str) -> set[str]:
        """The chains that somebody has labelled."""
        return {it.id for it in self._chains() if any(label.labeller == labeller for label in it.labels)}

    def by_chain(self) -> Mapping[str, Sequence[str]]:
        """The labels of each chain that has some, each once."""
        return {it.id: sorted({label.label for label in it.labels}, reverse=True) for it in self._chains()}

    def _chains(self) -> list[LabelledChain]:
        def read() -> list[LabelledChain]:
            with self._store.reading() as tx:
                there = _there(tx, self._repository)
                found: dict[str, list[GivenLabel]] = {}
                for label in self._shown(read_labels(tx)):
                    if label.chain_id in there or self._repository is None:
                        found.setdefault(label.chain_id, []).append(label)
            return [
                LabelledChain(chain, chain_page(chain) if chain in there else None, (), tuple(labels))
                for chain, labels in found.items()
            ]

        chains: list[LabelledChain] = self._known("labels", read)
        return chains

    def _shown(self, labels: Sequence[GivenLabel]) -> list[GivenLabel]:
        return [label if self._notes else replace(label, note=None) for label in labels]

    @staticmethod
    def _starts(chains: Sequence[LabelledChain]) -> dict[str, int]:
        return {FUNNEL: 0} | {_page(chains[place - 1].id): place for place in range(_ROWS, len(chains), _ROWS)}


def neighbours(chains: Sequence[str], chain: str) -> tuple[str | None, str | None]:
    """The chains before and after one in a list; None where there is none. Pure."""
    if chain not in chains:
        return None, None
    place = chains.index(chain)
    return chains[place - 1] if place else None, chains[place + 1] if place + 1 < len(chains) else None


def next_unlabelled(chains: Sequence[str], chain: str, labelled: Collection[str]) -> str | None:
    """The first chain behind one, from the end on from the beginning, that is not labelled. Pure."""
    place = chains.index(chain) + 1 if chain in chains else 0
    return next((it for it in (*chains[place:], *chains[:place]) if it not in labelled and it != chain), None)


def labelled_chain(path: str) -> str | None:
    """The slug of the chain that a form of the page at this path labels; None for any other path. Pure."""
    found = re.fullmatch(r"chains/([A-Za-z0-9_-]{1,64})/label", path)
    return found[1] if found else None


def pairs_of(labels: Sequence[GivenLabel]) -> Iterator[LabellerPair]:
    """The agreement of every two people who have labelled a chain in common. Pure."""
    said: dict[str, dict[str, bool]] = {}
    for label in labels:
        said.setdefault(label.labeller, {})[label.chain_id] = label.label == KEEP
    for one, other in combinations(sorted(said), 2):
        both = [(said[one][chain], said[other][chain]) for chain in said[one] if chain in said[other]]
        if both:
            found = agreement_of(both)
            same = found.windows - found.only_one - found.only_other
            yield LabellerPair(one, other, found.windows, same, found.kappa)


def _stages(tx: Transaction, chain_id: str) -> tuple[tuple[int, str], ...]:
    query = (
        select(ChainStage.number, func.min(Landing.subject))
        .join(Chain, Chain.id == ChainStage.chain_id)
        .outerjoin(Landing, (Landing.repository_id == Chain.repository_id) & (Landing.number == ChainStage.number))
        .where(ChainStage.chain_id == chain_id)
        .group_by(ChainStage.position, ChainStage.number)
        .order_by(ChainStage.position)
        .limit(_STAGES)
    )
    return tuple((number, str(subject or "")) for number, subject in tx.connection.execute(query))


def _there(tx: Transaction, repository: str | None) -> set[str]:
    wanted = None if repository is None else set(repository_ids(tx, repository))
    return {str(id_) for id_, number in tx.rows(Chain, "id", "repository_id") if wanted is None or number in wanted}


def _page(last: str) -> str:
    return f"after-{slug(last)}.html"
