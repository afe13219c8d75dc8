"""An evaluation: figures of every group of runs, and of two groups beside each other; as JSON, table and drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table
from prchain.core.errors import UsageError
from trajectories.curation.graphs.svg import bars_svg
from trajectories.studies.evaluation.carried import Carried, carried
from trajectories.studies.evaluation.figures import Figures, InstanceRun, figures
from trajectories.studies.evaluation.sides import Sides, sides
from trajectories.studies.evaluation.stored import EvaluatedRun

By = Literal["model", "option", "carry", "repository", "difficulty", "position", "source"]

_KEYS: Mapping[str, Callable[[EvaluatedRun], str]] = {
    "option": lambda it: it.option,
    "carry": lambda it: f"carry={it.carry}",
    "repository": lambda it: it.run.repository,
    "difficulty": lambda it: it.run.difficulty,
    "position": lambda it: str(it.run.position),
    "source": lambda it: it.source,
}

STEPS = (10, 25, 50, 100, 200, 400)
_WIDTH = 80
_MEASURES = {
    "resolved": ("resolved", "%"),
    "steps": ("steps", ""),
    "calls": ("calls of tools", ""),
    "redundant": ("redundant views", "%"),
    "usd": ("USD", ""),
}


def groups_of(runs: Sequence[EvaluatedRun], by: By) -> dict[str, list[EvaluatedRun]]:
    """The runs by model, and within it by something else; sorted. Those of a model with several options are parted by
    them, too: what they did are no samples of one thing."""
    key, several = _KEYS.get(by), set(_parted(runs, by))
    found: dict[str, list[EvaluatedRun]] = {}
    for it in runs:
        words = [it.model, *([_option(it, by)] if it.model in several else []), *([key(it)] if key else [])]
        found.setdefault(", ".join(words), []).append(it)
    return dict(sorted(found.items()))


def _option(it: EvaluatedRun, by: By) -> str:
    return it.setting if by == "carry" else it.option


def _parted(runs: Sequence[EvaluatedRun], by: By) -> list[str]:
    """The models that have runs with several options, where it is not these that part their runs anyway."""
    options: dict[str, set[str]] = {}
    for it in runs:
        options.setdefault(it.model, set()).add(_option(it, by))
    return [] if by == "option" else sorted(model for model, labels in options.items() if len(labels) > 1)


def evaluation(
    runs: Sequence[EvaluatedRun], *, by: By = "model", ks: Sequence[int] = (1,), steps: Sequence[int] = STEPS
) -> dict[str, Any]:
    """The figures of every group, as JSON values."""
    groups = groups_of(runs, by)
    rows = {name: figures((it.run for it in found), ks=ks, steps=steps, calls=steps) for name, found in groups.items()}
    return {
        "by": by,
        "ks": list(ks),
        "steps": list(steps),
        "parted_by_option": _parted(runs, by),
        "groups": [{"group": name, **_row(row)} for name, row in rows.items()],
        **({"carried": _carried_rows(runs)} if by == "carry" else {}),
    }


def _carried_rows(runs: Sequence[EvaluatedRun]) -> list[dict[str, Any]]:
    """The ways to carry side by side: of each model, where all other options are the same."""
    sets: dict[tuple[str, str], dict[str, list[InstanceRun]]] = {}
    for it in runs:
        sets.setdefault((it.model, it.setting), {}).setdefault(it.carry, []).append(it.run)
    several = {model for model, _ in sets if sum(other == model for other, _ in sets) > 1}
    return [
        {"group": f"{model}, {setting}" if model in several else model, **_carried_row(found)}
        for (model, setting), by_carry in sorted(sets.items())
        if (found := carried(by_carry)) is not None
    ]


def _carried_row(found: Carried) -> dict[str, Any]:
    row = asdict(found)
    for figures_ in row["carries"].values():
        figures_["by_position"] = {str(at): share for at, share in figures_["by_position"].items()}
    return row


def _row(found: Figures) -> dict[str, Any]:
    row = asdict(found) | {"patch_rate": found.patch_rate}
    return row | {name: {str(key): it for key, it in row[name].items()} for name in ("pass_at", "at_steps", "at_calls")}


def beside(runs: Sequence[EvaluatedRun], by: By, one: str, other: str) -> Sides:
    """Two groups on the instances of both. Raises `UsageError` for a group that is not there."""
    groups = groups_of(runs, by)
    for name in (one, other):
        if name not in groups:
            raise UsageError(f"there is no group {name!r}; there are: {'; '.join(groups)[:300] or 'none'}")
    found = sides([it.run for it in groups[one]], [it.run for it in groups[other]])
    names = {it.run.instance: it.name or it.run.instance for it in runs}
    ones, others = (tuple(names[it] for it in side) for side in (found.only_one, found.only_other))
    return replace(found, only_one=ones, only_other=others)


def drawing(row: Mapping[str, Any]) -> str:
    """Pass@1 of every group as bars, as SVG."""
    shares = {it["group"]: it["pass_at"].get("1") for it in row["groups"]}
    counts = {name: 100 * share["value"] if share else 0.0 for name, share in shares.items()}
    words = [_interval(share) if share else "no runs" for share in shares.values()]
    return bars_svg("Pass@1, in percent, with 95 % intervals", counts, words)


def print_evaluation(row: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    groups = row["groups"]
    if not groups:
        say("nothing was rolled out over these tasks")
        return
    ks = [str(k) for k in row["ks"]]
    say_table(
        (row["by"], "instances", "runs", *(f"Pass@{k}" for k in ks), "patches"),
        [
            (
                it["group"],
                f"{it['instances']:,}",
                f"{it['runs']:,}",
                *(_interval(it["pass_at"][k]) if k in it["pass_at"] else "-" for k in ks),
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
                it["group"],
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
            [(it["group"], *(f"{share:.0%}" for share in it[key].values()), "") for it in groups if it[key]],
            most=_WIDTH,
        )
    for model in row["parted_by_option"]:
        say_prose(f"{model} ran with several options, and is parted by them: no samples of one thing", width=_WIDTH)
    for it in groups:
        if it["not_reached"]:
            stages = counted(it["not_reached"], "stage")
            say_prose(f"{it['group']}: {stages} not tried, as an earlier one failed: unresolved", width=_WIDTH)
        if it["apart"]:
            words = ", ".join(f"{count:,} {name}" for name, count in it["apart"].items())
            say_prose(f"{it['group']}: {sum(it['apart'].values()):,} apart, scored as nothing: {words}", width=_WIDTH)
        if it["broke_earlier"] or it["began_broken"]:
            later = counted(it["later"], "later stage")
            say_prose(
                f"{it['group']}: of {later} with tests {it['broke_earlier']:,} broke tests of earlier ones, and "
                f"{it['began_broken']:,} began with some broken",
                width=_WIDTH,
            )
        if it["runs"] and it["tokens_in"] is None:
            say_prose(f"{it['group']}: no tokens were told by what answered", width=_WIDTH)
    for found in row.get("carried", ()):
        _print_carried(found)
    if row["by"] == "carry" and not row["carried"]:
        say_prose("no stage has runs that differ in --carry alone; roll chains out with each of them", width=_WIDTH)


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
    rows = [
        (
            head,
            *(_unit(value, unit) for value in (it.one, it.other, it.difference)),
            _bounds(it.low, it.high),
            "" if it.mann_whitney_p is None else f"{it.mann_whitney_p:.4f}",
            "" if it.cliffs_delta is None else f"{it.cliffs_delta:.2f}",
        )
        for name, (head, unit) in _MEASURES.items()
        if (it := found.measures[name]).difference is not None
    ]
    say_table(("mean of", "one", "other", "apart", "95%", "U p", "delta"), rows, most=_WIDTH)
    legend = f"one: {one}; other: {other}. U: Mann-Whitney; delta: Cliff's, above 0 where the other's are larger."
    say_prose(legend, width=_WIDTH)
    for name, instances in ((one, found.only_one), (other, found.only_other)):
        if instances:
            say_prose(
                f"only {name} resolves {', '.join(instances[:10])}{' ...' if len(instances) > 10 else ''}", width=_WIDTH
            )


def _interval(share: Mapping[str, Any]) -> str:
    value = f"{100 * share['value']:.1f}%"
    return value if share["low"] is None else f"{value} ({100 * share['low']:.1f} to {100 * share['high']:.1f})"


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
