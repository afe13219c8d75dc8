"""The figures of process reward models, for machines and for people (SWE-PRM, section 4.3, table 4 and figure 2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prchain.core.console.terminal import counted, say, say_prose, say_table, tally
from sql.store import Store
from trajectories.agents.guidance.settings import SAMPLING
from trajectories.studies.bootstrap import RESAMPLES
from trajectories.studies.guidance.compared import (
    BASE,
    BRANCHES,
    GIVEN_UP,
    OBSERVED,
    OLDER,
    PRIVILEGED_ONES,
    REPEATED,
    REWRITTEN,
    UNCHOSEN,
    UNPAIRED,
    UNSHARED,
    UNTESTED,
    ComparedGroup,
    ComparedSetting,
    PrmSetting,
    compare,
)
from trajectories.studies.guidance.difficulty import (
    Difficulty,
    StageDifficulty,
    StageKey,
    difficulties,
    reference_stages,
)
from trajectories.studies.guidance.metrics import (
    Rate,
    SettingFigures,
    cost_per_resolved,
    differences,
    figures,
)

_WIDTH = 80
_LONGEST_NAME = 8

_LEFT_OUT = {
    UNSHARED: "not reached in every setting",
    REWRITTEN: "with another task or other tests in some setting",
    UNTESTED: "without hidden tests in some setting",
}
"""Of samples of stages, after their number."""

_NOT_COMPARED = {
    PRIVILEGED_ONES: "curated or told a process graph",
    BRANCHES: "branched off others",
    OLDER: "from before their settings were kept",
    GIVEN_UP: "given up for newer ones",
    OBSERVED: "with other observers",
    REPEATED: "older than another of the same sample",
    UNPAIRED: "of policies that no process reward model was used with",
    UNCHOSEN: "of other variants",
}


def prm_report(
    store: Store,
    repository: str | None = None,
    *,
    model: str | None = None,
    variants: Collection[str] = (),
    minutes: Mapping[str, float] | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """The figures by policy and setting, as JSON values: of one repository (``owner/name``), policy model, or only of
    some variants beside the base. `minutes` are those of `read_minutes`; stages without any have an estimate.

    Raises `UsageError` for an unknown repository, and for minutes that fit several stages.
    """
    with store.reading() as tx:
        comparison = compare(tx, repository, model, variants)
        known, unknown = difficulties(reference_stages(tx), minutes or {})
    return {
        "groups": [_group_row(group, known, resamples) for group in comparison.groups],
        "left_out": dict(comparison.left_out),
        "minutes_of_no_stage": unknown,
    }


def _group_row(group: ComparedGroup, known: Mapping[StageKey, StageDifficulty], resamples: int) -> dict[str, Any]:
    runs = group.settings[0].runs
    stages = sorted({run.stage for run in runs})
    tiers = Counter(known[stage].tier for stage in stages)
    rows = []
    base = group.settings[0] if group.settings[0].setting.name == BASE else None
    of_stage = {stage: known[stage].tier for stage in stages}
    of_base = figures(base.runs, of_stage) if base and base.runs else None
    for name, compared in zip(_names(group.settings), group.settings, strict=True):
        found = figures(compared.runs, of_stage) if compared.runs else None
        against = None
        if base is not None and of_base is not None and found is not None and compared is not base:
            against = _against(base, compared, of_base, found, resamples)
        setting = compared.setting
        rows.append(
            {
                "setting": name,
                "variant": setting.name,
                "other": dict(setting.other),
                "model": setting.model,
                "sampling": dict(setting.sampling),
                "trajectories": compared.trajectories,
                "reached": compared.reached,
                "figures": None if found is None else _figures_row(found),
                "against_base": against,
            }
        )
    return {
        "model": group.model,
        "scaffold": group.scaffold,
        "choices": dict(group.choices),
        "stages": len(stages),
        "runs": len(runs),
        "difficulty": {str(tier): tiers[tier] for tier in Difficulty},
        "estimated": sum(known[stage].estimated for stage in stages),
        "left_out": dict(group.left_out),
        "settings": rows,
    }


def _names(settings: Sequence[ComparedSetting]) -> list[str]:
    """Short names, a different one for each: the variant's, with a number where it is not the only one."""
    short = [
        it.setting.name if len(it.setting.name) <= _LONGEST_NAME else it.setting.name.partition("-")[0]
        for it in settings
    ]
    seen: Counter[str] = Counter()
    names = []
    for name in short:
        seen[name] += 1
        names.append(f"{name}.{seen[name]}" if short.count(name) > 1 else name)
    return names


