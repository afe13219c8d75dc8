"""What people read of an evaluation: tables of 80 columns, also in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table
from trajectories.studies.evaluation.evaluation import interval_words
from trajectories.studies.evaluation.sides import MeasureDifference, Sides

_WIDTH = 80
_LONGEST_NAME = 28
MEASURES: Mapping[str, tuple[str, str]] = {
    "resolved": ("resolved", "%"),
    "steps": ("steps", ""),
    "calls": ("calls of tools", ""),
    "tokens_in": ("tokens in", ""),
    "tokens_out": ("tokens out", ""),
    "redundant": ("redundant views", "%"),
    "usd": ("USD", ""),
}
"""What is compared, with its name for people and its unit."""


def print_evaluation(row: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    groups = row["groups"]
    if not groups:
        say("nothing was rolled out over these tasks")
        return
    ks = [str(k) for k in row["ks"]]
    labels = _labels([it["group"] for it in groups])
    for name, label in labels.items():
        if name != label:
            say_prose(f"{label}: {name}", width=_WIDTH)
    say_table(
        (row["by"], "instances", "runs", *(f"Pass@{k}" for k in ks), "patches"),
        [
            (
                labels[it["group"]],
                f"{it['instances']:,}",
                f"{it['runs']:,}",
                *(interval_words(it["pass_at"][k]) if k in it["pass_at"] else "-" for k in ks),
                _percent(it["patch_rate"]),
            )
            for it in groups
        ],
        most=_WIDTH,
    )
    say()
    say_table(
        ("mean of a run", "steps", "calls", "tokens in", "out", "USD", "USD resolved"),
        [
            (
                labels[it["group"]],
                _mean(it["steps"]),
                _mean(it["calls"]),
                _mean(it["tokens_in"]),
                _mean(it["tokens_out"]),
                _usd(it["usd"]),
                _usd(it["usd_resolved"]),
            )
            for it in groups
        ],
        most=_WIDTH,
    )
    for noun, key in (("steps", "at_steps"), ("calls of tools", "at_calls")):
        say()
        say_table(
            ("resolved within", *map(str, row["steps"]), noun),
            [(labels[it["group"]], *(f"{share:.0%}" for share in it[key].values()), "") for it in groups if it[key]],
            most=_WIDTH,
        )
    for model in row["parted_by_option"]:
        say_prose(f"{model} ran with several options, and is parted by them: no samples of one thing", width=_WIDTH)
    for it in groups:
        for words in _notes(it):
            say_prose(f"{labels[it['group']]}: {words}", width=_WIDTH)
    for found in row.get("carried", ()):
        _print_carried(found)
    if row["by"] == "carry" and not row["carried"]:
        say_prose("no stage has runs that differ in --carry alone; roll chains out with each of them", width=_WIDTH)


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    """What is to know of a group's figures."""
    if row["not_reached"]:
        yield f"{counted(row['not_reached'], 'stage')} not tried, as an earlier one failed: unresolved"
    if row["apart"]:
        words = ", ".join(f"{count:,} {name}" for name, count in row["apart"].items())
        yield f"{sum(row['apart'].values()):,} apart, scored as nothing: {words}"
    if row["broke_earlier"] or row["began_broken"]:
        yield (
            f"of {counted(row['later'], 'later stage')} with tests {row['broke_earlier']:,} broke tests of earlier "
            f"ones, and {row['began_broken']:,} began with some broken"
        )
    if row["steps"] is not None and row["tokens_in"] is None:
        yield "no tokens were told by what answered"


def _labels(names: Sequence[str]) -> dict[str, str]:
    """The names of groups as tables show them: numbers, where some are too long to stand beside figures."""
    if all(len(name) <= _LONGEST_NAME for name in names):
        return {name: name for name in names}
    return {name: str(number) for number, name in enumerate(names, 1)}


def _print_carried(row: Mapping[str, Any]) -> None:
    """Print the ways to carry beside each other."""
    say()
    carries: Mapping[str, Mapping[str, Any]] = row["carries"]
    stages = f"{counted(row['instances'], 'stage')} of {counted(row['chains'], 'chain')}"
    say_prose(f"{row['group']}: on {stages} with runs of each, by whose work they began with", width=_WIDTH)
    positions = list(next(iter(carries.values()))["by_position"])
    say_table(
        ("carry", "runs", "resolved", *(f"stage {at}" for at in positions), "broke earlier", "began broken"),
        [
            (
                name,
                f"{it['runs']:,}",
                *(_percent(share) for share in (it["resolved"], *it["by_position"].values())),
                _percent(it["broke_earlier"]),
                _percent(it["began_broken"]),
            )
            for name, it in carries.items()
        ],
        most=_WIDTH,
    )
    say_table(
        ("difference in points", "resolved", "95%", "after stage 1", "95%"),
        [
            (
                f"{it['other']} less {it['one']}",
                f"{it['difference']:+.1f}",
                _bounds(it["low"], it["high"]),
                "-" if it["later"] is None else f"{it['later']:+.1f}",
                _bounds(it["later_low"], it["later_high"]),
            )
            for it in row["differences"]
        ],
        most=_WIDTH,
    )


def print_sides(found: Sides, one: str, other: str) -> None:
    """Print two groups beside each other."""
    say(f"{counted(found.instances, 'instance')} that both have runs of")
    _print_measures(found.measures)
    say()
    say(f"{counted(found.resolved, 'instance')} that both resolved, by the runs that did")
    if found.resolved:
        _print_measures(found.on_resolved)
    legend = f"one: {one}; other: {other}. U: Mann-Whitney; delta: Cliff's, above 0 where the other's are larger."
    say_prose(legend, width=_WIDTH)
    for name, instances in ((one, found.only_one), (other, found.only_other)):
        if instances:
            say_prose(
                f"only {name} resolves {', '.join(instances[:10])}{' ...' if len(instances) > 10 else ''}", width=_WIDTH
            )


def _print_measures(found: Mapping[str, MeasureDifference]) -> None:
    rows = [
        (
            head,
            *(_unit(value, unit) for value in (it.one, it.other, it.difference)),
            "" if it.shift is None else f"{it.shift:+.1f}%",
            _bounds(it.low, it.high),
            "" if it.mann_whitney_p is None else f"{it.mann_whitney_p:.4f}",
            "" if it.cliffs_delta is None else f"{it.cliffs_delta:.2f}",
        )
        for name, (head, unit) in MEASURES.items()
        if (it := found.get(name)) is not None and it.difference is not None
    ]
    say_table(("mean of", "one", "other", "apart", "shift", "95%", "U p", "delta"), rows, most=_WIDTH)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:,.1f} to {high:,.1f}"


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _usd(value: float | None) -> str:
    return "-" if value is None else dollars(value)


def _unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.2f}{unit}"
