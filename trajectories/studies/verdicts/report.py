"""The results of a calibration of the judge, as one JSON object and as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from prchain.core.console.terminal import counted, dollars, say, say_some, say_table
from prchain.core.llm.ledger import Spending
from trajectories.studies.verdicts.agreement import Agreement, agreement, agreement_across, curve, grouped, spread
from trajectories.studies.verdicts.calibrate import Calibration
from trajectories.studies.verdicts.variants import Variant


def summary(calibration: Calibration, *, threshold: float, model: str, prompts: Mapping[str, str]) -> dict[str, Any]:
    """All results; shares are from 0 to 1, and None if they would be shares of nothing."""
    judged_results = [result for result in calibration.results if result.variant is not Variant.EMPTY]
    scores_by_order = grouped(
        ((result.chain_id, result.position, result.variant, result.candidate_first), result.score)
        for result in judged_results
    )
    order_pairs = [
        (scores, scores_by_order[*key[:3], True])
        for key, scores in scores_by_order.items()
        if isinstance(key, tuple) and not key[3] and (*key[:3], True) in scores_by_order
    ]
    known = [(result.score, result.variant.to_accept) for result in judged_results if result.score is not None]
    tested = [
        (verdict.score, verdict.passed)
        for verdict in calibration.verdicts
        if verdict.score is not None and verdict.passed is not None
    ]
    wrong = [
        result
        for result in judged_results
        if result.score is not None and (result.score >= threshold) != result.variant.to_accept
    ]
    return {
        "model": model,
        "prompts": dict(prompts),
        "threshold": threshold,
        "stages": calibration.stages,
        "variants": {
            str(variant): {"to_accept": variant.to_accept, **asdict(spread(scores, threshold))}
            for variant in Variant
            if (scores := [result.score for result in calibration.results if result.variant is variant])
        },
        "unscored": dict(error_counts(calibration)),
        "repeats": asdict(agreement(scores_by_order.values(), threshold)),
        "orders": asdict(agreement_across(order_pairs, threshold)),
        "known": {"verdicts": len(known), "curve": [asdict(point) for point in curve(known)]},
        "tests": {
            "verdicts": len(tested),
            "agree": _share(sum((score >= threshold) == passed for score, passed in tested), len(tested)),
            "curve": [asdict(point) for point in curve(tested)],
            "of_other_judges": calibration.other_judges,
            "unscored": sum(verdict.score is None for verdict in calibration.verdicts),
            "without_tests": sum(
                verdict.score is not None and verdict.passed is None for verdict in calibration.verdicts
            ),
        },
        "wrong": [
            {
                "chain": result.chain_id,
                "position": result.position,
                "variant": str(result.variant),
                "score": result.score,
                "candidate_first": result.candidate_first,
                "repeat": result.repeat,
            }
            for result in wrong
        ],
        "unread": [
            {"chain": unmeasured.chain_id, "position": unmeasured.position, "reason": unmeasured.reason}
            for unmeasured in calibration.unread
        ],
        "left": calibration.left,
        "taken": calibration.taken,
        "stopped": calibration.stopped,
    }


def error_counts(calibration: Calibration) -> dict[str, int]:
    """The number of failed verdicts by name of the failure."""
    return Counter(result.error for result in calibration.results if result.error is not None)


def spent(spending: Spending) -> dict[str, Any]:
    """What this run paid for; the price is None if unknown."""
    return {
        "calls": spending.calls,
        "tokens_in": spending.tokens_in,
        "tokens_out": spending.tokens_out,
        "usd": None if spending.unpriced else spending.usd,
    }


_WRONG_SHOWN = 10


def print_summary(page: Mapping[str, Any], cost: Mapping[str, Any]) -> None:
    """Print a summary and its cost as tables."""
    threshold = page["threshold"]
    say(f"{page['model']} on {counted(page['stages'], 'stage')}, threshold {threshold:g}")
    say()
    columns = ("patch", "should be", "verdicts", "unscored", "accepted", "score: least", "median", "most")
    say_table(
        columns,
        [
            (
                name,
                "accepted" if row["to_accept"] else "rejected",
                f"{row['count']:,}",
                f"{row['unscored']:,}",
                _percent(row["accepted"]),
                *map(_number, (row["least"], row["median"], row["most"])),
            )
            for name, row in page["variants"].items()
        ],
    )
    say()
    _say_agreement("asked again", page["repeats"])
    _say_agreement("other order", page["orders"])
    known = page["known"]
    _say_curve(f"against patches of known worth, {counted(known['verdicts'], 'verdict')}", known["curve"])
    tests = page["tests"]
    if tests["verdicts"]:
        agree = _percent(tests["agree"])
        _say_curve(f"against tests, {counted(tests['verdicts'], 'stored verdict')}, {agree} agree", tests["curve"])
    else:
        say("against tests: no stored verdict has a score and a test result")
    if tests["of_other_judges"]:
        others = "of another model or prompt, or of a judge that saw tests, left aside"
        say(f"{counted(tests['of_other_judges'], 'stored verdict')} {others}")
    wrong = [
        f"wrong: {verdict['chain']} stage {verdict['position']}, {verdict['variant']}: {verdict['score']:g}"
        for verdict in page["wrong"]
    ]
    say_some(wrong, _WRONG_SHOWN, indent=0, rest="--json names all")
    say(f"{counted(cost['calls'], 'call')}, {dollars(cost['usd'])}")


def _say_agreement(name: str, row: Mapping[str, Any]) -> None:
    found = Agreement(**row)
    if found.pairs:
        say(
            f"{name}: {_percent(found.same)} decide alike, {_number(found.apart)} apart, {counted(found.pairs, 'pair')}"
        )
    else:
        say(f"{name}: nothing to compare")


def _say_curve(title: str, points: list[Mapping[str, Any]]) -> None:
    say()
    say(title)
    shares = ("accepted", "precision", "recall")
    rows = [(_number(point["threshold"]), *(_percent(point[name]) for name in shares)) for point in points]
    say_table(("threshold", *shares), rows)
    say()


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
