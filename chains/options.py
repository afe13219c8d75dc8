"""How chains are to be chosen, and what became of one repository."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from chains.stages.benchmarks import Benchmarks
from chains.stages.filters import Filters
from prchain.errors import PrchainError

Strategy = Literal["reference", "temporal", "single"]

FLOOR = 0.7
"""An edge of less confidence is not used unless asked for."""


@dataclass(frozen=True)
class BuildOptions:
    """How chains are to be chosen."""

    strategy: Strategy = "reference"
    shortest: int = 2
    longest: int = 5
    floor: float = FLOOR
    disjoint: bool = True
    reselect: bool = False
    """Choose anew also what has tasks already."""
    filters: Filters = field(default_factory=Filters)
    benchmarks: Benchmarks = field(default_factory=Benchmarks.load)


@dataclass
class BuildReport:
    """What one repository came to."""

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
    """Frozen chains of which some stage is no longer landed as it was: history was rewritten."""
    benchmark: str | None = None
    """The benchmarks that the repository is part of, where that dropped its pull requests."""
    by_api: bool = False
    """Whether GitHub's API was read, too, which knows of more citations than git does."""
    unfinished: bool = False
    """Whether the repository's last run of `prchain mine` has not ended well."""
    error: PrchainError | None = None

    @property
    def chains(self) -> int:
        """How many chains stand selected."""
        return self.lengths.total()