def _figures_row(found: SettingFigures) -> dict[str, Any]:
    prm = ("prm_calls", "prm_tokens_in", "prm_tokens_out", "optimal", "suboptimal", "unsaid", "unread", "leaks")
    return {
        "resolved": _rate(found.resolved),
        **{str(tier): _rate(rate) for tier, rate in found.tiers.items()},
        "patches": _rate(found.patches),
        **{name: getattr(found, name) for name in ("steps", "tokens_in", "tokens_out", *prm)},
        "usd_per_100": {"policy": found.usd, "prm": found.prm_usd, "both": found.total_usd},
        "detected": dict(found.detected),
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return {**asdict(rate), "percent": rate.percent}


def _against(
    base: ComparedSetting, other: ComparedSetting, of_base: SettingFigures, found: SettingFigures, resamples: int
) -> dict[str, Any]:
    apart = differences(base.runs, other.runs, resamples=resamples)
    price = cost_per_resolved(found.total_usd, found.resolved.percent, of_base.total_usd, of_base.resolved.percent)
    return {**{name: None if it is None else asdict(it) for name, it in apart.items()}, "usd_per_resolved": price}


def print_prm_report(report: Mapping[str, Any]) -> None:
    """Print the report in 80 columns."""
    for place, group in enumerate(report["groups"]):
        if place:
            say()
        _print_group(group)
    if not report["groups"]:
        say_prose("No rollout was watched by a process reward model; `--observer prm` does it.", width=_WIDTH)
    if report["minutes_of_no_stage"]:
        say(f"{counted(report['minutes_of_no_stage'], 'name')} in the file of minutes: no stage has it")
    if report["left_out"]:
        words = [f"{count:,} {_NOT_COMPARED[why]}" for why, count in report["left_out"].items()]
        say_prose(f"trajectories left out: {'; '.join(words)}", width=_WIDTH)


def _print_group(group: Mapping[str, Any]) -> None:
    choices = [f"{name} {json.dumps(value)}" for name, value in group["choices"].items()]
    say_prose("; ".join([f"{group['scaffold']} with {group['model']}", *choices]), width=_WIDTH)
    for row in group["settings"]:
        say_prose(_setting_words(row), indent=2, width=_WIDTH)
    left_out = [f"{count:,} {_LEFT_OUT[why]}" for why, count in group["left_out"].items() if count]
    samples = "" if group["runs"] == group["stages"] else f" in {counted(group['runs'], 'sample')}"
    say_prose("; ".join([f"{counted(group['stages'], 'stage')}{samples} in all settings", *left_out]), width=_WIDTH)
    if not group["runs"]:
        return
    guessed = f"; of {group['estimated']:,} estimated by the reference patch, not by minutes"
    say_prose(f"difficulty: {tally(group['difficulty'])}{guessed if group['estimated'] else ''}", width=_WIDTH)
    rows = group["settings"]
    _table(
        ("", "resolved", *Difficulty, "patches", "steps"),
        (
            (
                row["setting"],
                *(_percent(row["figures"][name]) for name in ("resolved", *Difficulty, "patches")),
                f"{row['figures']['steps']:,.2f}",
            )
            for row in rows
        ),
    )
    _table(
        ("tokens", "in", "out", "PRM calls", "in", "out", "optimal", "subopt.", "unsaid"),
        ((row["setting"], *_token_cells(row)) for row in rows),
    )
    _print_usd(rows)
    _print_apart(rows)
    _print_detected(rows)


def _setting_words(row: Mapping[str, Any]) -> str:
    setting = PrmSetting(row["variant"], row["other"], row["model"], row["sampling"])
    words = [] if setting.name in (row["setting"], BASE) else [setting.name]
    words += [] if setting.model is None else [setting.model]
    words += [f"{name}={_plain(value)}" for name, value in setting.other.items()]
    words += [f"{name}={_plain(value)}" for name, value in setting.sampling.items() if value != SAMPLING.get(name)]
    words += [f"{counted(row['trajectories'], 'trajectory')}", f"{counted(row['reached'], 'stage')} reached"]
    found = row["figures"]
    if found and found["unread"]:
        words.append(f"{counted(found['unread'], 'window')} without a reading")
    if found and found["leaks"]:
        words.append(f"{counted(found['leaks'], 'window')} with words that may leak")
    return f"{row['setting']}: {', '.join(words)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _token_cells(row: Mapping[str, Any]) -> list[str]:
    found = row["figures"]
    policy = [f"{found[name]:,.0f}" for name in ("tokens_in", "tokens_out")]
    if row["variant"] == BASE:
        return [*policy, *[""] * 6]
    tokens = [f"{found[f'prm_{name}']:,.0f}" for name in ("tokens_in", "tokens_out")]
    windows = [f"{found[name]:,.2f}" for name in ("optimal", "suboptimal", "unsaid")]
    return [*policy, f"{found['prm_calls']:,.2f}", *tokens, *windows]


def _print_usd(rows: Sequence[Mapping[str, Any]]) -> None:
    lines = []
    for row in rows:
        usd, against = row["figures"]["usd_per_100"], row["against_base"]
        more = [_apart(against["usd"]), _amount(against["usd_per_resolved"], "-")] if against else ["", ""]
        lines.append((row["setting"], *(_amount(usd[name], "?") for name in ("policy", "prm", "both")), *more))
    _table(("USD per 100", "policy", "PRM", "both", "more than base", "a further one resolved"), lines)


def _print_apart(rows: Sequence[Mapping[str, Any]]) -> None:
    lines = [
        (row["setting"], *(_apart(row["against_base"][name]) for name in ("resolved", "patches", "steps")))
        for row in rows
        if row["against_base"]
    ]
    if lines:
        _table(("against base", "resolved", "patches", "steps"), lines)
        say_prose(
            "resolved and patches in percentage points; intervals: 95 %, bootstrap over stages, paired", width=_WIDTH
        )


def _print_detected(rows: Sequence[Mapping[str, Any]]) -> None:
    guided = [row for row in rows if row["variant"] != BASE]
    counts: Counter[str] = Counter()
    for row in guided:
        counts.update(row["figures"]["detected"])
    if counts:
        _table(
            ("windows with", *(row["setting"] for row in guided)),
            (
                (category.replace("_", " "), *(f"{row['figures']['detected'].get(category, 0):,}" for row in guided))
                for category in sorted(counts, key=lambda name: (-counts[name], name))
            ),
        )


def _percent(rate: Mapping[str, Any]) -> str:
    return "-" if rate["percent"] is None else f"{rate['percent']:.1f}%"


def _amount(usd: float | None, unknown: str) -> str:
    return unknown if usd is None else f"{usd:,.2f}"


def _apart(difference: Mapping[str, Any] | None) -> str:
    if difference is None:
        return "?"
    bounds = "" if difference["low"] is None else f" [{difference['low']:,.2f}, {difference['high']:,.2f}]"
    return f"{difference['value']:+,.2f}{bounds}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    say()
    say_table(columns, rows, most=_WIDTH)
