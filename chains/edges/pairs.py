"""What was found of a pair of landed pull requests: who says that one builds on the other, whose code it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chains.history import CountedCitation
from sql.store import Transaction
from sql.tables import Lineage, LineageLanding

CITATION = "citation"
STACK = "stack"
LINEAGE = "lineage"
SOURCES = (CITATION, STACK, LINEAGE)
"""Where it is known from that one pull request builds on another: it says so; it was begun on the other's branch; it
changes the other's code. In the order in which they are told."""

STACKED_ON = "stacked_on"


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """The code of the earlier pull request that the later one changes; as in table `lineage`."""

    real_lines: int
    source_lines: int
    """Of the real ones, those of source files."""
    added_lines: int
    """Real lines that the later one adds in all."""
    owners: int
    """How many pull requests' lines the later one meets in all."""
    functions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Everything that was found of one pair."""

    citations: tuple[CountedCitation, ...] = ()
    code: ChangedCode | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Those of `SOURCES` that know of the pair."""
        stacked = sum(citation.relation == STACKED_ON for citation in self.citations)
        known = {CITATION: len(self.citations) > stacked, STACK: stacked > 0, LINEAGE: self.code is not None}
        return tuple(source for source in SOURCES if known[source])

    def joined(self, other: PairEvidence) -> PairEvidence:
        """The evidence of both; of two pieces of code the larger."""
        codes = [code for code in (self.code, other.code) if code is not None]
        return PairEvidence(
            (*self.citations, *other.citations), max(codes, key=lambda code: code.real_lines, default=None)
        )


Pairs = Mapping[tuple[int, int], PairEvidence]
"""By (later, earlier) number."""


def join_pairs(
    citations: Mapping[tuple[int, int], Sequence[CountedCitation]], code: Mapping[tuple[int, int], ChangedCode]
) -> dict[tuple[int, int], PairEvidence]:
    """One piece of evidence a pair."""
    return {pair: PairEvidence(tuple(citations.get(pair, ())), code.get(pair)) for pair in {**citations, **code}}


def read_changed_code(tx: Transaction, repository_id: int) -> dict[tuple[int, int], ChangedCode]:
    """The pairs of a repository's lineage, as the last walk left them."""
    landings = tx.rows(LineageLanding, "number", "real_added", "owners", repository_id=repository_id)
    later_facts = {number: (added, owners) for number, added, owners in landings}
    columns = ("later", "earlier", "real_lines", "source_lines", "functions", "names")
    found = {}
    for later, earlier, real, source, functions, names in tx.rows(Lineage, *columns, repository_id=repository_id):
        added, owners = later_facts[later]
        found[later, earlier] = ChangedCode(
            real,
            source,
            added,
            owners,
            tuple(functions),
            tuple(names),
        )
    return found
