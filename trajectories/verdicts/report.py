"""What a calibration of the judge found, as one JSON object and as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from prchain.llm.ledger import Spending
from prchain.terminal import counted, say
from trajectories.verdicts.agreement import Agreement, agreement, agreement_across, curve, grouped, spread
from trajectories.verdicts.calibrate import Calibration
from trajectories.verdicts.variants import Variant


def summary(found: Calibration, *, threshold: float, model: str, prompts: Mapping[str, str]) -> dict[str, Any]:
    """Everything that was measured; shares are from 0 to 1 and None where there is nothing to take a share of."""
    asked = [one for one in found.results if one.variant is not Variant.EMPTY]
    one_way = grouped(((one.chain_id, one.position, one.variant, one.candidate_first), one.score) for one in asked)
    sides = [
        (scores, one_way[*key[:3], True])
        for key, scores in one_way.items()
        if isinstance(key, tuple) and not key[3] and (*key[:3], True) in one_way
    ]
    known = [(one.score, one.variant.to_accept) for one in asked if one.score is not None]
    tested = [(one.score, one.passed) for one in found.verdicts if one.score is not None and one.passed is not None]
    wrong = [one for one in asked if one.score is not None and (one.score >= threshold) != one.variant.to_accept]
    return {
        "model": model,
        "prompts": dict(prompts),
        "threshold": threshold,
        "stages": found.stages,
        "variants": {
            str(variant): {"to_accept": variant.to_accept, **asdict(spread(scores, threshold))}
            for variant in Variant
            if (scores := [one.score for one in found.results if one.variant is variant])
        },
        "unscored": dict(grouped_errors(found)),
        "repeats": asdict(agreement(one_way.values(), threshold)),
        "orders": asdict(agreement_across(sides, threshold)),
        "known": {"verdicts": len(known), "curve": [asdict(point) for point in curve(known)]},
        "tests": {
            "verdicts": len(tested),
            "agree": _share(sum((score >= threshold) == passed for score, passed in tested), len(tested)),
            "curve": [asdict(point) for point in curve(tested)],
            "of_other_judges": found.other_judges,
            "unscored": sum(one.score is None for one in found.verdicts),
            "without_tests": sum(one.score is not None and one.passed is None for one in found.verdicts),
        },
        "wrong": [
            {
                "chain": one.chain_id,
                "position": one.position,
                "variant": str(one.variant),
                "score": one.score,
                "candidate_first": one.candidate_first,
                "repeat": one.repeat,
            }
            for one in wrong
        ],
        "unread": [{"chain": one.chain_id, "position": one.position, "reason": one.reason} for one in found.unread],
        "left": found.left,
        "taken": found.taken,
        "stopped": found.stopped,
    }


def grouped_errors(found: Calibration) -> dict[str, int]:
    """Name of the failure to number of verdicts that did not come."""
    counts: dict[str, int] = {}
    for one in found.results:
        if one.error is not None:
            counts[one.error] = counts.get(one.error, 0) + 1
    return counts


def spent(spending: Spending) -> dict[str, Any]:
    """What this run paid for; the price is None where it is not known."""
    return {
        "calls": spending.calls,
        "tokens_in": spending.tokens_in,
        "tokens_out": spending.tokens_out,
        "usd": None if spending.unpriced else spending.usd,
    }


_WRONG_SHOWN = 10


def print_summary(page: Mapping[str, Any], cost: Mapping[str, Any]) -> None:
    """Print it as tables."""
    threshold = page["threshold"]
    say(f"{page['model']} on {counted(page['stages'], 'stage')}, threshold {threshold:g}")
    say()
    say("patch         should be  verdicts  unscored  accepted  score: least  median  most")
    for name, row in page["variants"].items():
        should = "accepted" if row["to_accept"] else "rejected"
        say(
            f"{name:<12}  {should:<9}  {row['count']:>8,}  {row['unscored']:>8,}  {_percent(row['accepted']):>8}  "
            f"{_number(row['least']):>12}  {_number(row['median']):>6}  {_number(row['most']):>4}"
        )
    say()
    _say_agreement("asked again", page["repeats"])
    _say_agreement("other order", page["orders"])
    _say_curve(f"against patches of known worth, {page['known']['verdicts']:,} verdicts", page["known"]["curve"])
    tests = page["tests"]
    if tests["verdicts"]:
        agree = _percent(tests["agree"])
        _say_curve(f"against tests, {tests['verdicts']:,} stored verdicts, {agree} agree", tests["curve"])
    else:
        say("against tests: no stored verdict has a score and a test result")
    if tests["of_other_judges"]:
        say(f"{counted(tests['of_other_judges'], 'stored verdict')} of another model or prompt, left aside")
    for one in page["wrong"][:_WRONG_SHOWN]:
        say(f"wrong: {one['chain']} stage {one['position']}, {one['variant']}: {one['score']:g}")
    if len(page["wrong"]) > _WRONG_SHOWN:
        say(f"and {len(page['wrong']) - _WRONG_SHOWN:,} more; --json names all")
    for name, count in page["unscored"].items():
        say(f"unscored: {count:,} {name}", err=True)
    for one in page["unread"]:
        say(f"{one['chain']} stage {one['position']}: left out, {one['reason']}", err=True)
    price = f"{cost['usd']:.4f} USD" if cost["usd"] is not None else "price unknown"
    say(f"{cost['calls']:,} calls, {price}")
    if page["stopped"]:
        say(f"stopped early, {counted(page['left'], 'stage')} left: {page['stopped']}", err=True)
    if page["taken"]:
        say(f"{counted(page['taken'], 'stage')} left: another run works on them; run again", err=True)


def _say_agreement(name: str, row: Mapping[str, Any]) -> None:
    found = Agreement(**row)
    if found.pairs:
        say(f"{name}: {_percent(found.same)} decide alike, {_number(found.apart)} apart, {found.pairs:,} pairs")
    else:
        say(f"{name}: nothing to compare")


def _say_curve(title: str, points: list[Mapping[str, Any]]) -> None:
    say()
    say(title)
    say("threshold  accepted  precision  recall")
    for one in points:
        say(
            f"{one['threshold']:>9.2f}  {_percent(one['accepted']):>8}  {_percent(one['precision']):>9}  "
            f"{_percent(one['recall']):>6}"
        )
    say()


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
