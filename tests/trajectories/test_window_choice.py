"""Progress in a process graph, and the choice among a window's candidates: the worked example of P2T (appendix I,
window 22), properties, and brute force."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import UsageError
from trajectories.curation.graphs.graph import Prerequisite, ProcessGraph
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.windows.options import WindowOptions
from trajectories.curation.windows.progress import Premature, Standing, advanced, open_nodes, window_start
from trajectories.curation.windows.selection import (
    CommitRule,
    FloorRule,
    FloorUnit,
    HowChosen,
    ScoredCandidate,
    choose,
    non_dominated,
)


def graph_of(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> ProcessGraph:
    """A graph of facts with these edges."""
    action = Action(ActionTool.BASH, command="true")
    nodes = tuple(Node(name, NodeKind.STATIC_FACT, f"fact {name}", action) for name in names)
    return ProcessGraph(nodes, tuple(Prerequisite(*edge, "name") for edge in edges))


FIGURE_5 = graph_of(
    ["f1", "f2", "f3", "f4", "f5", "f6", "f8", "f9", "f10", "f11", "repro1"],
    [
        *[("f1", "f11"), ("f2", "f3"), ("f2", "f5"), ("f2", "f8"), ("f3", "f4"), ("f3", "f10"), ("f8", "f9")],
        ("f5", "f6"),
    ],
)
U_22 = Standing(frozenset({"f1", "repro1", "f2"}))


def walked(steps: Sequence[set[str]], premature: Premature = Premature.DEFER) -> tuple[Standing, list[float], int]:
    """The standing after these steps from window 22 on, Prog of each, and the nodes that count."""
    standing, shares, count = U_22, [], 0
    for found in steps:
        standing, step = advanced(FIGURE_5, standing, found, premature)
        shares.append(step.progress)
        count += len(step.counted)
    return standing, shares, count


SEED_0 = [set[str](), set(), {"f8", "f9"}]
SEED_1 = [{"f11"}, {"f5"}]
ON_SEED_0 = [{"f3"}, {"f4"}, {"f10"}]
ON_SEED_1 = [{"f3"}, {"f8"}, {"f9"}]
LENGTHS = {0: 4_700, 1: 8_700, 2: 4_300, 3: 5_400}


def test_the_papers_window_begins_with_the_papers_frontier() -> None:
    assert open_nodes(FIGURE_5, U_22) == {"f3", "f5", "f8", "f11"}


@pytest.mark.parametrize(
    ("steps", "shares"),
    [
        (SEED_0, [0, 0, 1 / 4]),
        (SEED_1, [1 / 4, 1 / 3]),
        (ON_SEED_0, [1 / 4, 1 / 5, 1 / 4]),
        (ON_SEED_1, [1 / 4, 1 / 5, 1 / 5]),
    ],
)
def test_the_papers_candidates_have_the_progress_of_a_calculation_by_hand(
    steps: list[set[str]], shares: list[float]
) -> None:
    assert walked(steps)[1] == pytest.approx(shares)


def test_a_step_with_a_premature_node_counts_nothing_where_steps_are_zeroed() -> None:
    standing, shares, _ = walked(SEED_0, Premature.ZERO)
    assert shares == [0, 0, 0]
    assert {"f8", "f9"} <= standing.established


@pytest.mark.parametrize("premature", Premature)
@pytest.mark.parametrize("unit", FloorUnit)
def test_the_papers_window_commits_the_papers_candidate(premature: Premature, unit: FloorUnit) -> None:
    pool = []
    for number, steps in enumerate((SEED_0, SEED_1, ON_SEED_0, ON_SEED_1)):
        _, shares, count = walked(steps, premature)
        pool.append(ScoredCandidate(number, number < 2, sum(shares), count, LENGTHS[number]))
    chosen, how = choose(pool, FloorRule(0.5, unit, 4))
    assert (chosen.number, how) == (2, HowChosen.FLOOR)
    assert chosen.effectiveness == pytest.approx(0.70)


def test_a_node_that_came_too_early_waits_for_a_later_window() -> None:
    standing, _ = advanced(FIGURE_5, U_22, {"f9"})
    assert standing == Standing(U_22.established, frozenset({"f9"}))
    standing, step = advanced(FIGURE_5, standing, {"f8", "f9"})
    assert (step.counted, step.premature) == (("f8",), ())
    assert "f9" not in open_nodes(FIGURE_5, standing)
    assert "f9" in window_start(FIGURE_5, standing).established


def test_a_node_goes_on_waiting_where_its_predecessor_is_still_unknown() -> None:
    standing = Standing(U_22.established, frozenset({"f9"}))
    assert window_start(FIGURE_5, standing) == standing


# ---- properties


@st.composite
def graphs(draw: st.DrawFn) -> ProcessGraph:
    count = draw(st.integers(1, 9))
    names = [f"n{number}" for number in range(count)]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    return graph_of(names, draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([])))


@given(graphs(), st.data())
def test_progress_is_a_share_and_the_frontier_never_holds_what_is_established(
    graph: ProcessGraph, data: st.DataObject
) -> None:
    names = [node.name for node in graph.nodes]
    standing = Standing()
    for found in data.draw(st.lists(st.sets(st.sampled_from(names)), max_size=8)):
        premature = data.draw(st.sampled_from(list(Premature)))
        after, step = advanced(graph, standing, found, premature)
        assert 0 <= step.progress <= 1
        assert set(step.counted) <= graph.frontier(standing.established)
        assert after.seen == standing.seen | found
        standing = window_start(graph, after)
        assert not open_nodes(graph, standing) & standing.seen


@given(graphs())
def test_establishing_everything_in_order_covers_the_graph(graph: ProcessGraph) -> None:
    standing, sums = Standing(), 0
    while frontier := open_nodes(graph, standing):
        standing, step = advanced(graph, standing, frontier)
        assert step.progress == 1
        sums += len(step.counted)
    assert standing.established == {node.name for node in graph.nodes}
    assert sums == len(graph.nodes)


candidates_of_a_window = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0, 0.25, 0.5, 0.75, 1.0]), st.integers(0, 3), st.integers(1, 5)),
    min_size=1,
    max_size=6,
).map(lambda rows: [ScoredCandidate(number, *row) for number, row in enumerate(rows)])
rules = st.builds(FloorRule, st.sampled_from([0, 0.5, 1.0]), st.sampled_from(FloorUnit), st.integers(0, 4))


@given(candidates_of_a_window, rules)
def test_the_choice_is_that_of_brute_force(pool: list[ScoredCandidate], rule: FloorRule) -> None:
    chosen, how = choose(pool, rule)
    front = non_dominated(pool)
    above = [candidate for candidate in front if rule.clears(candidate)]
    best = above or [it for it in front if it.effectiveness == max(other.effectiveness for other in front)]
    order = sorted(best, key=lambda it: (it.length, -it.effectiveness, 0 if it.seed else 1, it.number))
    assert chosen == order[0]
    assert how is (HowChosen.FLOOR if above else HowChosen.FALLBACK)
    assert chosen in front


@given(candidates_of_a_window, rules)
def test_a_chosen_candidate_is_the_shortest_of_all_that_clear_a_floor_of_progress(
    pool: list[ScoredCandidate], rule: FloorRule
) -> None:
    chosen, how = choose(pool, rule)
    if how is HowChosen.FLOOR and rule.unit is FloorUnit.PROGRESS:
        assert chosen.length == min(it.length for it in pool if rule.clears(it))
    if how is HowChosen.FALLBACK and not any(map(rule.clears, pool)):
        assert chosen.effectiveness == max(it.effectiveness for it in pool)


@given(st.lists(candidates_of_a_window, min_size=1, max_size=4), st.sampled_from([0.25, 0.5]))
def test_commits_by_window_are_the_shortest_trajectory_above_the_sum_of_floors(
    windows: list[list[ScoredCandidate]], floor: float
) -> None:
    """The claim of P2T's appendix E, for pools in which the floor is met at every window."""
    rule = FloorRule(floor, FloorUnit.PROGRESS, 1)
    if not all(any(map(rule.clears, pool)) for pool in windows):
        return
    chosen = [choose(pool, rule)[0] for pool in windows]
    assert sum(it.effectiveness for it in chosen) >= floor * len(windows) - 1e-9
    shortest = [min((it for it in pool if rule.clears(it)), key=lambda it: it.length) for pool in windows]
    assert sum(it.length for it in chosen) == sum(it.length for it in shortest)


