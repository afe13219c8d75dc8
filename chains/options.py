"""Options for the choice of chains, and the report of one repository."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from chains.stages.benchmarks import Benchmarks
from chains.stages.filters import Filters
from prchain.errors import PrchainError

Strategy = Literal["reference", "temporal", "single"]

FLOOR = 0.7
"""The default for the least confidence of an edge that is used."""


@dataclass(frozen=True)
class BuildOptions:
    """Options for the choice of chains."""

    strategy: Strategy = "reference"
    shortest: int = 2
    longest: int = 5
    floor: float = FLOOR
    disjoint: bool = True
    reselect: bool = False
    """Choose anew also the chains that have tasks already."""
    filters: Filters = field(default_factory=Filters)
    benchmarks: Benchmarks = field(default_factory=Benchmarks.load)


@dataclass
class BuildReport:
    """The result of one repository."""

    repository: str
    strategy: Strategy = "reference"
    landed: int = 0
    candidates: Counter[str] = field(default_factory=Counter)
    """Outcome to landed pull requests; their sum is `landed`."""
    edges: Counter[str] = field(default_factory=Counter)
    """Outcome to pairs."""
    relations: Counter[str] = field(default_factory=Counter)
    """Relation to pairs that chains may use."""
    lengths: Counter[int] = field(default_factory=Counter)
    """Length to selected chains."""
    added: int = 0
    kept: int = 0
    frozen: int = 0
    gone: int = 0
    """Chains of an earlier run that had no task and were not chosen again."""
    retired: int = 0
    stale: int = 0
    """Frozen chains with a stage whose landing has changed: history was rewritten."""
    benchmark: str | None = None
    """The benchmarks that the repository is part of, where its pull requests were dropped for that."""
    by_api: bool = False
    """Whether GitHub's API was read, which has more citations than git."""
    unfinished: bool = False
    """Whether the repository's last run of `prchain mine` did not end well."""
    error: PrchainError | None = None

    @property
    def chains(self) -> int:
        """How many chains are selected."""
        return self.lengths.total()
