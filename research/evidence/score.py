"""Prints what readers said: shares with their intervals, weighted back to what was drawn from, and calibration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from prchain.core.shares import wilson
from research.evidence.fit import ranking
from research.evidence.labels import Read
from research.shares import agreement, share

_TENTHS = 10


def print_fit(model: str, weights: Mapping[str, float], scored: Sequence[tuple[float, bool]]) -> None:
    """Print fitted weights, and the calibration of held-out predictions by tenths."""
    click.echo(f"{model}: {', '.join(f'{name} {weight:+.2f}' for name, weight in weights.items())}")
    good = sum(is_good for _, is_good in scored)
    click.echo(f"  {len(scored)} cases, {good} good; each by weights fitted to the other repositories:")
    click.echo(f"  ranked right {ranking(scored):.1%}")
    for low in range(_TENTHS):
        tenth = [is_good for value, is_good in scored if min(int(value * _TENTHS), _TENTHS - 1) == low]
        if tenth:
            click.echo(
                f"  {low / _TENTHS:.1f} to {(low + 1) / _TENTHS:.1f}: {share(sum(tenth), len(tenth))} of {len(tenth)}"
            )


def print_scores(rows: Sequence[Read]) -> None:
    """Print each round's shares by what was drawn."""
    groups: dict[tuple[str, str], list[Read]] = defaultdict(list)
    for row in rows:
        groups[row.round, row.kind].append(row)
    for (round_name, kind), found in sorted(groups.items()):
        print_group(f"round {round_name}, {kind}", found)


def print_group(name: str, rows: Sequence[Read]) -> None:
    """Print one group: raw shares, weighted ones, and the readers' agreement."""
    click.echo(f"{name}: {len(rows)} of {len({row.repository for row in rows})} repositories")
    for words, test in _SHARES.items():
        hits = [test(row) for row in rows]
        click.echo(f"  {words:<44} {share(sum(hits), len(rows))}; weighted {weighted(rows, hits)}")
    steps = [[label for row in rows for label in row.steps[reader]] for reader in (0, 1)]
    stages = [[label for row in rows for label in row.stages[reader]] for reader in (0, 1)]
    wholes = [[row.wholes[reader] for row in rows] for reader in (0, 1)]
    for words, labels in (("steps", steps), ("stages", stages), ("wholes", wholes)):
        click.echo(f"  readers on {len(labels[0])} {words}: {agreement(*labels)}")


_SHARES: dict[str, Callable[[Read], bool]] = {
    "every step real": lambda row: set(row.settled_steps) == {"real"},
    "every step real or borderline": lambda row: "not" not in row.settled_steps,
    "a sensible task": lambda row: row.settled_whole == "yes",
    "a sensible task, or borderline": lambda row: row.settled_whole != "no",
    "every stage a task": lambda row: set(row.settled_stages) == {"yes"},
}


def weighted(rows: Sequence[Read], hits: Iterable[bool]) -> str:
    """The share in what was drawn from, each row counted by the inverse of its chance, with a 95 % interval by the
    effective number of rows (Kish)."""
    weights = [1 / row.chance for row in rows]
    total = sum(weights)
    mean = sum(weight for weight, hit in zip(weights, hits, strict=True) if hit) / total
    effective = total**2 / sum(weight**2 for weight in weights)
    low, high = wilson(mean * effective, effective)
    return f"{mean:.1%} [{max(low, 0):.1%}, {min(high, 1):.1%}]"