@given(candidates_of_a_window, rules, st.text(max_size=3))
def test_a_random_choice_is_one_above_the_floor_and_follows_its_key(
    pool: list[ScoredCandidate], rule: FloorRule, key: str
) -> None:
    chosen, how = choose(pool, rule, CommitRule.RANDOM, key)
    assert choose(pool, rule, CommitRule.RANDOM, key) == (chosen, how)
    if how is HowChosen.RANDOM:
        assert rule.clears(chosen)
    else:
        assert not any(map(rule.clears, pool))


@pytest.mark.parametrize(("commit", "wanted"), [(CommitRule.RANDOM, {0, 1, 2, 3}), (CommitRule.TIED, {1, 3})])
def test_a_random_choice_takes_each_of_them_by_some_key(commit: CommitRule, wanted: set[int]) -> None:
    effects = (0.6, 1 / 3 + 1 / 6 + 0.5, 0.7, 1.0, 0.4)
    pool = [ScoredCandidate(number, True, effect, 1, 9 - number) for number, effect in enumerate(effects)]
    rule = FloorRule(0.5, FloorUnit.PROGRESS, 1)
    taken = Counter(choose(pool, rule, commit, str(key))[0].number for key in range(400))
    assert taken.keys() == wanted
    assert all(count > 60 for count in taken.values()), "about as often as the others"


