"""Figures of models on sets of tasks, against numbers computed by hand and, for the tests, scipy's."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from statistics import fmean

import pytest

from prchain.core.shares import wilson
from trajectories.studies.evaluation.carried import carried
from trajectories.studies.evaluation.figures import Estimate, InstanceRun, figures, pass_at_k
from trajectories.studies.evaluation.sides import sides


def run(instance: str, resolved: bool, sample: int = 0, **values: object) -> InstanceRun:
    base = InstanceRun(instance, sample, resolved, patch=True, steps=10, calls=9, tokens_in=100, tokens_out=10, usd=0.5)
    return replace(base, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("runs", "resolved", "k"), [(1, 1, 1), (5, 2, 1), (5, 2, 3), (6, 0, 4), (6, 5, 2), (4, 4, 4)])
def test_pass_at_k_is_the_share_of_draws_that_hold_a_resolved_run(runs: int, resolved: int, k: int) -> None:
    draws = list(combinations([True] * resolved + [False] * (runs - resolved), k))
    assert pass_at_k(runs, resolved, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("runs", "resolved", "k"), [(2, 1, 3), (2, 3, 1), (0, 0, 1), (2, -1, 1)])
def test_there_is_no_pass_at_more_than_the_runs(runs: int, resolved: int, k: int) -> None:
    with pytest.raises(ValueError, match="no Pass@"):
        pass_at_k(runs, resolved, k)


def test_the_figures_of_runs_whose_figures_are_known() -> None:
    found = figures(
        [
            run("a", True, 0, steps=4, calls=3),
            run("a", False, 1, steps=20, calls=19, patch=False),
            run("b", False, 0, steps=30, calls=29, usd=1.5),
            run("c", True, 0, steps=12, calls=10),
            run("c", True, 1, steps=14, calls=11),
        ],
        ks=(1, 2, 3),
        steps=(10, 12, 50),
        calls=(2, 11),
        resamples=200,
    )
    assert (found.instances, found.runs, found.resolved, found.patches, found.patch_rate) == (3, 5, 3, 4, 0.8)
    assert found.pass_at[1].value == pytest.approx((0.5 + 0 + 1) / 3) and found.pass_at[1].interval == "bootstrap"
    assert found.pass_at[2] == Estimate(1.0, 1.0, 1.0, 2, "bootstrap") and 3 not in found.pass_at
    assert found.at_steps == {10: 0.2, 12: 0.4, 50: 0.6} and found.at_calls == {2: 0.0, 11: 0.6}
    assert (found.steps, found.calls, found.tokens_in, found.tokens_out) == (16, 14.4, 100, 10)
    assert found.usd == pytest.approx(0.7) and found.usd_resolved == pytest.approx(3.5 / 3)


@pytest.mark.parametrize("total", range(1, 60))
def test_wilson_s_interval_stays_between_nothing_and_all(total: int) -> None:
    assert str(wilson(0, total)[0]) == "0.0" and wilson(total, total)[1] <= 1


def test_one_run_an_instance_has_wilson_s_interval() -> None:
    found = figures([run(str(n), n < 9) for n in range(10)])
    # Computed by hand from Wilson's formula with z = 1.96.
    share = found.pass_at[1]
    assert (share.value, share.of, share.interval) == (0.9, 10, "wilson")
    assert share.low == pytest.approx(0.5958, abs=1e-4) and share.high == pytest.approx(0.9821, abs=1e-4)


def test_failures_of_machines_are_told_apart_and_score_nothing() -> None:
    down = run("b", False, apart="endpoint_unreachable", usd=None)
    found = figures([run("a", True), down, replace(down, instance="c", sample=1)])
    assert (found.instances, found.runs, found.apart) == (1, 1, {"endpoint_unreachable": 2})
    assert found.pass_at[1].value == 1.0 and found.usd_resolved == 0.5


def test_of_nothing_there_are_no_figures_and_of_an_unknown_price_no_cost() -> None:
    nothing = figures([])
    assert nothing.pass_at == {} and nothing.steps is None and nothing.usd is None and nothing.patch_rate is None
    unknown = figures([run("a", True), run("b", True, usd=None)])
    assert unknown.usd is None and unknown.usd_resolved is None and unknown.pass_at[1].value == 1.0
    assert figures([run("a", False)]).usd_resolved is None


# ---- two sides


def test_two_sides_are_compared_on_the_instances_that_both_have() -> None:
    one = [run("a", True, steps=10), run("b", True, steps=20), run("c", False, steps=30), run("only", True)]
    other = [run("a", False, steps=8), run("b", True, steps=20), run("c", True, steps=20), run("else", True)]
    found = sides(one, other)
    assert (found.instances, found.only_one, found.only_other) == (3, ("a",), ("c",))
    steps = found.measures["steps"]
    assert (steps.one, steps.other, steps.difference) == (20, 16, -4)
    # Of nine pairs the other side's is larger in 2 and smaller in 4.
    assert steps.cliffs_delta == pytest.approx(sum((y > x) - (y < x) for x in (10, 20, 30) for y in (8, 20, 20)) / 9)
    stats = pytest.importorskip("scipy.stats")
    assert steps.mann_whitney_p == pytest.approx(float(stats.mannwhitneyu([10, 20, 30], [8, 20, 20]).pvalue))
    assert found.measures["resolved"].difference == 0 and found.measures["redundant"].difference is None


def test_instances_that_both_sides_resolved_are_compared_by_the_runs_that_did() -> None:
    """P2T, section 5.3 and figure 2 c and d."""
    one = [run("a", True, steps=10, redundant=0.5), run("b", True, steps=40), run("c", False, steps=30)]
    one += [run("a", False, 1, steps=100, redundant=0.9)]
    other = [run("a", True, steps=5, redundant=0.25), run("b", False, steps=1), run("c", True, steps=20)]
    found = sides(one, other, p_values=False)
    assert found.resolved == 1 and "resolved" not in found.on_resolved
    steps, views = found.on_resolved["steps"], found.on_resolved["redundant"]
    assert (steps.one, steps.other, steps.difference, steps.shift) == (10, 5, -5, -50.0)
    assert (views.one, views.other, views.shift, views.cliffs_delta) == (50.0, 25.0, -50.0, -1.0)
    nothing = sides([run("a", True)], [run("a", False)], p_values=False)
    assert nothing.resolved == 0 and nothing.on_resolved["steps"].difference is None


def test_the_interval_of_a_paired_difference_is_that_of_the_pairs() -> None:
    base = [run(str(n), False, steps=10 * n) for n in range(1, 30)]
    less = [replace(it, steps=10 * n - 3) for n, it in enumerate(base, 1)]
    found = sides(base, less, p_values=False).measures["steps"]
    # Every pair differs by as much, so the interval is a point, however far the instances are apart.
    assert (found.difference, found.low, found.high, found.mann_whitney_p) == (-3, -3, -3, None)


def test_a_bootstrap_is_what_drawing_by_hand_gives() -> None:
    values = [0.0, 0.0, 3.0, 9.0]
    found = sides(
        [run(str(n), False, steps=0) for n in range(4)],
        [run(str(n), False, steps=int(v)) for n, v in enumerate(values)],
    )
    all_means = sorted(fmean((a, b, c, d)) for a in values for b in values for c in values for d in values)
    low, high = all_means[int(256 * 0.025)], all_means[-1 - int(256 * 0.025)]
    steps = found.measures["steps"]
    assert steps.low is not None and steps.high is not None
    assert abs(steps.low - low) <= 0.75 and abs(steps.high - high) <= 0.75


# ---- whose work a stage begins with


def test_the_ways_to_carry_are_compared_on_the_same_stages_by_chains() -> None:
    def stages(resolved: str) -> list[InstanceRun]:
        names = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        return [
            run(f"{chain}/{at}", mark == "+", position=at, broke_earlier=False if at > 1 else None)
            for (chain, at), mark in zip(names, resolved, strict=True)
        ]

    agent, reference = stages("+-+-"), stages("++-+")
    agent[1] = replace(agent[1], broke_earlier=True, began_broken=True)
    lost = run("c/1", False, position=1, apart="endpoint_unreachable")
    found = carried({"reference": [*reference, lost], "agent": [*agent, run("d/1", True)]})
    assert found is not None and (found.instances, found.chains, list(found.carries)) == (4, 2, ["agent", "reference"])
    assert found.carries["agent"].by_position == {1: 1.0, 2: 0.0}
    assert found.carries["reference"].by_position == {1: 0.5, 2: 1.0}
    assert (found.carries["agent"].resolved, found.carries["reference"].resolved) == (0.5, 0.75)
    assert (found.carries["agent"].later, found.carries["agent"].broke_earlier) == (2, 0.5)
    assert (found.carries["agent"].began_broken, found.carries["reference"].began_broken) == (0.5, 0.0)
    (apart,) = found.differences
    # Drawn are the chains: a differs by 0 and 100 points, b by -100 and 100.
    assert (apart.one, apart.other, apart.difference) == ("agent", "reference", 25)
    assert (apart.low, apart.high) == (0, 50) and (apart.later, apart.later_low, apart.later_high) == (100, 100, 100)


def test_one_way_to_carry_or_no_common_stage_is_no_comparison() -> None:
    assert carried({"agent": [run("a/1", True)]}) is None
    assert carried({"agent": [run("a/1", True)], "none": [run("b/1", True)]}) is None
    assert carried({}) is None


def test_a_way_to_carry_that_only_machines_ended_is_left_out_of_the_comparison() -> None:
    lost = run("a/1", False, position=1, apart="endpoint_unreachable")
    others = {way: [run("a/1", way == "agent", position=1)] for way in ("agent", "reference")}
    found = carried({**others, "none": [lost]})
    assert found is not None and found == carried(others) and list(found.carries) == ["agent", "reference"]


def test_tokens_that_no_endpoint_told_are_unknown_and_not_none() -> None:
    silent = run("a", True, tokens_in=None, tokens_out=None)
    assert figures([silent]).tokens_in is None and figures([silent, run("b", True)]).tokens_in == 100
