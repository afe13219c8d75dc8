"""Options for the choice of chains, and the report of one repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from chains.edges.pairs import CITATION, LINEAGE, SOURCES, STACK
from chains.stages.benchmarks import Benchmarks
from chains.stages.filters import Filters
from prchain.core.errors import PrchainError

Strategy = Literal["reference", "lineage", "evidence", "temporal", "single"]


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """Which edges a strategy uses, and how sure it has to be by default."""

    sources: frozenset[str]
    """An edge that none of these knows of is not used; see `chains.edges.pairs.SOURCES`."""
    floor: float
    """The least confidence of an edge."""
    worth: float
    """The least worth of a stage."""


EDGE_RULES: Mapping[str, EdgeRule] = {
    "reference": EdgeRule(frozenset({CITATION, STACK}), 0.7, 0.0),
    "lineage": EdgeRule(frozenset({LINEAGE}), 0.9, 0.5),
    "evidence": EdgeRule(frozenset(SOURCES), 0.9, 0.5),
}
"""Of the strategies that choose by who builds on whom; ``reference`` is the paper's (section 3.1)."""


@dataclass(frozen=True)
class BuildOptions:
    """Options for the choice of chains."""

    strategy: Strategy = "evidence"
    shortest: int = 2
    longest: int = 5
    floor: float | None = None
    """None for the strategy's own; `EDGE_RULES`."""
    worth: float | None = None
    """None for the strategy's own; 0 for strategies without edges."""
    span: float | None = None
    """The most days from the first landing of a chain to its last; None: any."""
    disjoint: bool = True
    reselect: bool = False
    """Choose anew also the chains that have tasks already."""
    side_by_side: bool = False
    """What other strategies made tasks of is free for this one: it freezes and keeps its own chains alone."""
    filters: Filters = field(default_factory=Filters)
    """`Filters.min_worth` is set by `worth`."""
    benchmarks: Benchmarks = field(default_factory=Benchmarks.load)

    @property
    def stage_filters(self) -> Filters:
        """The filters with the worth that a stage needs."""
        rule = self.edge_rule
        return replace(self.filters, min_worth=(rule.worth if rule else self.worth) or 0.0)

    @property
    def edge_rule(self) -> EdgeRule | None:
        """Which edges chains may use; None for a strategy that does not look at who builds on whom."""
        rule = EDGE_RULES.get(self.strategy)
        if rule is None:
            return None
        return EdgeRule(
            rule.sources,
            rule.floor if self.floor is None else self.floor,
            rule.worth if self.worth is None else self.worth,
        )


@dataclass
class BuildReport:
    """The result of one repository."""

    repository: str
    strategy: Strategy = "evidence"
    landed: int = 0
    candidates: Counter[str] = field(default_factory=Counter)
    """Outcome to landed pull requests; their sum is `landed`."""
    edges: Counter[str] = field(default_factory=Counter)
    """Outcome to pairs."""
    sources: Counter[str] = field(default_factory=Counter)
    """Source to pairs that it knows of."""
    relations: Counter[str] = field(default_factory=Counter)
    """Relation to pairs that chains may use."""
    lengths: Counter[int] = field(default_factory=Counter)
    """Length to selected chains."""
    added: int = 0
    kept: int = 0
    frozen: int = 0
    taken: int = 0
    """Pull requests that tasks of other strategies take from this one."""
    gone: int = 0
    """Chains of an earlier run that had no task and were not chosen again."""
    retired: int = 0
    stale: int = 0
    """Frozen chains with a stage whose landing has changed: history was rewritten."""
    benchmark: str | None = None
    """The benchmarks that the repository is part of, where its pull requests were dropped for that."""
    by_api: bool = False
    """Whether GitHub's API was read, which has more citations than git."""
    lineage_error: PrchainError | None = None
    """Why the lineage could not be read, where chains were chosen without."""
    unfinished: bool = False
    """Whether the repository's last run of `prchain mine` did not end well."""
    error: PrchainError | None = None

    @property
    def chains(self) -> int:
        """How many chains are selected."""
        return self.lengths.total()
