"""The pages of comparisons: models and settings by the figures of `prchain evaluate`, two of them stage by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from prchain.view.places import COMPARE, FUNNEL, chain_page, slug, trajectory_page
from sql.store import Store
from trajectories.studies.evaluation.evaluation import evaluation, groups_of, interval_words
from trajectories.studies.evaluation.figures import InstanceRun
from trajectories.studies.evaluation.sides import Sides, sides
from trajectories.studies.evaluation.stored import EvaluatedRun, TaskSet, chains_of, evaluated_runs, with_views
from trajectories.studies.evaluation.tables import MEASURES

_ROWS = 100
"""Stages of two groups on one page."""

_MOST_GROUPS = 12
"""Groups that have pages of pairs: the first ones in the order of tables."""

_MOST_READ = 200
"""Trajectories of a pair whose conversations are read for what was redundant."""


@dataclass(frozen=True, slots=True)
class PairLink:
    """Two groups that have runs of the same stages."""

    one: int
    other: int
    page: str
    instances: int


@dataclass(frozen=True, slots=True)
class CompareView:
    """The groups, as `prchain evaluate` prints them."""

    groups: tuple[Mapping[str, Any], ...]
    pairs: tuple[PairLink, ...]
    parted: tuple[str, ...]
    """Models whose runs are parted by their options."""
    left_out: int
    """Groups without pages of pairs."""


@dataclass(frozen=True, slots=True)
class SideRow:
    """What one side did at a stage. Means are None where there is nothing to tell."""

    runs: int
    resolved: int
    apart: tuple[str, ...]
    """What ended the runs that are counted apart."""
    steps: float | None
    tokens_out: float | None
    usd: float | None
    links: tuple[tuple[str, str], ...]
    """Id and page of the trajectories that the view shows."""


@dataclass(frozen=True, slots=True)
class StageOfBoth:
    """A stage that both sides have runs of."""

    name: str
    chain: str
    position: int
    page: str
    sides: tuple[SideRow, SideRow]
    only: int | None
    """Which side alone resolved it, 0 or 1."""


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """A measure of both sides."""

    name: str
    unit: str
    one: float | None
    other: float | None
    difference: float | None
    low: float | None
    high: float | None
    cliffs_delta: float | None


@dataclass(frozen=True, slots=True)
class SidesView:
    """Two groups beside each other."""

    names: tuple[str, str]
    shared: str
    """What both names say; empty where they say nothing alike."""
    apart: tuple[str, str]
    """What each name says that the other one does not."""
    numbers: tuple[int, int]
    instances: int
    only: tuple[int, int]
    measures: tuple[MeasureRow, ...]
    rows: tuple[StageOfBoth, ...]
    start: int
    next: str | None
    unread: int
    """Trajectories whose conversations were not read, since they are too many; 0 where all were."""


class ComparePages:
    """The pages below ``compare``; `known` keeps what was read, where a view is written at once."""

    def __init__(
        self,
        store: Store,
        repository: str | None,
        shown: Callable[[], frozenset[str] | None],
        known: Callable[[str, Callable[[], Any]], Any],
    ) -> None:
        self._store = store
        self._repository = repository
        self._shown = shown
        self._known = known

    def pages(self) -> Iterator[str]:
        """Their paths."""
        yield f"{COMPARE}/{FUNNEL}"
        runs = self._runs()
        for pair in self._compared(runs).pairs:
            yield pair.page
            keys = _keys_of_both(*_pair(runs, pair.one, pair.other))
            yield from (
                f"{COMPARE}/{_page(pair.one, pair.other, keys[it - 1])}" for it in range(_ROWS, len(keys), _ROWS)
            )

    def view(self, name: str) -> tuple[str, Any] | None:
        """Template and value of the page of that name; None where there is none."""
        if name == FUNNEL:
            return "compare", self._compared(self._runs())
        found = re.fullmatch(r"([1-9][0-9]?)-([1-9][0-9]?)(?:-after-([A-Za-z0-9_-]+))?\.html", name)
        if found is None:
            return None
        one, other = int(found[1]), int(found[2])
        runs = self._runs()
        if (one, other) not in {(pair.one, pair.other) for pair in self._compared(runs).pairs}:
            return None
        names = [list(groups_of(runs, "model"))[number - 1] for number in (one, other)]
        both, read = self._known(f"sides {one} {other}", lambda: self._read(*_pair(runs, one, other)))
        keys = _keys_of_both(*both)
        starts = {None: 0} | {slug(keys[it - 1]): it for it in range(_ROWS, len(keys), _ROWS)}
        start = starts.get(found[3])
        if start is None:
            return None
        measures = self._known(f"measures {one} {other}", lambda: _sides(*both))
        rows, shown = [_by_instance(side) for side in both], self._shown()
        following = start + _ROWS
        return "sides", SidesView(
            (names[0], names[1]),
            *_apart(names[0], names[1]),
            (one, other),
            measures.instances,
            (len(measures.only_one), len(measures.only_other)),
            _measures(measures),
            tuple(_stage_of_both(rows[0][key], rows[1][key], shown) for key in keys[start:following]),
            start,
            _page(one, other, keys[following - 1]) if following < len(keys) else None,
            0 if read else len({it.trajectory for side in both for it in side}),
        )

    def _runs(self) -> list[EvaluatedRun]:
        """Those that `prchain evaluate` counts: over the chains of the last build."""

        def read() -> list[EvaluatedRun]:
            with self._store.reading() as tx:
                return evaluated_runs(tx, chains_of(tx, TaskSet(repository=self._repository)))

        found: list[EvaluatedRun] = self._known("evaluated runs", read)
        return found

    def _compared(self, runs: Sequence[EvaluatedRun]) -> CompareView:
        found: CompareView = self._known("compared", lambda: compare_view(runs))
        return found

    def _read(self, one: Sequence[EvaluatedRun], other: Sequence[EvaluatedRun]) -> tuple[_Both, bool]:
        """Both sides with what was redundant, and whether that was read."""
        if len({it.trajectory for it in (*one, *other)}) > _MOST_READ:
            return (one, other), False
        with self._store.reading() as tx:
            return (with_views(tx, one), with_views(tx, other)), True


_Both = tuple[Sequence[EvaluatedRun], Sequence[EvaluatedRun]]


def compare_view(runs: Sequence[EvaluatedRun]) -> CompareView:
    """The groups and the pairs of them that can be compared. Pure."""
    row = evaluation(runs)
    groups = groups_of(runs, "model")
    measured = [{it.run.instance for it in found if it.run.apart is None} for found in groups.values()]
    pairs = [
        PairLink(one + 1, other + 1, f"{COMPARE}/{_page(one + 1, other + 1)}", both)
        for one, other in combinations(range(min(len(measured), _MOST_GROUPS)), 2)
        if (both := len(measured[one] & measured[other]))
    ]
    told = [
        {**group, "pass_1": interval_words(group["pass_at"]["1"]) if group["pass_at"] else None}
        for group in row["groups"]
    ]
    left_out = max(len(measured) - _MOST_GROUPS, 0)
    return CompareView(tuple(told), tuple(pairs), tuple(row["parted_by_option"]), left_out)


def _pair(runs: Sequence[EvaluatedRun], one: int, other: int) -> _Both:
    groups = list(groups_of(runs, "model").values())
    return groups[one - 1], groups[other - 1]


def _sides(one: Sequence[EvaluatedRun], other: Sequence[EvaluatedRun]) -> Sides:
    # Without p values: they need scipy, and a page must be the same where it is not installed.
    return sides([it.run for it in one], [it.run for it in other], p_values=False)


def _keys_of_both(one: Sequence[EvaluatedRun], other: Sequence[EvaluatedRun]) -> list[str]:
    left, right = ({it.run.instance for it in side if it.run.apart is None} for side in (one, other))
    return sorted(left & right)


def _measures(found: Sides) -> tuple[MeasureRow, ...]:
    return tuple(
        MeasureRow(name, unit, it.one, it.other, it.difference, it.low, it.high, it.cliffs_delta)
        for key, (name, unit) in MEASURES.items()
        if (it := found.measures[key]).difference is not None
    )


def _apart(one: str, other: str) -> tuple[str, tuple[str, str]]:
    """What two names of groups have in common, and what each has of its own. Pure."""
    left, right = one.split(", "), other.split(", ")
    shared = ", ".join(part for part in left if part in right)
    own = (", ".join(part for part in left if part not in right), ", ".join(part for part in right if part not in left))
    return (shared, own) if all(own) else ("", (one, other))


def _by_instance(runs: Sequence[EvaluatedRun]) -> dict[str, list[EvaluatedRun]]:
    found: dict[str, list[EvaluatedRun]] = {}
    for it in runs:
        found.setdefault(it.run.instance, []).append(it)
    return found


def _stage_of_both(
    left: Sequence[EvaluatedRun], right: Sequence[EvaluatedRun], shown: frozenset[str] | None
) -> StageOfBoth:
    first = left[0]
    chain, _, position = first.run.instance.rpartition("/")
    one, other = _side(left, shown), _side(right, shown)
    only = None if bool(one.resolved) == bool(other.resolved) else 0 if one.resolved else 1
    return StageOfBoth(first.name or first.run.instance, chain, int(position), chain_page(chain), (one, other), only)


def _side(found: Sequence[EvaluatedRun], shown: frozenset[str] | None) -> SideRow:
    measured = [it.run for it in found if it.run.apart is None]
    tried = [run for run in measured if run.reached]
    links = [
        (it.trajectory, trajectory_page(it.trajectory))
        for it in sorted(found, key=lambda it: (it.run.sample, it.trajectory))
        if shown is None or it.trajectory in shown
    ]
    return SideRow(
        len(measured),
        sum(run.resolved for run in measured),
        tuple(sorted(it.run.apart for it in found if it.run.apart is not None)),
        _mean(tried, lambda run: run.steps),
        _mean(tried, lambda run: run.tokens_out),
        _mean(tried, lambda run: run.usd),
        tuple(links),
    )


def _mean(runs: Sequence[InstanceRun], value: Callable[[InstanceRun], float | None]) -> float | None:
    """None, as in the measures, where a run has no value."""
    found = [value(run) for run in runs]
    known = [it for it in found if it is not None]
    return fmean(known) if known and len(known) == len(found) else None


def _page(one: int, other: int, after: str | None = None) -> str:
    return f"{one}-{other}.html" if after is None else f"{one}-{other}-after-{slug(after)}.html"
