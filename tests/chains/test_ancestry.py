"""Containment among commits equals reachability, however it is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chains.edges.ancestry import Ancestry


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Rows as `GitRepository.parents` gives them: children before parents."""
    count = draw(st.integers(1, 12))
    rows = []
    for commit in range(count):
        parents = draw(st.lists(st.integers(0, commit - 1), max_size=3, unique=True)) if commit else []
        rows.append((str(commit), *map(str, parents)))
    return rows[::-1]


def reachable(rows: list[tuple[str, ...]], start: str) -> set[str]:
    parents = {row[0]: row[1:] for row in rows}
    visited, waiting = set(), [start]
    while waiting:
        current = waiting.pop()
        if current not in visited:
            visited.add(current)
            waiting.extend(parents[current])
    return visited


@given(histories(), st.booleans())
def test_contains_is_reachability(rows: list[tuple[str, ...]], with_line: bool) -> None:
    ancestry = Ancestry(rows)
    if with_line:
        ancestry.set_first_parent_line(rows[0][0])
    commits = [row[0] for row in rows]
    for commit in commits:
        for other in commits:
            assert ancestry.contains(commit, other) == (other in reachable(rows, commit))


def test_an_unknown_commit_is_contained_nowhere() -> None:
    ancestry = Ancestry([("b", "a"), ("a",)])
    assert not ancestry.contains("b", "x")
    assert not ancestry.contains("x", "a")
