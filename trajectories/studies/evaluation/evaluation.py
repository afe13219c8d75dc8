"""An evaluation: figures of every group of runs, and of two groups beside each other; as JSON, table and drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from prchain.core.errors import UsageError
from trajectories.curation.graphs.svg import bars_svg
from trajectories.studies.evaluation.carried import Carried, carried
from trajectories.studies.evaluation.figures import Figures, InstanceRun, figures
from trajectories.studies.evaluation.sides import Sides, sides
from trajectories.studies.evaluation.stored import EvaluatedRun
from trajectories.studies.resolved import STEPS

By = Literal["model", "option", "carry", "repository", "difficulty", "position", "source"]

_KEYS: Mapping[str, Callable[[EvaluatedRun], str]] = {
    "option": lambda it: it.option,
    "carry": lambda it: f"carry={it.carry}",
    "repository": lambda it: it.run.repository,
    "difficulty": lambda it: it.run.difficulty,
    "position": lambda it: str(it.run.position),
    "source": lambda it: it.source,
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
    """Two groups on the instances of both, by their names or by the numbers that tables give long names.

    Raises `UsageError` for a group that is not there.
    """
    found = sides(*([it.run for it in group] for group in chosen_groups(runs, by, one, other)))
    names = {it.run.instance: it.name or it.run.instance for it in runs}
    ones, others = (tuple(names[it] for it in side) for side in (found.only_one, found.only_other))
    return replace(found, only_one=ones, only_other=others)


def chosen_groups(runs: Sequence[EvaluatedRun], by: By, *chosen: str) -> list[list[EvaluatedRun]]:
    """The groups of these names, or numbers; raises as `beside`."""
    groups = groups_of(runs, by)
    numbered = {str(number): name for number, name in enumerate(groups, 1)}
    names = [name if name in groups else numbered.get(name, name) for name in chosen]
    for name in names:
        if name not in groups:
            raise UsageError(f"there is no group {name!r}; there are: {'; '.join(groups)[:300] or 'none'}")
    return [groups[name] for name in names]


def drawing(row: Mapping[str, Any]) -> str:
    """Pass@1 of every group as bars, as SVG."""
    shares = {it["group"]: it["pass_at"].get("1") for it in row["groups"]}
    counts = {name: 100 * share["value"] if share else 0.0 for name, share in shares.items()}
    words = [interval_words(share) if share else "no runs" for share in shares.values()]
    return bars_svg("Pass@1, in percent, with 95 % intervals", counts, words)


def interval_words(share: Mapping[str, Any]) -> str:
    """A share in percent, with its interval where it has one."""
    value = f"{100 * share['value']:.1f}%"
    return value if share["low"] is None else f"{value} ({100 * share['low']:.1f} to {100 * share['high']:.1f})"
