"""The bound of a linear programme is above what can be chosen, and near it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from research.optimality import SHAPES, best_total, bounded, first_edges, main
from research.path_bound import upper_bound
from tests.chains.chainworld import NAME, grown, mined


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_that_can_be_chosen_is_above_the_bound(shape: str) -> None:
    rng = random.Random(shape)
    for longest in (2, 3, 5):
        edges = SHAPES[shape](rng, 9)
        best = best_total(edges, 2, longest)
        bound = upper_bound(edges, longest)
        assert best - 1e-6 <= bound <= 1.5 * best + 1e-6
        assert bounded(edges, longest)[0] <= bound + 1e-6


def test_a_path_is_cut_where_it_is_too_long() -> None:
    edges = {(2, 1): 1.0, (3, 2): 1.0, (4, 3): 1.0}
    assert upper_bound(edges, 4) == pytest.approx(3.0)
    assert upper_bound(edges, 2) == pytest.approx(2.0)


def test_a_large_component_is_cut_in_the_order_of_landing() -> None:
    edges = {(2, 1): 1.0, (3, 1): 0.5, (3, 2): 0.5, (9, 3): 1.0}
    assert first_edges(edges, 3) == {(2, 1): 1.0, (3, 1): 0.5, (3, 2): 0.5}
    assert first_edges(edges, 2) == {(2, 1): 1.0}


def test_the_chains_of_a_mined_database_are_held_against_the_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mined(tmp_path, grown(tmp_path)) as store:
        assert main(["--db", str(store.engine.url), "--mirrors", str(tmp_path / "mirrors")]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{NAME}: ") and " of the bound " in first
    assert last.startswith("worst ")