def test_where_none_clears_the_floor_the_most_effective_is_taken_whatever_the_rule() -> None:
    pool = [ScoredCandidate(number, True, 0.1 * number, 1, number) for number in range(4)]
    rule = FloorRule(0.5, FloorUnit.PROGRESS, 1)
    assert {choose(pool, rule, commit)[1] for commit in CommitRule} == {HowChosen.FALLBACK}
    assert {choose(pool, rule, commit)[0].number for commit in CommitRule} == {3}


def test_ties_go_to_the_shorter_the_more_effective_the_seed_and_the_lower_number() -> None:
    rule = FloorRule(0.5, FloorUnit.NODES, 2)
    rows = [(False, 0.5, 1, 3), (True, 0.5, 1, 3), (True, 0.5, 1, 3), (False, 0.75, 1, 3), (True, 0.5, 1, 4)]
    for order in permutations(rows):
        pool = [ScoredCandidate(number, *row) for number, row in enumerate(order)]
        assert choose(pool, rule)[0].effectiveness == 0.75
    equal = [ScoredCandidate(number, *row) for number, row in enumerate(rows[:3])]
    assert choose(equal, rule)[0].number == 1


def test_a_window_without_candidates_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to commit"):
        choose([], FloorRule(0.5, FloorUnit.PROGRESS, 1))


@pytest.mark.parametrize(
    "values",
    [{"window": 0}, {"stride": 0}, {"seeds": 0}, {"window": 3, "stride": 4}, {"floor": -1}, {"floor": math.inf}],
)
def test_options_that_make_no_window_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        WindowOptions(**values)  # type: ignore[arg-type]


def test_options_at_their_default_do_not_decide_an_id() -> None:
    assert WindowOptions().chosen == {}
    assert WindowOptions(seeds=3, ground=False).chosen == {"seeds": 3, "ground": False}
