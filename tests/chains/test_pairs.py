"""What was found of a pair, by its sources."""

from __future__ import annotations

from chains.edges.pairs import ChangedCode, PairEvidence, join_pairs
from chains.history import CountedCitation

CITED = CountedCitation("fixes", "body", "", "fixes #1")
STACKED = CountedCitation("stacked_on", "history", "", "")
CODE = ChangedCode(real_lines=3, source_lines=2, added_lines=9, owners=1)


def test_each_source_is_named_once_and_in_order() -> None:
    assert PairEvidence((CITED, CITED)).sources == ("citation",)
    assert PairEvidence((STACKED,)).sources == ("stack",)
    assert PairEvidence((STACKED, CITED), CODE).sources == ("citation", "stack", "lineage")
    assert PairEvidence().sources == ()


def test_a_pair_that_two_sources_know_is_one_pair() -> None:
    joined = join_pairs({(2, 1): [CITED]}, {(2, 1): CODE, (3, 1): CODE})
    assert joined == {(2, 1): PairEvidence((CITED,), CODE), (3, 1): PairEvidence((), CODE)}


def test_of_two_pieces_of_code_the_larger_counts() -> None:
    larger = ChangedCode(real_lines=8, source_lines=8, added_lines=9, owners=1)
    assert PairEvidence((CITED,), CODE).joined(PairEvidence((STACKED,), larger)) == PairEvidence(
        (CITED, STACKED), larger
    )
    assert PairEvidence().joined(PairEvidence((CITED,))).code is None
