"""What is compared of a proof made anew."""

from __future__ import annotations

from typing import Any

from environments.proofs.proof_rows import ChainProof, StageProof
from environments.suites.outcomes import ClassifiedTests
from research.proofs_again import differences, line


def stage(outcome: str = "proved", **tests: Any) -> StageProof:
    return StageProof(1, outcome, image="i", classes=ClassifiedTests(**tests))


def test_a_test_of_another_class_is_told_and_so_is_another_outcome() -> None:
    before = stage(f2p=("a",), p2p=("b", "c"))
    assert differences(before, stage(f2p=("a",), p2p=("c", "b"))) == []
    assert differences(before, stage(f2p=("b",), p2p=("c",))) == ["a: f2p, then none", "b: p2p, then f2p"]
    assert differences(before, stage("no_f2p", f2p=("a",), p2p=("b", "c"))) == ["proved, then no_f2p: None"]
    chain = ChainProof("c" * 16, "proved", stages=(before,), seconds=4.0)
    assert line(chain, chain, 0, []) == f"{'c' * 16}.1  same tests: 1 f2p, 2 p2p (4 s after 4 s)"
